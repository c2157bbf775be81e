"""What all figures share: colours, axes and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kdmaps.data.inputs import join_trajectories
from kdmaps.utils.frames import column_names, split_rows
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

    # One tick is enough where there is one mode: more of them would be halves.
    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def plain_log_ticks(axis: Axis) -> None:
    """Label plain numbers: 1, 2 and 5 of each decade, 1 and 3 or powers of ten, as many as fit without touching.

    Time scales and bandwidths often span a decade or less, and sometimes three.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    class Fitting(LogLocator):
        def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
            self.set_params(subs=_fitting_subs(axis, vmin, vmax))
            return super().tick_values(vmin, vmax)

    axis.set_major_locator(Fitting())
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _fitting_subs(axis: Axis, low: float, high: float) -> tuple[int, ...]:
    """Return the multiples of powers of ten whose labels fit; 1, 2 and 5 are as near as log₁₀ 2 of a decade."""
    from matplotlib.axis import XAxis

    wide = isinstance(axis, XAxis)
    space = axis.get_tick_space()
    length = (3 if wide else 2) * space  # in font sizes: what matplotlib allows for a label
    ends = [f"{10.0 ** np.floor(np.log10(end)):g}" for end in (low, high) if end > 0]
    needed = 0.65 * max(map(len, ends), default=1) + 0.6 if wide else 1.4  # of a label, with a space
    decades = abs(np.log10(high / low)) if low > 0 and high > 0 else 0.0
    for subs, apart in (((1, 2, 5), np.log10(2)), ((1, 3), np.log10(3))):
        if decades * needed <= apart * length:
            return subs
    return (1,)


def coordinate_labels(X: Any) -> list[str]:
    """Return labels of the columns of X: its names if it has any, else x₁, x₂, …."""
    names = column_names(X)
    return [f"$x_{{{j + 1}}}$" for j in range(np.shape(X)[1])] if names is None else names


def mode_values(modes: Any, X: Any = None) -> np.ndarray:
    """Return modes at samples, (n_samples, r): those of an estimator at X, or the array or data frame that is given.

    Lists of arrays are trajectories, whose rows come one after another.
    """
    return np.concatenate(mode_series(modes, X))


def mode_series(modes: Any, X: Any = None) -> list[np.ndarray]:
    """Return the modes along each trajectory, (n_frames_i, r); what is no list of arrays is one trajectory."""
    # Data frames of pandas have a `transform` of their own.
    if hasattr(modes, "transform") and column_names(modes) is None:
        if X is None:
            raise ValueError("X must be given with an estimator: the samples to draw.")
        modes = modes.transform(X)
    joined, _, lengths = join_trajectories(modes)
    values = np.asarray(joined, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"modes must have one row per sample and one column per mode, got shape {values.shape}.")
    return [values] if lengths is None else split_rows(values, lengths)
