"""Cards for notebooks: a title, a table and sentences as HTML, in the colours of the surrounding page."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from kdmaps.utils.numbers import rounded

_CARD = "font-family: sans-serif; font-size: 0.9em; margin-top: 0.6em"
_CELL = "padding: 0.15em 0.8em; text-align: right; border-bottom: 1px solid rgba(128, 128, 128, 0.4)"


def card(title: str, columns: Iterable[str], rows: Iterable[Sequence[str]], *parts: str) -> str:
    """Return a title, a table and further parts, which are HTML already, as one element."""
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<div class="kdmaps-summary" style="{_CARD}"><p style="margin: 0.3em 0"><b>{escape(title)}</b></p>'
        f'<table style="border-collapse: collapse; margin: 0"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
        f"{''.join(parts)}</div>"
    )


def scatter(points: np.ndarray, names: Sequence[str]) -> str:
    """Return a picture of points, (n, 2), in the colour of the page, with the names of the axes, for `card`."""
    low, span = points.min(axis=0), np.ptp(points, axis=0)
    x, y = ((points - low) / np.where(span > 0, span, 1) * [180, -120] + [16, 126]).T
    dots = "".join(f"M{a:.0f} {b:.0f}h0" for a, b in zip(x, y, strict=True))
    across, up = map(escape, names)
    return (
        '<svg width="200" height="146" fill="currentColor" font-size="10" style="display: block; margin: 0.4em 0">'
        f'<path d="{dots}" stroke="#1f77b4" stroke-width="3" stroke-linecap="round"/>'
        f'<text x="106" y="143" text-anchor="middle">{across}</text>'
        f'<text x="-66" y="9" text-anchor="middle" transform="rotate(-90)">{up}</text></svg>'
    )


def warning_lines(checks: Any) -> str:
    """Return the warnings of `kdmaps.checks.Checks` as paragraphs with links to their sections, for `card`."""
    linked = [(escape(check.say()), escape(check.link)) for check in checks.warnings]
    return "".join(f'<p>⚠ {text} (<a href="{at}">{at}</a>)</p>' for text, at in linked)


class TableCard:
    """Mixin of results with a `table` of plain data, or with `cells`: a card, with the first line of their text."""

    def _repr_html_(self) -> str:
        own: Any = self
        if hasattr(own, "cells"):
            titles, rows = own.cells()
        else:
            records = own.table()
            titles = [name.replace("_", " ") for name in records[0]]
            rows = [[_shown(value) for value in record.values()] for record in records]
        return card(repr(own).partition("\n")[0], titles, rows)


def _shown(value: Any) -> str:
    return rounded(value) if isinstance(value, float) else str(value)
