"""Length scales of a data set."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state

#: Up to this many samples the median runs over all pairs; beyond, over the pairs of a seeded subsample.
MEDIAN_SAMPLES = 1_000
#: Size of that subsample. More would cost more than the rest of what a fit does besides its sums, and no bandwidth
#: needs another digit.
SUBSAMPLE = 500
#: What is wrong with samples whose squared distances are beyond the largest float.
OVERFLOW = "Squared distances between samples of X overflow; give X in larger units, so that its numbers are smaller."


def median_distance(X: np.ndarray, sample_weight: np.ndarray | None = None, random_state=None) -> float:
    """Median Euclidean distance over pairs of samples that differ, each pair with the product of its weights.

    Pairs of equal samples do not count, so that an integer weight means the same as a repetition. Large X are
    represented by a seeded subsample.
    """
    n = X.shape[0]
    weight = np.ones(n) if sample_weight is None else sample_weight
    if n > MEDIAN_SAMPLES:
        rng = check_random_state(random_state)
        probability = None if sample_weight is None else weight / weight.sum()
        rows = np.sort(rng.choice(n, SUBSAMPLE, replace=sample_weight is not None, p=probability))
        X, weight = X[rows], np.ones(SUBSAMPLE)
    distances = pdist(np.asarray(X, dtype=np.float64))
    if sample_weight is None or n > MEDIAN_SAMPLES:
        if not distances.all():
            distances = distances[distances > 0]
        median = _median(distances) if distances.size else 0.0
    else:
        pairs = np.triu_indices(X.shape[0], 1)
        median = _weighted_median(distances, weight[pairs[0]] * weight[pairs[1]] * (distances > 0))
    if not median > 0:
        raise ValueError("All samples of X are equal (0 median pairwise distance): there are no modes to find.")
    if not median < np.inf:
        raise ValueError(OVERFLOW)
    return float(median)


def _median(values: np.ndarray) -> float:
    """`np.median`, a few times faster for many values: only the tenth of them around the median is put in order."""
    low, high = np.quantile(values[::97], (0.45, 0.55))
    middle = values[(values >= low) & (values <= high)]
    below, ranks = np.count_nonzero(values < low), np.array([(values.size - 1) // 2, values.size // 2])
    if ranks[0] < below or ranks[1] >= below + middle.size:  # the 97th values were not typical
        return np.median(values)
    return np.partition(middle, ranks - below)[ranks - below].mean()


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """Equal to `np.median` of the values repeated `weights` times, for whole weights."""
    order = np.argsort(values, kind="stable")
    values, cumulative = values[order], np.cumsum(weights[order])
    if not cumulative.size or cumulative[-1] <= 0:
        return 0.0
    half = cumulative[-1] / 2
    lower = values[np.searchsorted(cumulative, half * (1 - 1e-12))]
    upper = values[min(np.searchsorted(cumulative, half * (1 + 1e-12), side="right"), len(values) - 1)]
    return (lower + upper) / 2


def resolve_bandwidth(bandwidth, X: np.ndarray, sample_weight=None, random_state=None):
    """`bandwidth` itself, or the median pairwise distance of X for "median"."""
    if isinstance(bandwidth, str):
        if bandwidth != "median":
            raise ValueError(f"bandwidth must be 'median', a number or one number per column, got {bandwidth!r}.")
        return median_distance(X, sample_weight, random_state)
    return bandwidth
