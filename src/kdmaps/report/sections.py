"""Parts of a page: sections of blocks, and the template that shows them.

A section is a function of what the page is about. It returns a `Section`: a title, a verdict in one line and blocks in
their order, or None if it does not apply. A page is a list of sections given to `render_page`. In texts, `backticks`
mark code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from kdmaps.checks import Checks, Subject
from kdmaps.estimators.model_files import library_versions
from kdmaps.language import PYTHON, Language

if TYPE_CHECKING:
    from markupsafe import Markup

    from kdmaps.clocks.clock import BurstClock


class Figure(NamedTuple):
    """A picture, as `kdmaps.report._figures.figure` returns it; a broad one takes the width of the page."""

    picture: Markup
    caption: str = ""
    broad: bool = False


class Table(NamedTuple):
    """A table of numbers, or of plain text."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    plain: bool = False
    failed: Sequence[bool] = ()  # rows that are marked
    title: str = ""  # folded under this title if there is one


def clock_table(clock: BurstClock) -> Table:
    """Return the table of the clock of bursts."""
    return Table("clock", *clock.cells(), plain=True)


class Text(NamedTuple):
    """A paragraph in small print."""

    text: str


class Items(NamedTuple):
    """A list of sentences, folded under a title if there is one."""

    items: Sequence[str]
    title: str = ""


class Code(NamedTuple):
    """A program."""

    text: str


class Heading(NamedTuple):
    """A heading within a section."""

    text: str


class Beside(NamedTuple):
    """Blocks side by side, as far as the page is wide enough; small ones are half as wide."""

    blocks: Sequence[Any]
    small: bool = False


class Explorer(NamedTuple):
    """Linked interactive figures of samples, as `kdmaps.report._fit_sections` makes them."""

    points: Mapping[str, Any]


class Section(NamedTuple):
    """A part of the page with an entry in its navigation; the verdict is its result in one line."""

    name: str
    title: str
    verdict: str
    blocks: Sequence[Any]


def render_page(
    title: str,
    verdict: str,
    sections: Iterable[Section | None],
    *,
    facts: Sequence[tuple[str, str]] = (),
    checks: Checks,
    notes: str = "",
    language: Language = PYTHON,
) -> str:
    """Return a self-contained page: the verdict first, then numbers, warnings, notes of the author and sections."""
    from jinja2 import Environment, StrictUndefined

    folder = files("kdmaps.report")
    page, style, script = ((folder / f"page.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    epoch = os.environ.get("SOURCE_DATE_EPOCH")  # of reproducible builds
    today = date.today() if epoch is None else datetime.fromtimestamp(int(epoch), UTC).date()
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"code": _with_code, "kind": lambda block: type(block).__name__}
    return environment.from_string(page).render(
        title=title,
        verdict=verdict,
        sections=[section for section in sections if section is not None],
        facts=facts,
        doubtful=bool(checks.failed),
        warnings=[(check.say(language), check.link) for check in checks.warnings],
        notes=[part for part in notes.split("\n\n") if part.strip()],
        date=today.isoformat(),
        style=style,
        script=script,
        versions=library_versions(),
    )


def checks_section(checks: Checks) -> Section:
    """Return the table of all checks, with those that the data pass folded, and what is worth knowing besides."""
    of_data = [check for check in checks.counted if check.passed and check.rule.subject is Subject.DATA]
    others = [check for check in checks.counted if check not in of_data]
    failed = [bool(check.failed.any()) for check in others]
    blocks: list[Any] = []
    if others:
        titles, rows = Checks(others).cells()
        blocks.append(Table("checks", titles, rows, plain=True, failed=failed))
    if of_data:
        titles, rows = Checks(of_data).cells()
        title = f"{len(of_data)} checks of the data passed"
        blocks.append(Table("checks of the data", titles, rows, plain=True, title=title))
    if checks.notes:
        blocks.append(Items([note.say() for note in checks.notes], "Notes"))
    return Section("checks", "Checks", f"{checks.headline().capitalize()}.", blocks)


def _with_code(text: str) -> Markup:
    """Return escaped text whose `backticks` are code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))
