"""Scores of a search, and steps of an optimiser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kdmaps.plotting._common import LEARNED, add_colorbar, one_axes, plain_log_ticks
from kdmaps.selection.candidate import Stage
from kdmaps.summary import LearnedModel, RefinedModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_landscape(search: Any, ax: Axes | None = None) -> Axes:
    """Draw the score over the bandwidth for each family, at the best regularization of each, with the chosen point.

    There are separate curves for other bases than the basis of the first candidate, and for metrics. Each kernel is
    shown with its most accurate score; pale points were eliminated early, with scores from fewer folds.

    Parameters
    ----------
    search : fitted KernelSearchCV or AdaptiveDiffusionMap
    ax : Axes, optional
        By default a new figure.
    """
    ax = one_axes(ax)
    results = search.cv_results_
    sigmas, score, labels = results["param_bandwidth"], results["selection_score"], _curves(results)
    level = np.array([list(Stage).index(Stage(how)) for how in results["stage"]])
    for number, label in enumerate(dict.fromkeys(labels)):
        at = np.unique(sigmas[(labels == label) & np.isfinite(sigmas)])
        if not len(at):  # given kernels have several bandwidths or none
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
    parts = zip(*(results[f"param_{name}"] for name in ("family", "basis", "metric")), strict=True)
    return np.array(
        [
            family + ("" if basis == usual else f", {basis}") + (", metric" if metric else "")
            for family, basis, metric in parts
        ]
    )


def plot_regularization_map(search: Any, family: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the score over regularization and bandwidth of one family, with the best point of the map.

    The map shows candidates with the basis and the metric of the chosen one.

    Parameters
    ----------
    search : fitted KernelSearchCV or AdaptiveDiffusionMap
    family : str, optional
        By default the chosen family.
    ax : Axes, optional
        By default a new figure.
    """
    results = search.cv_results_
    family = results["param_family"][search.best_index_] if family is None else family
    like = [results[name] == results[name][search.best_index_] for name in ("param_basis", "param_metric")]
    mine = np.flatnonzero((results["param_family"] == family) & like[0] & like[1])
    sigma, lam = results["param_bandwidth"][mine], results["param_regularization"][mine]
    if mine.size == 0 or np.unique(sigma).size < 2 or np.unique(lam).size < 2:
        raise ValueError(f"family {family!r} was not tried at two bandwidths and two regularizations or more.")
    ax = one_axes(ax)
    columns, rows = np.unique(sigma), np.unique(lam)
    grid = np.full((len(rows), len(columns)), np.nan)
    grid[np.searchsorted(rows, lam), np.searchsorted(columns, sigma)] = results["selection_score"][mine]
    grid[~np.isfinite(grid)] = np.nan
    low = np.nanquantile(grid, 0.2)
    # Without edges, browsers show seams between the cells.
    drawn = ax.pcolormesh(columns, rows, grid, shading="nearest", cmap="viridis", vmin=low, edgecolors="face")
    best = mine[np.argmax(results["selection_score"][mine])]
    ax.plot(
        results["param_bandwidth"][best], results["param_regularization"][best], "*", ms=14, color="white", mec="black"
    )
    ax.set(xscale="log", yscale="log", xlabel="bandwidth σ", ylabel="regularization λ", title=family)
    plain_log_ticks(ax.xaxis)
    add_colorbar(drawn, ax, label="score", extend="min")
    return ax


def plot_history(estimator: Any, quantity: str = "loss", ax: Axes | None = None) -> Axes:
    """Draw a quantity over the steps of the optimiser.

    Parameters
    ----------
    estimator : fitted VariationalKernelMap, AdaptiveDiffusionMap with a refinement, or a history
        A history is a dict of columns, such as `history_`.
    quantity : str, default="loss"
        A column: "loss", a term of the objective, "gap", "gradient_norm", or a column with several values per step
        such as "beta" (weights) and "sigma" (bandwidths), drawn as one curve each.
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    ax : Axes
        The best loss so far is a thin line below the loss; a dotted line marks a change of the algorithm.
    """
    history = _history_of(estimator)
    if quantity not in history or history[quantity].dtype.kind not in "fi":
        known = ", ".join(name for name, column in history.items() if column.dtype.kind in "fi")
        raise ValueError(f"quantity must be one of {known}; got {quantity!r}.")
    ax = one_axes(ax)
    values = np.asarray(history[quantity], dtype=np.float64)
    steps = np.arange(len(values))
    if values.ndim == 1:
        ax.plot(steps, values, color=LEARNED, marker=".", markersize=4, lw=1, label=quantity)
    else:
        for j, column in enumerate(values.T, start=1):
            ax.plot(steps, column, lw=1.2, label=f"{quantity} {j}")
    if quantity == "loss":
        ax.plot(steps, history["best_loss"], color="0.5", lw=0.8, label="best so far")
    phase = history["phase"]
    for step in np.flatnonzero(phase[2:] != phase[1:-1]) + 2:
        ax.axvline(step - 0.5, color="0.6", lw=0.8, ls=":")
        place: dict[str, Any] = {
            "xycoords": ("data", "axes fraction"),
            "xytext": (3, -3),
            "textcoords": "offset points",
        }
        ax.annotate(str(phase[step]), (step - 0.5, 1), va="top", color="0.4", fontsize="small", **place)
    ax.set(xlabel="step", ylabel=quantity)
    ax.locator_params(axis="x", integer=True)
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.legend(frameon=False, fontsize="small")
    return ax


def _history_of(estimator: Any) -> dict[str, np.ndarray]:
    if isinstance(estimator, dict):
        return estimator
    if isinstance(estimator, LearnedModel):
        return estimator.history_
    if isinstance(estimator, RefinedModel) and estimator.refinement_ is not None:
        return estimator.refinement_.history
    raise ValueError(f"{type(estimator).__name__} without a history: its kernel was not learned by gradients.")
