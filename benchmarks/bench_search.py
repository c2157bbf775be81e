"""A complete grid of KernelSearchCV against the textbook implementation: same candidates, same scores, one run.

Run `python -m benchmarks.bench_search` from the root of the repository; `--quick` takes two families.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import kdmaps
from benchmarks import textbook
from benchmarks._show import at_least, at_most, make_table, show
from kdmaps.bases import make_basis
from kdmaps.kernels import FAMILIES, make_kernel
from kdmaps.selection.folds import make_splits
from kdmaps.selection.scores import CAUTION

GOAL_SPEED, GOAL_AGREEMENT = 15, 1e-8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two families only")
    parser.add_argument("--problem", default="ou2d-4")
    parser.add_argument("--samples", type=int, default=500)
    arguments = parser.parse_args()
    families = list(FAMILIES)[:2] if arguments.quick else list(FAMILIES)
    X = kdmaps.problems.load(arguments.problem).sample(arguments.samples, random_state=0)
    warnings.simplefilter("ignore")
    search = kdmaps.KernelSearchCV(families=families, cv=3, bandwidths=10, random_state=0, max_extensions=0)
    search.fit(X)  # compiles
    start = time.perf_counter()
    search.fit(X)
    ours = time.perf_counter() - start

    seed = search.best_estimator_.random_state
    splits = make_splits(search.cv, X, None, search.n_components, seed)
    start = time.perf_counter()
    scores = []
    for params in search.cv_results_["params"]:
        kernel = make_kernel(params["kernel"], params["bandwidth"])
        basis = make_basis("fourier", kernel, X, search.n_features, random_state=seed)
        amplitude = np.tile(np.sqrt(basis.weights), 2)
        features = (basis.frequencies, amplitude)
        solve = (search.n_components, params["regularization"], CAUTION)
        scores.append(textbook.score(X - basis.origin, splits, *features, *solve))
    theirs = time.perf_counter() - start

    # kdmaps rejects candidates whose fourth mode is a rounding error of the covariance; the textbook does not.
    compared = np.isfinite(search.cv_results_["selection_score"])
    difference = np.abs(search.cv_results_["selection_score"] - scores)[compared]
    title = f"Grid of ten bandwidths, {arguments.problem}, N={len(X)}, p={search.n_features}, {len(scores)} candidates"
    table = make_table(title, "what", "value", "goal")
    table.add_row("textbook", f"{theirs:.2f} s", "")
    table.add_row("KernelSearchCV (with its final fit)", f"{ours:.2f} s", "")
    table.add_row("speed-up", f"{theirs / ours:.1f}×", at_least(theirs / ours, GOAL_SPEED))
    worst = difference.max()
    table.add_row("largest difference of scores", f"{worst:.1e}", at_most(worst, GOAL_AGREEMENT))
    table.add_row("median difference", f"{np.median(difference):.1e}", "")
    table.add_row("candidates refused as not determined", str(int((~compared).sum())), "")
    show(table, None if arguments.quick else "search")


if __name__ == "__main__":
    main()
