"""Free energies along modes with their errors, and figures of a committor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree

from kdmaps.plotting.common import DIVERGING, EXACT, LEARNED, coordinates_of, mode_series, one_axes
from kdmaps.utils.frames import join_rows
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.validation import checked_weight, unit_weight

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kdmaps.estimators.committor import AdaptiveCommittor

#: Number of blocks of consecutive samples whose variation gives the standard errors.
BLOCKS = 10
#: kT. Cells of a map with larger standard errors are left white; samples in a single block give 1, up to rounding.
MAX_ERROR = 0.999
#: kT. Cells of a map with higher free energies are left white, so that the colours resolve the wells.
HIGHEST = 8.0
#: Cells further than this number of widths from all samples stay empty.
TRUNCATE = 2.0
#: Points of the grid along each side, for contours and flux lines of a committor.
GRID = 120
#: Bins of the flux over the values of a committor.
FLUX_BINS = 20


def plot_free_energy(
    modes: Any,
    X: SamplesLike = None,
    *,
    components: Sequence[int] | int = (0, 1),
    sample_weight: ArrayLike | None = None,
    bins: int = 80,
    smooth: float = 1.5,
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
    bins : int, default=80
        Cells along each axis of the histogram.
    smooth : float, default=1.5
        Width, in cells, of the Gaussian with which the histogram is smoothed; 0 for none.
    ax : Axes, default=new figure

    Returns
    -------
    ax : Axes
        Cells without samples are empty. Along one mode, a band shows one standard error; in a map, cells with a
        standard error of 1 kT or more, or a free energy above 8 kT, are white. The free
        energy refers to the mode as the coordinate, not to X.

    Notes
    -----
    Standard errors come from ten blocks of consecutive samples. They hold for independent samples and for trajectories
    that are much longer than ten times the slowest time scale.
    """
    values = np.concatenate(mode_series(modes, X))
    chosen = tuple(np.atleast_1d(np.asarray(components)).tolist())[: values.shape[1]]
    if len(chosen) not in (1, 2) or not all(isinstance(k, int) and 0 <= k < values.shape[1] for k in chosen):
        raise ValueError(f"components must be one or two modes (0 to {values.shape[1] - 1}), got {components!r}.")
    weight = checked_weight(join_rows("sample_weight", sample_weight), values)
    ax = one_axes(ax)
    energy, error, edges = _free_energy(values[:, chosen], weight, bins, smooth)
    centres = [(ends[1:] + ends[:-1]) / 2 for ends in edges]
    ax.set_xlabel(f"mode {chosen[0] + 1}")
    if len(chosen) == 1:
        ax.fill_between(centres[0], energy - error, energy + error, color=LEARNED, alpha=0.25, lw=0, label="± 1 s.e.")
        ax.plot(centres[0], energy, color=LEARNED, lw=1.4)
        ax.set(ylabel="free energy (kT)", ylim=(0, 1.15 * np.nanmax(energy) or 1.0))
        ax.legend(frameon=False, fontsize="small")
        return ax
    energy[(energy > HIGHEST) | (error > MAX_ERROR)] = np.nan
    top = min(HIGHEST, max(1.0, np.ceil(np.nanmax(energy))))
    drawn = ax.pcolormesh(*edges, energy.T, vmin=0, vmax=top, cmap="viridis")
    ax.contour(*centres, energy.T, np.arange(1, top), colors="white", linewidths=0.5, alpha=0.7)
    ax.figure.colorbar(drawn, ax=ax, label="free energy (kT)")
    ax.set_ylabel(f"mode {chosen[1] + 1}")
    return ax


def _free_energy(
    values: np.ndarray, weight: np.ndarray | None, bins: int, smooth: float
) -> tuple[np.ndarray, np.ndarray, Sequence[np.ndarray]]:
    """Return free energies above the minimum, NaN in empty cells, their standard errors, and the edges of the cells."""
    edges = [np.histogram_bin_edges(column, bins) for column in values.T]
    weight = np.ones(len(values)) if weight is None else weight
    rows = np.array_split(np.arange(len(values)), min(BLOCKS, len(values)))
    sums = np.stack([np.histogramdd(values[some], edges, weights=weight[some])[0] for some in rows])
    totals = np.array([weight[some].sum() for some in rows]).reshape(-1, *[1] * values.shape[1])
    if smooth > 0:
        sums = gaussian_filter(sums, (0, *[smooth] * values.shape[1]), mode="reflect", truncate=TRUNCATE)
    density = sums.sum(axis=0) / totals.sum()
    seen = density > 0
    # The standard error of a ratio of sums, from the residuals of the blocks.
    spread = np.sum((sums - density * totals) ** 2, axis=0) * len(rows) / max(len(rows) - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        energy, error = -np.log(density / density[seen].max()), np.sqrt(spread) / totals.sum() / density
    return np.where(seen, energy, np.nan), np.where(seen, error, np.nan), edges


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
    ax.figure.colorbar(drawn, ax=ax, label="q")
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
    edges = np.linspace(0, 1, FLUX_BINS + 1)
    share = np.histogram(q[inside], edges, weights=energies[inside])[0] / max(energies.sum(), np.finfo(float).tiny)
    ax.stairs(share * FLUX_BINS, edges, fill=True, color=LEARNED, alpha=0.5, label="energy")
    ax.axhline(1, color=EXACT, lw=1, label="exact")
    ax.set(xlabel="q", ylabel="energy", xlim=(0, 1), ylim=(0, 1.35 * max(1, share.max() * FLUX_BINS)))
    numbers = ax.twinx()  # most samples are close to A or B
    numbers.stairs(np.histogram(q[inside], edges)[0], edges, color="0.4", ls="--", label="samples")
    numbers.set(yscale="log", ylabel="samples", ylim=(0.5, None))
    handles, labels = (
        a + b for a, b in zip(ax.get_legend_handles_labels(), numbers.get_legend_handles_labels(), strict=True)
    )
    ax.legend(handles, labels, frameon=False, fontsize="small", ncols=3, loc="upper center", columnspacing=1)
    return ax
