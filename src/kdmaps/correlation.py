"""Autocorrelation of series that come from one or several trajectories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def trajectories_of(groups, n_samples: int) -> list[np.ndarray]:
    """Samples of each group, in their order, groups in the order of their first samples; None is one trajectory."""
    if groups is None:
        return [np.arange(n_samples)]
    groups = np.asarray(groups)
    if groups.shape != (n_samples,):
        raise ValueError(f"groups must hold one entry per sample, {n_samples} of them, got shape {groups.shape}.")
    _, first, owner = np.unique(groups, return_index=True, return_inverse=True)
    return [np.flatnonzero(owner == g) for g in np.argsort(first)]


def autocorrelation(series, trajectories: Sequence[np.ndarray] | None = None) -> np.ndarray:
    """Autocorrelation ρ_t of a series at the lags 0, 1, 2, ..., by fast Fourier transform.

    Every lag is averaged over the pairs of samples that the trajectories hold, about the mean of all samples.

    Parameters
    ----------
    series : array-like of shape (n_samples,)
    trajectories : sequence of ndarray of int, optional
        Samples of each trajectory, in the order of time; one trajectory by default.

    Returns
    -------
    ndarray of shape (length of the longest trajectory,)
        Zero for a constant series.
    """
    series = np.asarray(series, dtype=np.float64)
    series = series - series.mean()
    rows = [np.arange(len(series))] if trajectories is None else trajectories
    longest = max(map(len, rows))
    products, pairs = np.zeros(longest), np.zeros(longest)
    for part in rows:
        n = len(part)
        spectrum = np.fft.rfft(series[part], 2 * n)  # padded: no sample meets the other end
        products[:n] += np.fft.irfft(np.abs(spectrum) ** 2, 2 * n)[:n]
        pairs[:n] += np.arange(n, 0, -1)
    products /= pairs
    return products / products[0] if products[0] > 0 else products


def integrated_correlation_time(series, trajectories: Sequence[np.ndarray] | None = None) -> float:
    """Integrated correlation time g = 1 + 2 Σ_t |ρ_t| of a series: n samples are worth about n/g independent ones.

    Absolute values, because the swings of an oscillating series would cancel and hide its memory. The sum ends at the
    first lag of at least five times g/2 (Sokal's window): beyond it there is only noise.

    Parameters
    ----------
    series : array-like of shape (n_samples,)
    trajectories : sequence of ndarray of int, optional
        Samples of each trajectory, in the order of time; one trajectory by default.

    Returns
    -------
    float
        In samples, at least 1.
    """
    running = 2 * np.cumsum(np.abs(autocorrelation(series, trajectories))) - 1
    inside = np.flatnonzero(np.arange(len(running)) >= 2.5 * running)
    return float(max(1.0, running[inside[0] if inside.size else -1]))
