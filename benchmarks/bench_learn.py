"""Cost of learning a kernel: a step on mixture weights, and time and memory of a step of VarRFF.

Run `python -m benchmarks.bench_learn` from the root of the repository; `--quick` takes a tenth of the samples.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks._show import at_most, make_table, show
from benchmarks._timing import best_times, peak_memory_above
from benchmarks.bench_engine import samples
from kdmaps import KernelDiffusionMap
from kdmaps.bases import make_basis
from kdmaps.kernels import Gaussian, Matern
from kdmaps.learn.objectives import make_objective
from kdmaps.learn.parametrisations import Anisotropy, Dictionary
from kdmaps.learn.problem import Problem
from kdmaps.learn.statistics import Samples
from kdmaps.utils.threads import n_threads

N_MODES, REGULARIZATION = 4, 1e-2
GOAL_GROWTH, GOAL_FITS, GOAL_MEMORY = 1.2, 4, 1000  # ratio, fits, MB


def weights_step(n: int, d: int = 2, n_kernels: int = 10, p: int = 60) -> Callable[[], object]:
    """Value and gradient of the combined objective by the weights of a dictionary."""
    X = samples(n, d)
    kernels = [Gaussian(sigma) for sigma in np.geomspace(0.5, 5.0, n_kernels)]
    # Any landmarks will do, because their selection is not timed.
    dictionary = Dictionary(Samples.of(X), kernels, X[:p], np.zeros(d))
    problem = Problem(dictionary, make_objective("combined", N_MODES), REGULARIZATION)
    theta = np.linspace(-0.5, 0.5, n_kernels)
    return lambda: problem.evaluate(theta).gradient


def varrff_step(n: int, d: int, p: int) -> Callable[[], object]:
    """Value and gradient of the objective of VarRFF by the bandwidths of all coordinates."""
    X = samples(n, d)
    basis = make_basis("fourier", Matern(1.5, 2 * np.sqrt(d)), X, p, random_state=0)
    problem = Problem(Anisotropy(Samples.of(X), basis), make_objective("varrff", N_MODES), REGULARIZATION)
    theta = np.linspace(-0.5, 0.5, d)
    return lambda: problem.evaluate(theta).gradient


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples, fewer repeats")
    parser.add_argument("--repeats", type=int, help="runs of which the best counts (default 15, quick 5)")
    arguments = parser.parse_args()
    shrink = 10 if arguments.quick else 1
    repeats = arguments.repeats or (5 if arguments.quick else 15)
    many, some, few = 100_000 // shrink, 10_000 // shrink, 1_000
    warnings.simplefilter("ignore")  # warnings about modes of random numbers

    table = make_table(f"Learning, {n_threads()} threads, best of {repeats}", "what", "cost", "goal", "time")
    times = best_times({"few": weights_step(few), "many": weights_step(many)}, 4 * repeats)
    growth = times["many"] / times["few"]
    table.add_row(f"step on β, L=10, p=60, N={few:,}", "", "", f"{1e3 * times['few']:.2f} ms")
    table.add_row(f"step on β, L=10, p=60, N={many:,}", "", "", f"{1e3 * times['many']:.2f} ms")
    table.add_row("    ratio", f"{growth:.2f}", at_most(growth, GOAL_GROWTH), "")
    table.add_section()

    X = samples(some, 10)
    model = KernelDiffusionMap(N_MODES, kernel="matern32", n_features=300, random_state=0)
    times = best_times({"fit": lambda: model.fit(X), "step": varrff_step(some, 10, 300)}, repeats)
    cost = times["step"] / times["fit"]
    table.add_row(f"fit, N={some:,}, d=10, p=300", "", "", f"{1e3 * times['fit']:.1f} ms")
    table.add_row("step of VarRFF, the same size", f"{cost:.2f} fits", at_most(cost, GOAL_FITS),
                  f"{1e3 * times['step']:.1f} ms")  # fmt: skip
    table.add_section()

    # Everything except the interpreter: samples, libraries and compilation are counted.
    memory = peak_memory_above("", f"from benchmarks.bench_learn import varrff_step; varrff_step({many}, 50, 300)()")
    table.add_row(
        f"peak memory of a VarRFF step, N={many:,}, d=50, p=300", f"{memory:.0f} MB", at_most(memory, GOAL_MEMORY), ""
    )
    show(table, None if arguments.quick else "learn")


if __name__ == "__main__":
    main()
