"""Figures of the page: SVG in the colours of the surrounding text, light or dark."""

import io
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from kdmaps import plotting
from kdmaps.diagnostics.relevance import Relevance
from kdmaps.dynamics import ChapmanKolmogorov, Validation
from kdmaps.exceptions import NotApplicable
from kdmaps.report.sections import Figure
from kdmaps.summary import FitSummary
from kdmaps.utils.numbers import rounded

#: Colours of the plots that the page replaces by its own.
THEMED = {
    "#000000": "currentColor",
    "#ffffff": "var(--panel)",
    **dict.fromkeys(("#e6e6e6", "#e0e0e0", "#d9d9d9"), "var(--line)"),
    **dict.fromkeys(("#595959", "#666666", "#4d4d4d", "#808080", "#999999", "#cccccc"), "var(--muted)"),
}
#: Inches. At the width of a phone, text then has ten pixels.
SIZE, MODE_SIZE = (4.9, 3.1), (4.2, 3.2)
#: Pixels per inch of parts with many points, which are drawn as images.
PIXELS = 150
#: Number of modes drawn side by side, or above one another against time.
DRAWN_MODES = 4
#: Number of inputs in the figure of relevance.
RELEVANT_INPUTS = 15


def figure(
    draw: Callable[[Any], Any],
    description: str,
    salt: str,
    caption: str = "",
    *,
    shape: tuple[int, int] | None = None,
    size: tuple[float, float] = SIZE,
    broad: bool = False,
) -> Figure:
    """Return the drawing of `draw(ax)`, or of `draw(matrix of Axes)` if there is a shape, as an SVG element.

    The description is for screen readers. The salt must differ between the figures of a page, so that the names of clip
    paths differ. Figures wider than SIZE have smaller text on a phone.
    """
    from markupsafe import Markup, escape
    from matplotlib import figure, rc_context  # pyplot needs a display

    # Text stays text, so that it can be searched and read aloud, in the font of the page.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": salt, "font.family": "sans-serif"}):
        drawn = figure.Figure(figsize=size, layout="constrained")
        draw(drawn.add_subplot() if shape is None else drawn.subplots(*shape, squeeze=False))
        buffer = io.StringIO()
        drawn.savefig(buffer, format="svg", dpi=PIXELS, transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*">', "<g>", text)  # the same names in every figure, never referred to
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{salt}-", text)
    text = re.sub(r"\d'DejaVu Sans'[^;\"]*", "sans-serif", text)
    for colour, meaning in THEMED.items():
        text = re.sub(rf"((?:fill|stroke): ){colour}", rf"\1{meaning}", text)
    view = re.search(r'viewBox="[^"]*"', text)
    assert view is not None
    start = f'<svg role="img" aria-label="{escape(description)}" {view[0]} xmlns:xlink="http://www.w3.org/1999/xlink">'
    return Figure(Markup(re.sub(r"<svg[^>]*>", lambda _: start, text, count=1)), caption, broad)


def choice_figures(model: Any, summary: FitSummary) -> list[Figure]:
    """Draw the scores of a search and the steps of an optimiser."""
    made = []
    if summary.search is not None and np.isfinite(model.cv_results_["param_bandwidth"]).any():
        draw = partial(plotting.plot_landscape, model)
        caption = (
            "Score of each kernel family against the bandwidth, at the best regularization, with standard errors. The "
            "star marks the choice."
        )
        made.append(figure(draw, "Score over bandwidth for every kernel family", "landscape", caption))
        with suppress(NotApplicable):  # too few points for a map
            draw = partial(plotting.plot_regularization_map, model, None)
            text = "Score over bandwidth and regularization for the chosen family"
            made.append(figure(draw, text, "map", "Score of the chosen family against bandwidth and regularization."))
    if summary.history is not None and len(summary.history["loss"]) > 2:  # one step is not a curve
        draw = partial(plotting.plot_history, summary.history, "loss")
        made.append(figure(draw, "Loss over the steps of the optimiser", "history", "Loss at each step."))
    return made


def mode_figure(k: int, values: np.ndarray, coordinates: dict[str, np.ndarray], summary: FitSummary) -> Figure:
    """Draw mode k at samples over one or two coordinates of the same samples."""
    names, points = list(coordinates), np.column_stack(list(coordinates.values()))
    time, title = summary.timescales[k], f"mode {k + 1}"
    if not summary.directed:  # time scales of singular functions are not relaxation times
        title += f": {rounded(time, 3)} {summary.unit or ''}".rstrip() if time > 0 else ": shorter than the lag"

    def draw(ax: Any) -> None:
        plotting.plot_modes(values[:, None], points, axes=[ax], titles=[title])
        ax.set_xlabel(names[0])
        if len(names) > 1:
            ax.set_ylabel(names[1])
        for part in (*ax.collections, *ax.lines[1:]):  # thousands of points as an image
            part.set_rasterized(True)

    return figure(draw, f"Mode {k + 1} over {' and '.join(names)}", f"look{k}", size=MODE_SIZE)


def energy_figure(values: np.ndarray, weight: np.ndarray | None, caption: str, bins: int = 80) -> Figure:
    """Draw the free energy along the first two modes, or the only one."""

    def draw(ax: Any) -> None:
        plotting.plot_free_energy(values, sample_weight=weight, bins=bins, ax=ax)
        for part in ax.collections if values.shape[1] > 1 else []:
            part.set_rasterized(True)

    along = "the first two modes" if values.shape[1] > 1 else "mode 1"
    return figure(draw, f"Free energy along {along}, in units of kT", "energy", caption)


def lag_figures(summary: FitSummary, tests: Validation | None) -> list[Figure]:
    """Draw the tests of the lag and the scan that chose it."""
    made = []
    if tests is not None:
        draw = partial(plotting.plot_implied_timescales, tests.implied, None, unit=summary.unit)
        flat = "; the dotted line marks the smallest lag from which they are flat"
        caption = (
            "Implied time scales with intervals. They should not depend on the lag"
            f"{'' if tests.implied.plateau is None else flat}. Time scales in the grey area are shorter than the lag "
            "and cannot be resolved."
        )
        made.append(figure(draw, "Implied time scales over the lag, with intervals", "implied", caption))
        if tests.chapman is not None:
            made.append(_chapman(tests.chapman, summary.unit))
    if summary.lag_choice is not None:
        draw = partial(plotting.plot_implied_timescales, summary.lag_choice, None, unit=summary.unit)
        text = "Quick scan of implied time scales over the lag, used to choose the lag"
        caption = (
            "Quick scan used to choose the lag, before the search for a kernel. (Scores of different lags cannot be "
            "compared.)"
        )
        made.append(figure(draw, text, "choice", caption))
    return made


def _chapman(test: ChapmanKolmogorov, unit: str | None) -> Figure:
    r = test.predicted.shape[1]
    columns = min(r, 2)
    n_rows = -(-r // columns)

    def draw(axes: np.ndarray) -> None:
        for ax in axes.flat[r:]:
            ax.remove()
        plotting.plot_chapman_kolmogorov(test, axes.flat[:r], unit=unit)
        for ax in axes.flat[: max(r - columns, 0)]:
            ax.set_xlabel("")
        for ax in axes[:, 1:].flat[: r // 2]:
            ax.set_ylabel("")

    text = "Chapman–Kolmogorov test: predicted and estimated autocorrelation of every mode"
    caption = (
        "Chapman–Kolmogorov test. Lines: predictions from the lag of the model, with intervals in grey. Points: "
        "estimates from the trajectory."
    )
    height = SIZE[1] if n_rows == 1 else 1.75 * n_rows + 0.4
    return figure(draw, text, "chapman", caption, shape=(n_rows, columns), size=(SIZE[0], height))


def series_figure(series: np.ndarray, summary: FitSummary, caption: str) -> Figure:
    """Draw the slowest modes against time, their thousands of points as images."""
    r = min(series.shape[1], DRAWN_MODES)

    def draw(axes: np.ndarray) -> None:
        plotting.plot_modes_in_time(series[:, :r], time_step=summary.time_step, unit=summary.unit, axes=axes[:, 0])
        for ax in axes[:, 0]:
            ax.lines[0].set_rasterized(True)
        for ax in axes[:-1, 0]:
            ax.tick_params(labelbottom=False)

    return figure(draw, "Modes against time", "series", caption, shape=(r, 1), size=(SIZE[0], 0.5 + 1.1 * r))


def relevance_figure(known: Relevance) -> Figure:
    """Draw the shares of the inputs, over the full width of the page."""
    r = len(known.shares)

    def draw(axes: np.ndarray) -> None:
        plotting.plot_relevance(known, max_inputs=RELEVANT_INPUTS, axes=axes[0])
        axes[0, -1].remove()  # combinations, whose colours and numbers suit a white page only
        places = axes[0, 0].figure.add_gridspec(1, r)
        for k in range(r):
            axes[0, k].set_subplotspec(places[k])

    caption = (
        "Share of each input in the squared gradients of each mode, with inputs in units of their standard deviations. "
        "`kdmaps.plotting.plot_relevance` also shows the most relevant combinations of inputs."
    )
    size = (1.8 + 1.5 * r, 0.9 + 0.24 * max(4, min(RELEVANT_INPUTS + 1, len(known.names))))
    text = "Share of every input in the gradients of every mode"
    return figure(draw, text, "relevance", caption, shape=(1, r + 1), size=size, broad=r > 2)
