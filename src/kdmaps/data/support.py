"""Where samples are, and which points lie far from all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

#: Samples that are kept to measure distances to, and those whose own distances say what is far.
KEPT, MEASURED = 1_000, 300
#: A point is far if its nearest sample is further than this many times a distance that 99 % of the samples keep.
FAR = 3.0
#: Coordinates that leave the range of the samples by more than this part of it are outside. (Of 1e6 Gaussian samples
#: the extremes are 1.3 times those of the 1e4 that are looked at: 0.16 of the range.)
MARGIN = 0.25


@dataclass(frozen=True)
class Support:
    """Where the samples of a fit are.

    Attributes
    ----------
    samples : ndarray of shape (m, d)
        Some of them.
    low, high : ndarray of shape (d,)
        The smallest and the largest value of each coordinate.
    radius : float
        Points whose nearest sample is further than this are far from all samples.
    """

    samples: np.ndarray
    low: np.ndarray
    high: np.ndarray
    radius: float

    @classmethod
    def of(cls, X: np.ndarray, seed: int) -> Support:
        """Look at these samples."""
        X = np.asarray(X, dtype=np.float64)
        kept = X[np.sort(np.random.RandomState(seed).permutation(len(X))[:KEPT])]
        distinct = np.unique(kept, axis=0)
        some = distinct[:: max(1, len(distinct) // MEASURED)]
        nearest = cKDTree(distinct).query(some, k=2)[0][:, 1] if len(distinct) > 1 else np.zeros(1)
        return cls(kept, X.min(axis=0), X.max(axis=0), FAR * float(np.quantile(nearest, 0.99)))

    def extended(self, bounds: tuple[np.ndarray, np.ndarray] | None) -> Support:
        """Return the support of other samples too, of which the smallest and the largest values are known."""
        if bounds is None:
            return self
        return replace(self, low=np.minimum(self.low, bounds[0]), high=np.maximum(self.high, bounds[1]))

    def far(self, X: np.ndarray) -> np.ndarray:
        """Return which points are far from all samples; (n,) of bool."""
        distances, _ = cKDTree(self.samples).query(np.asarray(X, dtype=np.float64))
        return np.asarray(distances > self.radius)

    def outside(self, X: np.ndarray) -> np.ndarray:
        """Return the rows with a coordinate far outside the range of the samples: all are far, and quickly found."""
        margin = MARGIN * (self.high - self.low)
        low, high = self.low - margin, self.high + margin
        if np.all(X.min(axis=0) >= low) and np.all(X.max(axis=0) <= high):
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(np.any(np.clip(X, low, high) != X, axis=1))
