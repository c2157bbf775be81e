"""Plots of residuals of modes and of certificates."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from kdmaps.plotting._common import LEARNED, integer_ticks, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kdmaps.certificates import Certificate
    from kdmaps.generators import Residuals

#: Smaller bounds are drawn here, because the axis is logarithmic.
SMALLEST = 1e-16
#: Characters in a line of a label.
LABEL_WIDTH = 28


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
    ax = new_axes(1)[0] if ax is None else ax
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
        raise ValueError(f"labels holds {len(names)} names for {len(certificates)} certificates; pass one for each.")
    ax = new_axes(1)[0] if ax is None else ax
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
