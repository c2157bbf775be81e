"""Which modes are new coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.diagnostics.independence import IndependentModes, independent_modes
from kdmaps.plotting._common import LEARNED, integer_ticks, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_independence(modes: IndependentModes | ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw how much of each mode is new, as a bar; those of functions of earlier modes are grey.

    Parameters
    ----------
    modes : IndependentModes or array-like of shape (n_samples, r)
        From `kdmaps.independent_modes`, or the values of the modes at samples.
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    ax : Axes
    """
    found = modes if isinstance(modes, IndependentModes) else independent_modes(modes)
    ax = new_axes(1)[0] if ax is None else ax
    number = np.arange(1, len(found.residuals) + 1)
    for which, colour, label in (
        (found.independent, LEARNED, "new coordinate"),
        (~found.independent, "0.6", "function of earlier ones"),
    ):
        ax.bar(number[which], found.residuals[which], width=0.6, color=colour, label=label if which.any() else None)
    ax.axhline(found.threshold, color="0.4", lw=0.8, ls="--")
    ax.set(xlabel="mode", ylabel="residual", xlim=(0.4, len(number) + 0.6), ylim=(0, 1.25))
    ax.set_yticks([0, 0.5, 1])
    integer_ticks(ax.xaxis)
    ax.legend(frameon=False, loc="upper right", ncols=2, fontsize="small")
    return ax
