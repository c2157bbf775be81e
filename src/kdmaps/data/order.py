"""What the order of rows tells: independent samples, consecutive frames of a trajectory, or interleaved walkers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from kdmaps.data.correlation import autocorrelation, integrated_correlation_time, trajectories_of

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
