"""Free energies along modes, with their errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter

from kdmaps.plotting._common import LEARNED, add_colorbar, mode_values, one_axes
from kdmaps.utils.frames import join_rows
from kdmaps.utils.types import SamplesLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Number of blocks of consecutive samples whose variation gives the standard errors.
BLOCKS = 10
#: kT. Cells of a map with larger standard errors are left white; samples in a single block give 1, up to rounding.
MAX_ERROR = 0.999
#: kT. Cells of a map with higher free energies are left white, so that the colours resolve the wells.
HIGHEST = 8.0
#: Cells further than this number of widths from all samples stay empty.
TRUNCATE = 2.0


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
    values = mode_values(modes, X)
    chosen = tuple(np.atleast_1d(np.asarray(components)).tolist())[: values.shape[1]]
    if len(chosen) not in (1, 2) or not all(isinstance(k, int) and 0 <= k < values.shape[1] for k in chosen):
        raise ValueError(f"components must be one or two modes (0 to {values.shape[1] - 1}), got {components!r}.")
    given = join_rows("sample_weight", sample_weight)
    weight = None if given is None else np.asarray(given, dtype=np.float64)
    if weight is not None and weight.shape != (len(values),):
        raise ValueError(f"sample_weight must hold {len(values)} weights, got shape {weight.shape}.")
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
    add_colorbar(drawn, ax, label="free energy (kT)")
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
