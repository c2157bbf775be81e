"""Figures of a committor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from kdmaps.plotting._common import DIVERGING, EXACT, LEARNED, add_colorbar, coordinates_of, one_axes
from kdmaps.plotting._free_energy import plot_free_energy
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.validation import checked_weight, unit_weight

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kdmaps.estimators.committor import AdaptiveCommittor

#: Points of the grid along each side, for contours and flux lines.
GRID = 120
#: Bins of the flux over the values of q.
BINS = 20


def plot_committor(
    model: AdaptiveCommittor,
    X: SamplesLike,
    *,
    coordinates: Sequence[int] = (0, 1),
    ax: Axes | None = None,
) -> Axes:
    """Draw q at the samples over one or two coordinates; with two inputs, also its level sets and flux lines.

    Flux lines follow ∇q, the direction of the reactive flux of an isotropic diffusion, where q is between 0.02 and 0.98
    and samples are near.

    Parameters
    ----------
    model : AdaptiveCommittor
        Fitted.
    X : array-like of shape (n_samples, d)
        Samples to draw.
    coordinates : sequence of one or two int, default=(0, 1)
        Columns of X on the axes.
    ax : Axes, default=new figure

    Returns
    -------
    ax : Axes
        The black line is q = ½, the transition state.
    """
    rows, shown, labels = coordinates_of(X, coordinates)
    q, ax = np.asarray(model.predict(X)), one_axes(ax)
    if len(shown) == 1:
        order = np.argsort(rows[:, shown[0]])
        ax.plot(rows[order, shown[0]], q[order], ".", ms=2, color=LEARNED)
        ax.set(xlabel=labels[0], ylabel="q", ylim=(-0.03, 1.03))
        return ax
    x, y = rows[:, shown].T
    drawn = ax.scatter(x, y, c=q, s=3, cmap=DIVERGING, vmin=0, vmax=1, linewidths=0, rasterized=True)
    add_colorbar(drawn, ax, label="q")
    ax.set(xlabel=labels[0], ylabel=labels[1])
    if rows.shape[1] == 2:
        _draw_field(model, rows[:, shown], shown, ax)
    return ax


def _draw_field(model: AdaptiveCommittor, rows: np.ndarray, shown: list[int], ax: Any) -> None:
    """Draw the level set ½, and lines along the gradient, near the samples."""
    axes = [np.linspace(low, high, GRID) for low, high in zip(rows.min(axis=0), rows.max(axis=0), strict=True)]
    points = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)[:, np.argsort(shown)]
    q = np.asarray(model.predict(points))
    # A third of the radius is the distance to the next sample that 99 % of the samples do not exceed.
    far = cKDTree(rows[:, np.argsort(shown)]).query(points)[0] > model.support_.radius / 3
    ax.contour(*axes, np.where(far, np.nan, q).reshape(GRID, GRID), levels=[0.5], colors=EXACT, linewidths=1.5)
    slopes = np.where((far | (q < 0.02) | (q > 0.98))[:, None], np.nan, model.gradient(points)[:, shown])
    u, v = slopes.T.reshape(2, GRID, GRID)
    ax.streamplot(*axes, u, v, color="0.4", linewidth=0.7, arrowsize=0.7, density=1.2)


def plot_free_energy_along_q(
    model: AdaptiveCommittor,
    X: SamplesLike,
    *,
    sample_weight: ArrayLike | None = None,
    bins: int = 50,
    ax: Axes | None = None,
) -> Axes:
    """Draw the free energy -ln p along q, in units of kT above its minimum.

    Parameters
    ----------
    model : AdaptiveCommittor
        Fitted.
    X : array-like of shape (n_samples, d)
    sample_weight : array-like of shape (n_samples,), optional
    bins : int, default=50
    ax : Axes, default=new figure
    """
    q = np.asarray(model.predict(X), dtype=np.float64)[:, None]
    ax = plot_free_energy(q, components=0, sample_weight=sample_weight, bins=bins, ax=ax)
    ax.set(xlabel="q", xlim=(0, 1))
    return ax


def plot_flux_distribution(
    model: AdaptiveCommittor,
    X: SamplesLike,
    *,
    sample_weight: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the distribution of the energy of q over its values, and the number of samples (right axis).

    The flux through all level sets of a committor is the same, so its energy is evenly distributed over its values: the
    blue bars have the height of the black line up to noise (for a constant isotropic diffusion).

    Parameters
    ----------
    model : AdaptiveCommittor
        Fitted.
    X : array-like of shape (n_samples, d)
    sample_weight : array-like of shape (n_samples,), optional
    ax : Axes, default=new figure
    """
    q, slopes = np.asarray(model.predict(X)), model.gradient(X)
    weight = unit_weight(checked_weight(sample_weight, slopes), len(slopes))
    energies = weight * np.sum(slopes**2, axis=1)
    ax, inside = one_axes(ax), (q > 0) & (q < 1)
    edges = np.linspace(0, 1, BINS + 1)
    share = np.histogram(q[inside], edges, weights=energies[inside])[0] / max(energies.sum(), np.finfo(float).tiny)
    ax.stairs(share * BINS, edges, fill=True, color=LEARNED, alpha=0.5, label="energy")
    ax.axhline(1, color=EXACT, lw=1, label="exact")
    ax.set(xlabel="q", ylabel="energy", xlim=(0, 1), ylim=(0, 1.35 * max(1, share.max() * BINS)))
    numbers = ax.twinx()  # most samples are close to A or B
    numbers.stairs(np.histogram(q[inside], edges)[0], edges, color="0.4", ls="--", label="samples")
    numbers.set(yscale="log", ylabel="samples", ylim=(0.5, None))
    handles, labels = (
        a + b for a, b in zip(ax.get_legend_handles_labels(), numbers.get_legend_handles_labels(), strict=True)
    )
    ax.legend(handles, labels, frameon=False, fontsize="small", ncols=3, loc="upper center", columnspacing=1)
    return ax
