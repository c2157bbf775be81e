"""Measured and predicted sums of uncentred eigenvalues."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from experiments._runner import Row, load_samples
from kdmaps.bases import make_basis
from kdmaps.certificates import constant_mode, eigenvalue_sum_choice, wide_kernel_sum
from kdmaps.data.distances import median_distance
from kdmaps.forms.energy import compute_moments
from kdmaps.kernels import Kernel, make_kernel

PROBLEMS = ("ou2d-4", "dw1d", "circle", "mdlike-10")
FAMILIES = ("gaussian", "matern52")
LAMBDAS = (0.01, 1.0)
#: The paper's bandwidths, in units of the median distance.
BANDWIDTHS = np.geomspace(0.5, 50, 10)
N_MODES, N_FEATURES, N_FOLDS = 4, 300, 3


def run(problem: str, family: str, seed: int) -> list[Row]:
    """Return one row per λ: the sums of eigenvalues on test folds over the bandwidths, and what was predicted."""
    system, X = load_samples(problem, seed)
    folds = [X[f::N_FOLDS] for f in range(N_FOLDS)]
    kernels = [make_kernel(family, sigma * median_distance(X, None, seed)) for sigma in BANDWIDTHS]
    times = 1 / system.rates(N_MODES - 1)
    measured = np.array([[_eigenvalues(kernel, part, seed) for part in folds] for kernel in kernels]).mean(axis=1)

    rows = []
    for i, lam in enumerate(LAMBDAS):
        bounds = [[constant_mode(kernel, part, lam).constants for part in folds] for kernel in kernels]
        choice = eigenvalue_sum_choice(kernels, X, lam, times)
        rows.append(
            {
                "part": "constant",
                "problem": problem,
                "family": family,
                "seed": seed,
                "λ": lam,
                "bandwidths": BANDWIDTHS.tolist(),
                "narrowness": [_narrowness(constant_mode(kernel, X, lam).constants) for kernel in kernels],
                "constant": measured[:, i, 0].tolist(),
                "sum": measured[:, i].sum(axis=1).tolist(),
                "lower": [float(np.mean([b["lower"] for b in part])) for part in bounds],
                "upper": [float(np.mean([b["upper"] for b in part])) for part in bounds],
                "predicted": [
                    float(np.mean([wide_kernel_sum(kernel, X, lam, N_MODES) for X in folds])) for kernel in kernels
                ],
                "possible": choice.value,
                "λT": choice.constants["λT"],
            }
        )
    return rows


def _narrowness(bound: dict[str, float]) -> float:
    """Return the largest of what the prediction assumes to be small: q, and the energy mq of the constant over λ."""
    return max(bound["q"], bound["m"] * bound["q"] / bound["λ"])


def _eigenvalues(kernel: Kernel, X: np.ndarray, seed: int) -> np.ndarray:
    """Return the leading uncentred eigenvalues μ of all λ; (n_lambdas, r)."""
    moments = compute_moments(make_basis("fourier", kernel, X, N_FEATURES, random_state=seed), X)
    covariance, energy = moments.covariance(False), moments.mean_energy()
    identity, top = np.eye(len(energy)), (len(energy) - N_MODES, len(energy) - 1)
    pencils = [(covariance, energy + lam * identity) for lam in LAMBDAS]
    return np.array([linalg.eigh(*pencil, eigvals_only=True, subset_by_index=top)[::-1] for pencil in pencils])
