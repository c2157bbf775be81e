"""Coarse states at samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kdmaps.data.inputs import join_trajectories
from kdmaps.plotting._common import coordinate_labels, new_axes
from kdmaps.utils.types import SamplesLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kdmaps.dynamics import CoarseStates

#: Samples whose largest membership is smaller are drawn pale: they are between states.
BETWEEN = 0.6


def plot_states(
    states: CoarseStates,
    X: SamplesLike,
    *,
    coordinates: Sequence[int] = (0, 1),
    ax: Axes | None = None,
    point_size: float = 6,
) -> Axes:
    """Draw the samples of every state in its colour: a scatter over two coordinates, histograms over one.

    Parameters
    ----------
    states : CoarseStates
        The result of `kdmaps.dynamics.coarse_states`.
    X : array-like of shape (n_samples, d), or list of such arrays
        The samples at which the states were found, or other coordinates of them.
    coordinates : sequence of one or two int, default=(0, 1)
        Columns of X to draw over; data of one column are drawn over that one.
    ax : Axes, optional
        By default a new figure.
    point_size : float, default=6
        Area of a scatter point, in points².

    Returns
    -------
    ax : Axes
    """
    X = join_trajectories(X)[0]
    labels, X = coordinate_labels(X), np.asarray(X)
    if X.ndim != 2 or len(X) != len(states.labels):
        raise ValueError(f"X must hold the {len(states.labels)} samples of the states, got shape {X.shape}.")
    shown = tuple(coordinates)[: X.shape[1]]
    if len(shown) not in (1, 2) or not all(0 <= j < X.shape[1] for j in shown):
        raise ValueError(f"coordinates must be one or two columns of X (0 to {X.shape[1] - 1}), got {coordinates!r}.")
    ax = new_axes(1)[0] if ax is None else ax
    names = [f"state {k + 1} ({population:.0%})" for k, population in enumerate(states.populations)]
    for k, name in enumerate(names):
        own = states.labels == k
        if len(shown) == 1:
            edges = np.histogram_bin_edges(X[:, shown[0]], bins=50).tolist()
            ax.hist(X[own, shown[0]], bins=edges, color=f"C{k}", alpha=0.6, label=name)
        else:
            x, y = X[own][:, shown].T
            paleness: Any = np.where(states.memberships[own, k] < BETWEEN, 0.35, 1.0)
            if own.any():
                ax.scatter(x, y, s=point_size, color=f"C{k}", linewidths=0, alpha=paleness)
            ax.scatter([], [], color=f"C{k}", label=name)  # a legend without the paleness of the first sample
    ax.set(xlabel=labels[shown[0]], ylabel=labels[shown[1]] if len(shown) == 2 else "samples")
    ax.legend(frameon=False, fontsize="small")
    return ax
