"""Relevance of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.diagnostics.relevance import Relevance, relevance
from kdmaps.plotting._common import DIVERGING, LEARNED
from kdmaps.summary import SearchedModel
from kdmaps.utils.optional import optional
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.validation import check_positive_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Inputs and combinations with a smaller share are summed, except for the first FEW inputs.
SMALL, FEW = 0.01, 10
#: Largest number of combinations.
COMBINATIONS = 5
#: Smaller entries of combinations are not written.
WRITTEN = 0.1
#: Largest number of characters of a name.
NAME_WIDTH = 24


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
    found = _relevance_of(modes, X, sample_weight)
    check_positive_integer("max_inputs", max_inputs)
    order = np.argsort(-found.overall, kind="stable")
    n_shown = min(max_inputs, max(FEW, int(np.count_nonzero(found.overall >= SMALL))))
    shown, rest = order[:n_shown], order[n_shown:]
    names = [shorten(found.names[j], NAME_WIDTH, placeholder="…") or "…" for j in shown]
    if len(rest):
        names.append(f"{len(rest)} others" if len(rest) > 1 else "1 other")
    r = len(found.shares)
    axes = _new_axes(r, len(names)) if axes is None else np.ravel(np.asarray(axes, dtype=object))
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


def _relevance_of(modes: Any, X: SamplesLike, sample_weight: ArrayLike | None) -> Relevance:
    if isinstance(modes, Relevance):
        return modes
    if X is not None:
        return relevance(modes, X, sample_weight)
    if not isinstance(modes, SearchedModel):
        raise ValueError("X must be given with this estimator: the samples at which gradients are evaluated.")
    return modes.relevance_details_


def _new_axes(r: int, rows: int) -> np.ndarray:
    plt = optional("matplotlib.pyplot", "plot", "Figures")
    size = (1.8 + 1.7 * r + 1.9, 0.9 + 0.24 * max(rows, 4))
    ratios = [1.7] * r + [1.9]
    return plt.subplots(1, r + 1, figsize=size, width_ratios=ratios, layout="constrained", squeeze=False)[1][0]


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
