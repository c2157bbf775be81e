"""Modes at samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.data.inputs import join_trajectories
from kdmaps.plotting._common import DIVERGING, EXACT, LEARNED, SHOWN, coordinate_labels, mode_values, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        The modes at X, or what finds them.
    X : array-like of shape (n_samples, d), or list of such arrays
    coordinates : sequence of one or two int, default=(0, 1)
        Columns of X to draw over; data of one column are drawn over that one.
    reference : array-like of shape (n_samples, r), optional
        Exact modes, drawn as a dashed curve over one coordinate. Over two, draw them on axes of their own.
    axes : sequence of r Axes, optional
        By default a new figure with the modes side by side.
    titles : sequence of r str, optional
        By default the number of each mode and, for an estimator, its time scale.
    point_size : float, default=6
        Area of a scatter point, in points².

    Returns
    -------
    axes : ndarray of r Axes
    """
    values, X = mode_values(modes, X), join_trajectories(X)[0]
    labels, X = coordinate_labels(X), np.asarray(X)
    if values.shape[0] != X.shape[0]:
        raise ValueError(f"modes has shape {values.shape}; pass one row for each of the {X.shape[0]} samples of X.")
    r = values.shape[1]
    shown = tuple(coordinates)[: X.shape[1]]
    if len(shown) not in (1, 2) or not all(0 <= j < X.shape[1] for j in shown):
        raise ValueError(f"coordinates must be one or two columns of X (0 to {X.shape[1] - 1}), got {coordinates!r}.")
    if titles is None:
        titles = [f"mode {k + 1}" for k in range(r)]
        if hasattr(modes, "timescales_"):
            titles = [f"{title}, time scale {t:.3g}" for title, t in zip(titles, modes.timescales_, strict=True)]
    axes = new_axes(r) if axes is None else np.ravel(np.asarray(axes, dtype=object))
    if len(axes) != r:
        raise ValueError(f"axes holds {len(axes)} Axes for {r} modes; pass one for each.")
    for k, ax in enumerate(axes):
        if len(shown) == 2:
            _scatter(ax, X[:, shown], values[:, k], point_size)
        else:
            _curve(ax, X, shown[0], values[:, k], None if reference is None else np.asarray(reference)[:, k])
        ax.set(title=titles[k], xlabel=labels[shown[0]], ylabel=labels[shown[1]] if len(shown) == 2 else "mode")
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
        The modes themselves, or what finds them at X.
    X : array-like of shape (n_samples, d), or list of such arrays, optional
        The samples, for an estimator.
    components : pair of int, default=(0, 1)
        The modes on the two axes, counted from 0.
    color : array-like of shape (n_samples,), optional
        A value for every sample. By default the mode after those on the axes, if there is one.
    ax : Axes, optional
        By default a new figure.
    point_size : float, default=6
        Area of a point, in points².

    Returns
    -------
    ax : Axes
    """
    values = mode_values(modes, X)
    r = values.shape[1]
    if len(components) != 2 or not all(0 <= k < r for k in components):
        raise ValueError(f"components must be two modes (0 to {r - 1}), got {components!r}.")
    first, second = components
    ax = new_axes(1)[0] if ax is None else ax
    points = values[:, [first, second]]
    if color is None and max(components) + 1 < r:
        _scatter(ax, points, values[:, max(components) + 1], point_size, label=f"mode {max(components) + 2}")
    elif color is None:
        ax.scatter(points[:, 0], points[:, 1], s=point_size, color=LEARNED, linewidths=0, alpha=0.6)
    else:
        color = np.asarray(color)
        if color.shape != (len(points),):
            raise ValueError(f"color has shape {color.shape}; pass one value for each of the {len(points)} samples.")
        drawn = ax.scatter(points[:, 0], points[:, 1], c=color, s=point_size, cmap="viridis", linewidths=0)
        figure = ax.get_figure()
        assert figure is not None
        figure.colorbar(drawn, ax=ax)
    ax.set(xlabel=f"mode {first + 1}", ylabel=f"mode {second + 1}")
    return ax


def _scatter(ax: Axes, points: np.ndarray, mode: np.ndarray, size: float, label: str = "") -> None:
    from matplotlib.colors import CenteredNorm

    norm = CenteredNorm(0, halfrange=float(np.quantile(np.abs(mode), SHOWN)) or 1.0)
    # Large values last: rare samples on the rim are what a mode tells, and would be hidden by the crowd.
    order = np.argsort(np.abs(mode), kind="stable")
    x, y = points[order].T
    drawn = ax.scatter(x, y, c=mode[order], s=size, cmap=DIVERGING, norm=norm, linewidths=0)
    figure = ax.get_figure()
    assert figure is not None
    figure.colorbar(drawn, ax=ax, extend="both", label=label)


def _curve(ax: Axes, X: np.ndarray, coordinate: int, mode: np.ndarray, reference: np.ndarray | None) -> None:
    order = np.argsort(X[:, coordinate], kind="stable")
    # Over one coordinate of many, a mode is a cloud and not a function.
    style = {"linestyle": "-"} if X.shape[1] == 1 else {"linestyle": "none", "marker": ".", "markersize": 2}
    ax.axhline(0, color="0.8", linewidth=0.8)
    ax.plot(X[order, coordinate], mode[order], color=LEARNED, label="learned", **style)
    if reference is not None:
        style = {**style, "linestyle": "--"} if X.shape[1] == 1 else style
        ax.plot(X[order, coordinate], reference[order], color=EXACT, label="exact", **style)
        ax.legend(frameon=False)
