"""Time scales, residuals of modes, and certificates."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.plotting._common import EXACT, LEARNED, integer_ticks, one_axes, plain_log_ticks
from kdmaps.summary import summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kdmaps.certificates import Certificate
    from kdmaps.generators import Residuals
    from kdmaps.uncertainty import Uncertainty

#: Height below the data for the label of the gap, relative to the height of the data.
LABEL_HEIGHT = 0.1
#: An interval that is open on a side is drawn to this multiple of the time scale.
OPEN = 30.0
#: Smaller bounds are drawn here, because the axis is logarithmic.
SMALLEST = 1e-16
#: Characters in a line of a label.
LABEL_WIDTH = 28


def plot_timescales(
    estimator: Any, exact: ArrayLike | None = None, ax: Axes | None = None, *, uncertainty: Uncertainty | None = None
) -> Axes:
    """Draw the spectrum of time scales, with intervals and the gap after the last mode; doubtful modes are hollow.

    Parameters
    ----------
    estimator : fitted estimator
        Any estimator of this library.
    exact : array-like of shape (r,), optional
        Exact time scales for comparison.
    ax : Axes, optional
        By default a new figure.
    uncertainty : kdmaps.uncertainty.Uncertainty, optional
        Its intervals are drawn as error bars.

    Notes
    -----
    The gap is the ratio of the last time scale to the next, or the ratio of their eigenvalues if it is smaller
    (`Modes.timescale_gap`). The band extends down from the last time scale by this ratio; if it is thin, the last mode
    and the next have nearly the same time scale.
    """
    ax = one_axes(ax)
    summary = summarise(estimator, uncertainty=uncertainty)
    timescales, gap, doubts = summary.timescales, summary.gap, summary.doubtful
    number = np.arange(1, len(timescales) + 1)
    if np.isfinite(gap):
        last = timescales[-1]
        ax.axhspan(last / gap, last, color="0.9", zorder=0)
        # Below the band, which may be too thin for a label, and left of the first mode and its interval.
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
        # The interval need not contain the estimate, because it corrects for the optimism of a fit.
        ax.vlines(number, ends[:, 0], ends[:, 1], color=LEARNED, lw=1.6, label=summary.columns[2])
        ax.plot(np.r_[number, number], ends.T.ravel(), ls="none", marker="_", ms=9, mew=1.6, color=LEARNED)
    ax.plot(number, timescales, linestyle="none", marker="o", color=LEARNED, label="learned")
    if doubts.any():
        ax.plot(number[doubts], timescales[doubts], "o", c=LEARNED, mfc="white", label="unreliable")
    ax.set(yscale="log", xlabel="mode", ylabel="time scale", xlim=(0.5, len(timescales) + 0.5))
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom * (bottom / top) ** LABEL_HEIGHT, top)
    integer_ticks(ax.xaxis)
    plain_log_ticks(ax.yaxis)
    ax.legend(frameon=False, loc="upper right")
    return ax


def plot_residuals(residuals: Residuals, ax: Axes | None = None) -> Axes:
    """Draw the residual ‖𝒢φ + λφ‖/‖φ‖ and the rate λ of every mode.

    Parameters
    ----------
    residuals : kdmaps.generators.Residuals
        From `Generator.residuals`.
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    ax : Axes
        A mode whose bar is far below its mark is nearly an eigenfunction.
    """
    ax = one_axes(ax)
    number = np.arange(1, len(residuals.norms) + 1)
    ax.bar(number, residuals.norms, width=0.6, color=LEARNED, alpha=0.8, label="residual")
    ax.plot(number, residuals.rates, ls="none", marker="_", ms=26, mew=1.8, color="0.3", label="rate")
    ax.set(xlabel="mode", ylabel="residual, rate", xlim=(0.4, len(number) + 0.6), ylim=(0, None))
    integer_ticks(ax.xaxis)
    ax.legend(frameon=False)
    return ax


def plot_certificates(
    certificates: Sequence[Certificate], labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the bounds of certificates, one bar each; bars are empty if an assumption fails.

    Parameters
    ----------
    certificates : sequence of kdmaps.certificates.Certificate
        The certificates.
    labels : sequence of str, optional
        By default the statement of each certificate.
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    ax : Axes
        With a logarithmic axis. A line marks 1, the trivial bound on a distance or a probability.
    """
    names = [fill(c.statement, LABEL_WIDTH) for c in certificates] if labels is None else list(labels)
    if len(names) != len(certificates) or not names:
        raise ValueError(f"labels has {len(names)} names for {len(certificates)} certificates; pass one for each.")
    ax = one_axes(ax)
    values = np.maximum([certificate.value for certificate in certificates], SMALLEST)
    left = min(values.min() / 3, 0.1)
    for row, (certificate, value) in enumerate(zip(certificates, values, strict=True)):
        style: dict[str, Any] = (
            {"color": LEARNED, "alpha": 0.8} if certificate.holds else {"fill": False, "ec": "0.5", "ls": "--"}
        )
        ax.barh(row, value - left, left=left, height=0.6, **style)
        text, at = (f" {certificate.value:.2g}", value) if certificate.holds else ("  does not apply", left)
        ax.annotate(text, (at, row), va="center", fontsize="small", color="0.35")
    ax.axvline(1, color="0.6", lw=0.8, ls=":")
    ax.set(xscale="log", xlabel="bound", xlim=(left, 8 * max(values.max(), 1)), yticks=range(len(names)))
    ax.set_yticklabels(names)
    ax.invert_yaxis()
    return ax
