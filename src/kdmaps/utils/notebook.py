"""Cards for notebooks: a title, a table and sentences as HTML, in the colours of the surrounding page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

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
