"""When a sum of eigenvalues misleads: the eigenvalue of the constant, and which bandwidths it lets win."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from kdmaps.certificates._certificate import Certificate
from kdmaps.kernels import Kernel

#: Samples whose pairs tell the mean squared kernel.
_PAIRS_OF = 2000


def constant_mode(kernel: Kernel, X: np.ndarray, regularization: float) -> Certificate:
    """Bound the eigenvalue μ₀ of the constant-like mode where the covariance is not centred.

    (1 - q)/(λ + mq) ≤ μ₀ ≤ √(E k(X,X')²)/λ ≤ 1/λ, for samples of any law: q = E(X-EX)ᵀM(X-EX) with the curvature M of
    the kernel at 0, k(x,z) = 1 - ½(x-z)ᵀM(x-z) + …, and m the largest eigenvalue of M. For one bandwidth, M = 1/ℓ² and
    q = s²/ℓ² with s² = tr Cov X, so that μ₀ → 1/λ as the kernel becomes wide, whatever the data are.

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
        `value` is the lower bound; `constants` has both.
    """
    curvature = _curvature(kernel, X.shape[1])
    violations: tuple[str, ...] = ()
    lower = 0.0
    spread = slope = np.inf
    if curvature is None:
        violations = (f"{kernel!r} has no curvature at 0; use a smoother family.",)
    else:
        centred = X - X.mean(axis=0)
        spread = float(np.einsum("ni,ij,nj->", centred, curvature, centred) / len(X))
        slope = float(np.linalg.eigvalsh(curvature)[-1])
        lower = max(1 - spread, 0.0) / (regularization + slope * spread)
    some = X[np.linspace(0, len(X) - 1, min(len(X), _PAIRS_OF)).astype(int)]
    upper = float(np.sqrt(np.mean(kernel(some) ** 2))) / regularization
    constants = {"lower": lower, "upper": upper, "q": spread, "m": slope, "λ": regularization}
    return Certificate("constant-mode", lower, constants, ("the covariance is not centred",), violations)


def wide_kernel_sum(kernel: Kernel, X: np.ndarray, regularization: float, n_modes: int) -> float:
    """Predict the sum of the r leading uncentred eigenvalues of a wide kernel.

    S = (1 - q)/(λ + mq) + Σ_{i<r} v_i, with the r-1 largest eigenvalues v_i of Cov a = v (1 + λM⁻¹) a: the constant, as
    in `constant_mode`, and the linear functions u·x, of variance uᵀCov u, energy |u|² and squared norm uᵀM⁻¹u. For one
    bandwidth v_i = var_i/(1 + λℓ²). It rises with ℓ to 1/λ, which no kernel exceeds: Σ_j μ_j ≤ E k(X,X)/λ = 1/λ. So the
    widest kernel of any grid is chosen, whatever the slow modes are.

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
        raise ValueError(f"{kernel!r} has no curvature at 0; use a smoother family.")
    penalty = np.eye(X.shape[1]) + regularization * np.linalg.inv(curvature)
    variances = linalg.eigh(np.atleast_2d(np.cov(X.T, bias=True)), penalty, eigvals_only=True)[::-1]
    return constant_mode(kernel, X, regularization).value + float(variances[: n_modes - 1].sum())


def eigenvalue_sum_choice(
    kernels: Sequence[Kernel], X: np.ndarray, regularization: float, timescales: ArrayLike
) -> Certificate:
    """Say which kernels a sum of r uncentred eigenvalues can choose at all, whatever the modes look like.

    All eigenvalues but the constant's are bounded by time scales, μ_{k+1} ≤ t_k (Courant–Fischer), and the constant's
    by `constant_mode`. A kernel cannot be chosen if these bounds on its sum are below
    the lower bound of another one. With a wide kernel among the candidates this excludes σ < s/√(λT) to leading order,
    with T = t_1 + … + t_{r-1}.

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
        `value` is how many of the candidates can be chosen; `constants` has the place of the first of them.
    """
    bounds = [constant_mode(kernel, X, regularization) for kernel in kernels]
    total = float(np.sum(timescales))
    best = max(bound.value for bound in bounds)
    possible = [i for i, bound in enumerate(bounds) if bound.constants["upper"] + total >= best]
    constants = {"first": float(min(possible)), "T": total, "λT": regularization * total}
    assumptions = ("the covariance is not centred", "no eigenvalue but that of the constant exceeds its time scale")
    return Certificate("constant-mode", len(possible), constants, assumptions, trivial=len(bounds))


def _curvature(kernel: Kernel, dim: int) -> np.ndarray | None:
    """M = E ωωᵀ = -2κ'(0) TTᵀ of the components of a kernel; None where it is infinite."""
    total = np.zeros((dim, dim))
    for weight, part in kernel.components():
        if part.smoothness < 1 or part.linear_map is None:
            return None
        T = part.linear_map
        squared = T @ T.T if T.ndim == 2 else np.diag(np.broadcast_to(T**2, dim))
        total -= 2 * weight * float(part.profile(np.zeros(1), 1)[0]) * squared
    return total
