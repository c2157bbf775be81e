"""Colours, axes and labels that all figures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kdmaps.data.inputs import join_trajectories
from kdmaps.utils.fitted import refuse_swapped
from kdmaps.utils.frames import column_names, split_rows
from kdmaps.utils.optional import optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

#: Moreland's diverging map, uniform in lightness towards both ends: equal steps of a mode look equally large.
DIVERGING = "coolwarm"
LEARNED, EXACT = "tab:blue", "black"
#: Colours of phases, cyclic and uniform in lightness: no phase looks special. And their ticks.
CYCLIC, PHASES = "twilight", {-np.pi: "-π", 0.0: "0", np.pi: "π"}


def new_axes(rows: int, columns: int, size: tuple[float, float] | None = None, **options: Any) -> np.ndarray:
    """Return a matrix of Axes in a new figure."""
    plt = optional("matplotlib.pyplot", "plot", "Figures")
    size = (max(5.0, 3.2 * columns), 3.0) if size is None else size
    return plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, **options)[1]


def one_axes(ax: Axes | None) -> Axes:
    """Return the given Axes, or new ones."""
    return new_axes(1, 1)[0, 0] if ax is None else ax


def mode_axes(axes: Sequence[Axes] | np.ndarray | None, r: int) -> np.ndarray:
    """Return the given Axes, one for each mode, or new ones side by side."""
    axes = new_axes(1, r)[0] if axes is None else np.ravel(np.asarray(axes, dtype=object))
    if len(axes) != r:
        raise ValueError(f"axes has {len(axes)} Axes for {r} modes; pass one for each.")
    return axes


def draw_phase(
    ax: Axes, phase: np.ndarray, columns: Sequence[np.ndarray], labels: Sequence[str], size: float, *, bar: bool = True
) -> None:
    """Draw phases over one or two columns."""
    x, y = [*columns, phase][:2]
    drawn = ax.scatter(x, y, c=phase, cmap=CYCLIC, vmin=-np.pi, vmax=np.pi, s=size, lw=0, rasterized=True)
    ax.set(xlabel=labels[0], ylabel=[*labels, "phase"][1])
    if bar:
        ax.figure.colorbar(drawn, ax=ax, label="phase", ticks=[*PHASES], format=lambda value, _: PHASES.get(value, ""))


def integer_ticks(axis: Axis) -> None:
    """Put ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))  # with more, a single mode would have half ticks


def plain_log_ticks(axis: Axis) -> None:
    """Label plain numbers: 1, 2 and 5 of each decade, or 1 and 3, or powers of ten, as many as fit."""
    from matplotlib.axis import XAxis
    from matplotlib.ticker import LogLocator, NullFormatter

    wide = isinstance(axis, XAxis)

    class Fitting(LogLocator):
        def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
            length = (3 if wide else 2) * axis.get_tick_space()  # in font sizes, as matplotlib allows for a label
            ends = [f"{10.0 ** np.floor(np.log10(end)):g}" for end in (vmin, vmax) if end > 0]
            needed = 0.65 * max(map(len, ends), default=1) + 0.6 if wide else 1.4  # of a label, with a space
            decades = abs(np.log10(vmax / vmin)) if vmin > 0 and vmax > 0 else 0.0
            # The closest of 1, 2 and 5 are log₁₀ 2 decades apart.
            choices = ((np.log10(2), (1, 2, 5)), (np.log10(3), (1, 3)))
            self.set_params(subs=next((subs for apart, subs in choices if decades * needed <= apart * length), (1,)))
            return super().tick_values(vmin, vmax)

    axis.set_major_locator(Fitting())
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def coordinates_of(X: Any, coordinates: Sequence[int]) -> tuple[np.ndarray, list[int], list[str]]:
    """Return the samples, the one or two columns to draw over, and their labels: names if X has any, else x₁, x₂, …."""
    refuse_swapped(X)
    X = join_trajectories(X)[0]
    names, X = column_names(X), np.asarray(X)
    d = X.shape[1] if X.ndim == 2 else 0
    shown = [*coordinates][:d]
    if len(shown) not in (1, 2) or not all(0 <= j < d for j in shown):
        raise ValueError(f"coordinates must be one or two columns of X (0 to {d - 1}), got {coordinates!r}.")
    return X, shown, [f"$x_{{{j + 1}}}$" if names is None else names[j] for j in shown]


def mode_series(modes: Any, X: Any = None) -> list[np.ndarray]:
    """Return modes along each trajectory, (n_frames_i, r): of an estimator at X, or as given, one array or a list."""
    refuse_swapped(X)
    # Data frames of pandas have a `transform` too.
    if hasattr(modes, "transform") and column_names(modes) is None:
        if X is None:
            raise ValueError("X must be given with an estimator: the samples to draw.")
        modes = modes.transform(X)
    joined, _, lengths = join_trajectories(modes)
    values = np.asarray(joined, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"modes must have one row per sample and one column per mode, got shape {values.shape}.")
    return [values] if lengths is None else split_rows(values, lengths)
