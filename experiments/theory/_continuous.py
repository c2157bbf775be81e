"""The bandwidth from an interval: regret of the choice by a sum of centred eigenvalues on folds."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from experiments._runner import Row
from experiments.theory._law import nodes
from kdmaps import problems
from kdmaps.bases import make_basis
from kdmaps.forms.energy import compute_moments
from kdmaps.kernels import Matern

PROBLEM, NU, LAMBDA = "dw1d", 2.5, 0.01
#: A fine grid in place of the continuum; the bandwidths are absolute, fixed before samples are seen.
BANDWIDTHS = np.geomspace(0.5, 5, 24)
N_MODES, N_FEATURES, N_FOLDS = 2, 80, 3
#: Numbers of samples.
SIZES = (1000, 10_000)


def run(n: int, seed: int) -> list[Row]:
    """Return the row of one sample: its score at every bandwidth; seed -1 stands for the law itself."""
    if seed < 0:
        X, weights = nodes(PROBLEM)
        folds, by = [X], weights
    else:
        X = problems.load(PROBLEM).sample(n, random_state=seed)
        folds, by = [X[f::N_FOLDS] for f in range(N_FOLDS)], None
    scores = [float(np.mean([_sum(sigma, part, by) for part in folds])) for sigma in BANDWIDTHS]
    return [{"part": "continuous", "problem": PROBLEM, "n": n, "seed": seed, "scores": scores}]


def _sum(sigma: float, X: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the sum of the leading centred eigenvalues; the frequencies are the same for all samples."""
    basis = make_basis("fourier", Matern(NU, sigma), np.zeros((2, 1)), N_FEATURES, random_state=0)
    moments = compute_moments(basis, X, weights)
    covariance, energy = moments.covariance(True), moments.mean_energy() + LAMBDA * np.eye(basis.n_features)
    last = basis.n_features - 1
    return float(linalg.eigh(covariance, energy, eigvals_only=True, subset_by_index=(last - N_MODES + 1, last)).sum())
