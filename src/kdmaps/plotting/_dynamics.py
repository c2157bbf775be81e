"""Modes in time: implied time scales, Chapman–Kolmogorov tests, free energies, series."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.plotting._common import (
    EXACT,
    LEARNED,
    add_colorbar,
    mode_axes,
    mode_series,
    mode_values,
    new_axes,
    one_axes,
    plain_log_ticks,
)
from kdmaps.utils.frames import join_rows
from kdmaps.utils.types import SamplesLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kdmaps.dynamics import ChapmanKolmogorov, ImpliedTimescales, LagComparison

#: Largest number of points in a series; longer ones are thinned.
MOST_POINTS = 20_000


def plot_implied_timescales(result: ImpliedTimescales, exact: ArrayLike | None = None, ax: Axes | None = None) -> Axes:
    """Draw time scales over the lag, with their intervals.

    Parameters
    ----------
    result : kdmaps.dynamics.ImpliedTimescales
        From `kdmaps.dynamics.implied_timescales`.
    exact : array-like of shape (r,), optional
        Exact time scales, drawn as dashed lines.
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    ax : Axes
        In the shaded region, time scales are shorter than the lag and cannot be resolved. A dotted line marks the lag
        from which time scales are flat within their errors.
    """
    ax = one_axes(ax)
    times = result.times
    for k, (values, bands) in enumerate(zip(result.timescales.T, np.moveaxis(result.intervals, 1, 0), strict=True)):
        known = values > 0
        (line,) = ax.plot(times[known], values[known], marker="o", ms=4, lw=1.4, label=f"mode {k + 1}")
        low, high = np.clip(bands[known].T, np.finfo(float).tiny, np.finfo(float).max)
        ax.fill_between(times[known], low, high, color=line.get_color(), alpha=0.2, lw=0)
        if exact is not None:
            ax.axhline(np.asarray(exact)[k], color=EXACT, lw=0.9, ls="--", label=None if k else "exact")
    shown = result.timescales[result.timescales > 0]
    bottom = min(shown.min(initial=times[0]), times[0]) / 1.5
    ends = np.array([times[0] / 1.15, times[-1] * 1.15])
    ax.fill_between(ends, bottom, ends, color="0.88", lw=0, zorder=0)
    ax.plot(ends, ends, color="0.5", lw=0.9)
    if result.plateau is not None:
        ax.axvline(result.plateau * result.time_step, color="0.4", lw=0.9, ls=":")
    top = 2 * max(shown.max(initial=times[-1]), times[-1])
    ax.set(xscale="log", yscale="log", xlabel="lag", ylabel="time scale", xlim=ends, ylim=(bottom, top))
    plain_log_ticks(ax.xaxis)
    plain_log_ticks(ax.yaxis)
    ax.legend(frameon=False, fontsize="small", loc="lower right")
    return ax


def plot_chapman_kolmogorov(result: ChapmanKolmogorov, axes: Sequence[Axes] | np.ndarray | None = None) -> np.ndarray:
    """Draw the predictions of one lag (lines) and the estimates at several lags (points), with intervals.

    Parameters
    ----------
    result : kdmaps.dynamics.ChapmanKolmogorov
        From `kdmaps.dynamics.chapman_kolmogorov`.
    axes : sequence of Axes, optional
        One for each mode, or m×m for m states; by default a new figure.
    """
    shape = result.predicted.shape[1:]
    axes = _grid(shape) if axes is None else np.asarray(axes, dtype=object)
    if axes.size != np.prod(shape):
        raise ValueError(f"axes has {axes.size} Axes, but the test has {np.prod(shape)} parts; pass one for each.")
    axes = axes.reshape(shape)
    times = np.r_[0, result.times]
    for place in np.ndindex(shape):
        ax: Axes = axes[place]  # type: ignore[assignment]
        at = (..., *place)
        start = float(len(shape) == 1 or place[0] == place[1])
        low, high = (np.r_[start, end] for end in result.predicted_intervals[(..., *place, slice(None))].T)
        ax.fill_between(times, low, high, color="0.85", lw=0)
        ax.plot(times, np.r_[start, result.predicted[at]], color=EXACT, lw=1.2, label="predicted")
        ends = result.estimated_intervals[(..., *place, slice(None))].T
        ax.vlines(result.times, *ends, color=LEARNED, lw=1.6)
        ax.plot(result.times, result.estimated[at], ls="none", marker="o", ms=4, color=LEARNED, label="estimated")
        modes = len(shape) == 1
        title = f"mode {place[0] + 1}" if modes else f"state {place[0] + 1} → {place[1] + 1}"
        ax.set(title=title, ylim=(min(0.0, *ends[0]) - 0.03, 1.05), xlim=(0, 1.05 * times[-1]))
        if modes or place[0] == shape[0] - 1:
            ax.set_xlabel("time")
        if place[-1] == 0:
            ax.set_ylabel("autocorrelation" if modes else "probability")
    axes.flat[0].legend(frameon=False, fontsize="small")
    return axes


def _grid(shape: tuple[int, ...]) -> np.ndarray:
    """Return Axes for modes side by side, or for a matrix of states."""
    if len(shape) == 1:
        return new_axes(shape[0])
    figure = new_axes(1)[0].figure
    figure.clear()
    figure.set_size_inches(2.2 * shape[1] + 0.6, 1.9 * shape[0] + 0.4)
    return figure.subplots(*shape, squeeze=False)


def plot_free_energy(
    modes: Any,
    X: SamplesLike = None,
    *,
    components: Sequence[int] | int = (0, 1),
    sample_weight: ArrayLike | None = None,
    bins: int = 50,
    highest: float = 8.0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the free energy -ln p along one or two modes, in units of kT above its minimum.

    Parameters
    ----------
    modes : fitted estimator, or array or data frame of shape (n_samples, r), or list of them
        The modes at the samples, or an estimator that evaluates them at X.
    X : array-like of shape (n_samples, d), or list of such arrays, optional
        The samples, for an estimator.
    components : int, or one or two int, default=(0, 1)
        The modes on the axes, counted from 0; a single mode is drawn alone.
    sample_weight : array-like of shape (n_samples,), or list of such arrays, optional
        Weights of the samples.
    bins : int, default=50
        Cells along each axis of the histogram.
    highest : float, default=8
        Along two modes, higher free energies are left white, so that the colours resolve the wells. Along one mode the
        curve is complete, because barriers matter.
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    ax : Axes
        Cells without samples are empty. The free energy refers to the mode as the coordinate, not to X.
    """
    values = mode_values(modes, X)
    chosen = tuple(np.atleast_1d(np.asarray(components)).tolist())[: values.shape[1]]
    if len(chosen) not in (1, 2) or not all(isinstance(k, int) and 0 <= k < values.shape[1] for k in chosen):
        raise ValueError(f"components must be one or two modes (0 to {values.shape[1] - 1}), got {components!r}.")
    given = join_rows("sample_weight", sample_weight)
    weight = None if given is None else np.asarray(given, dtype=np.float64)
    if weight is not None and weight.shape != (len(values),):
        raise ValueError(f"sample_weight must hold {len(values)} weights, got shape {weight.shape}.")
    ax = one_axes(ax)
    density, edges = np.histogramdd(values[:, chosen], bins=bins, weights=weight, density=True)
    with np.errstate(divide="ignore"):
        energy = -np.log(density / density.max())
    ax.set_xlabel(f"mode {chosen[0] + 1}")
    if len(chosen) == 1:
        energy[np.isinf(energy)] = np.nan  # a gap in the curve
        ax.stairs(energy, edges[0], baseline=None, color=LEARNED, lw=1.4)
        ax.set(ylabel="free energy (kT)", ylim=(0, None))
        return ax
    energy[energy > highest] = np.nan
    drawn = ax.pcolormesh(*edges, energy.T, vmin=0, vmax=highest, cmap="viridis")
    add_colorbar(drawn, ax, label="free energy (kT)")
    ax.set_ylabel(f"mode {chosen[1] + 1}")
    return ax


