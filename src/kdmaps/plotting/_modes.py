"""Modes and states at samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.diagnostics.independence import IndependentModes, independent_modes
from kdmaps.plotting._common import (
    DIVERGING,
    EXACT,
    LEARNED,
    add_colorbar,
    coordinates_of,
    integer_ticks,
    mode_axes,
    mode_values,
    one_axes,
)
from kdmaps.utils.types import SamplesLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kdmaps.dynamics import CoarseStates

#: Modes are large where samples are rare; colours span this part of their values, the rest is saturated.
SHOWN = 0.99
#: Samples with smaller memberships are between states and drawn pale.
BETWEEN = 0.6


def plot_modes(
    modes: Any,
    X: ArrayLike,
    *,
    coordinates: Sequence[int] = (0, 1),
    reference: ArrayLike | None = None,
    axes: Sequence[Axes] | np.ndarray | None = None,
    titles: Sequence[str] | None = None,
    point_size: float = 6,
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
    axes : sequence of r Axes, optional
        By default a new figure with the modes side by side.
    titles : sequence of r str, optional
        By default the number of each mode and, for an estimator, its time scale.
    point_size : float, default=6
        Area of a scatter point, in points².
    """
    values = mode_values(modes, X)
    X, shown, labels = coordinates_of(X, coordinates)
    if values.shape[0] != X.shape[0]:
        raise ValueError(f"modes has shape {values.shape}; pass one row for each of the {X.shape[0]} samples of X.")
    r = values.shape[1]
    if titles is None:
        titles = [f"mode {k + 1}" for k in range(r)]
        if hasattr(modes, "timescales_"):
            titles = [f"{title}, time scale {t:.3g}" for title, t in zip(titles, modes.timescales_, strict=True)]
    axes = mode_axes(axes, r)
    for k, ax in enumerate(axes):
        if len(shown) == 2:
            _scatter(ax, X[:, shown], values[:, k], point_size)
        else:
            _curve(ax, X, shown[0], values[:, k], None if reference is None else np.asarray(reference)[:, k])
        ax.set(title=titles[k], xlabel=labels[0], ylabel=labels[1] if len(shown) == 2 else "mode")
    return axes


def plot_embedding(
    modes: Any,
    X: ArrayLike | None = None,
    *,
    components: Sequence[int] = (0, 1),
    color: ArrayLike | None = None,
    ax: Axes | None = None,
    point_size: float = 6,
) -> Axes:
    """Draw the samples in the coordinates of two modes.

    Parameters
    ----------
    modes : fitted estimator, or array or data frame of shape (n_samples, r), or list of them
        The modes at the samples, or an estimator that evaluates them at X.
    X : array-like of shape (n_samples, d), or list of such arrays, optional
        The samples, for an estimator.
    components : pair of int, default=(0, 1)
        The modes on the two axes, counted from 0.
    color : array-like of shape (n_samples,), optional
        A value for every sample. By default the next mode, if there is one.
    ax : Axes, optional
        By default a new figure.
    point_size : float, default=6
        Area of a point, in points².
    """
    values = mode_values(modes, X)
    r = values.shape[1]
    if len(components) != 2 or not all(0 <= k < r for k in components):
        raise ValueError(f"components must be two modes (0 to {r - 1}), got {components!r}.")
    first, second = components
    following = max(components) + 1
    ax = one_axes(ax)
    points = values[:, [first, second]]
    if color is None and following < r:
        _scatter(ax, points, values[:, following], point_size, label=f"mode {following + 1}")
    elif color is None:
        ax.scatter(points[:, 0], points[:, 1], s=point_size, color=LEARNED, linewidths=0, alpha=0.6)
    else:
        color = np.asarray(color)
        if color.shape != (len(points),):
            raise ValueError(f"color has shape {color.shape}; pass one value for each of the {len(points)} samples.")
        drawn = ax.scatter(points[:, 0], points[:, 1], c=color, s=point_size, cmap="viridis", linewidths=0)
        add_colorbar(drawn, ax)
    ax.set(xlabel=f"mode {first + 1}", ylabel=f"mode {second + 1}")
    return ax


def _scatter(ax: Axes, points: np.ndarray, mode: np.ndarray, size: float, label: str = "") -> None:
    from matplotlib.colors import CenteredNorm

    norm = CenteredNorm(0, halfrange=float(np.quantile(np.abs(mode), SHOWN)) or 1.0)
    # Draw large values last, because the rare samples that define a mode would be hidden by the others.
    order = np.argsort(np.abs(mode), kind="stable")
    x, y = points[order].T
    drawn = ax.scatter(x, y, c=mode[order], s=size, cmap=DIVERGING, norm=norm, linewidths=0)
    add_colorbar(drawn, ax, extend="both", label=label)


def _curve(ax: Axes, X: np.ndarray, coordinate: int, mode: np.ndarray, reference: np.ndarray | None) -> None:
    order = np.argsort(X[:, coordinate], kind="stable")
    # Over one coordinate of several, a mode is a cloud of points.
    style = {"linestyle": "-"} if X.shape[1] == 1 else {"linestyle": "none", "marker": ".", "markersize": 2}
    ax.axhline(0, color="0.8", linewidth=0.8)
    ax.plot(X[order, coordinate], mode[order], color=LEARNED, label="learned", **style)
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
    ax : Axes, optional
        By default a new figure.
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
    ax : Axes, optional
        By default a new figure.
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
