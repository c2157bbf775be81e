"""The page from sections, equations, theorems and tables of the paper to code, tests and verdicts."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from experiments.paper._show import Table

#: One line per \\label of the source, in its order, with the number that a reader of the PDF sees.
LABELS = Path(__file__).with_name("labels.csv")
WORDS = {"section": "Section", "subsection": "Section", "equation": "Eq.", "algorithm": "Algorithm"}
TITLE = "Section by section"
TEXT = (
    "Every label of the paper's source, with the number in the PDF, the function that implements it, the test that "
    "checks it, and a verdict. *as printed* means that code and paper agree."
)


@dataclass(frozen=True)
class Label:
    """A label of the source."""

    label: str
    kind: str
    number: str
    subject: str
    code: str  #: module:name, or empty.
    test: str  #: path::name, or empty.
    verdict: str

    @property
    def name(self) -> str:
        """As a reader sees it."""
        return f"{WORDS.get(self.kind, self.kind.capitalize())} {self.number}"


def read_labels(path: Path = LABELS) -> list[Label]:
    """Read the stored labels."""
    with path.open(newline="") as file:
        return [Label(**line) for line in csv.DictReader(file)]


def table() -> Table:
    """Return one line for labels of the same section that agree in all but their numbers."""
    lines = []
    for _, group in groupby(read_labels(), key=lambda item: (item.subject, item.code, item.test, item.verdict)):
        alike = list(group)
        names = ", ".join(item.name for item in alike)
        marks = ", ".join(f"`{item.label}`" for item in alike)
        first = alike[0]
        code = f"`{first.code.replace(':', '.')}`" if first.code else "–"
        test = f"`{first.test}`" if first.test else "–"
        lines.append([names, first.subject, code, test, first.verdict, marks])
    agree = sum(item.verdict == "as printed" for item in read_labels())
    note = f"{agree} of {len(read_labels())} labels are as printed."
    return Table(("paper", "subject", "code", "test", "verdict", "labels"), lines, [note])
