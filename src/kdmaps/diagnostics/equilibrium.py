"""Tests of pairs of frames for two assumptions of a reversible fit: detailed balance, and runs in equilibrium.

Both compare a mean with its standard error over approximately independent parts of the trajectories.
"""

from collections.abc import Sequence

import numpy as np
from scipy import stats

from kdmaps.data.correlation import integrated_correlation_time
from kdmaps.diagnostics.resampling import MIN_BLOCKS
from kdmaps.utils.validation import unit_weight

#: Number of blocks of pairs. Student's quantiles are then close to normal ones, and each of 2,000 pairs' blocks has 67.
BLOCKS = 30
#: Smallest number of pairs in a block.
MIN_PAIRS = 5


def asymmetry(
    first: np.ndarray, second: np.ndarray, weight: np.ndarray | None, trajectories: Sequence[np.ndarray] | None
) -> np.ndarray:
    """Return the largest antisymmetric lagged correlation of each function, in standard errors; (q,), NaN if unknown.

    E[f_j(x)f_k(y) - f_k(x)f_j(y)] over pairs (x, y) vanishes for all functions if and only if paths forward and
    backward in time are equally probable. `first` and `second` are the values of q functions at both frames.
    """
    n, q = first.shape
    if n < BLOCKS * MIN_PAIRS or q < 2:
        return np.full(q, np.nan)
    share = unit_weight(weight, n)
    first, second = first - share @ first, second - share @ second
    j, k = np.triu_indices(q, 1)
    terms = first[:, j] * second[:, k] - first[:, k] * second[:, j]
    order = np.arange(n) if trajectories is None else np.concatenate(trajectories)
    blocks = np.array_split(order, BLOCKS)
    sums, sizes = (np.array([share[rows] @ some[rows] for rows in blocks]) for some in (terms, np.ones((n, 1))))
    mean = sums.sum(axis=0)
    error = np.sqrt(BLOCKS / (BLOCKS - 1) * np.sum((sums - sizes * mean) ** 2, axis=0))
    found = np.zeros((q, q))
    found[j, k] = found[k, j] = _normal_errors(mean, error, BLOCKS - 1, 1 / len(j))
    return found.max(axis=0)


def drift(
    first: np.ndarray, second: np.ndarray, timescales: np.ndarray, trajectories: Sequence[np.ndarray] | None
) -> np.ndarray:
    """Return how far each function is from its stationary mean at the beginning, in standard errors; (q,).

    Ten runs or more are compared by their starting points, fewer by their halves. NaN if there are too few frames.
    Weights are left out: weights for the starting points make the weighted runs stationary, but not the runs.
    Functions share the probability of a false alarm in proportion to their time scales, because fast functions are in
    equilibrium soon.
    """
    runs = [np.arange(len(first))] if trajectories is None else [rows for rows in trajectories if len(rows) > 1]
    if not runs:
        return np.full(first.shape[1], np.nan)
    limits = np.finfo(np.float32)
    slow = np.clip(np.where(np.isnan(timescales), 0, timescales), limits.tiny, limits.max)
    return (_at_starts if len(runs) >= MIN_BLOCKS else _between_halves)(first, second, runs, slow / slow.sum())


def _at_starts(first: np.ndarray, second: np.ndarray, runs: Sequence[np.ndarray], share: np.ndarray) -> np.ndarray:
    """Test the change during one lag at the first frames of runs, predicted by linear regression of all pairs.

    It vanishes on average if runs start in equilibrium. The regression also uses transitions late in the runs, so that
    the test is more powerful than a comparison of early with late frames.
    """
    order, starts = np.concatenate(runs), np.cumsum([0, *map(len, runs[:-1])])
    functions = np.column_stack([np.ones(len(order)), first[order]])
    change = second[order] - first[order]
    slope = np.linalg.lstsq(functions, change)[0]
    at_start = functions[starts]
    mean = at_start.mean(axis=0)
    leverage = functions @ np.linalg.lstsq(functions.T @ functions, len(runs) * mean)[0]
    residuals = np.add.reduceat(leverage[:, None] * (change - functions @ slope), starts)
    influence = (at_start - mean) @ slope + residuals
    error = influence.std(axis=0, ddof=1) / np.sqrt(len(runs))
    return _normal_errors(mean @ slope, error, len(runs) - 1, share)


def _between_halves(first: np.ndarray, second: np.ndarray, runs: Sequence[np.ndarray], share: np.ndarray) -> np.ndarray:
    """Test the difference between the means of the first and of the second halves of runs.

    Its error follows from the correlation time within the halves, which a difference between them does not lengthen.
    """
    halves = [half for rows in runs for half in np.array_split(rows, 2)]
    early, late = (np.concatenate(halves[k::2]) for k in (0, 1))
    means = np.stack([first[rows].mean(axis=0) for rows in (early, late)])
    rest = first.copy()
    rest[early] -= means[0]
    rest[late] -= means[1]
    times = np.array([integrated_correlation_time(column, halves) for column in rest.T])
    independent = len(early) / times  # in each half
    error = np.sqrt(2 * rest[np.concatenate(halves)].var(axis=0) / independent)
    found = _normal_errors(means[1] - means[0], error, independent - 1, share)
    return np.where(independent < MIN_BLOCKS, np.nan, found)


def _normal_errors(
    difference: np.ndarray, error: np.ndarray, freedom: np.ndarray | int, share: np.ndarray | float
) -> np.ndarray:
    """Return |difference|/error as standard errors of a normal law with the same probability, over the share of each.

    Student's law accounts for the degrees of freedom of the error, shares with sum 1 for the number of comparisons.
    """
    ratio = np.abs(difference) / np.maximum(error, np.finfo(float).tiny)
    # The smallest probability is a number whose quantile, 37 standard errors, is finite.
    chance = np.clip(2 * stats.t.sf(ratio, freedom) / share, 1e-300, 1)
    return np.asarray(stats.norm.isf(chance / 2))
