"""Tests of pairs of frames for two assumptions of a reversible fit: detailed balance, and runs in equilibrium.

Both compare a mean with its standard error over approximately independent parts of the trajectories. Results are
normal standard errors: Student's law accounts for the number of parts, Bonferroni's bound for the number of
comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from kdmaps.diagnostics.resampling import MIN_BLOCKS
from kdmaps.utils.validation import unit_weight

#: Number of blocks of pairs. Student's quantiles are then close to normal ones, and each of 2,000 pairs' blocks has 67.
BLOCKS = 30
#: Smallest number of pairs in a block.
MIN_PAIRS = 5
#: Part of a run that counts as its beginning. A fifth detects runs of one relaxation time best, compared with a half
#: and with a linear trend (20 to 200 runs from one well).
BEGINNING = 0.2


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
    found = np.zeros((q, q))
    found[j, k] = found[k, j] = _standard_errors(
        np.array([share[rows] @ terms[rows] for rows in blocks]), np.array([share[rows].sum() for rows in blocks])
    )
    return found.max(axis=0)


def drift(values: np.ndarray, trajectories: Sequence[np.ndarray] | None) -> np.ndarray:
    """Return the difference of each function between the beginning and the rest of the runs, in standard errors; (q,).

    It vanishes on average if runs start in equilibrium. NaN for fewer than ten runs, whose start may be accidental.
    Weights are left out: weights for the starting points make the weighted runs stationary, but not the runs.
    """
    runs = [rows for rows in trajectories or () if len(rows) > 1]
    if len(runs) < MIN_BLOCKS:
        return np.full(values.shape[1], np.nan)
    changes = []
    for rows in runs:
        begin = max(1, round(BEGINNING * len(rows)))
        changes.append(values[rows[:begin]].mean(axis=0) - values[rows[begin:]].mean(axis=0))
    return _standard_errors(np.array(changes), np.ones(len(changes)))


def _standard_errors(sums: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return |Σ sums/Σ sizes| of independent parts in normal standard errors, corrected for the number of columns."""
    n, m = sums.shape
    mean = sums.sum(axis=0) / sizes.sum()
    error = np.sqrt(n / (n - 1) * np.sum((sums - sizes[:, None] * mean) ** 2, axis=0)) / sizes.sum()
    ratio = np.abs(mean) / np.maximum(error, np.finfo(float).tiny)
    # The smallest probability is a number whose quantile, 37 standard errors, is finite.
    chance = np.clip(2 * m * stats.t.sf(ratio, n - 1), 1e-300, 1)
    return np.asarray(stats.norm.isf(chance / 2))
