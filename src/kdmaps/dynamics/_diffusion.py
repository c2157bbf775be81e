"""Modes of static samples compared with a trajectory: which diffusion constant relates their time scales to time."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.checks import Check, rules, warn
from kdmaps.data.correlation import integrated_correlation_time, trajectories_of
from kdmaps.data.inputs import join_trajectories
from kdmaps.diagnostics.resampling import cut_blocks
from kdmaps.dynamics._timescales import lag_of
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.selection.lag import checked_lags
from kdmaps.utils.frames import records
from kdmaps.utils.notebook import TableCard
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.validation import check_positive_number

#: Number of parts of the trajectory for jackknife standard errors.
JACKKNIFE_PARTS = 10
#: Correlations below this are too noisy to fit their logarithm.
SMALLEST_CORRELATION = 0.1
#: A smaller decay of log ρ over all lags is attributed to rounding.
SMALLEST_DECAY = 1e-12


@dataclass(frozen=True)
class LagComparison(TableCard):
    """Autocorrelations of modes in time, compared with the time scales of the model."""

    times: np.ndarray  #: (n_lags,): lag times, in the units of `time_step`.
    autocorrelations: np.ndarray  #: (n_lags, r): ρ_k(t) of mode k.
    autocorrelation_errors: np.ndarray  #: (n_lags, r): their standard errors.
    predicted: np.ndarray  #: (n_lags, r): e^{-D rate_k t} with the common D.
    #: (r,): D_k, the decay rate in time divided by the rate of the model; NaN if fewer than two lags have a
    #: sufficiently large correlation.
    diffusion: np.ndarray
    diffusion_errors: np.ndarray  #: (r,): their standard errors.
    #: D, from the mean of log D_k over the modes that decay, weighted with the inverse variances. If the model is
    #: correct, all D_k are equal, and `model.timescales_ / common_diffusion` are the time scales in the units of
    #: `time_step`.
    common_diffusion: float
    common_diffusion_error: float  #: Its standard error.
    #: (r,): A_k of the fit A e^{-κt} to ρ_k(t), the part of the mode that decays with a single rate. It is 1 for an
    #: exact mode of a Markovian system; the remainder decays faster than the first lag.
    amplitudes: np.ndarray
    timescales: np.ndarray  #: (r,): 1/κ_k in the units of `time_step`.
    timescale_errors: np.ndarray  #: (r,): their standard errors.
    disagreement: float  #: Largest distance of a log D_k from log D, in its own standard errors.

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data per mode and lag, for example for `pandas.DataFrame`."""
        return records(
            mode=np.arange(len(self.diffusion))[:, None] + 1,
            time=self.times,
            autocorrelation=self.autocorrelations.T,
            error=self.autocorrelation_errors.T,
            predicted=self.predicted.T,
        )

    def __repr__(self) -> str:
        lines = [f"Modes along a trajectory, {len(self.times)} lags up to {self.times[-1]:.4g} in time"]
        lines += [
            f"  mode {k + 1}: D = {self.diffusion[k]:.3g} ± {self.diffusion_errors[k]:.2g}, amplitude "
            f"{self.amplitudes[k]:.3f}, time scale {self.timescales[k]:.4g} ± {self.timescale_errors[k]:.2g}"
            for k in range(len(self.diffusion))
        ]
        lines.append(
            f"  common D = {self.common_diffusion:.3g} ± {self.common_diffusion_error:.2g}; modes differ from it by up "
            f"to {self.disagreement:.1f} standard errors"
        )
        return "\n".join(lines)


