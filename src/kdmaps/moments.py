"""Moments: the only thing that ever sees all of X.

They form a group: chunks add, folds subtract, machines reduce. Streaming, cross-validation and sample weights are all
sums of Moments.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kdmaps._chunkloop import map_reduce, slices
from kdmaps.bases import Basis
from kdmaps.diffusion import DiffusionTensor


@dataclass(frozen=True)
class Moments:
    """Weighted sums over samples of the features φ of a basis.

    Attributes
    ----------
    count : int
        Number of samples.
    weight, weight_squared : float
        Σ w and Σ w².
    total : ndarray of shape (p,)
        Σ w φ.
    gram : ndarray of shape (p, p)
        Σ w φφᵀ.
    energy : ndarray of shape (p, p)
        Σ w ∇φ a ∇φᵀ.
    """

    count: int
    weight: float
    weight_squared: float
    total: np.ndarray
    gram: np.ndarray
    energy: np.ndarray

    def _combine(self, other: Moments, sign: int) -> Moments:
        return Moments(
            self.count + sign * other.count,
            self.weight + sign * other.weight,
            self.weight_squared + sign * other.weight_squared,
            self.total + sign * other.total,
            self.gram + sign * other.gram,
            self.energy + sign * other.energy,
        )

    def __add__(self, other: Moments) -> Moments:
        return self._combine(other, 1)

    def __sub__(self, other: Moments) -> Moments:
        return self._combine(other, -1)

    def __mul__(self, factor: float) -> Moments:
        """The moments with every sample weight multiplied by `factor`."""
        return Moments(
            self.count,
            factor * self.weight,
            factor**2 * self.weight_squared,
            factor * self.total,
            factor * self.gram,
            factor * self.energy,
        )

    __rmul__ = __mul__

    @property
    def mean(self) -> np.ndarray:
        """E φ."""
        return self.total / self.weight

    @property
    def effective_count(self) -> float:
        """Kish's effective sample size (Σ w)²/Σ w²."""
        return self.weight**2 / self.weight_squared

    def covariance(self, center: bool = True) -> np.ndarray:
        """Σ = E φφᵀ, minus E φ E φᵀ if centred."""
        second = self.gram / self.weight
        if center:
            second -= np.outer(self.mean, self.mean)
        return second

    def mean_energy(self) -> np.ndarray:
        """L = E ∇φ a ∇φᵀ."""
        return self.energy / self.weight


def compute_moments(
    basis: Basis,
    X: np.ndarray,
    sample_weight: np.ndarray | None = None,
    diffusion: DiffusionTensor | None = None,
    rows: np.ndarray | None = None,
) -> Moments:
    """Moments of the samples X, in chunks over all cores; nothing larger than a chunk is ever formed.

    Parameters
    ----------
    basis : Basis
    X : array of shape (n_samples, d)
        Anything that gives an array for a slice (and for an index array, if `rows` is given).
    sample_weight : ndarray of shape (n_samples,), optional
    diffusion : DiffusionTensor, optional
        The identity by default.
    rows : ndarray of int, optional
        Only these samples.
    """
    diffusion = DiffusionTensor(None, basis.dim) if diffusion is None else diffusion
    n = X.shape[0] if rows is None else len(rows)
    weights = None if sample_weight is None else (sample_weight if rows is None else sample_weight[rows])

    def step(state, part):
        index = part if rows is None else rows[part]
        chunk = np.asarray(X[index], dtype=np.float64)
        root = np.ones(chunk.shape[0]) if weights is None else np.sqrt(weights[part])
        basis.step(state, chunk, root, diffusion.rows(chunk, index), diffusion.constant)

    states = map_reduce(list(slices(n, basis.chunk_rows)), basis.start, step)
    weight, squared = (n, n) if weights is None else (weights.sum(), weights @ weights)
    return Moments(n, float(weight), float(squared), *basis.finish(states, diffusion))


def sum_moments(parts: Iterable[Moments]) -> Moments:
    """Σ of moments, e.g. of the chunks of an iterator."""
    parts = iter(parts)
    total = next(parts)
    for part in parts:
        total = total + part
    return total
