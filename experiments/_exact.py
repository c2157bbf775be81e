"""What samples tell a method that knows the exact eigenfunctions: Rayleigh–Ritz in their span."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from kdmaps.problems import Problem


def ritz(values: np.ndarray, gradients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rates, ascending, and combinations of the slowest functions in the span of these, by Rayleigh–Ritz.

    Parameters
    ----------
    values, gradients : ndarray of shape (n, r) and (n, r, d)
        Of the functions at samples.

    Returns
    -------
    rates, combinations : ndarray of shape (r,) and (r, r)
    """
    energy = np.einsum("nkd,nld->kl", gradients, gradients) / len(values)
    rates, combinations = linalg.eigh(energy, np.atleast_2d(np.cov(values, rowvar=False, bias=True)))
    return rates, combinations


def slowest(system: Problem, X: np.ndarray, count: int, step: float = 1e-4) -> np.ndarray:
    """Return the slowest functions on the samples in the span of the first exact eigenfunctions, at X; (n, r)."""
    values = system.eigenfunctions(X, count)
    shifts = step * np.eye(X.shape[1])
    slopes = [(system.eigenfunctions(X + e, count) - system.eigenfunctions(X - e, count)) / (2 * step) for e in shifts]
    return values @ ritz(values, np.stack(slopes, axis=2))[1][:, : system.n_modes]
