"""Scores of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kdmaps.plotting._common import new_axes, plain_log_ticks
from kdmaps.selection.candidate import Stage

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_landscape(search: Any, ax: Axes | None = None) -> Axes:
    """Draw the score over the bandwidth for each family, at the best regularization of each, with the chosen point.

    Other bases than that of the first candidates, and metrics, have curves of their own. Where candidates raced, each
    kernel is shown as it was judged most closely; pale points dropped out early, judged by fewer folds.

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
    sigmas, score, labels = results["param_bandwidth"], results["selection_score"], _curves(results)
    level = np.array([list(Stage).index(Stage(how)) for how in results["stage"]])
    for number, label in enumerate(dict.fromkeys(labels)):
        at = np.unique(sigmas[(labels == label) & np.isfinite(sigmas)])
        if not len(at):  # kernels with a bandwidth of their own have no place on this axis
            continue
        rows = [np.flatnonzero((labels == label) & (sigmas == sigma)) for sigma in at]
        best = np.array([max(own, key=lambda i: (level[i], score[i])) for own in rows])
        x, errors, color = at * 1.01**number, results["selection_error"][best], f"C{number}"
        ax.plot(x, score[best], lw=1, color=color, alpha=0.6, label=label)
        for chosen, alpha in ((level[best] > 0, 1.0), (level[best] == 0, 0.35)):
            style: dict[str, Any] = {"marker": ".", "ls": "", "color": color, "elinewidth": 0.6, "alpha": alpha}
            ax.errorbar(x[chosen], score[best][chosen], errors[chosen], **style)
    chosen = search.best_index_
    ax.plot(sigmas[chosen], score[chosen], "*", ms=14, color="black", mfc="none", label="chosen", zorder=5)
    low = np.nanquantile(score[np.isfinite(score)], 0.1)
    high = score[level == level[chosen]].max() + 3 * results["selection_error"][chosen]
    ax.set(xscale="log", xlabel="bandwidth σ", ylabel="score (larger is better)", ylim=(low, high))
    plain_log_ticks(ax.xaxis)
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def _curves(results: Any) -> np.ndarray:
    """Return the name of the curve that each candidate belongs to."""
    usual = results["param_basis"][0]
    return np.array(
        [
            family + ("" if basis == usual else f", {basis}") + (", metric" if metric else "")
            for family, basis, metric in zip(
                results["param_family"], results["param_basis"], results["param_metric"], strict=True
            )
        ]
    )


def plot_regularization_map(search: Any, family: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the score over regularization and bandwidth of one family, with the best point of the map.

    The map is that of the basis and, where it has one, the metric of the chosen candidate.

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
    like = [results[name] == results[name][search.best_index_] for name in ("param_basis", "param_metric")]
    mine = np.flatnonzero((results["param_family"] == family) & like[0] & like[1])
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
