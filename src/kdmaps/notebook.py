"""How a fitted estimator looks in a notebook."""

from __future__ import annotations

from html import escape
from typing import Any

from kdmaps.words import chosen, reasons, timescale_columns, timescale_rows, warnings_of

_CELL = "padding: 0.15em 0.8em; text-align: right; border-bottom: 1px solid rgba(128, 128, 128, 0.4)"


class NotebookDisplay:
    """scikit-learn's diagram of an estimator and, once it is fitted, its time scales, its kernel and warnings."""

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + summary_html(self)  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:  # not where the user asked scikit-learn for text
            bundle["text/html"] += summary_html(self)
        return bundle


def summary_html(estimator: Any) -> str:
    """Return time scales, kernel, the reasons for it and warnings as HTML in the colours around it; "" if unfitted."""
    if not hasattr(estimator, "modes_"):
        return ""
    head = "".join(f'<th style="{_CELL}">{escape(title)}</th>' for title in timescale_columns())
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row) + "</tr>"
        for row in timescale_rows(estimator)
    )
    why = "".join(f"<li>{escape(reason)}</li>" for reason in reasons(estimator))
    warnings = "".join(f"<p>⚠ {escape(text)}</p>" for text in warnings_of(estimator))
    return (
        '<div class="kdmaps-summary" style="font-family: sans-serif; font-size: 0.9em; margin-top: 0.6em">'
        f'<table style="border-collapse: collapse; margin: 0"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
        f"<details><summary>{escape(chosen(estimator))}</summary><ul>{why}</ul></details>{warnings}</div>"
    )