def plot_modes_in_time(
    modes: Any,
    X: SamplesLike = None,
    *,
    time_step: float | None = None,
    axes: Sequence[Axes] | np.ndarray | None = None,
) -> np.ndarray:
    """Draw each mode along a trajectory, with a histogram of its values at the side.

    Several trajectories are drawn one after another, with a gap between them.

    Parameters
    ----------
    modes : fitted estimator, or array or data frame of shape (n_frames, r), or list of them
        The modes at the samples, or an estimator that evaluates them at X.
    X : array-like of shape (n_frames, d), or list of such arrays, optional
        The frames of a trajectory, or of several, in their order, for an estimator.
    time_step : float, optional
        Time between frames. By default the time step of the estimator, or 1.
    axes : sequence of r Axes, optional
        By default a new figure.
    """
    series = mode_series(modes, X)
    values = np.concatenate(series)
    if time_step is None:
        time_step = modes.modes_.clock.time_step if hasattr(modes, "modes_") else 1.0
    r = values.shape[1]
    if axes is None:
        figure = new_axes(1)[0].figure
        figure.clear()
        figure.set_size_inches(7.0, 0.6 + 1.3 * r)
        axes = figure.subplots(r, 1, squeeze=False, sharex=True)[:, 0]
    axes = mode_axes(axes, r)
    times, points = _one_after_another(series, -(-len(values) // MOST_POINTS))
    for k, ax in enumerate(axes):
        ax.plot(times * time_step, points[:, k], lw=0.5, color=LEARNED)
        ax.set(ylabel=f"mode {k + 1}", xlim=(0, max(times[-1], 1) * time_step))
        side = ax.inset_axes((1.01, 0, 0.08, 1), sharey=ax)
        side.hist(values[:, k], bins=60, orientation="horizontal", color=LEARNED, alpha=0.6)
        side.axis("off")
    axes[-1].set_xlabel("time" if len(series) == 1 else f"time, {len(series)} trajectories one after another")
    return axes


def _one_after_another(series: Sequence[np.ndarray], stride: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number and the modes of every `stride`-th frame, with NaN between trajectories."""
    starts = np.cumsum([0, *map(len, series)])
    times = [np.arange(start, end, stride, dtype=np.float64) for start, end in pairwise(starts)]
    gap = np.full((1, series[0].shape[1]), np.nan)
    points = [part for values in series for part in (values[::stride], gap)][:-1]
    numbers = [part for own, end in zip(times, starts[1:], strict=True) for part in (own, [float(end)])][:-1]
    return np.concatenate(numbers), np.concatenate(points)


def plot_lag_comparison(result: LagComparison, axes: Sequence[Axes] | np.ndarray | None = None) -> np.ndarray:
    """Draw the autocorrelation of every mode along a trajectory, and the decay predicted by the rates of the model.

    Parameters
    ----------
    result : LagComparison
        The result of `kdmaps.dynamics.compare_with_trajectory`.
    axes : sequence of r Axes, optional
        By default a new figure with the modes side by side.
    """
    r = len(result.diffusion)
    axes = mode_axes(axes, r)
    for k, ax in enumerate(axes):
        found, error = result.autocorrelations[:, k], 2 * result.autocorrelation_errors[:, k]
        ax.errorbar(result.times, found, error, fmt="o", markersize=3, color=LEARNED, label="trajectory")
        ax.plot(result.times, result.predicted[:, k], color=EXACT, label="rates of the model")
        ax.axhline(0, color="0.8", linewidth=0.8)
        ax.set(title=f"mode {k + 1}, D = {result.diffusion[k]:.3g}", xlabel="time", ylabel="autocorrelation")
    axes[0].legend(frameon=False)
    return axes
