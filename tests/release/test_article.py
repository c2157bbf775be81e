"""The paper about the software: its sections, its length, and a bibliography that builds."""

import re
from pathlib import Path

import pytest

PAPER = Path(__file__).resolve().parents[2] / "paper"
SECTIONS = [
    "Summary",
    "Statement of need",
    "State of the field",
    "Software design",
    "Research impact statement",
    "AI usage disclosure",
    "Acknowledgements",
    "References",
]


@pytest.fixture(scope="module")
def text():
    _, _, body = (PAPER / "paper.md").read_text().split("---\n", 2)
    return body


def test_sections(text):
    assert re.findall(r"^# (.*)$", text, re.MULTILINE) == SECTIONS


def test_length(text):
    """Between 750 and 1,750 words, tables aside."""
    words = " ".join(line for line in text.splitlines() if not line.startswith("|")).split()
    assert 750 <= len(words) <= 1750


def test_header():
    yaml = pytest.importorskip("yaml")
    header = yaml.safe_load((PAPER / "paper.md").read_text().split("---\n", 2)[1])
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= set(header)
    assert (PAPER / header["bibliography"]).is_file()


def test_bibliography_builds_and_is_cited(text):
    """Every citation has an entry, every entry is cited, and all can be formatted."""
    pytest.importorskip("pybtex")
    from pybtex.database import parse_file
    from pybtex.plugin import find_plugin

    entries = parse_file(str(PAPER / "paper.bib"))
    assert set(re.findall(r"(?<![\w.])@(\w+)", text)) == set(entries.entries)
    style, backend = find_plugin("pybtex.style.formatting", "plain")(), find_plugin("pybtex.backends", "text")()
    formatted = {each.key: each.text.render(backend) for each in style.format_bibliography(entries)}
    for key, entry in entries.entries.items():
        assert entry.fields.get("year", "Preprint") in formatted[key]
