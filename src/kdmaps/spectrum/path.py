"""The regularization path: the eigenproblem for many λ from one factorisation."""

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from kdmaps.spectrum.iteration import EXTRA, leading_pairs
from kdmaps.spectrum.pencil import ROUNDING, TOO_EXTREME, cholesky

#: Up to this many times the number of iterated vectors, a dense solve for the leading pairs is as fast.
DENSE_BLOCKS = 30


class RegularizationPath:
    """Σa = μ(L+λR)a for many λ from one factorisation.

    R is made the identity by its Cholesky factor; then L = U D Uᵀ is diagonalised once, and for every λ the problem
    is the symmetric one of (D+λ)^{-½} UᵀΣU (D+λ)^{-½}. Directions in which the samples have neither variance nor energy
    (most of them, for a smooth kernel) are left out. Beyond a few hundred features (`DENSE_BLOCKS`), subspace
    iteration starts from the modes of the previous λ.

    Parameters
    ----------
    covariance, energy : ndarray of shape (p, p)
        Σ and L.
    ridge : ndarray of shape (p, p) or None
        R; None is the identity.
    """

    def __init__(self, covariance: np.ndarray, energy: np.ndarray, ridge: np.ndarray | None = None):
        self._root = None
        if ridge is not None:
            self._root = cholesky(ridge, "R", "Use fewer landmarks, or landmarks further apart.")
            covariance, energy = (lapack.dsygst(m, self._root, itype=1, lower=1)[0] for m in (covariance, energy))
            covariance, energy = (np.tril(m) + np.tril(m, -1).T for m in (covariance, energy))
        try:
            energies, U = np.linalg.eigh(energy)
        except np.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(f"The eigenvalues of L could not be computed: {TOO_EXTREME}") from error
        SU = covariance @ U
        variances = np.einsum("ij,ij->j", U, SU)
        seen = (energies > ROUNDING * energies[-1]) | (variances > ROUNDING * variances.max())
        self._energies, self._U = np.maximum(energies[seen], 0), U[:, seen]
        self._S = self._U.T @ SU[:, seen]
        self._span = energies[-1], 0.0 if not seen.all() else max(energies[0], 0.0)
        self._start: np.ndarray | None = None

    @property
    def frame(self) -> np.ndarray:
        """B of shape (p, q) with BᵀRB = 1: the directions in which the samples have variance or energy."""
        return self._lifted(self._U)

    def _lifted(self, vectors: np.ndarray) -> np.ndarray:
        if self._root is None:
            return vectors
        return linalg.solve_triangular(self._root, vectors, lower=True, trans=1, check_finite=False)

    def solve(self, n_modes: int, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        """At most `n_modes` leading eigenvalues μ, descending, and coefficients with aᵀ(L+λR)a = 1."""
        scale = 1 / np.sqrt(self._energies + regularization)
        matrix = scale[:, None] * self._S * scale
        iterated = len(scale) > DENSE_BLOCKS * (n_modes + EXTRA)
        pairs = leading_pairs(matrix, n_modes, self._start) if iterated else None
        self._start = None if pairs is None else pairs[1]
        if pairs is None:
            last = len(matrix) - 1
            found = linalg.eigh(matrix, subset_by_index=[max(last - n_modes + 1, 0), last], check_finite=False)
            pairs = found[0][::-1], found[1][:, ::-1]
        values, vectors = pairs
        return values[:n_modes], self._lifted(self._U @ (scale[:, None] * vectors[:, :n_modes]))

    def condition_number(self, regularization: float) -> float:
        """Of L+λR relative to R, in the 2-norm."""
        largest, smallest = self._span
        return float((largest + regularization) / (smallest + regularization))
