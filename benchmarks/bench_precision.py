"""float32 features against float64 on every built-in problem, and their speed-up.

Run `python -m benchmarks.bench_precision` from the root of the repository; it writes results/precision/table.md.
`--quick` prints only the speed, on a tenth of the samples.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from benchmarks._timing import best_times
from kdmaps import KernelDiffusionMap, problems
from kdmaps.data.distances import median_distance
from kdmaps.exceptions import UnreliableModesWarning
from kdmaps.metrics import subspace_r2
from kdmaps.utils.threads import n_threads

OUT = Path("results/precision/table.md")
SAMPLES, FEATURES, WIDTHS, REGULARIZATION = 10_000, 300, (1.5, 5.0, 15.0), 1e-3
SPEED_GOAL, AGREEMENT_GOAL = 1.6, 1e-3


def fitted(X: np.ndarray, r: int, bandwidth: float, dtype: str) -> tuple[KernelDiffusionMap, bool]:
    """Return a model, and whether it warns about single precision."""
    model = KernelDiffusionMap(
        r, n_features=FEATURES, bandwidth=bandwidth, regularization=REGULARIZATION, random_state=0, dtype=dtype
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnreliableModesWarning)
        model.fit(X)
    return model, any("Single precision" in str(warning.message) for warning in caught)


def compare(name: str) -> str:
    """Return a row of the table: for each width of the kernel, the change of SubR² and of the rates."""
    problem = problems.load(name)
    X = problem.sample(SAMPLES, random_state=0)
    r = problem.n_modes
    reference, median = problem.reference(X, r), median_distance(X, random_state=0)
    cells = []
    for width in WIDTHS:
        (double, _), (single, warned) = (fitted(X, r, width * median, dtype) for dtype in ("float64", "float32"))
        change = subspace_r2(single.transform(X), reference) - subspace_r2(double.transform(X), reference)
        rates = np.abs(single.rates_ / double.rates_ - 1).max()
        mark = " (warned)" if warned else ""
        missed = " ✗" if abs(change) > AGREEMENT_GOAL else ""
        cells.append(f"{change:+.0e} / {rates:.0e}{mark}{missed}")
    return f"| {name} | {' | '.join(cells)} |"


def speed(n: int, d: int, p: int, repeats: int) -> str:
    X = np.random.default_rng(0).standard_normal((n, d))
    models = {dtype: KernelDiffusionMap(n_features=p, random_state=0, dtype=dtype) for dtype in ("float64", "float32")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about modes of random numbers
        times = best_times({dtype: lambda m=model: m.fit(X) for dtype, model in models.items()}, repeats)
    gain = times["float64"] / times["float32"]
    mark = "✓" if gain >= SPEED_GOAL else "✗"
    return f"| {n:,} | {d} | {p} | {gain:.2f} {mark} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the speed, on a tenth of the samples")
    arguments = parser.parse_args()
    n, repeats = (10_000, 3) if arguments.quick else (100_000, 7)
    lines = [
        f"Time of a fit in float64 over float32, {n_threads()} threads, best of {repeats} (goal ≥ {SPEED_GOAL}):",
        "",
        "| N | d | p | gain |",
        "|---:|---:|---:|---:|",
        *(speed(n, d, p, repeats) for d, p in ((10, 300), (60, 1024))),
    ]
    if not arguments.quick:
        lines = [
            "# float32 features against float64",
            "",
            f"N={SAMPLES:,}, p={FEATURES}, λ={REGULARIZATION:g}, Gaussian kernel of 1.5, 5 and 15 median distances, as "
            "many modes as the problem has by default: change of SubR² with the exact modes / largest relative change "
            f"of a rate. ✗: SubR² changes by more than {AGREEMENT_GOAL:g}. (warned): the fit in float32 warns of it.",
            "",
            f"| problem | {' | '.join(f'{width:g} medians' for width in WIDTHS)} |",
            "|---|---:|---:|---:|",
            *map(compare, problems.names()),
            "",
            *lines,
        ]
        OUT.parent.mkdir(parents=True, exist_ok=True)
        OUT.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
