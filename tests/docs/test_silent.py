"""Errors of 0.1.0 without a warning: the table lists all cases, and this version gives the outcomes it states."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STORED = json.loads((ROOT / "tests" / "references" / "silently_wrong.json").read_text())
PAGE = (ROOT / "docs" / "silent.md").read_text()
ROWS = {
    cells[0]: cells[1:]
    for line in (ROOT / "results" / "silent" / "table.md").read_text().splitlines()[2:]
    if (cells := [cell.strip() for cell in line.strip("|").split(" | ")])
}
#: Cases that take about a second; `make compare` runs the others.
QUICK = (6, 7, 9, 10, 11, 17, 18, 19, 20, 21, 22)


def test_the_table_is_complete():
    assert [*ROWS] == [str(number) for number in range(1, 24)]
    assert ROWS.keys() == STORED["0.1.0"].keys() == STORED["now"].keys()


@pytest.mark.parametrize("number", ROWS)
def test_a_row_matches_the_stored_results(number):
    _, old, now, outcome, test = ROWS[number]
    assert (ROOT / test.strip("`")).is_file()
    assert (old, outcome) == (STORED["0.1.0"][number]["result"], STORED["now"][number]["outcome"])
    assert STORED["0.1.0"][number]["outcome"] == "silent"
    if outcome == "reported":
        assert "⚠" in now
        assert re.search("“.{10,}”", now)
    elif outcome == "silent":
        assert f"*Row {number}*" in PAGE
    else:
        assert outcome == "correct"


@pytest.mark.slow
@pytest.mark.parametrize("number", QUICK)
def test_this_version_gives_the_stored_outcome(number, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "compare"))
    from silent import CASES, run_case

    assert run_case(CASES[number])["outcome"] == STORED["now"][str(number)]["outcome"]
