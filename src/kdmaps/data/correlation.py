"""Autocorrelation of trajectories, and the order of rows that it reveals."""

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
#: Number of first rows used to find the order, and to measure the correlation time.
FIRST_ROWS, TIMED_ROWS = 5_000, 100_000
#: Number of first rows after which most columns are known to be no time, and to have many values.
EARLY_ROWS = 500
#: Number of columns searched for walkers, and of columns (with the strongest correlation) whose time is measured.
SEARCHED_COLUMNS, TIMED_COLUMNS = 64, 8
#: Correlations of n independent rows are normal with standard deviation 1/√n. One lag of 64 columns exceeds 5 standard
#: deviations in 2 of 100,000 data sets, and one of 1,000 lags exceeds 6 in 1 of 10,000.
NEXT_ROW, ANY_LAG = 5.0, 6.0
#: Below this integrated correlation time random folds do little harm: a row has less than one correlated neighbour.
LEAST_TIME = 2.0
#: A trajectory of more correlation times than this returns to earlier values, which sorted rows do not.
MIN_RETURNS = 10
#: Rows of a stretch, and the smallest ratio of steps to differences within it that independent rows have.
STRETCH, ROUGH = 20, 0.5
#: Minimum number of rows for any statement about their order.
MIN_ROWS = 20
#: Independent walkers have hardly any correlation between the multiples of their number; a periodic signal has, with a
#: mean square of a quarter (a sine of period 3) to 1 (period 2) of that at its period.
PERIODIC = 0.2
#: The median step of the last tenth of a column that settles, relative to the first tenth: less than e^-2.3, as of a
#: decay over three relaxation times. A time proceeds.
SETTLED = 0.1
#: Lags whose correlation reaches this fraction of the largest count as equally strong; the first is the period.
NEARLY = 0.8


def trajectories_of(groups: ArrayLike | None, n_samples: int) -> list[np.ndarray]:
    """Return the sample indices of each group, groups in order of their first sample; None means one trajectory."""
    if groups is None:
        return [np.arange(n_samples)]
    groups = np.asarray(groups)
    if groups.shape != (n_samples,):
        raise ValueError(f"groups must have one entry for each of {n_samples} samples, got shape {groups.shape}.")
    _, first, owner = np.unique(groups, return_index=True, return_inverse=True)
    return [np.flatnonzero(owner == g) for g in np.argsort(first)]


