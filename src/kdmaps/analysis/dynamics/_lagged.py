"""Modes of static samples against the trajectory that they come from."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from numbers import Real
from typing import Any

import numpy as np

from kdmaps.analysis.correlation import integrated_correlation_time, trajectories_of
from kdmaps.analysis.uncertainty import cut_blocks

#: Parts of the trajectory that are left out in turn, for standard errors.
JACKKNIFE_PARTS = 10
#: Correlations below this are too close to their noise to have a logarithm worth fitting.
SMALLEST_CORRELATION = 0.1
#: A smaller decay of log ρ over all lags is rounding.
SMALLEST_DECAY = 1e-12


@dataclass(frozen=True)
class LagComparison:
    """Autocorrelations of modes in time, and what they say about the time scales of the model.

    Attributes
    ----------
    times : ndarray of shape (n_lags,)
        Lag times, in the units of `time_step`.
    autocorrelations, autocorrelation_errors : ndarray of shape (n_lags, r)
        ρ_k(t) of mode k, and standard errors.
    predicted : ndarray of shape (n_lags, r)
        e^{-D rate_k t} with the common D.
    diffusion, diffusion_errors : ndarray of shape (r,)
        D_k, the decay rate in time over the rate of the model. NaN where fewer than two lags have a correlation that
        is large enough.
    common_diffusion, common_diffusion_error : float
        D: the mean of log D_k, weighted with its inverse variance, over the modes that decay. A system that the model
        describes has one for all. `model.timescales_ / common_diffusion` are the time scales in the units of
        `time_step`.
    amplitudes : ndarray of shape (r,)
        A_k of the fit A e^{-κt} to ρ_k(t): the part of the mode that decays with one rate. An exact mode of a Markovian
        system has 1; what is missing decays faster than the first lag.
    timescales, timescale_errors : ndarray of shape (r,)
        1/κ_k in the units of `time_step`.
    """

    times: np.ndarray
    autocorrelations: np.ndarray
    autocorrelation_errors: np.ndarray
    predicted: np.ndarray
    diffusion: np.ndarray
    diffusion_errors: np.ndarray
    common_diffusion: float
    common_diffusion_error: float
    amplitudes: np.ndarray
    timescales: np.ndarray
    timescale_errors: np.ndarray

    def table(self) -> list[dict[str, Any]]:
        """One row per mode and lag, as plain data: what `pandas.DataFrame` or a plot takes."""
        return [
            {
                "mode": k + 1,
                "time": float(time),
                "autocorrelation": float(self.autocorrelations[i, k]),
                "error": float(self.autocorrelation_errors[i, k]),
                "predicted": float(self.predicted[i, k]),
            }
            for k in range(len(self.diffusion))
            for i, time in enumerate(self.times)
        ]


def compare_with_trajectory(model, X, *, time_step: float = 1.0, lags=None, groups=None) -> LagComparison:
    """Compare the autocorrelation of the modes along a trajectory with the decay e^{-rate·t} that the rates predict.

    A model of static samples knows time only in units of its diffusion tensor: with the diffusion constant D, mode k
    decays as e^{-D·rate_k·t}. The slope of log ρ_k(t) gives D_k. Values that agree for all modes, and amplitudes near
    1, are what a Markovian diffusion with a constant D shows; a D_k that differs tells that the system moves more or
    less easily along mode k than the metric of X says, an amplitude below 1 that part of the mode is faster.

    Parameters
    ----------
    model : fitted estimator
    X : array-like of shape (n_samples, d)
        Samples at equal steps of time, unbiased: weights cannot turn biased motion into the system's own.
    time_step : float, default=1
        Time between samples.
    lags : array-like of int, optional
        Lags in samples. By default about twenty, up to twice the longest correlation time.
    groups : array-like of shape (n_samples,), optional
        The trajectory of every sample.

    Returns
    -------
    LagComparison

    Notes
    -----
    The line is fitted to log ρ at the lags with ρ > 0.1, weighted with ρ², the inverse variance of log ρ. Standard
    errors are jackknife ones over ten parts of the trajectory.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(5000, dt=0.1, random_state=0)[0]
    >>> m = kdmaps.KernelDiffusionMap(n_components=1, random_state=0).fit(path)
    >>> lagged = kdmaps.dynamics.compare_with_trajectory(m, path, time_step=0.1)
    >>> bool(abs(lagged.common_diffusion - 1) < 0.2)  # dX = … + √2 dW has D = 1
    True
    """
    if not isinstance(time_step, Real) or not 0 < float(time_step) < np.inf:
        raise ValueError(f"time_step must be a positive number, got {time_step!r}.")
    modes = np.asarray(model.transform(X), dtype=np.float64)
    trajectories = trajectories_of(groups, len(modes))
    lags = _checked_lags(lags, modes, trajectories)
    times, rates = lags * float(time_step), np.asarray(model.rates_)
    longest = max(map(len, trajectories))
    if lags[-1] >= longest:
        raise ValueError(
            f"lags go up to {lags[-1]} samples, but the longest trajectory has {longest}; use shorter lags or longer "
            "trajectories."
        )
    parts = cut_blocks(trajectories, ceil(len(modes) / JACKKNIFE_PARTS))
    if len(parts) < 2 or lags[-1] >= min(map(len, parts)):
        raise ValueError(
            f"lags go up to {lags[-1]} samples, too many for a trajectory of {len(modes)} samples in "
            f"{JACKKNIFE_PARTS} parts; use shorter lags or a longer trajectory."
        )
    # A part that joins trajectories counts no pair across their seam.
    owner = np.empty(len(modes), dtype=int)
    for number, rows in enumerate(trajectories):
        owner[rows] = number
    sums = np.array([_lagged_sums(modes[rows], owner[rows], lags) for rows in parts])
    whole = sums.sum(axis=0)
    rho, fit = _analyse(whole, times)
    left_out = [_analyse(whole - part, times) for part in sums]
    factor = (len(parts) - 1) ** 2 / len(parts)
    rho_error, fit_error = (np.sqrt(factor * np.var([draw[i] for draw in left_out], axis=0, ddof=1)) for i in range(2))
    decay, amplitude = fit
    known = np.isfinite(decay + fit_error[0])
    if not known.any():
        raise ValueError("No mode stays correlated over two lags; give shorter lags, or samples at shorter time steps.")
    decaying = known & (decay * times[-1] > SMALLEST_DECAY)
    if not decaying.any():
        raise ValueError(
            f"No correlated mode decays over lags of up to {lags[-1]} samples: as far as these show, it is constant "
            "along every trajectory. Give longer lags, or trajectories that are long enough to relax."
        )
    precision = (decay[decaying] / fit_error[0, decaying]) ** 2
    common = np.exp(np.average(np.log(decay[decaying] / rates[decaying]), weights=precision))
    # To first order, log D moves as the relative decay rates do; modes that err together are not counted twice.
    relative = [np.average(draw[1][0, decaying] / decay[decaying], weights=precision) for draw in left_out]
    return LagComparison(
        times=times,
        autocorrelations=rho,
        autocorrelation_errors=rho_error,
        predicted=np.exp(-times[:, None] * rates * common),
        diffusion=decay / rates,
        diffusion_errors=fit_error[0] / rates,
        common_diffusion=float(common),
        common_diffusion_error=float(common * np.sqrt(factor * np.var(relative, ddof=1))),
        amplitudes=amplitude,
        timescales=1 / decay,
        timescale_errors=fit_error[0] / decay**2,
    )


def _checked_lags(lags, modes: np.ndarray, trajectories) -> np.ndarray:
    if lags is None:
        longest = max(integrated_correlation_time(series, trajectories) for series in modes.T)
        most = max(2, min(len(modes) // (2 * JACKKNIFE_PARTS), max(map(len, trajectories)) - 1))
        return np.unique(np.geomspace(1, min(ceil(longest), most), 20).round().astype(int))
    lags = np.atleast_1d(np.asarray(lags))
    if not np.issubdtype(lags.dtype, np.integer) or lags.ndim != 1 or lags.size < 2 or np.any(np.diff(lags) <= 0):
        raise ValueError("lags must hold at least two ascending whole numbers of samples.")
    if lags[0] < 1:
        raise ValueError(f"lags must be at least 1 sample, got {lags[0]}.")
    return lags


def _lagged_sums(modes: np.ndarray, owner: np.ndarray, lags: np.ndarray) -> np.ndarray:
    """(1 + n_lags, r, 2): Σ φ_t φ_{t+lag} and the number of pairs, the lag 0 first; modes have mean 0."""
    sums = np.empty((1 + len(lags), modes.shape[1], 2))
    for i, lag in enumerate((0, *lags)):
        same = owner[lag:] == owner[: len(owner) - lag]
        products = modes[lag:] * modes[: len(modes) - lag]
        sums[i, :, 0], sums[i, :, 1] = products[same].sum(axis=0), np.count_nonzero(same)
    return sums


def _analyse(sums: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Autocorrelations (n_lags, r), and decay rates and amplitudes (2, r)."""
    covariance = sums[..., 0] / np.maximum(sums[..., 1], 1)
    rho = covariance[1:] / covariance[0]
    fit = np.full((2, rho.shape[1]), np.nan)
    for k, series in enumerate(rho.T):
        below = np.flatnonzero(series <= SMALLEST_CORRELATION)
        n = below[0] if below.size else len(series)
        if n >= 2:
            slope, intercept = np.polyfit(times[:n], np.log(series[:n]), 1, w=series[:n])
            fit[:, k] = -slope, np.exp(intercept)
    return rho, fit
