"""What cross-validation maximises: small functions of modes fitted on training samples and of held-out samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from kdmaps.spectrum.path import RegularizationPath


@dataclass(frozen=True)
class FoldFit:
    """Modes V fitted on the training samples of a fold, and the operators of its test samples.

    Attributes
    ----------
    coefficients : ndarray of shape (p, r)
        V, with unit variance on the training samples.
    eigenvalues : ndarray of shape (r,)
        μ on the training samples.
    regularization : float
        λ.
    test_weight : float
        Total weight of the test samples.
    test_covariance, test_energy, test_ridge : ndarray of shape (r, r)
        VᵀΣV, VᵀLV (test samples) and VᵀRV.
    train_energy : ndarray of shape (r, r)
        VᵀLV (training samples); there VᵀΣV = 1.
    test_path : callable
        Returns the eigenproblem of the test samples themselves, a `RegularizationPath`.
    """

    coefficients: np.ndarray
    eigenvalues: np.ndarray
    regularization: float
    test_weight: float
    test_covariance: np.ndarray
    test_energy: np.ndarray
    test_ridge: np.ndarray
    train_energy: np.ndarray
    test_path: Callable[[], RegularizationPath]

    @cached_property
    def test_eigenvalues(self) -> np.ndarray:
        """μ_1..μ_{r+1} of the test samples' own eigenproblem, padded with 0."""
        n = self.coefficients.shape[1] + 1
        values, _ = self.test_path().solve(n, self.regularization)
        return np.pad(values, (0, n - len(values)))


def timescale_score(covariance: np.ndarray, energy: np.ndarray) -> float:
    """tr[(VᵀLV)⁻¹VᵀΣV] for the r×r covariance VᵀΣV and energy VᵀLV of r fixed modes on samples they were not fitted to.

    By Ky Fan's theorem its population value is at most the sum of the r longest relaxation times of the system, with
    equality only for the true slow space. It is free of λ and invariant to the basis of the mode space, hence
    comparable across kernels, regularizations and bases.
    """
    try:
        factor = linalg.cho_factor(energy, lower=True)
    except np.linalg.LinAlgError:
        return -np.inf  # a mode without energy on the test samples is constant there: it has no time scale
    return float(np.trace(linalg.cho_solve(factor, covariance)))


def vamp_score(covariance: np.ndarray, energy: np.ndarray, power: int = 2) -> float:
    """Σ_k ν_k^power of the autocorrelations of r fixed modes on pairs of frames that they were not fitted to.

    The ν are the eigenvalues of (C_τ, C₀) = (VᵀΣV - VᵀLV, VᵀΣV), as far as they are positive. Its population value is
    at most that of the r slowest modes of the system.
    """
    try:
        correlations = linalg.eigh(covariance - energy, covariance, eigvals_only=True)
    except np.linalg.LinAlgError:
        return -np.inf  # a mode without variance on the test pairs
    return float(np.sum(np.maximum(correlations, 0) ** power))


def vamp(fold: FoldFit, power: int = 2) -> float:
    """Return the VAMP score of the training modes on the test pairs."""
    return vamp_score(fold.test_covariance, fold.test_energy, power)


def vampe(fold: FoldFit) -> float:
    """2 Σ_k ν_k (C_τ)_kk - Σ_kl ν_k ν_l (C₀)_kl² on the test pairs, with the autocorrelations ν of the training pairs.

    How much of the transfer operator the modes explain, in the Hilbert–Schmidt norm (Wu and Noé 2020).
    """
    nu = 1 - np.diagonal(fold.train_energy)
    lagged = fold.test_covariance - fold.test_energy
    return float(2 * nu @ np.diagonal(lagged) - nu @ fold.test_covariance**2 @ nu)


def timescale(fold: FoldFit) -> float:
    """Return the timescale score of the training modes on the test samples."""
    return timescale_score(fold.test_covariance, fold.test_energy)


def rayleigh(fold: FoldFit) -> float:
    """Σ_j V_jᵀΣV_j / V_jᵀ(L+λR)V_j of the training modes on the test samples (eq:rayleigh-cv)."""
    penalty = np.diagonal(fold.test_energy) + fold.regularization * np.diagonal(fold.test_ridge)
    return float(np.sum(np.diagonal(fold.test_covariance) / penalty))


def eigsum(fold: FoldFit) -> float:
    """Σ_j μ_j of the test samples' own eigenproblem (eq:emp-cv)."""
    return float(fold.test_eigenvalues[:-1].sum())


def gap(fold: FoldFit) -> float:
    """μ_r/μ_{r+1} of the test samples' own eigenproblem (rem:gap-cv-preferred)."""
    below = fold.test_eigenvalues[-1]
    return float(fold.test_eigenvalues[-2] / below) if below > 0 else -np.inf
