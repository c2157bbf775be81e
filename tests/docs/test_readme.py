"""The numbers of the README come from the files under results/."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def readme(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    import readme

    return readme


def test_generated_sections_are_up_to_date(readme):
    assert readme.README.read_text() == readme.updated(), "run python docs/_ext/readme.py"
    assert readme.PAPER.read_text() == readme.updated_paper(), "run python docs/_ext/readme.py"


def test_one_number_of_the_table(readme):
    lines = (ROOT / "results" / "paper" / "summary.csv").read_text().splitlines()
    cells = next(line for line in lines if line.startswith("ou3d,kdmaps,500,300,")).split(",")
    row = next(line for line in readme.README.read_text().splitlines() if line.startswith("| ou3d |"))
    assert row.endswith(f"| {float(cells[8]):.3f} |")  # r2_mean


def test_links_exist():
    text = (ROOT / "README.md").read_text()
    missing = [
        link
        for link in re.findall(r"\]\(([^)#]+)\)", text)
        if not link.startswith("http") and not (ROOT / link).exists()
    ]
    assert missing == []
