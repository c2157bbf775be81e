"""Implied time scales of ten lags in units of one fit: the frames are read once for all lags.

Run `python -m benchmarks.bench_implied_timescales` from the root of the repository; `--quick` takes a tenth of the
frames.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy.signal import lfilter

import kdmaps
from benchmarks._show import at_most, make_table, show
from benchmarks._timing import best_times

GOAL = 3
LAGS = [1, 2, 3, 5, 8, 12, 20, 30, 40, 50]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10,000 frames only")
    n, d, p = 10_000 if parser.parse_args().quick else 100_000, 10, 300
    rng = np.random.default_rng(0)
    decay = np.exp(-np.linspace(0.01, 0.1, d))
    X = np.column_stack([lfilter([1], [1, -a], np.sqrt(1 - a**2) * rng.standard_normal(n)) for a in decay])
    warnings.simplefilter("ignore")
    model = kdmaps.KernelDiffusionMap(4, n_features=p, lag=1, regularization=1e-4, random_state=0)
    times = best_times(
        {
            "fit": lambda: model.fit(X),
            "ten lags": lambda: kdmaps.dynamics.implied_timescales(model, X, LAGS, random_state=0),
        },
        repeats=3,
    )
    ratio = times["ten lags"] / times["fit"]
    table = make_table(f"Implied time scales, N={n}, d={d}, p={p}, 100 resamples", "what", "value", "goal")
    table.add_row("fit", f"{times['fit']:.2f} s", "")
    table.add_row("ten lags with intervals", f"{times['ten lags']:.2f} s", "")
    table.add_row("ten lags in fits", f"{ratio:.2f}", at_most(ratio, GOAL))
    show(table)


if __name__ == "__main__":
    main()
