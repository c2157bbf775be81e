"""Sums of uncentred eigenvalues: bounds on the eigenvalue of the constant, and predicted and measured sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from experiments._runner import Row, load_samples
from kdmaps.bases import make_basis
from kdmaps.certificates import Certificate
from kdmaps.data.distances import median_distance
from kdmaps.forms.energy import compute_moments
from kdmaps.kernels import Kernel, make_kernel

PROBLEMS = ("ou2d-4", "dw1d", "circle", "mdlike-10")
FAMILIES = ("gaussian", "matern52")
LAMBDAS = (0.01, 1.0)
#: The paper's bandwidths, in units of the median distance.
BANDWIDTHS = np.geomspace(0.5, 50, 10)
N_MODES, N_FEATURES, N_FOLDS = 4, 300, 3
#: Number of samples whose pairs determine the mean squared kernel.
PAIRS_OF = 2000


def constant_mode(kernel: Kernel, X: np.ndarray, regularization: float) -> Certificate:
    """Bound the eigenvalue μ₀ of the constant-like mode of an uncentred covariance.

    (1 - q)/(λ + mq) ≤ μ₀ ≤ √(E k(X,X')²)/λ ≤ 1/λ, for samples of any law: q = E(X-EX)ᵀM(X-EX) with the curvature M of
    the kernel at 0, k(x,z) = 1 - ½(x-z)ᵀM(x-z) + …, and m the largest eigenvalue of M. For one bandwidth, M = 1/ℓ² and
    q = s²/ℓ² with s² = tr Cov X, so that μ₀ → 1/λ as the kernel becomes wide, for all data.

    The lower bound is the quotient of the function k(·, EX). With the spectral law of ω, k(x,z) = E cos ω·(x-z) and
    M = E ωωᵀ: 1 - cos u ≤ u²/2 and |sin u| ≤ |u| bound its variance about 0 from below and its energy from above, and
    its norm is 1. The upper bound is E f² ≤ τ‖f‖² with the largest eigenvalue τ of the kernel in L², which is at most
    its Hilbert–Schmidt norm.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray of shape (n, d)
        The samples; pairs of at most 2,000 of them are averaged over.
    regularization : float
        λ.

    Returns
    -------
    Certificate
        `value` is the lower bound; `constants` contains both.
    """
    curvature = _curvature(kernel, X.shape[1])
    violations: tuple[str, ...] = ()
    lower = 0.0
    spread = slope = np.inf
    if curvature is None:
        violations = (f"{kernel!r} is not smooth enough to have a curvature at 0; use a smoother family.",)
    else:
        centred = X - X.mean(axis=0)
        spread = float(np.einsum("ni,ij,nj->", centred, curvature, centred) / len(X))
        slope = float(np.linalg.eigvalsh(curvature)[-1])
        lower = max(1 - spread, 0.0) / (regularization + slope * spread)
    some = X[np.linspace(0, len(X) - 1, min(len(X), PAIRS_OF)).astype(int)]
    upper = float(np.sqrt(np.mean(kernel(some) ** 2))) / regularization
    constants = {"lower": lower, "upper": upper, "q": spread, "m": slope, "λ": regularization}
    return Certificate("constant-mode", lower, constants, ("the covariance is not centred",), violations)


def wide_kernel_sum(kernel: Kernel, X: np.ndarray, regularization: float, n_modes: int) -> float:
    """Predict the sum of the r leading uncentred eigenvalues of a wide kernel.

    S = (1 - q)/(λ + mq) + Σ_{i<r} v_i, with the r-1 largest eigenvalues v_i of Cov a = v (1 + λM⁻¹) a: the constant, as
    in `constant_mode`, and the linear functions u·x, of variance uᵀCov u, energy |u|² and squared norm uᵀM⁻¹u. For one
    bandwidth v_i = var_i/(1 + λℓ²). It increases with ℓ to 1/λ, which no kernel exceeds: Σ_j μ_j ≤ E k(X,X)/λ = 1/λ.
    The widest kernel of any grid is therefore chosen, whatever the slow modes are.

    Parameters
    ----------
    kernel : Kernel
        Radial, and wide compared with the data.
    X : ndarray of shape (n, d)
    regularization : float
        λ.
    n_modes : int
        r, the constant included.
    """
    curvature = _curvature(kernel, X.shape[1])
    if curvature is None:
        raise ValueError(f"{kernel!r} is not smooth enough to have a curvature at 0; use a smoother family.")
    penalty = np.eye(X.shape[1]) + regularization * np.linalg.inv(curvature)
    variances = linalg.eigh(np.atleast_2d(np.cov(X.T, bias=True)), penalty, eigvals_only=True)[::-1]
    return constant_mode(kernel, X, regularization).value + float(variances[: n_modes - 1].sum())


def eigenvalue_sum_choice(
    kernels: Sequence[Kernel], X: np.ndarray, regularization: float, timescales: ArrayLike
) -> Certificate:
    """Count the kernels that a sum of r uncentred eigenvalues can choose, whatever the modes are.

    All eigenvalues except μ₀ are bounded by time scales, μ_{k+1} ≤ t_k (Courant–Fischer), and μ₀ is bounded by
    `constant_mode`. A kernel cannot be chosen if these bounds on its sum are below the lower bound of another kernel.
    With a wide kernel among the candidates this excludes σ < s/√(λT) to leading order, with T = t_1 + … + t_{r-1}.

    Parameters
    ----------
    kernels : sequence of Kernel
        The candidates, from the narrowest to the widest.
    X : ndarray of shape (n, d)
    regularization : float
        λ.
    timescales : array-like of shape (r-1,)
        t_1, …, t_{r-1}, or bounds on them.

    Returns
    -------
    Certificate
        `value` is the number of candidates that can be chosen; `constants` has the index of the first of them.
    """
    bounds = [constant_mode(kernel, X, regularization) for kernel in kernels]
    total = float(np.sum(timescales))
    best = max(bound.value for bound in bounds)
    possible = [i for i, bound in enumerate(bounds) if bound.constants["upper"] + total >= best]
    constants = {"first": float(min(possible)), "T": total, "λT": regularization * total}
    assumptions = ("the covariance is not centred", "no eigenvalue except μ₀ exceeds its time scale")
    return Certificate("constant-mode", len(possible), constants, assumptions, trivial=len(bounds))


def _curvature(kernel: Kernel, dim: int) -> np.ndarray | None:
    """Return M = E ωωᵀ = -2κ'(0) TTᵀ of the components of a kernel, or None if it is infinite."""
    total = np.zeros((dim, dim))
    for weight, part in kernel.components():
        if part.smoothness < 1 or part.linear_map is None:
            return None
        T = part.linear_map
        squared = T @ T.T if T.ndim == 2 else np.diag(np.broadcast_to(T**2, dim))
        total -= 2 * weight * float(part.profile(np.zeros(1), 1)[0]) * squared
    return total


def run(problem: str, family: str, seed: int) -> list[Row]:
    """Return one row per λ: the sums of eigenvalues on test folds over the bandwidths, and their predictions."""
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
    """Return the larger of the two small parameters of the prediction: q, and the energy mq of the constant over λ."""
    return max(bound["q"], bound["m"] * bound["q"] / bound["λ"])


def _eigenvalues(kernel: Kernel, X: np.ndarray, seed: int) -> np.ndarray:
    """Return the leading uncentred eigenvalues μ for all λ; (n_lambdas, r)."""
    moments = compute_moments(make_basis("fourier", kernel, X, N_FEATURES, random_state=seed), X)
    covariance, energy = moments.covariance(False), moments.mean_energy()
    identity, top = np.eye(len(energy)), (len(energy) - N_MODES, len(energy) - 1)
    pencils = [(covariance, energy + lam * identity) for lam in LAMBDAS]
    return np.array([linalg.eigh(*pencil, eigvals_only=True, subset_by_index=top)[::-1] for pencil in pencils])