def autocorrelation(
    series: ArrayLike, trajectories: Sequence[np.ndarray] | None = None, n_lags: int | None = None
) -> np.ndarray:
    """Compute the autocorrelation ρ_t of a series at all lags, or the first `n_lags`, by fast Fourier transform.

    Each lag is averaged over all pairs of samples within trajectories (arrays of sample indices), about the mean of all
    samples. The result is zero for a constant series.
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


def integrated_correlation_time(
    series: ArrayLike, trajectories: Sequence[np.ndarray] | None = None, *, signed: bool = False
) -> float:
    """Estimate the integrated correlation time g = 1 + 2 Σ_t |ρ_t|: n samples are worth about n/g independent ones.

    Absolute values are summed, because oscillations of the correlation would cancel, unless `signed` asks for this: the
    mean over full periods has no error. The sum ends at the first lag that exceeds 2.5 g (Sokal's window), beyond which
    correlations are noise; with signs, within half a period. The result is in samples, at least 1.
    """
    n_lags = FIRST_LAGS
    while True:
        correlations = autocorrelation(series, trajectories, n_lags)
        running = 2 * np.cumsum(correlations if signed else np.abs(correlations)) - 1
        inside = np.flatnonzero(np.arange(len(running)) >= 2.5 * running)
        if inside.size or len(running) < n_lags:  # window found, or no more lags
            return float(max(1.0, running[inside[0] if inside.size else -1]))
        n_lags *= 8


@dataclass(frozen=True)
class Order:
    """Dependence of rows on nearby rows."""

    n_walkers: int = 0  # 1 for consecutive frames of a trajectory, k for interleaved frames of k walkers
    correlation_time: float = 1.0  # largest integrated time of the columns, in rows of one walker
    sorted: bool = False  # rows follow a trend, but consecutive rows do not depend on each other otherwise

    def walker_of(self, n_samples: int) -> np.ndarray:
        """Return the walker of each row."""
        return np.arange(n_samples) % max(1, self.n_walkers)


def order_of(X: np.ndarray, spacing: float = 1.0) -> Order:
    """Find the order of rows from the autocorrelation of the ranks of the columns.

    Let ρ_t be the largest autocorrelation of all columns at lag t. For consecutive frames ρ_t is largest at t = 1; for
    k interleaved walkers at t = k (and its multiples), while ρ_1 is small; for independent rows no ρ_t exceeds the
    noise. X may be every `spacing`-th row of the data.
    """
    columns, ranks = _ranks(X[:FIRST_ROWS])
    n = len(ranks)
    if n < MIN_ROWS or not columns.size:
        return Order()
    picked = np.unique(np.linspace(0, len(columns) - 1, SEARCHED_COLUMNS).astype(int))
    by_column = np.array([autocorrelation(ranks[:, j], n_lags=1 + n // 4)[1:] for j in picked])
    by_lag = by_column.max(axis=0)
    at_one = np.mean(ranks[1:] * ranks[:-1], axis=0)  # of all columns
    by_lag[0] = at_one.max()
    period = 1 + int(np.argmax(by_lag >= NEARLY * by_lag.max()))
    if period > 1 and by_lag[period - 1] > ANY_LAG / np.sqrt(n) and by_lag[0] < by_lag[period - 1] / 2:
        walkers = 1 if _is_periodic(by_column, period) else period
        return Order(walkers, _longest_time(X, columns[picked], walkers) * spacing)
    if by_lag[0] > NEXT_ROW / np.sqrt(n):
        slowest = columns[np.argsort(-at_one)]
        time = _longest_time(X, slowest, 1)
        sorted_rows = MIN_RETURNS * time > n and all(_is_rough(X[:n, j]) for j in slowest[:TIMED_COLUMNS])
        return Order(1, time * spacing, sorted_rows) if time >= LEAST_TIME else Order()
    return Order()


def _is_periodic(correlations: np.ndarray, period: int) -> bool:
    """Return whether the column with the strongest correlation at a period is correlated at shorter lags, too."""
    strongest = correlations[np.argmax(correlations[:, period - 1])]
    between = strongest[: period - 1]
    return bool(np.mean(between**2) > PERIODIC * strongest[period - 1] ** 2)


def _is_rough(x: np.ndarray) -> bool:
    """Return whether consecutive rows are as different as any rows of the same short stretch, unlike those of a path.

    The mean squared step over twice the variance within stretches of w rows is 1 for independent rows and about 3/w for
    a random walk; the median over the stretches ignores steps of a trend.
    """
    stretches = x[: len(x) // STRETCH * STRETCH].reshape(-1, STRETCH).astype(np.float64)
    variances, steps = stretches.var(axis=1, ddof=1), np.mean(np.diff(stretches, axis=1) ** 2, axis=1)
    return bool(np.median(steps - 2 * ROUGH * variances) > 0)


def is_clock(x: np.ndarray) -> bool:
    """Return whether a column is a time or an index: monotonic without settling, or with 90 % of its steps equal.

    A time may stand still (walkers with the same time) and restart (a trajectory in several pieces).
    """
    # The first rows of most columns show that it is none: unless they stand still, half of their steps would be equal.
    if len(x) > EARLY_ROWS and 0 <= _regularity(x[:EARLY_ROWS]) <= 0.5:
        return False
    return _regularity(x) > 0.9


def _regularity(x: np.ndarray) -> float:
    """Return the part of the steps, other than 0, that are equal; 1 for a monotonic column, -1 if too few rows move."""
    steps = np.diff(x)
    moving = steps[steps != 0]
    if len(x) < MIN_ROWS or len(moving) < MIN_ROWS // 2:
        return -1.0
    if (moving > 0).all() or (moving < 0).all():
        return 0.0 if _settles(moving) else 1.0
    usual = np.median(moving)
    return float(np.mean(np.abs(moving - usual) <= 1e-6 * np.abs(usual)))


def _settles(steps: np.ndarray) -> bool:
    """Return whether steps become small, as those of a state variable that relaxes."""
    tenth = max(1, len(steps) // 10)
    first, last = (np.median(np.abs(some)) for some in (steps[:tenth], steps[-tenth:]))
    return bool(last < SETTLED * first)


def _ranks(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that vary and are not clocks, and their ranks with mean 0 and variance 1."""
    columns = np.array([j for j in range(X.shape[1]) if not is_clock(X[:, j]) and np.ptp(X[:, j]) > 0], dtype=int)
    ranks = rankdata(X[:, columns], axis=0)  # extreme values would mask the correlation of the others
    ranks -= ranks.mean(axis=0)
    return columns, ranks / ranks.std(axis=0)


def _longest_time(X: np.ndarray, columns: np.ndarray, n_walkers: int) -> float:
    """Return the largest integrated correlation time of the first few of these columns along each walker."""
    rows = X[:TIMED_ROWS]
    walkers = trajectories_of(np.arange(len(rows)) % n_walkers, len(rows))
    return max(integrated_correlation_time(rows[:, j], walkers) for j in columns[:TIMED_COLUMNS])
