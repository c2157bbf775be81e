"""Modes, states and eigenfunctions at samples and in time, tests of lags, and spectra of Koopman operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.diagnostics.independence import IndependentModes, independent_modes
from kdmaps.plotting.common import (
    DIVERGING,
    EXACT,
    LEARNED,
    coordinates_of,
    draw_phase,
    integer_ticks,
    mode_axes,
    mode_series,
    new_axes,
    one_axes,
    plain_log_ticks,
)
from kdmaps.summary import with_unit
from kdmaps.utils.numbers import rounded
from kdmaps.utils.types import SamplesLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kdmaps.dynamics import ChapmanKolmogorov, CoarseStates, CoherentSets, ImpliedTimescales, Koopman

#: Modes are large where samples are rare; colours span this part of their values, the rest is saturated.
SHOWN = 0.99
#: Samples with smaller memberships are between states and drawn pale.
BETWEEN = 0.6
#: Implied time scales that exceed the longest lag by this factor are not determined by the frames, and not shown.
LONGEST = 1e6
#: Largest number of points in a series; longer ones are thinned.
MOST_POINTS = 20_000


def plot_modes(
    modes: Any,
    X: ArrayLike,
    *,
    coordinates: Sequence[int] = (0, 1),
    reference: ArrayLike | None = None,
    axes: Sequence[Axes] | np.ndarray | None = None,
    titles: Sequence[str] | None = None,
    point_size: float = 6,
    unit: str | None = None,
) -> np.ndarray:
    """Draw each mode over the samples: a curve over one coordinate, a coloured scatter over two.

    Parameters
    ----------
    modes : fitted estimator, or array or data frame of shape (n_samples, r), or list of them
        The modes at X, or an estimator that evaluates them.
    X : array-like of shape (n_samples, d), or list of such arrays
        The samples.
    coordinates : sequence of one or two int, default=(0, 1)
        Columns of X to draw over; X with a single column is drawn over that column.
    reference : array-like of shape (n_samples, r), optional
        Exact modes, drawn as a dashed curve over one coordinate. Over two, draw them on separate axes.
    axes : sequence of r Axes, default=new figure
    titles : sequence of r str, optional
        By default the number of each mode and, for an estimator, its time scale.
    point_size : float, default=6
        Area of a scatter point, in points².
    unit : str, optional
        Unit of the time scales in the titles.
    """
    values = np.concatenate(mode_series(modes, X))
    X, shown, labels = coordinates_of(X, coordinates)
    if values.shape[0] != X.shape[0]:
        raise ValueError(f"modes has shape {values.shape}; pass one row for each of the {X.shape[0]} samples of X.")
    r = values.shape[1]
    if titles is None:
        titles = [f"mode {k + 1}" for k in range(r)]
        if hasattr(modes, "timescales_"):
            after = "" if unit is None else f" {unit}"
            titles = [
                f"{title}, time scale {rounded(t, 3)}{after}"
                for title, t in zip(titles, modes.timescales_, strict=True)
            ]
    axes = mode_axes(axes, r)
    for k, ax in enumerate(axes):
        if len(shown) == 2:
            _scatter(ax, X[:, shown], values[:, k], point_size)
        else:
            _curve(ax, X, shown[0], values[:, k], None if reference is None else np.asarray(reference)[:, k])
        ax.set(title=titles[k], xlabel=labels[0], ylabel=labels[1] if len(shown) == 2 else "mode")
    return axes


def _scatter(ax: Axes, points: np.ndarray, mode: np.ndarray, size: float) -> None:
    from matplotlib.colors import TwoSlopeNorm

    # Zero has the middle colour, and each sign its own range: a rare state would make all others pale.
    low, high = (float(np.quantile(np.clip(side, 0, None), SHOWN)) or 1.0 for side in (-mode, mode))
    norm = TwoSlopeNorm(0, -low, high)
    # Draw large values last, because the rare samples that define a mode would be hidden by the others.
    order = np.argsort(np.abs(mode), kind="stable")
    x, y = points[order].T
    drawn = ax.scatter(x, y, c=mode[order], s=size, cmap=DIVERGING, norm=norm, linewidths=0)
    ax.figure.colorbar(drawn, ax=ax, extend="both")


def _curve(ax: Axes, X: np.ndarray, coordinate: int, mode: np.ndarray, reference: np.ndarray | None) -> None:
    order = np.argsort(X[:, coordinate], kind="stable")
    # Over one coordinate of several, a mode is a cloud of points.
    style = {"linestyle": "-"} if X.shape[1] == 1 else {"linestyle": "none", "marker": ".", "markersize": 2}
    ax.axhline(0, color="0.8", linewidth=0.8)
    ax.plot(X[order, coordinate], mode[order], color=LEARNED, label="estimate", **style)
    if reference is not None:
        style = {**style, "linestyle": "--"} if X.shape[1] == 1 else style
        ax.plot(X[order, coordinate], reference[order], color=EXACT, label="exact", **style)
        ax.legend(frameon=False)


def plot_states(
    states: CoarseStates,
    X: SamplesLike,
    *,
    coordinates: Sequence[int] = (0, 1),
    ax: Axes | None = None,
    point_size: float = 6,
) -> Axes:
    """Draw the samples of every state in one colour: a scatter over two coordinates, histograms over one.

    Parameters
    ----------
    states : CoarseStates
        The result of `kdmaps.dynamics.coarse_states`.
    X : array-like of shape (n_samples, d), or list of such arrays
        The samples of the states, or other coordinates of them.
    coordinates : sequence of one or two int, default=(0, 1)
        Columns of X to draw over; X with a single column is drawn over that column.
    ax : Axes, default=new figure
    point_size : float, default=6
        Area of a scatter point, in points².
    """
    X, shown, labels = coordinates_of(X, coordinates)
    if len(X) != len(states.labels):
        raise ValueError(f"X must contain the {len(states.labels)} samples of the states, got shape {X.shape}.")
    ax = one_axes(ax)
    for k, population in enumerate(states.populations):
        own, name = states.labels == k, f"state {k + 1} ({population:.0%})"
        if len(shown) == 1:
            edges = np.histogram_bin_edges(X[:, shown[0]], bins=50).tolist()
            ax.hist(X[own, shown[0]], bins=edges, color=f"C{k}", alpha=0.6, label=name)
        else:
            x, y = X[own][:, shown].T
            paleness: Any = np.where(states.memberships[own, k] < BETWEEN, 0.35, 1.0)
            if own.any():
                ax.scatter(x, y, s=point_size, color=f"C{k}", linewidths=0, alpha=paleness)
            ax.scatter([], [], color=f"C{k}", label=name)  # the legend should not be as pale as the first sample
    ax.set(xlabel=labels[0], ylabel=labels[1] if len(shown) == 2 else "samples")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_independence(modes: IndependentModes | ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw the new part of each mode as a bar; modes that are functions of earlier ones are grey.

    Parameters
    ----------
    modes : IndependentModes or array-like of shape (n_samples, r)
        From `kdmaps.independent_modes`, or the values of the modes at samples.
    ax : Axes, default=new figure
    """
    found = modes if isinstance(modes, IndependentModes) else independent_modes(modes)
    ax = one_axes(ax)
    number = np.arange(1, len(found.residuals) + 1)
    for which, colour, label in (
        (found.independent, LEARNED, "new coordinate"),
        (~found.independent, "0.6", "function of earlier ones"),
    ):
        ax.bar(number[which], found.residuals[which], width=0.6, color=colour, label=label if which.any() else None)
    ax.axhline(found.threshold, color="0.4", lw=0.8, ls="--")
    ax.set(xlabel="mode", ylabel="residual", xlim=(0.4, len(number) + 0.6), ylim=(0, 1.25))
    ax.set_yticks([0, 0.5, 1])
    integer_ticks(ax.xaxis)
    ax.legend(frameon=False, loc="upper right", ncols=2, fontsize="small")
    return ax