@one_blas_thread()
def compare_with_trajectory(
    model: ModeTransformer,
    X: SamplesLike,
    *,
    time_step: float = 1.0,
    lags: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> LagComparison:
    """Compare the autocorrelation of the modes along a trajectory with the decay e^{-rate·t} predicted by the rates.

    With the diffusion constant D, mode k of static samples decays as e^{-D·rate_k·t}, and the slope of log ρ_k(t) gives
    D_k. For a Markovian diffusion with a constant D, all D_k agree and the amplitudes are near 1. A different D_k means
    that the mobility along mode k differs from what the metric of X implies. The result is a `LagComparison`.

    Parameters
    ----------
    model : fitted estimator
    X : array-like of shape (n_samples, d)
        Samples at equal time steps from an unbiased simulation; weights cannot correct biased dynamics.
    time_step : float, default=1
        Time between samples.
    lags : array-like of int, optional
        At least two lags, in frames. By default about twenty, up to twice the longest correlation time.
    groups : array-like of shape (n_samples,), optional
        Trajectory of each sample.

    Warns
    -----
    UnreliableModesWarning
        If the modes imply different D beyond their errors. Then `common_diffusion` is meaningless; fit pairs of frames
        (`lag` of the estimators), which need no D.

    Notes
    -----
    A line is fitted to log ρ at the lags with ρ > 0.1, with weights ρ²; errors are jackknife errors from ten parts.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(5000, dt=0.1, random_state=0)[0]
    >>> m = kdmaps.KernelDiffusionMap(n_components=1, random_state=0).fit(path)
    >>> lagged = kdmaps.dynamics.compare_with_trajectory(m, path, time_step=0.1)
    >>> bool(abs(lagged.common_diffusion - 1) < 0.2)  # dX = … + √2 dW has D = 1
    True
    """
    time_step = check_positive_number("time_step", time_step)
    X, groups, _ = join_trajectories(X, groups)
    modes = np.asarray(model.transform(X), dtype=np.float64)
    trajectories = trajectories_of(groups, len(modes))
    longest = max(map(len, trajectories))
    if lags is None:
        slowest = max(integrated_correlation_time(series, trajectories) for series in modes.T)
        most = max(2, min(len(modes) // (2 * JACKKNIFE_PARTS), longest - 1))
        lags = np.unique(np.geomspace(1, min(ceil(slowest), most), 20).round().astype(int))
    elif np.size(lags) < 2:
        raise ValueError(f"lags must contain at least two lags, got {lags!r}.")
    lags = checked_lags(lags, longest)
    times, rates = lags * time_step, np.asarray(model.rates_)
    sums = _sums_of_parts(modes, trajectories, lags)
    whole = sums.sum(axis=0)
    rho, (decay, amplitude) = _analyse(whole, times)
    rho_left_out, fit_left_out = map(np.array, zip(*(_analyse(whole - part, times) for part in sums), strict=True))
    rho_error, (decay_error, _) = _jackknife_error(rho_left_out), _jackknife_error(fit_left_out)
    known = np.isfinite(decay + decay_error)
    if not known.any():
        raise ValueError("No mode stays correlated over two lags; pass shorter lags, or samples at shorter time steps.")
    decaying = known & (decay * times[-1] > SMALLEST_DECAY)
    if not decaying.any():
        raise ValueError(
            f"No correlated mode decays within {lags[-1]} frames; the modes are constant along every trajectory. Pass "
            "longer lags, or trajectories that are long enough to relax."
        )
    precision = (decay[decaying] / decay_error[decaying]) ** 2
    logs = np.log(decay[decaying] / rates[decaying])
    mean = np.average(logs, weights=precision)
    common, disagreement = float(np.exp(mean)), float(np.max(np.abs(logs - mean) * np.sqrt(precision)))
    if lag_of(model) is None:
        warn(Check(rules.DISAGREEMENT, disagreement))
    # To first order, log D varies like the relative decay rates; this includes correlations between the modes.
    relative = np.average(fit_left_out[:, 0, decaying] / decay[decaying], weights=precision, axis=1)
    return LagComparison(
        times=times,
        autocorrelations=rho,
        autocorrelation_errors=rho_error,
        predicted=np.exp(-times[:, None] * rates * common),
        diffusion=decay / rates,
        diffusion_errors=decay_error / rates,
        common_diffusion=common,
        common_diffusion_error=float(common * _jackknife_error(relative)),
        amplitudes=amplitude,
        timescales=1 / decay,
        timescale_errors=decay_error / decay**2,
        disagreement=disagreement,
    )


def _sums_of_parts(modes: np.ndarray, trajectories: Sequence[np.ndarray], lags: np.ndarray) -> np.ndarray:
    """Return Σ φ_t φ_{t+lag} and numbers of pairs of each part, lag 0 first, (n_parts, 1 + n_lags, r, 2)."""
    parts = cut_blocks(trajectories, ceil(len(modes) / JACKKNIFE_PARTS))
    if len(parts) < 2 or lags[-1] >= min(map(len, parts)):
        raise ValueError(
            f"lags go up to {lags[-1]} frames, too many for a trajectory of {len(modes)} frames in {JACKKNIFE_PARTS} "
            "parts; use shorter lags or a longer trajectory."
        )
    # In a part that joins several trajectories, pairs across their boundaries are not counted.
    owner = np.empty(len(modes), dtype=int)
    for number, rows in enumerate(trajectories):
        owner[rows] = number
    sums = np.empty((len(parts), 1 + len(lags), modes.shape[1], 2))
    for p, rows in enumerate(parts):
        for i, lag in enumerate((0, *lags)):
            first, second = rows[: len(rows) - lag], rows[lag:]
            same = owner[first] == owner[second]
            sums[p, i, :, 0] = (modes[second] * modes[first])[same].sum(axis=0)
            sums[p, i, :, 1] = np.count_nonzero(same)
    return sums


def _jackknife_error(left_out: np.ndarray) -> np.ndarray:
    """Return the standard error √((n-1)/n Σ_i (θ_i - θ̄)²) from the values θ_i without part i."""
    n = len(left_out)
    return np.sqrt((n - 1) ** 2 / n * np.var(left_out, axis=0, ddof=1))


def _analyse(sums: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return autocorrelations (n_lags, r), and decay rates and amplitudes (2, r)."""
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
