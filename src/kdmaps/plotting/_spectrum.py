"""Time scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.plotting._common import EXACT, LEARNED, integer_ticks, new_axes, plain_log_ticks
from kdmaps.summary import summarise

#: Height below the data for the words about the gap, relative to that of the data.
ROOM = 0.1
#: An interval that is open on a side is drawn to this multiple of the time scale.
OPEN = 30.0

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kdmaps.uncertainty import Uncertainty


def plot_timescales(
    estimator: Any, exact: ArrayLike | None = None, ax: Axes | None = None, *, uncertainty: Uncertainty | None = None
) -> Axes:
    """Draw the spectrum of time scales, with intervals and the gap after the last mode; doubtful modes are hollow.

    Parameters
    ----------
    estimator : fitted estimator
    exact : array-like of shape (r,), optional
        Exact time scales for comparison.
    ax : Axes, optional
        By default a new figure.
    uncertainty : kdmaps.uncertainty.Uncertainty, optional
        Its intervals are drawn as error bars.

    Returns
    -------
    ax : Axes

    Notes
    -----
    The gap is the ratio of the last time scale to the next one, or of their eigenvalues if it is smaller
    (`Modes.timescale_gap`). The band extends down from the last time scale by that ratio; a thin one means that the
    last mode and the next one have nearly the same time scale.
    """
    ax = new_axes(1)[0] if ax is None else ax
    summary = summarise(estimator, intervals=uncertainty)
    timescales, gap, doubts = summary.timescales, summary.gap, summary.doubtful
    number = np.arange(1, len(timescales) + 1)
    if np.isfinite(gap):
        last = timescales[-1]
        ax.axhspan(last / gap, last, color="0.9", zorder=0)
        # Below the band, which may be too thin to hold it, and left of the first mode and its interval.
        ax.annotate(
            f"gap {gap:.4g}",
            (0, last / gap),
            (4, -3),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="top",
            color="0.35",
        )
    if exact is not None:
        ax.plot(number, exact, linestyle="none", marker="_", markersize=22, markeredgewidth=1.5, c=EXACT, label="exact")
    if uncertainty is not None:
        ends = uncertainty.timescale_intervals
        ends = np.where(np.isfinite(ends) & (ends > 0), ends, timescales[:, None] * np.array([1 / OPEN, OPEN]))
        # An interval that corrects for the optimism of a fit need not hold the estimate: draw it by its own ends.
        ax.vlines(number, ends[:, 0], ends[:, 1], color=LEARNED, lw=1.6, label=summary.columns[2])
        ax.plot(np.r_[number, number], ends.T.ravel(), ls="none", marker="_", ms=9, mew=1.6, color=LEARNED)
    ax.plot(number, timescales, linestyle="none", marker="o", color=LEARNED, label="learned")
    if doubts.any():
        ax.plot(number[doubts], timescales[doubts], "o", c=LEARNED, mfc="white", label="not to be trusted")
    ax.set(yscale="log", xlabel="mode", ylabel="time scale", xlim=(0.5, len(timescales) + 0.5))
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom * (bottom / top) ** ROOM, top)
    integer_ticks(ax.xaxis)
    plain_log_ticks(ax.yaxis)
    ax.legend(frameon=False, loc="upper right")
    return ax