def plot_implied_timescales(
    result: ImpliedTimescales, exact: ArrayLike | None = None, ax: Axes | None = None, *, unit: str | None = None
) -> Axes:
    """Draw time scales over the lag, with their intervals.

    Parameters
    ----------
    result : kdmaps.dynamics.ImpliedTimescales
        From `kdmaps.dynamics.implied_timescales`.
    exact : array-like of shape (r,), optional
        Exact time scales, drawn as dashed lines.
    ax : Axes, default=new figure
    unit : str, optional
        Unit of time, for the labels of the axes.

    Returns
    -------
    ax : Axes
        In the shaded region, time scales are shorter than the lag and cannot be resolved. A dotted line marks the lag
        from which time scales are flat within their errors.
    """
    ax = one_axes(ax)
    times = result.times
    shown = result.timescales[(result.timescales > 0) & (result.timescales < LONGEST * times[-1])]
    bottom, top = min(shown.min(initial=times[0]), times[0]) / 1.5, 2 * max(shown.max(initial=times[-1]), times[-1])
    for k, (values, bands) in enumerate(zip(result.timescales.T, np.moveaxis(result.intervals, 1, 0), strict=True)):
        known = values > 0
        # Outside the axes, but finite: matplotlib overflows at the largest numbers.
        y, low, high = np.clip(np.c_[values, bands][known].T, bottom / 10, 10 * top)
        (line,) = ax.plot(times[known], y, marker="o", ms=4, lw=1.4, label=f"mode {k + 1}")
        ax.fill_between(times[known], low, high, color=line.get_color(), alpha=0.2, lw=0)
        if exact is not None:
            ax.axhline(np.asarray(exact)[k], color=EXACT, lw=0.9, ls="--", label=None if k else "exact")
    ends = np.array([times[0] / 1.15, times[-1] * 1.15])
    ax.fill_between(
        ends, bottom, ends, facecolor="0.88", edgecolor="0.5", lw=0.9, zorder=0, label="shorter than the lag"
    )
    ax.plot(ends, ends, color="0.5", lw=0.9)
    if result.plateau is not None:
        ax.axvline(result.plateau * result.time_step, color="0.4", lw=0.9, ls=":", label="flat from here")
    labels = {"xlabel": with_unit("lag", unit), "ylabel": with_unit("time scale", unit)}
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=(bottom, top), **labels)
    plain_log_ticks(ax.xaxis)
    plain_log_ticks(ax.yaxis)
    ax.legend(frameon=False, fontsize="small", loc="lower right")
    return ax


