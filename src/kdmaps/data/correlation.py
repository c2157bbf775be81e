"""Autocorrelation of time series from one or several trajectories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import next_fast_len

#: Number of samples per Fourier transform, unless there are more lags.
PIECE = 2**16
#: Number of lags searched first for the end of the window, to save memory with long series.
FIRST_LAGS = 2**13


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
