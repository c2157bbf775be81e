"""Scores of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kdmaps.output.plotting._common import new_axes, plain_log_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_landscape(search: Any, ax: Axes | None = None) -> Axes:
    """Draw the score over the bandwidth for each family, at the best regularization of each, with the chosen point.

    Parameters
    ----------
    search : fitted KernelSearchCV or AdaptiveDiffusionMap
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    ax : Axes
    """
    ax = new_axes(1)[0] if ax is None else ax
    results = search.cv_results_
    families, sigmas, score = results["param_family"], results["param_bandwidth"], results["selection_score"]
    for number, family in enumerate(dict.fromkeys(families)):
        at = np.unique(sigmas[(families == family) & np.isfinite(sigmas)])
        best = [np.flatnonzero((families == family) & (sigmas == sigma)) for sigma in at]
        best = [rows[np.argmax(score[rows])] for rows in best]
        if len(at):  # kernels with a bandwidth of their own have no place on this axis
            errors = results["selection_error"][best]
            ax.errorbar(at * 1.01**number, score[best], errors, label=family, marker=".", lw=1.2, elinewidth=0.6)
    chosen = search.best_index_
    ax.plot(sigmas[chosen], score[chosen], "*", ms=14, color="black", mfc="none", label="chosen", zorder=5)
    low = np.nanquantile(score[np.isfinite(score)], 0.1)
    ax.set(xscale="log", xlabel="bandwidth σ", ylabel="score (larger is better)", ylim=(low, None))
    plain_log_ticks(ax.xaxis)
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def plot_regularization_map(search: Any, family: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the score over regularization and bandwidth of one family, with the best point of the map.

    Parameters
    ----------
    search : fitted KernelSearchCV or AdaptiveDiffusionMap
    family : str, optional
        By default the chosen one.
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    ax : Axes
    """
    results = search.cv_results_
    family = results["param_family"][search.best_index_] if family is None else family
    mine = np.flatnonzero(results["param_family"] == family)
    sigma, lam = results["param_bandwidth"][mine], results["param_regularization"][mine]
    if mine.size == 0 or np.unique(sigma).size < 2 or np.unique(lam).size < 2:
        raise ValueError(f"family {family!r} was not tried at two bandwidths and two regularizations or more.")
    ax = new_axes(1)[0] if ax is None else ax
    columns, rows = np.unique(sigma), np.unique(lam)
    grid = np.full((len(rows), len(columns)), np.nan)
    grid[np.searchsorted(rows, lam), np.searchsorted(columns, sigma)] = results["selection_score"][mine]
    grid[~np.isfinite(grid)] = np.nan
    low = np.nanquantile(grid, 0.2)
    # Edges in the colour of their face: without them a browser shows seams between the cells.
    drawn = ax.pcolormesh(columns, rows, grid, shading="nearest", cmap="viridis", vmin=low, edgecolors="face")
    best = mine[np.argmax(results["selection_score"][mine])]
    ax.plot(
        results["param_bandwidth"][best], results["param_regularization"][best], "*", ms=14, color="white", mec="black"
    )
    ax.set(xscale="log", yscale="log", xlabel="bandwidth σ", ylabel="regularization λ", title=family)
    plain_log_ticks(ax.xaxis)
    figure = ax.get_figure()
    assert figure is not None
    figure.colorbar(drawn, ax=ax, label="score", extend="min")
    return ax