def plot_chapman_kolmogorov(
    result: ChapmanKolmogorov, axes: Sequence[Axes] | np.ndarray | None = None, *, unit: str | None = None
) -> np.ndarray:
    """Draw the predictions of one lag (lines) and the estimates at several lags (points), with intervals.

    Parameters
    ----------
    result : kdmaps.dynamics.ChapmanKolmogorov
        From `kdmaps.dynamics.chapman_kolmogorov`.
    axes : sequence of Axes, optional
        One for each mode, or m×m for m states; by default a new figure.
    unit : str, optional
        Unit of time, for the labels of the axes.
    """
    shape = result.predicted.shape[1:]
    if axes is None:
        m = shape[0]
        axes = new_axes(1, m) if len(shape) == 1 else new_axes(m, m, (2.2 * m + 0.6, 1.9 * m + 0.4))
    axes = np.asarray(axes, dtype=object)
    if axes.size != np.prod(shape):
        raise ValueError(f"axes has {axes.size} Axes, but the test has {np.prod(shape)} parts; pass one for each.")
    axes = axes.reshape(shape)
    times = np.r_[0, result.times]
    modes = len(shape) == 1
    for place in np.ndindex(shape):
        ax: Axes = axes[place]  # type: ignore[assignment]
        at = (slice(None), *place)
        start = float(modes or place[0] == place[1])
        low, high = (np.r_[start, end] for end in result.predicted_intervals[at].T)
        ax.fill_between(times, low, high, color="0.85", lw=0)
        ax.plot(times, np.r_[start, result.predicted[at]], color=EXACT, lw=1.2, label="predicted")
        ends = result.estimated_intervals[at].T
        ax.vlines(result.times, *ends, color=LEARNED, lw=1.6)
        ax.plot(result.times, result.estimated[at], ls="none", marker="o", ms=4, color=LEARNED, label="estimated")
        title = f"mode {place[0] + 1}" if modes else f"state {place[0] + 1} → {place[1] + 1}"
        ax.set(title=title, ylim=(min(0.0, *ends[0]) - 0.03, 1.05), xlim=(0, 1.05 * times[-1]))
        if modes or place[0] == shape[0] - 1:
            ax.set_xlabel(with_unit("time", unit))
        if place[-1] == 0:
            ax.set_ylabel("autocorrelation" if modes else "probability")
    axes.flat[0].legend(frameon=False, fontsize="small")
    return axes


