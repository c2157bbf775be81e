"""Autocorrelation of time series from one or several trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import next_fast_len
from scipy.stats import rankdata

#: Number of samples per Fourier transform, unless there are more lags.
PIECE = 2**16
#: Number of lags searched first for the end of the window, to save memory with long series.
FIRST_LAGS = 2**13
#: Rows that show the order, and rows that measure the correlation time.
LOOKED_AT, TIMED = 5_000, 100_000
#: Columns that are searched for walkers, and columns (of the strongest correlation) that are timed.
SEARCHED_COLUMNS, TIMED_COLUMNS = 64, 8
#: Correlations of n independent rows are normal with standard deviation 1/√n. One lag of 64 columns exceeds 5 of them
#: in 2 of 100,000 data sets, and one of 1,000 lags 6 of them in 1 of 10,000.
NEXT_ROW, ANY_LAG = 5.0, 6.0
#: Below this integrated correlation time random folds do little harm: a row has less than one companion.
LEAST_TIME = 2.0
#: Fewer rows show nothing.
MIN_ROWS = 20
#: Lags whose correlation is this part of the largest one count as equally strong; the first of them is the period.
NEARLY = 0.8


def trajectories_of(groups: ArrayLike | None, n_samples: int) -> list[np.ndarray]:
    """Return the sample indices of each group, groups in order of their first sample; None means one trajectory."""
    if groups is None:
        return [np.arange(n_samples)]
    groups = np.asarray(groups)
    if groups.shape != (n_samples,):
        raise ValueError(f"groups must hold one entry per sample, {n_samples} of them, got shape {groups.shape}.")
    _, first, owner = np.unique(groups, return_index=True, return_inverse=True)
    return [np.flatnonzero(owner == g) for g in np.argsort(first)]


def autocorrelation(
    series: ArrayLike, trajectories: Sequence[np.ndarray] | None = None, n_lags: int | None = None
) -> np.ndarray:
    """Compute the autocorrelation ρ_t of a series at the lags 0, 1, 2, ... by fast Fourier transform.

    Each lag is averaged over all pairs of samples within trajectories, about the mean of all samples.

    Parameters
    ----------
    series : array-like of shape (n_samples,)
    trajectories : sequence of ndarray of int, optional
        Sample indices of each trajectory, in temporal order; one trajectory by default.
    n_lags : int, optional
        Number of lags, which determines the memory needed; by default all.

    Returns
    -------
    ndarray of shape (n_lags or length of the longest trajectory,)
        Zero for a constant series.
    """
    series = np.asarray(series, dtype=np.float64)
    mean = series.mean()
    rows = [np.arange(len(series))] if trajectories is None else trajectories
    longest = max(map(len, rows))
    n_lags = longest if n_lags is None else min(n_lags, longest)
    products, pairs = np.zeros(n_lags), np.zeros(n_lags)
    for part in rows:
        k = min(n_lags, len(part))
        pairs[:k] += np.arange(len(part), len(part) - k, -1)
        # Samples of a piece are paired with each other and with the k - 1 samples after it, so the result does not
        # depend on the length of the pieces.
        for begin in range(0, len(part), piece := max(k, PIECE)):
            ahead = series[part[begin : begin + piece + k - 1]] - mean
            own = ahead[:piece]
            size = next_fast_len(len(own) + k, real=True)  # zero padding prevents wrap-around
            spectrum = np.conj(np.fft.rfft(own, size)) * np.fft.rfft(ahead, size)
            reached = min(k, len(ahead))
            products[:reached] += np.fft.irfft(spectrum, size)[:reached]
    products /= pairs
    return products / products[0] if products[0] > 0 else products


def integrated_correlation_time(series: ArrayLike, trajectories: Sequence[np.ndarray] | None = None) -> float:
    """Estimate the integrated correlation time g = 1 + 2 Σ_t |ρ_t|: n samples are worth about n/g independent ones.

    Absolute values are summed, because oscillations of the correlation would cancel. The sum ends at the first lag of
    at least five times g/2 (Sokal's window), beyond which the correlations are noise.

    Parameters
    ----------
    series : array-like of shape (n_samples,)
    trajectories : sequence of ndarray of int, optional
        Sample indices of each trajectory, in temporal order; one trajectory by default.

    Returns
    -------
    float
        In samples, at least 1.
    """
    n_lags = FIRST_LAGS
    while True:
        running = 2 * np.cumsum(np.abs(autocorrelation(series, trajectories, n_lags))) - 1
        inside = np.flatnonzero(np.arange(len(running)) >= 2.5 * running)
        if inside.size or len(running) < n_lags:  # window found, or no more lags
            return float(max(1.0, running[inside[0] if inside.size else -1]))
        n_lags *= 8


@dataclass(frozen=True)
class Order:
    """How rows depend on rows nearby.

    Attributes
    ----------
    n_walkers : int
        0 for independent rows, 1 for the consecutive frames of a trajectory, k for k walkers whose frames take turns.
    correlation_time : float
        Largest integrated correlation time of the columns, in rows of one walker; 1 for independent rows.
    """

    n_walkers: int = 0
    correlation_time: float = 1.0

    def walker_of(self, n_samples: int) -> np.ndarray:
        """Return the walker of each row."""
        return np.arange(n_samples) % max(1, self.n_walkers)


def order_of(X: np.ndarray, spacing: float = 1.0) -> Order:
    """Tell how the rows of X depend on rows nearby, from the autocorrelation of the ranks of its columns.

    Let ρ_t be the largest autocorrelation of all columns at lag t. Consecutive frames have their largest ρ_t at t = 1,
    k interleaved walkers at t = k (and its multiples) while ρ_1 is small; of independent rows no ρ_t exceeds the noise.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d)
        Rows in their order.
    spacing : float
        Number of rows of the data for one row of X, if X is a part of them.
    """
    columns, ranks = _ranks(X[:LOOKED_AT])
    n = len(ranks)
    if n < MIN_ROWS or not columns.size:
        return Order()
    picked = np.unique(np.linspace(0, len(columns) - 1, SEARCHED_COLUMNS).astype(int))
    by_lag = np.max([autocorrelation(ranks[:, j], n_lags=1 + n // 4) for j in picked], axis=0)[1:]
    beside = np.mean(ranks[1:] * ranks[:-1], axis=0)  # of all columns, at lag 1
    by_lag[0] = beside.max()
    period = 1 + int(np.argmax(by_lag >= NEARLY * by_lag.max()))
    if period > 1 and by_lag[period - 1] > ANY_LAG / np.sqrt(n) and by_lag[0] < by_lag[period - 1] / 2:
        return Order(period, _time(X, columns[picked], period) * spacing)
    if by_lag[0] > NEXT_ROW / np.sqrt(n):
        strongest = columns[np.argsort(-beside)[:TIMED_COLUMNS]]
        time = _time(X, strongest, 1)
        return Order(1, time * spacing) if time >= LEAST_TIME else Order()
    return Order()


def is_clock(x: np.ndarray) -> bool:
    """Return whether a column is a time or an index: it never turns back, or nearly always steps by the same amount.

    A clock may stand still (walkers with the same time) and restart (a trajectory in several pieces).
    """
    steps = np.diff(x)
    moving = steps[steps != 0]
    if len(x) < MIN_ROWS or len(moving) < MIN_ROWS // 2:
        return False
    if (moving > 0).all() or (moving < 0).all():
        return True
    usual = np.median(moving)
    return bool(np.mean(np.abs(moving - usual) <= 1e-6 * np.abs(usual)) > 0.9)


def _ranks(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that vary and are no clocks, and their ranks with mean 0 and variance 1.

    Ranks, because a few extreme values would hide the correlation of the others.
    """
    columns = np.array([j for j in range(X.shape[1]) if not is_clock(X[:, j]) and np.ptp(X[:, j]) > 0], dtype=int)
    ranks = rankdata(X[:, columns], axis=0)
    ranks -= ranks.mean(axis=0)
    return columns, ranks / ranks.std(axis=0)


def _time(X: np.ndarray, columns: np.ndarray, n_walkers: int) -> float:
    """Return the largest integrated correlation time of some columns along the frames of a walker."""
    rows = X[:TIMED]
    walkers = trajectories_of(np.arange(len(rows)) % n_walkers, len(rows))
    return max(integrated_correlation_time(rows[:, j], walkers) for j in columns[:TIMED_COLUMNS])
