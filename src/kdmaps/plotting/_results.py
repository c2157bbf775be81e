"""Results of a fit: time scales, scores of a search, steps of an optimiser, relevance."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.diagnostics.relevance import Relevance, relevance
from kdmaps.exceptions import NotApplicable
from kdmaps.plotting.common import (
    DIVERGING,
    EXACT,
    LEARNED,
    integer_ticks,
    new_axes,
    one_axes,
    plain_log_ticks,
)
from kdmaps.selection.candidate import Stage
from kdmaps.summary import summarise, with_unit
from kdmaps.utils.fitted import model_and_samples
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.validation import check_positive_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kdmaps.uncertainty import Uncertainty

#: Height below the data for the label of the gap, relative to the height of the data.
LABEL_HEIGHT = 0.1
#: An interval that is open on a side is drawn to this multiple of the time scale.
OPEN = 30.0
#: Inputs and combinations with a smaller share are summed, except for the first FEW inputs.
SMALL, FEW = 0.01, 10
#: Largest number of combinations.
COMBINATIONS = 5
#: Smaller entries of combinations are not written.
WRITTEN = 0.1
#: Largest number of characters of a name.
NAME_WIDTH = 24


def plot_timescales(
    estimator: Any,
    exact: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    uncertainty: Uncertainty | None = None,
    unit: str | None = None,
) -> Axes:
    """Draw the spectrum of time scales, with intervals and the gap after the last mode; doubtful modes are hollow.

    Parameters
    ----------
    estimator : fitted estimator
        Any estimator of this library.
    exact : array-like of shape (r,), optional
        Exact time scales for comparison.
    ax : Axes, default=new figure
    uncertainty : kdmaps.uncertainty.Uncertainty, optional
        Its intervals are drawn as error bars.
    unit : str, optional
        Unit of the time step, for the label of the axis.

    Notes
    -----
    The band ends at the time scale of the next mode. Its height is the gap, the ratio of the last time scale to the
    next, or the ratio of their eigenvalues if it is smaller (`Modes.timescale_gap`). If the band is thin, the last
    mode and the next have nearly the same time scale.
    """
    ax = one_axes(ax)
    estimator, _ = model_and_samples(estimator, None)
    summary = summarise(estimator, uncertainty=uncertainty, unit=unit)
    timescales, gap, doubts = summary.timescales, summary.gap, summary.doubtful
    number = np.arange(1, len(timescales) + 1)
    if not (timescales > 0).any():
        ax.set_axis_off()
        ax.annotate("all modes relax within one lag", (0.5, 0.5), xycoords="axes fraction", ha="center")
        return ax
    if np.isfinite(gap) and timescales[-1] > 0:
        last = timescales[-1]
        ax.axhspan(last / gap, last, color="0.9", zorder=0)
        # Below the band, which may be too thin for a label, and left of the first mode and its interval.
        text, at, place = f"next mode: {gap:.2g} times as fast", (0, last / gap), ("axes fraction", "data")
        ax.annotate(text, at, (4, -3), place, "offset points", va="top", color="0.35", fontsize="small")
    if exact is not None:
        ax.plot(number, exact, linestyle="none", marker="_", markersize=22, markeredgewidth=1.5, c=EXACT, label="exact")
    if uncertainty is not None:
        ends = uncertainty.timescale_intervals
        ends = np.where(np.isfinite(ends) & (ends > 0), ends, timescales[:, None] * np.array([1 / OPEN, OPEN]))
        # The interval need not contain the estimate, because it corrects for the optimism of a fit.
        ax.vlines(number, ends[:, 0], ends[:, 1], color=LEARNED, lw=1.6, label=summary.columns[2])
        ax.plot(np.r_[number, number], ends.T.ravel(), ls="none", marker="_", ms=9, mew=1.6, color=LEARNED)
    ax.plot(number, timescales, linestyle="none", marker="o", color=LEARNED, label="estimate")
    if doubts.any():
        ax.plot(number[doubts], timescales[doubts], "o", c=LEARNED, mfc="white", label="unreliable")
    if unit is None and summary.unit_diffusion:
        unit = "length²/D" if summary.has_kernel else "steps of the walk"
    ax.set(yscale="log", xlabel="mode", ylabel=with_unit("time scale", unit), xlim=(0.5, len(timescales) + 0.5))
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom * (bottom / top) ** LABEL_HEIGHT, top)
    integer_ticks(ax.xaxis)
    plain_log_ticks(ax.yaxis)
    ax.legend(frameon=False, loc="upper right")
    return ax


def plot_landscape(search: Any, ax: Axes | None = None) -> Axes:
    """Draw the score over the bandwidth for each family, at the best regularization of each, with the chosen point.

    There are separate curves for other bases than the basis of the first candidate, and for metrics. Each kernel is
    shown with its most accurate score; pale points were eliminated early, with scores from fewer folds.

    Parameters
    ----------
    search : fitted KernelSearchCV or AdaptiveDiffusionMap
    ax : Axes, default=new figure
    """
    ax = one_axes(ax)
    results = search.cv_results_
    sigmas, score, usual = results["param_bandwidth"], results["selection_score"], results["param_basis"][0]
    parts = zip(*(results[f"param_{name}"] for name in ("family", "basis", "metric")), strict=True)
    labels = np.array([f + ("" if b == usual else f", {b}") + (", metric" if m else "") for f, b, m in parts])
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


def plot_regularization_map(search: Any, family: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the score over regularization and bandwidth of one family, with the best point of the map.

    The map shows candidates with the basis and the metric of the chosen one.

    Parameters
    ----------
    search : fitted KernelSearchCV or AdaptiveDiffusionMap
    family : str, optional
        By default the chosen family.
    ax : Axes, default=new figure
    """
    results = search.cv_results_
    family = results["param_family"][search.best_index_] if family is None else family
    like = [results[name] == results[name][search.best_index_] for name in ("param_basis", "param_metric")]
    mine = np.flatnonzero((results["param_family"] == family) & like[0] & like[1])
    sigma, lam = results["param_bandwidth"][mine], results["param_regularization"][mine]
    if mine.size == 0 or np.unique(sigma).size < 2 or np.unique(lam).size < 2:
        raise NotApplicable(
            "family {family!r} was not tried at two bandwidths and two regularizations or more.", family=family
        )
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
    ax.figure.colorbar(drawn, ax=ax, label="score", extend="min")
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
    ax : Axes, default=new figure

    Returns
    -------
    ax : Axes
        The best loss so far is a thin line below the loss; a dotted line marks a change of the algorithm.
    """
    refinement = getattr(estimator, "refinement_", None)
    history = estimator if isinstance(estimator, dict) else getattr(estimator, "history_", None)
    if history is None and refinement is not None:
        history = refinement.history
    if history is None:
        raise ValueError(f"{type(estimator).__name__} without a history: its kernel was not learned by gradients.")
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
        at, place = (step - 0.5, 1), ("data", "axes fraction")
        ax.annotate(str(phase[step]), at, (3, -3), place, "offset points", va="top", color="0.4", fontsize="small")
    ax.set(xlabel="step", ylabel=quantity)
    ax.locator_params(axis="x", integer=True)
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_relevance(
    modes: Any,
    X: SamplesLike = None,
    *,
    sample_weight: ArrayLike | None = None,
    max_inputs: int = 30,
    axes: Sequence[Axes] | np.ndarray | None = None,
) -> np.ndarray:
    """Draw how much each mode depends on each input, and the combinations of inputs along which modes change most.

    Parameters
    ----------
    modes : fitted estimator or Relevance
        From `kdmaps.relevance`.
    X : array-like of shape (n_samples, d), optional
        The samples, for an estimator without a search.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples.
    max_inputs : int, default=30
        Largest number of inputs, the most relevant first. The last row sums the others, and inputs beyond the tenth
        whose mean share is less than 1 %.
    axes : sequence of r + 1 Axes, optional
        One for every mode and one for the combinations. By default a new figure.

    Returns
    -------
    axes : ndarray of r + 1 Axes
        Bars: the shares of the inputs in a mode, in percent. Colours and numbers: the leading combinations
        Σ_j u_j x_j/std(x_j), one column of entries u_j for each, above its share of all modes.
    """
    if isinstance(modes, Relevance):
        found = modes
    elif X is not None:
        found = relevance(modes, X, sample_weight)
    elif not hasattr(modes, "relevance_details_"):
        raise ValueError("X must be given with this estimator: the samples at which gradients are evaluated.")
    else:
        found = modes.relevance_details_
    check_positive_integer("max_inputs", max_inputs)
    order = np.argsort(-found.overall, kind="stable")
    n_shown = min(max_inputs, max(FEW, int(np.count_nonzero(found.overall >= SMALL))))
    shown, rest = order[:n_shown], order[n_shown:]
    names = [shorten(found.names[j], NAME_WIDTH, placeholder="…") or "…" for j in shown]
    if len(rest):
        names.append(f"{len(rest)} others" if len(rest) > 1 else "1 other")
    r = len(found.shares)
    if axes is None:
        size = (3.7 + 1.7 * r, 0.9 + 0.24 * max(len(names), 4))
        axes = new_axes(1, r + 1, size, width_ratios=[1.7] * r + [1.9])
    axes = np.ravel(np.asarray(axes, dtype=object))
    if len(axes) != r + 1:
        raise ValueError(f"axes has {len(axes)} Axes for {r} modes; pass one for each, and one for the combinations.")
    for k, (ax, share) in enumerate(zip(axes, found.shares, strict=False)):
        _bars(ax, np.append(share[shown], [share[rest].sum()] * (len(rest) > 0)), len(rest) > 0)
        ax.set(title=f"mode {k + 1}", xlabel="share (%)")
    _combinations(axes[-1], found, shown, len(names))
    axes[0].set_yticks(range(len(names)), names)
    for ax in axes[1:]:
        ax.set_yticks(range(len(names)), [""] * len(names))
    for ax in axes:
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.tick_params(axis="y", length=0)
    return axes


def _bars(ax: Axes, shares: np.ndarray, has_rest: bool) -> None:
    colors = [LEARNED] * len(shares)
    if has_rest:
        colors[-1] = "0.6"
    height = 0.7 * min(1, len(shares) / 4)  # a single bar would fill the figure
    ax.barh(range(len(shares)), 100 * shares, height=height, color=colors, alpha=0.85)
    for row, share in enumerate(shares):
        if share >= 0.01:
            ax.annotate(f" {100 * share:.0f}", (100 * share, row), va="center", fontsize="small", color="0.35")
    ax.set_xlim(0, 119)  # with space for the number at the end of a full bar
    ax.set_xticks([0, 50, 100])
    ax.spines[["top", "right"]].set_visible(False)


def _combinations(ax: Axes, found: Relevance, shown: np.ndarray, rows: int) -> None:
    n = min(COMBINATIONS, max(1, int(np.count_nonzero(found.combination_shares >= SMALL))))
    entries = np.full((rows, n), np.nan)  # the row of the other inputs stays empty
    entries[: len(shown)] = found.combinations[:n, shown].T
    ax.imshow(entries, cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto", interpolation="none")
    for row, column in np.argwhere(np.abs(entries) >= WRITTEN):
        entry = entries[row, column]
        color = "white" if abs(entry) > 0.7 else "0.2"
        text = f"{entry:.1f}".replace("-", "−")
        ax.annotate(text, (column, row), ha="center", va="center", fontsize="small", color=color)
    ax.set_xticks(range(n), [f"{100 * part:.0f} %" for part in found.combination_shares[:n]])
    ax.set(title="combinations", xlabel="share of all modes")
    for edge in np.arange(0.5, n - 1):
        ax.axvline(edge, color="white", lw=2)
    ax.spines[:].set_visible(False)
