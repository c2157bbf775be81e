"""Difference between the held-out score of a search and its population value, and the bound on it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from experiments._runner import Row
from experiments.theory._law import nodes
from experiments.theory.optimism import fold_modes, optimism_of
from kdmaps import problems
from kdmaps.data import ArraySource
from kdmaps.estimators.search import KernelSearchCV
from kdmaps.forms.energy import compute_moments
from kdmaps.selection.result import Search
from kdmaps.selection.scores import ritz_pairs
from kdmaps.selection.search import search

#: Problems with the number of modes and of samples.
CASES = (("dw1d", 2, 500), ("ou2d-4", 2, 500))
GRID: dict[str, Any] = {
    "families": ["gaussian", "matern52"],
    "bandwidths": [0.5, 1.0, 2.0, 4.0, 8.0],
    "regularizations": [1e-4, 1e-3, 1e-2, 1e-1],
}
N_FEATURES = 60


def run(problem: str, n_modes: int, n: int, seed: int) -> list[Row]:
    """Return the row of one search: the best score, its population value and the bound on their difference."""
    X = problems.load(problem).sample(n, random_state=seed)
    plan = KernelSearchCV(n_modes, **GRID, cv=3, n_features=N_FEATURES, random_state=seed, n_jobs=1)._plan()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        searched = search(ArraySource(X), None, None, plan)
    found = optimism_of(searched)
    score = found.constants["score"]
    return [
        {
            "part": "optimism",
            "problem": problem,
            "n_modes": n_modes,
            "n": n,
            "seed": seed,
            "score": score,
            "population": _population(searched, problem),
            "exact": float(np.sum(1 / problems.load(problem).rates(n_modes))),
            "bound": found.value,
            "q": found.constants["q"],
            "candidates": found.constants["M"],
        }
    ]


def _population(found: Search, problem: str) -> float:
    """Return the pooled score of the best candidate with averages of the stationary law in place of test samples."""
    data, best = found.data, found.result.best
    folded = data.fold(best.kernel, best.basis)
    (fit,) = data.fit_folds(folded, [best.regularization])
    if fit is None:
        return np.nan
    X, weights = nodes(problem)
    modes = fold_modes(folded, fit, np.eye(fit.coefficients.shape[1]))
    sums = [compute_moments(part, X, weights) for part in modes]
    sizes = np.array([fold.test_weight for fold in fit.folds])
    covariance = np.tensordot(sizes, [part.covariance(True) for part in sums], 1)
    energy = np.tensordot(sizes, [part.mean_energy() for part in sums], 1)
    return float(ritz_pairs(covariance[None], energy[None])[0].sum())
