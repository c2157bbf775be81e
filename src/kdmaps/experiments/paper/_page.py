"""One Markdown page and one self-contained HTML page from the same sections."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdmaps.experiments.paper._show import Table
from kdmaps.utils.files import replacing

INTRODUCTION = (
    "Every table and figure of *Adaptive Kernel Selection for Kernelized Diffusion Maps*, three ways: **printed**; "
    "**paper protocol**, computed here with the choices that the paper states or that its numbers reveal, against its "
    "own reference; and **kdmaps**, the default estimator, against the true slow modes with complete degenerate "
    "clusters. Cells are means ± standard deviations over the seeds. A printed cell counts as reproduced if it lies "
    "within three standard deviations."
)
FINDINGS = (
    "We are grateful to the authors: the paper poses the right problem, its method works, and it reports its failures "
    "with care. Most of those failures have one cause, which has a short remedy. Each finding below comes with the "
    "experiment that shows it."
)
STYLE = """
:root { color-scheme: light dark; --line: #8885; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 0 auto; padding: 1rem; }
img { max-width: 100%; min-width: 640px; height: auto; background: white; border-radius: 4px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 1rem 0; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; }
pre { overflow-x: auto; padding: 0.6rem; border: 1px solid var(--line); border-radius: 4px; font-size: 0.85rem; }
nav ul { columns: 2; padding-left: 1.2rem; } @media (max-width: 600px) { nav ul { columns: 1; } }
"""


@dataclass(frozen=True)
class Section:
    """One experiment on the page."""

    name: str
    title: str
    text: str
    table: Table
    picture: Path

    @property
    def is_finding(self) -> bool:
        return self.name.startswith("finding_")


def write_pages(sections: Sequence[Section], settings: dict[str, Any], out: Path) -> list[Path]:
    """Write `index.md` (tables and figures), `findings.md` (what we found in the paper) and `index.html` (both)."""
    results = [section for section in sections if not section.is_finding]
    findings = [section for section in sections if section.is_finding]
    pages = {}
    if results:
        parts = ["# The paper, reproduced", INTRODUCTION, *map(_markdown, results), _provenance(settings)]
        pages["index.md"] = "\n\n".join(parts) + "\n"
    if findings:
        parts = ["# What we found in the paper", FINDINGS, *map(_markdown, findings)]
        pages["findings.md"] = "\n\n".join(parts) + "\n"
    pages["index.html"] = _html(results, findings, settings)
    paths = [out / name for name in pages]
    with replacing(*paths) as files:
        for file, text in zip(files, pages.values(), strict=True):
            file.write(text.encode())
    return paths


def _provenance(settings: dict[str, Any]) -> str:
    seeds, used = settings["seeds"], ", ".join(f"{name} {number}" for name, number in settings["versions"].items())
    run = "a quick run: one seed, a part of the problems" if settings["quick"] else f"{len(seeds)} seeds"
    return f"Made by `kdmaps reproduce` ({run}, seeds {seeds[0]} to {seeds[-1]}) with {used}."


def _markdown(section: Section) -> str:
    image = f"![{section.title}]({section.picture.parent.name}/{section.picture.name})"
    return f"## {section.title}\n\n{section.text}\n\n{image}\n\n{section.table.markdown()}"


def _html(results: Sequence[Section], findings: Sequence[Section], settings: dict[str, Any]) -> str:
    links = "".join(f'<li><a href="#{s.name}">{html.escape(s.title)}</a></li>' for s in (*results, *findings))
    found = f"<h1>What we found in the paper</h1>{_paragraphs(FINDINGS)}" if findings else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>The paper, reproduced</title><style>{STYLE}</style></head><body><main>"
        f"<h1>The paper, reproduced</h1>{_paragraphs(INTRODUCTION)}<nav><ul>{links}</ul></nav>"
        + "".join(map(_html_section, results))
        + found
        + "".join(map(_html_section, findings))
        + _paragraphs(_provenance(settings))
        + "</main></body></html>\n"
    )


def _html_section(section: Section) -> str:
    title = html.escape(section.title)
    data = base64.b64encode(section.picture.read_bytes()).decode()
    return (
        f'<section id="{section.name}"><h2>{title}</h2>{_paragraphs(section.text)}'
        f'<div class="wide"><img alt="{title}" src="data:image/png;base64,{data}"></div>'
        f"{section.table.html()}</section>"
    )


def _paragraphs(text: str) -> str:
    """Paragraphs, indented code, and *, **, ` of plain prose."""
    parts = []
    for block in text.split("\n\n"):
        if block.startswith("    "):
            parts.append(f"<pre>{html.escape(block)}</pre>")
            continue
        prose = html.escape(block)
        for mark, tag in ((r"\*\*(.+?)\*\*", "strong"), (r"\*(.+?)\*", "em"), (r"`(.+?)`", "code")):
            prose = re.sub(mark, rf"<{tag}>\1</{tag}>", prose, flags=re.S)
        parts.append(f"<p>{prose}</p>")
    return "".join(parts)
