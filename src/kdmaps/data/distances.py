"""Length scales of a data set: the median distance, and the support of the samples."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state

from kdmaps.utils.floor import FEWEST_COLUMNS, Floor, squares_between
from kdmaps.utils.types import RandomStateLike

#: Number of samples up to which the median is over all pairs; beyond, it is over the pairs of a random subsample.
MEDIAN_SAMPLES = 1_000
#: Size of that subsample. A larger one would dominate the cost of a fit apart from its sums, and a bandwidth does not
#: need more digits.
SUBSAMPLE = 500
#: Up to so many columns, a tree finds the nearest samples; with more, it is faster to compute all distances.
TREE_COLUMNS = 8
#: Message for samples whose squared distances overflow.
OVERFLOW = "Squared distances between samples of X overflow; give X in larger units, so that its numbers are smaller."
#: Number of samples stored, and number of samples whose nearest neighbours define the radius.
KEPT, MEASURED = 1_000, 300
#: Radius in units of the 99 % quantile of distances to the nearest sample.
FAR = 3.0
#: Fraction of the range of the samples by which coordinates may exceed it. (The range of 1e6 Gaussian samples exceeds
#: the range of the 1e4 that are examined by 0.16 of it on each side.)
MARGIN = 0.25


def median_distance(
    X: np.ndarray,
    sample_weight: np.ndarray | None = None,
    random_state: RandomStateLike = None,
    root: np.ndarray | None = None,
) -> float:
    """Return the median Euclidean distance over pairs of different samples, weighted by the product of their weights.

    Pairs of equal samples are excluded, so that an integer weight is equivalent to repeating the sample. A large X is
    represented by a random subsample. With a `root`, distances are between rows of X @ root.
    """
    n = X.shape[0]
    weight = np.ones(n) if sample_weight is None else sample_weight
    with np.errstate(over="ignore"):
        if not np.sum(np.square(np.ptp(X, axis=0), dtype=np.float64)) < np.inf:  # of one row, too
            raise ValueError(OVERFLOW)
    if n > MEDIAN_SAMPLES:
        rng = check_random_state(random_state)
        probability = None if sample_weight is None else weight / weight.sum()
        rows = np.sort(rng.choice(n, SUBSAMPLE, replace=sample_weight is not None, p=probability))
        X, weight = X[rows], np.ones(SUBSAMPLE)
    X = np.asarray(X, dtype=np.float64)
    distances = _distances(X, root)
    if sample_weight is None or n > MEDIAN_SAMPLES:
        distances = distances[distances > 0]
        median = np.median(distances) if distances.size else 0.0
    else:
        pairs = np.triu_indices(X.shape[0], 1)
        median = _weighted_median(distances, weight[pairs[0]] * weight[pairs[1]] * (distances > 0))
    if not median > 0:
        raise ValueError("All samples of X are equal (0 median pairwise distance), so modes do not exist.")
    return float(median)


def _distances(X: np.ndarray, root: np.ndarray | None) -> np.ndarray:
    """Return the distances between rows of X @ root, or of X, in the order of pdist."""
    if X.shape[1] < FEWEST_COLUMNS:
        return pdist(X if root is None else X @ root)
    floor = None if root is None else Floor.of(root)
    if root is not None and floor is None:
        X = X @ root
    squares = squares_between(X)[np.triu_indices(len(X), 1)]
    if floor is not None:
        squares = floor.level * squares
        if floor.directions.shape[1]:
            squares += pdist(X @ floor.directions, "sqeuclidean")
    distances: np.ndarray = np.sqrt(squares)
    return distances


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted median; for integer weights, `np.median` of the values repeated `weights` times."""
    order = np.argsort(values, kind="stable")
    values, cumulative = values[order], np.cumsum(weights[order])
    if not cumulative.size or cumulative[-1] <= 0:
        return 0.0
    half = cumulative[-1] / 2
    lower = values[np.searchsorted(cumulative, half * (1 - 1e-12))]
    upper = values[min(np.searchsorted(cumulative, half * (1 + 1e-12), side="right"), len(values) - 1)]
    return (lower + upper) / 2


def nearest_distances(X: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the distance of each of some points of X to the nearest other point of X."""
    centre = X.mean(axis=0)  # rounding errors are relative to the distance from the origin
    return np.asarray(neighbors(X - centre, 2).kneighbors(points - centre)[0][:, 1])


def neighbors(X: np.ndarray, k: int) -> NearestNeighbors:
    """Return an index of the k samples nearest to a point."""
    return NearestNeighbors(n_neighbors=k, algorithm="kd_tree" if X.shape[1] <= TREE_COLUMNS else "brute").fit(X)


def resolve_bandwidth(
    bandwidth: str | ArrayLike,
    X: np.ndarray,
    sample_weight: np.ndarray | None = None,
    random_state: RandomStateLike = None,
) -> ArrayLike:
    """Return `bandwidth` itself, or the median pairwise distance of X if it is "median"."""
    if isinstance(bandwidth, str):
        if bandwidth != "median":
            raise ValueError(f"bandwidth must be 'median', a number or one number per column, got {bandwidth!r}.")
        return median_distance(X, sample_weight, random_state)
    return bandwidth


@dataclass(frozen=True)
class Support:
    """The region covered by the samples of a fit."""

    samples: np.ndarray  # a random subset
    low: np.ndarray  # smallest and largest value of each coordinate
    high: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, seed: int) -> Self:
        """Return the support of these samples."""
        X = np.asarray(X, dtype=np.float64)
        kept = X[np.sort(np.random.RandomState(seed).permutation(len(X))[:KEPT])]
        return cls(kept, X.min(axis=0), X.max(axis=0))

    @cached_property
    def radius(self) -> float:
        """A point is far from the samples if its nearest sample is further away."""
        distinct = np.unique(self.samples, axis=0)
        if len(distinct) < 2:
            return 0.0
        nearest = nearest_distances(distinct, distinct[:: max(1, len(distinct) // MEASURED)])
        # If no distance is positive, their squares have overflowed.
        return FAR * float(np.quantile(nearest, 0.99)) if nearest.any() else np.nan

    def extended(self, bounds: tuple[np.ndarray, np.ndarray] | None) -> Self:
        """Return the support extended by the smallest and largest values of further samples."""
        if bounds is None:
            return self
        return replace(self, low=np.minimum(self.low, bounds[0]), high=np.maximum(self.high, bounds[1]))

    def far(self, X: np.ndarray) -> np.ndarray:
        """Return which points are far from all samples."""
        distances, _ = cKDTree(self.samples).query(np.asarray(X, dtype=np.float64))
        return np.asarray(distances > self.radius)

    def outside(self, X: np.ndarray) -> np.ndarray:
        """Return the rows with a coordinate far outside the range of the samples: a fast sufficient test of `far`."""
        margin = MARGIN * (self.high - self.low)
        low, high = self.low - margin, self.high + margin
        if np.all(X.min(axis=0) >= low) and np.all(X.max(axis=0) <= high):
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(np.any(np.clip(X, low, high) != X, axis=1))
