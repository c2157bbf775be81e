"""The numbers of the README come from the files under results/."""

import re
from pathlib import Path

import pytest

from pages import states

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def readme(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    import readme

    return readme


def test_generated_sections_are_up_to_date(readme):
    assert readme.BENCHMARKS.read_text() == readme.updated(), "run python docs/_ext/readme.py"
    assert readme.PAPER.read_text() == readme.updated_paper(), "run python docs/_ext/readme.py"


def test_one_number_of_the_table(readme):
    lines = (ROOT / "results" / "paper" / "summary.csv").read_text().splitlines()
    cells = next(line for line in lines if line.startswith("ou3d,kdmaps,500,300,")).split(",")
    row = next(line for line in readme.BENCHMARKS.read_text().splitlines() if line.startswith("| ou3d |"))
    assert row.endswith(f"| {float(cells[8]):.3f} |")  # r2_mean


def test_claims_state_the_published_numbers(readme):
    text, results = (ROOT / "README.md").read_text(), ROOT / "results"
    scores = readme.accuracy()
    paper, own = zip(*scores.values(), strict=True)
    printed = readme.own_reference()
    shown = [f"{number:.3f}" for number in (min(paper), max(paper), min(printed), max(printed))]
    assert states(text, "Accurate", f"{min(own):.3f}", len(own), *shown)
    errors = re.findall(r"^\| ([^|]+) \|.*→ (\S+) \|$", (results / "dimension" / "table.md").read_text(), re.MULTILINE)
    default = min(float(error) for name, error in errors if name == "kdmaps, default")
    graph = min(float(error) for name, error in errors if not name.startswith("kdmaps"))
    assert states(text, "Automatic", f"{default:.3f}", f"{graph:.3f}")
    total = re.search(r"(\d+) of (\d+) wrong .* (\d+) of (\d+) right", (results / "coverage" / "table.md").read_text())
    missed, wrong, alarms, right = total.groups()
    assert states(text, "Honest", wrong, missed, right, alarms)
    cost = next(row for row in readme.read_table(results / "cost_default" / "table.md") if "1,000,000" in row["N × d"])
    assert states(text, "Fast", f"{float(cost['seconds']):.0f}", cost["MB"])


def test_findings_state_the_published_numbers(readme):
    text = readme.BENCHMARKS.read_text()
    table = (ROOT / "results" / "dimension" / "table.md").read_text().partition("Mean error")[2]
    errors = {name: float(cell) for name, cell in re.findall(r"^\| ([^|]+) \|.*→ (\S+) \|$", table, re.MULTILINE)}
    graph = min(error for name, error in errors.items() if not name.startswith("kdmaps"))
    assert states(text, "In many dimensions", f"{graph / errors['kdmaps, default']:.0f}", 20)
    rows = (ROOT / "results" / "cost_default" / "table.md").read_text()
    (seconds,) = re.findall(r"^\| 1,000,000 × 10 \| default \|[^|]+\| (\S+)", rows, re.MULTILINE)
    assert states(text, "Fast", f"{float(seconds):.0f}", 1_000_000)


def test_links_exist():
    text = (ROOT / "README.md").read_text()
    missing = [
        link
        for link in re.findall(r"\]\(([^)#]+)\)", text)
        if not link.startswith("http") and not (ROOT / link).exists()
    ]
    assert missing == []
