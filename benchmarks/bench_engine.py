"""Cost of a fit, in units of the one product that every fit needs: the symmetric product ZᵀZ of N×p features.

Run `python -m benchmarks.bench_engine` from the root of the repository; `--quick` takes a tenth of the samples.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from rich.table import Table
from scipy.linalg.blas import dsyrk

from benchmarks._show import at_most, make_table, show
from benchmarks._timing import best_times, peak_memory_above
from kdmaps import KernelDiffusionMap
from kdmaps.bases import select_landmarks
from kdmaps.forms.energy import compute_moments
from kdmaps.spectrum.pencil import find_modes
from kdmaps.utils.threads import n_threads

MEMORY_GOAL = 150  # MB


def samples(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, d))


def time_fit(n: int, d: int, p: int, repeats: int, **parameters) -> dict[str, float]:
    """Best times of a fit, of its parts and of the bare products, on the same samples in the same process."""
    X, Z = samples(n, d), samples(n, p)
    model = KernelDiffusionMap(n_features=p, random_state=0, **parameters).fit(X)
    W = np.ascontiguousarray(samples(p // 2, d).T)
    moments = model.moments_
    times = best_times(
        {
            "numpy": lambda: Z.T @ Z,
            "dsyrk": lambda: dsyrk(1.0, Z.T),  # the view is in Fortran order: no copy
            "fit": lambda: model.fit(X),
            "gram": lambda: compute_moments(model.basis_, X),
            "solve": lambda: find_modes(moments, model.basis_.ridge, model.n_components, model.regularization),
            "XW": lambda: X @ W,
        },
        repeats,
    )
    return {**times, "syrk": min(times["numpy"], times["dsyrk"])}


def fit_rows(table: Table, name: str, times: dict[str, float], goal: float | None) -> None:
    syrk = times["syrk"]
    rest = times["fit"] - times["gram"] - times["solve"]
    table.add_row(name, f"{times['fit'] / syrk:.2f} syrk", at_most(times["fit"] / syrk, goal), f"{times['fit']:.3f} s")
    # Each part has its own best run, so their sum may exceed the best time of the whole.
    remainder = "rest" if rest >= 0 else "rest, negative: parts timed apart exceed the whole"
    for part, seconds in (("features and Gram", times["gram"]), ("solve", times["solve"]), (remainder, rest)):
        table.add_row(f"    {part}", f"{seconds / syrk:.2f} syrk", "", f"{seconds:.3f} s")
    faster = "numpy" if times["numpy"] <= times["dsyrk"] else "scipy dsyrk"
    table.add_row(f"    bare syrk ({faster})", "", "", f"{syrk:.3f} s")


def memory_of_fit(n: int, **parameters) -> float:
    """Megabytes that a fit of n samples needs at its peak, in addition to the samples."""
    return peak_memory_above(
        "import warnings; warnings.simplefilter('ignore')\n"
        "import numpy as np; from kdmaps import KernelDiffusionMap\n"
        f"model = KernelDiffusionMap(n_features=300, random_state=0, **{parameters})\n"
        "model.fit(np.random.default_rng(1).standard_normal((100, 10)))\n"  # loads compiled code
        f"X = np.random.default_rng(0).standard_normal(({n}, 10))",
        "model.fit(X)",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples, fewer repeats")
    parser.add_argument("--repeats", type=int, help="runs of which the best counts (default 7, quick 3)")
    arguments = parser.parse_args()
    shrink = 10 if arguments.quick else 1
    repeats = arguments.repeats or (3 if arguments.quick else 7)
    n, n_memory = 100_000 // shrink, 1_000_000 // shrink
    warnings.simplefilter("ignore")  # warnings about modes of random numbers
    table = make_table(f"Engine, N={n:,}, {n_threads()} threads, best of {repeats}", "what", "cost", "goal", "time")
    if arguments.quick:
        table.caption = "The goals are meant for N=100,000, where costs that do not grow with N are negligible."

    small = time_fit(n, 10, 300, repeats)
    fit_rows(table, "fourier, d=10, p=300", small, 1.1)
    wide = time_fit(n, 60, 300, repeats)
    beyond = (wide["fit"] - wide["XW"]) / (small["fit"] - small["XW"])
    table.add_row("fourier, p=300, d=60 / d=10, without XWᵀ", f"{beyond:.2f}", at_most(beyond, 1.3), "")
    table.add_section()
    fit_rows(table, "fourier, d=60, p=1024", time_fit(n, 60, 1024, max(2, repeats // 2)), 1.25)
    table.add_section()

    landmarks = samples(300, 10)
    for kernel, goal in (("gaussian", 4), ("matern32", 4)):
        times = time_fit(n, 10, 300, repeats, basis="landmarks", landmarks=landmarks, kernel=kernel)
        fit_rows(table, f"landmarks, {kernel}, d=10, p=300", times, goal)
    X = samples(n, 10)
    kmeans = best_times({"": lambda: select_landmarks(X, 300, "kmeans", 0)}, 2)[""]
    table.add_row("choice of 300 landmarks by k-means", "", "", f"{kmeans:.3f} s")
    table.add_section()

    memory = memory_of_fit(n_memory)
    table.add_row(
        f"peak memory above X, N={n_memory:,}, d=10, p=300", f"{memory:.0f} MB", at_most(memory, MEMORY_GOAL), ""
    )
    show(table, None if arguments.quick else "engine")


if __name__ == "__main__":
    main()
