"""Speed-up by a second worker: the same fits and the same search on one and on two single-thread Dask workers.

Run `python -m benchmarks.bench_dask` from the root of the repository, on a machine with two idle cores; `--rows` sets
the number of samples (4,000,000). Every worker is a process that draws its blocks of random numbers itself. A fit with
a lag sums pairs of consecutive rows, including pairs across two blocks.
"""

from __future__ import annotations

import argparse
import time
import warnings

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from benchmarks._show import at_least, make_table, show
from kdmaps import KernelDiffusionMap, KernelSearchCV

ROWS, DIM, FEATURES, BLOCK_ROWS = 4_000_000, 10, 300, 100_000
GOAL = 1.7


def samples(n: int) -> da.Array:
    return da.random.default_rng(0).standard_normal((n, DIM), chunks=(BLOCK_ROWS, DIM))


def fit(n: int) -> np.ndarray:
    """Return the time scales of one fit: the preview of the samples, the sums and the solve."""
    return KernelDiffusionMap(4, n_features=FEATURES, random_state=0).fit(samples(n)).timescales_


def lagged_fit(n: int) -> np.ndarray:
    """Return the eigenvalues of a fit of half as many pairs of frames, which take two products instead of one."""
    return KernelDiffusionMap(4, n_features=FEATURES, lag=1, random_state=0).fit(samples(n // 2)).eigenvalues_


def search(n: int) -> np.ndarray:
    """Return the scores of four candidates on a tenth of the samples; the best one is fitted to these."""
    settings = {"families": ["gaussian"], "bandwidths": [4.0, 8.0, 16.0, 32.0], "regularizations": [1e-3, 1e-2]}
    model = KernelSearchCV(4, n_features=FEATURES, random_state=0, max_extensions=0, **settings)
    return model.fit(samples(n // 10)).cv_results_["selection_score"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help=f"samples (default {ROWS:,})")
    parser.add_argument("--repeats", type=int, default=2, help="runs of which the best counts")
    arguments = parser.parse_args()
    n, best, results = arguments.rows, {}, {}
    warnings.simplefilter("ignore")  # warnings about modes of random numbers
    for _ in range(arguments.repeats):
        for workers in (1, 2):  # in turns, so that a slow phase of the machine affects both
            cluster = LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None)
            with cluster, Client(cluster):
                for task in (fit, lagged_fit, search):
                    task(10_000)  # imports and compilation
                    start = time.perf_counter()
                    results[task, workers] = task(n)
                    seconds = time.perf_counter() - start
                    best[task, workers] = min(seconds, best.get((task, workers), np.inf))
    title = f"Dask, N={n:,}, d={DIM}, p={FEATURES}, blocks of {BLOCK_ROWS:,}, best of {arguments.repeats}"
    table = make_table(title, "what", "one worker", "two workers", "gain", "goal", "relative difference")
    names = {fit: "fit", lagged_fit: f"fit with a lag, N={n // 2:,}", search: f"search, N={n // 10:,}, 4 kernels × 2 λ"}
    for task, name in names.items():
        one, two = best[task, 1], best[task, 2]
        difference = np.max(np.abs(results[task, 2] / results[task, 1] - 1))
        goal = at_least(one / two, GOAL)
        table.add_row(name, f"{one:.2f} s", f"{two:.2f} s", f"{one / two:.2f}", goal, f"{difference:.0e}")
    if n < ROWS:
        table.caption = f"The goal is meant for N={ROWS:,}, where costs that do not grow with N are negligible."
    show(table, None if n < ROWS else "dask")


if __name__ == "__main__":
    main()
