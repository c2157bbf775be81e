"""The leading modes for many λ by a few steps of subspace iteration each: for races, where a rough answer will do."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from kdmaps.spectrum.pencil import ROUNDING

#: Vectors that the iteration carries beyond the modes asked for: they take the slow convergence at the cut.
EXTRA = 8
#: Steps from random vectors, and from the modes of a neighbouring λ or of overlapping samples.
COLD_STEPS, WARM_STEPS = 5, 2


class IteratedPath:
    """Σa = μ(L+λR)a for many λ: one Cholesky factor and a few steps of subspace iteration for each.

    Every step multiplies by (L+λR)⁻¹Σ; Rayleigh and Ritz end it. The vectors of the λ before are the start, so that a
    path should go from one λ to the next. Scores of held-out samples then agree with those of `RegularizationPath` to
    about 1 %, at a fraction of the time.

    Parameters
    ----------
    covariance, energy : ndarray of shape (p, p)
        Σ and L.
    ridge : ndarray of shape (p, p) or None
        R; None is the identity.
    guide : IteratedPath, optional
        A path of overlapping samples, whose vectors are the first start.
    """

    def __init__(
        self,
        covariance: np.ndarray,
        energy: np.ndarray,
        ridge: np.ndarray | None = None,
        guide: IteratedPath | None = None,
    ):
        self._covariance, self._energy = covariance, energy
        self._ridge = np.eye(len(energy)) if ridge is None else ridge
        self._guide = guide
        self._vectors: np.ndarray | None = None

    def solve(self, n_modes: int, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        """At most `n_modes` leading eigenvalues μ, descending, and coefficients with aᵀ(L+λR)a = 1.

        There are none where L+λR is not positive definite in floating point.
        """
        penalty = self._energy + regularization * self._ridge
        factor, info = lapack.dpotrf(penalty, lower=1)
        if info != 0:
            return np.empty(0), np.empty((len(penalty), 0))
        vectors, steps = self._start(n_modes)
        for step in range(steps):
            vectors = lapack.dpotrs(factor, self._covariance @ vectors, lower=1)[0]
            if step % 2 or step == steps - 1:  # now and then is enough for the vectors to stay apart
                vectors = np.linalg.qr(vectors)[0]
            else:
                vectors /= np.linalg.norm(vectors, axis=0)
        variances, penalties = (vectors.T @ m @ vectors for m in (self._covariance, penalty))
        values, turn, info = lapack.dsygv(variances, penalties, uplo="L")
        if info != 0:
            return np.empty(0), np.empty((len(penalty), 0))
        self._vectors = vectors @ turn[:, ::-1]
        return values[::-1][:n_modes], self._vectors[:, :n_modes]

    def _start(self, n_modes: int) -> tuple[np.ndarray, int]:
        """Return vectors to start from, and how many steps to make."""
        if self._vectors is not None:
            return self._vectors, WARM_STEPS
        if self._guide is not None and self._guide._vectors is not None:
            return self._guide._vectors, WARM_STEPS
        p = len(self._energy)
        return np.random.default_rng(0).standard_normal((p, min(n_modes + EXTRA, p))), COLD_STEPS


def seen_directions(second_moment: np.ndarray, energy: np.ndarray, worthwhile: float = 0.4) -> np.ndarray | None:
    """Return orthonormal directions outside of which the samples see neither variance nor energy, to rounding.

    By pivoted Cholesky decomposition of the sum of both matrices, each divided by its trace. None if these are more
    than the fraction `worthwhile` of all directions: a smooth kernel leaves few, a rough one nearly all.
    """
    matrix = second_moment / np.trace(second_moment) + energy / np.trace(energy)
    factor, pivots, rank, _ = lapack.dpstrf(matrix, lower=1, tol=ROUNDING * matrix.diagonal().max())
    if rank > worthwhile * len(matrix):
        return None
    columns = np.empty((len(matrix), rank))
    columns[pivots - 1] = np.tril(factor)[:, :rank]
    return np.linalg.qr(columns)[0]
