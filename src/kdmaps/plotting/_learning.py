"""How a kernel was learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kdmaps.plotting._common import LEARNED, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_history(estimator: Any, quantity: str = "loss", ax: Axes | None = None) -> Axes:
    """Draw a quantity over the steps of the optimiser.

    Parameters
    ----------
    estimator : fitted VariationalKernelMap, AdaptiveDiffusionMap with a refinement, or a history
        A history is a dict of columns, as `history_` holds it.
    quantity : str, default="loss"
        A column: "loss", a term of the objective, "gap", "gradient_norm", or one with several values per step such as
        "beta" (weights) and "sigma" (bandwidths), which are drawn as one curve each.
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    ax : Axes
        The best loss so far is a thin line below the loss; a dotted line marks where the optimiser changed its rule.
    """
    history = _history_of(estimator)
    if quantity not in history or history[quantity].dtype.kind not in "fi":
        known = ", ".join(name for name, column in history.items() if column.dtype.kind in "fi")
        raise ValueError(f"quantity must be one of {known}; got {quantity!r}.")
    ax = new_axes(1)[0] if ax is None else ax
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
    ax.locator_params(axis="x", integer=True)  # there is no half step
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.legend(frameon=False, fontsize="small")
    return ax


def _history_of(estimator: Any) -> dict[str, np.ndarray]:
    refinement = getattr(estimator, "refinement_", estimator)
    history = getattr(refinement, "history", getattr(estimator, "history_", refinement))
    if not isinstance(history, dict):
        raise ValueError(f"{type(estimator).__name__} has no history: its kernel was not learned by gradients.")
    return history
