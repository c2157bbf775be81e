"""Cost of a fit of lagged pairs, in units of the two products of C₀ and C_τ: one bare `syrk` and one bare `gemm`.

Run `python -m benchmarks.bench_lagged` from the root of the repository; `--quick` takes a tenth of the frames.
`python -m benchmarks.bench_implied_timescales` measures the time scales of many lags.
"""

from __future__ import annotations

import argparse
import time
import warnings

from scipy.linalg.blas import dsyrk

from benchmarks._show import at_most, make_table, show
from benchmarks._timing import best_times
from benchmarks.bench_engine import MEMORY_GOAL, memory_of_fit, samples
from kdmaps import AdaptiveDiffusionMap, KernelDiffusionMap
from kdmaps.problems import load
from kdmaps.utils.threads import n_threads

FIT_GOAL, SEARCH_GOAL = 1.3, 10  # products, seconds
SEARCH_FRAMES, SEARCH_PROBLEM = 20_000, "triplewell2d+28"


def time_fit(n: int, d: int, p: int, repeats: int) -> dict[str, float]:
    """Best times of a fit with a lag and of the bare products, on the same frames in the same process."""
    X, Z = samples(n, d), samples(n, p)
    model = KernelDiffusionMap(n_features=p, lag=1, random_state=0).fit(X)
    return best_times(
        {
            "numpy": lambda: Z.T @ Z,
            "dsyrk": lambda: dsyrk(1.0, Z.T),  # the view is in Fortran order: no copy
            "gemm": lambda: Z[:-1].T @ Z[1:],
            "fit": lambda: model.fit(X),
        },
        repeats,
    )


def search_seconds(n: int) -> float:
    """Seconds of the default search on a trajectory of 30 coordinates."""
    path = load(SEARCH_PROBLEM).trajectory(n, 0.1, random_state=0)
    AdaptiveDiffusionMap(2, lag=1, time_step=0.1, random_state=0).fit(path[:500])  # compiled code
    start = time.perf_counter()
    AdaptiveDiffusionMap(2, lag=1, time_step=0.1, random_state=0).fit(path)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the frames, fewer repeats")
    arguments = parser.parse_args()
    shrink, repeats = (10, 3) if arguments.quick else (1, 5)
    n, n_memory, n_search = 100_000 // shrink, 1_000_000 // shrink, SEARCH_FRAMES // shrink
    warnings.simplefilter("ignore")  # warnings about modes of random numbers
    title = f"Pairs of frames, N={n:,}, {n_threads()} threads, best of {repeats}"
    table = make_table(title, "what", "cost", "goal", "time")
    for d, p in ((10, 300), (60, 1024)):
        times = time_fit(n, d, p, repeats if p < 1000 else max(2, repeats // 2))
        syrk = min(times["numpy"], times["dsyrk"])
        ratio = times["fit"] / (syrk + times["gemm"])
        table.add_row(
            f"fit, d={d}, p={p}", f"{ratio:.2f} (syrk + gemm)", at_most(ratio, FIT_GOAL), f"{times['fit']:.3f} s"
        )
        table.add_row("    bare syrk", "", "", f"{syrk:.3f} s")
        table.add_row("    bare gemm", "", "", f"{times['gemm']:.3f} s")
    memory = memory_of_fit(n_memory, lag=1)
    what = f"peak memory above X, N={n_memory:,}, d=10, p=300"
    table.add_row(what, f"{memory:.0f} MB", at_most(memory, MEMORY_GOAL), "")
    seconds = search_seconds(n_search)
    what = f"default search, {n_search:,} frames of 30 coordinates"
    table.add_row(what, f"{seconds:.1f} s", at_most(seconds, SEARCH_GOAL), f"{seconds:.1f} s")
    show(table, None if arguments.quick else "lagged")


if __name__ == "__main__":
    main()
