"""Figures for a page: SVG that takes the colours of the text around it, light or dark."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

#: Colours of the plots that a page gives its own meaning.
THEMED = {
    "#000000": "currentColor",
    "#ffffff": "var(--panel)",
    **dict.fromkeys(("#e6e6e6", "#e0e0e0", "#d9d9d9"), "var(--line)"),
    **dict.fromkeys(("#595959", "#666666", "#4d4d4d", "#808080", "#999999", "#cccccc"), "var(--muted)"),
}
#: Inches. A page shows them as wide as a phone, where this makes text of ten pixels.
SIZE = (4.9, 3.1)
#: Pixels per inch of what is drawn as an image, because it has too many points.
PIXELS = 150


def svg(
    draw: Callable[[Any], Any],
    description: str,
    salt: str,
    *,
    shape: tuple[int, int] | None = None,
    size: tuple[float, float] = SIZE,
) -> str:
    """Return what `draw(ax)` draws, as an SVG element for a page.

    Parameters
    ----------
    draw : callable
        Gets an Axes, or with a shape a matrix of Axes.
    description : str
        For those who do not see it; escaped here.
    salt : str
        Different for every figure of a page, whose names of clip paths must not be the same.
    shape : tuple of int, optional
        Rows and columns of Axes.
    size : tuple of float
        Width and height in inches. What is wider than SIZE has smaller text on a phone.
    """
    from markupsafe import escape
    from matplotlib import rc_context
    from matplotlib.figure import Figure  # not pyplot, which wants a display

    # Text stays text: it can be found, read aloud, and takes the font of the page.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": salt, "font.family": "sans-serif"}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot() if shape is None else figure.subplots(*shape, squeeze=False))
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", dpi=PIXELS, transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*">', "<g>", text)  # the same names in every figure, and nobody refers to them
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{salt}-", text)
    text = re.sub(r"\d'DejaVu Sans'[^;\"]*", "sans-serif", text)
    for colour, meaning in THEMED.items():
        text = re.sub(rf"((?:fill|stroke): ){colour}", rf"\1{meaning}", text)
    view = re.search(r'viewBox="[^"]*"', text)
    assert view is not None
    start = f'<svg role="img" aria-label="{escape(description)}" {view[0]} xmlns:xlink="http://www.w3.org/1999/xlink">'
    return re.sub(r"<svg[^>]*>", lambda _: start, text, count=1)
