"""What all figures share: colours, axes and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kdmaps.utils.frames import column_names
from kdmaps.utils.optional import optional

if TYPE_CHECKING:
    from matplotlib.axis import Axis

#: Moreland's diverging map, uniform in lightness towards both ends: equal steps of a mode look equally large.
DIVERGING = "coolwarm"
LEARNED, EXACT = "tab:blue", "black"
#: Modes grow without bound where samples are rare; colours span this part of their values, the rest is saturated.
SHOWN = 0.99


def new_axes(n: int) -> np.ndarray:
    """Return `n` Axes side by side in a new figure."""
    plt = optional("matplotlib.pyplot", "plot", "Figures")
    return plt.subplots(1, n, figsize=(max(5.0, 3.2 * n), 3.0), layout="constrained", squeeze=False)[1][0]


def integer_ticks(axis: Axis) -> None:
    """Put ticks at whole numbers only: there is no half mode."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def plain_log_ticks(axis: Axis) -> None:
    """Label 1, 2 and 5 of each decade as plain numbers: time scales and bandwidths often span a decade or less."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def coordinate_labels(X: Any) -> list[str]:
    """Return labels of the columns of X: its names if it has any, else x₁, x₂, …."""
    names = column_names(X)
    return [f"$x_{{{j + 1}}}$" for j in range(np.shape(X)[1])] if names is None else names


def mode_values(modes: Any, X: Any = None) -> np.ndarray:
    """Return modes at samples, (n_samples, r): those of an estimator at X, or the array or data frame that is given."""
    # Data frames of pandas have a `transform` of their own.
    if hasattr(modes, "transform") and column_names(modes) is None:
        if X is None:
            raise ValueError("X must be given with an estimator: the samples to draw.")
        modes = modes.transform(X)
    values = np.asarray(modes, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"modes must have one row per sample and one column per mode, got shape {values.shape}.")
    return values