def plot_modes_in_time(
    modes: Any,
    X: SamplesLike = None,
    *,
    time_step: float | None = None,
    unit: str | None = None,
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
    unit : str, optional
        Unit of the time step, for the label of the axis; by default frames if the time step is 1.
    axes : sequence of r Axes, default=new figure
    """
    series = mode_series(modes, X)
    values = np.concatenate(series)
    if time_step is None:
        time_step = modes.modes_.clock.time_step if hasattr(modes, "modes_") else 1.0
    r = values.shape[1]
    if axes is None:
        axes = new_axes(r, 1, (7.0, 0.6 + 1.3 * r), sharex=True)
    axes = mode_axes(axes, r)
    stride, gap, start = -(-len(values) // MOST_POINTS), np.full((1, r), np.nan), 0
    parts, numbers = list[np.ndarray](), list[Any]()
    for own in series:
        numbers += [np.arange(start, start + len(own), stride), [start + len(own)]]
        parts, start = [*parts, own[::stride], gap], start + len(own)
    times, points = np.concatenate(numbers[:-1]), np.concatenate(parts[:-1])
    for k, ax in enumerate(axes):
        ax.plot(times * time_step, points[:, k], lw=0.5, color=LEARNED)
        ax.set(ylabel=f"mode {k + 1}", xlim=(0, max(times[-1], 1) * time_step))
        side = ax.inset_axes((1.01, 0, 0.08, 1), sharey=ax)
        side.hist(values[:, k], bins=60, orientation="horizontal", color=LEARNED, alpha=0.6)
        side.axis("off")
    joined = "" if len(series) == 1 else f", {len(series)} trajectories one after another"
    axes[-1].set_xlabel(with_unit("time", unit or ("frames" if time_step == 1 else None)) + joined)
    return axes


def plot_koopman(koopman: Koopman, *, exact: ArrayLike | None = None, ax: Axes | None = None) -> Axes:
    """Draw eigenvalues of the Koopman operator in the complex plane, with the unit circle.

    Parameters
    ----------
    koopman : kdmaps.dynamics.Koopman
        If it has resamples, these are drawn as clouds; eigenvalues that fail a test are hollow.
    exact : array-like of complex, optional
        Known eigenvalues after one lag, drawn as crosses.
    ax : Axes, default=new figure
    """
    ax, values = one_axes(ax), koopman.eigenvalues
    turn = np.linspace(0, 2 * np.pi, 400)
    ax.plot(np.cos(turn), np.sin(turn), color="0.6", lw=0.8, zorder=0)
    ax.axhline(0, color="0.85", lw=0.8, zorder=0)
    if koopman.samples is not None:
        cloud = koopman.samples.ravel()
        ax.scatter(cloud.real, cloud.imag, s=8, color="0.5", alpha=0.3, lw=0, label="resamples")
    ok = np.ones(len(values), dtype=bool) if koopman.trust is None else koopman.trust.ok
    for chosen, face, label in ((ok, LEARNED, "eigenvalues"), (~ok, "none", "doubtful")):
        if chosen.any():
            ax.scatter(values[chosen].real, values[chosen].imag, s=9, facecolor=face, edgecolor=LEARNED, label=label)
    for k, value in enumerate(values):
        ax.annotate(str(k + 1), (value.real, value.imag), xytext=(4, 4), textcoords="offset points", fontsize=7)
    if exact is not None:
        known = np.asarray(exact, dtype=complex)
        ax.scatter(known.real, known.imag, marker="x", s=30, color="black", label="exact")
    ax.set(xlabel="real part", ylabel="imaginary part", aspect="equal", title="eigenvalues after one lag")
    ax.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def plot_phases(
    koopman: Koopman,
    X: ArrayLike,
    *,
    which: Sequence[int] | None = None,
    coordinates: Sequence[int] = (0, 1),
    axes: Sequence[Axes] | np.ndarray | None = None,
    point_size: float = 6,
) -> np.ndarray:
    """Draw the phases of oscillating eigenfunctions over the samples, one period from -π to π.

    Parameters
    ----------
    koopman : kdmaps.dynamics.Koopman
    X : array-like of shape (n_samples, d)
        The samples.
    which : sequence of int, optional
        Eigenfunctions, counted from 0. By default one of each conjugate pair.
    coordinates : sequence of one or two int, default=(0, 1)
        Columns of X to draw over.
    axes : sequence of Axes, default=new figure
    point_size : float, default=6
        Area of a scatter point, in points².
    """
    chosen = np.flatnonzero(koopman.rates.imag > 0) if which is None else np.asarray(which, dtype=int)
    if not len(chosen):
        raise ValueError("No eigenvalue oscillates; name eigenfunctions with which.")
    phases = np.angle(np.asarray(koopman.eigenfunctions(X))[:, chosen])
    X, shown, labels = coordinates_of(X, coordinates)
    axes = mode_axes(axes, len(chosen))
    for ax, k, phase in zip(axes, chosen, phases.T, strict=True):
        ax.set_title(f"phase {k + 1}, period {rounded(koopman.periods[k], 3)}")
        draw_phase(ax, phase, [*X[:, shown].T], labels, point_size, bar=ax is axes[-1])
    return axes


def plot_coherent_sets(
    sets: CoherentSets,
    first: SamplesLike,
    second: SamplesLike,
    *,
    coordinates: Sequence[int] = (0, 1),
    axes: Sequence[Axes] | np.ndarray | None = None,
    point_size: float = 6,
) -> np.ndarray:
    """Draw the particles of every coherent set in one colour, at the first and at the second time.

    Parameters
    ----------
    sets : kdmaps.dynamics.CoherentSets
    first, second : array-like of shape (n, d)
        Positions of the particles, or other coordinates of them.
    coordinates : sequence of two int, default=(0, 1)
        Columns to draw over.
    axes : sequence of two Axes, default=new figure
    point_size : float, default=6
        Area of a scatter point, in points².
    """
    axes = mode_axes(axes, 2)
    for ax, X, label, title in zip(axes, (first, second), sets.labels.T, ("first time", "second time"), strict=True):
        X, shown, names = coordinates_of(X, coordinates)
        if len(X) != len(label) or len(shown) != 2:
            raise ValueError(f"{title}: positions must be {len(label)} rows of at least 2 columns, got {X.shape}.")
        for k in range(len(sets.coherence)):
            ax.scatter(*X[label == k][:, shown].T, s=point_size, lw=0, color=f"C{k}", label=f"set {k + 1}")
        ax.set(title=title, xlabel=names[0], ylabel=names[1])
    axes[-1].legend(fontsize=7, markerscale=2, loc="upper left", bbox_to_anchor=(1.01, 1))
    return axes
