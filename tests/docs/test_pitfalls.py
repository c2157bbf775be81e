"""Known pitfalls: the table lists all cases, this version gives the outcomes it states, and the page its messages."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STORED = json.loads((ROOT / "tests" / "references" / "silently_wrong.json").read_text())
PAGE = (ROOT / "docs" / "pitfalls.md").read_text()
ROWS = {
    cells[0]: cells[1:]
    for line in (ROOT / "results" / "silent" / "table.md").read_text().splitlines()[2:]
    if (cells := [cell.strip() for cell in line.strip("|").split(" | ")])
}
MESSAGE = re.compile("“([^”]{8,})”")
#: Cases that take about a second; `make compare` runs the others.
QUICK = (6, 7, 9, 10, 11, 17, 18, 19, 20, 21, 22)


def test_the_table_is_complete():
    assert [*ROWS] == [str(number) for number in range(1, 24)]
    assert ROWS.keys() == STORED["0.1.0"].keys() == STORED["now"].keys()


@pytest.mark.parametrize("number", ROWS)
def test_a_row_matches_the_stored_results(number):
    _, old, now, outcome = ROWS[number]
    assert (old, outcome) == (STORED["0.1.0"][number]["result"], STORED["now"][number]["outcome"])
    assert STORED["0.1.0"][number]["outcome"] == "silent"
    if outcome == "reported":
        assert "⚠" in now
        assert MESSAGE.search(now)
    elif outcome == "silent":
        assert f"*Row {number}*" in PAGE
    else:
        assert outcome == "correct"


def test_the_page_quotes_messages_of_this_version():
    messages = [case["message"] for case in STORED["now"].values()]
    quoted = MESSAGE.findall(PAGE)
    assert len(quoted) > 15
    assert [quote for quote in quoted if not any(quote in message for message in messages)] == []


def test_every_reported_case_is_on_the_page():
    quoted = MESSAGE.findall(PAGE)
    reported = [case["message"] for case in STORED["now"].values() if case["outcome"] != "correct"]
    assert [message for message in reported if not any(quote in message for quote in quoted)] == []


@pytest.fixture
def cases(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "compare"))
    import silent

    return silent


def test_every_case_has_a_test(cases):
    assert [case.test for case in cases.CASES.values() if not (ROOT / case.test).is_file()] == []


def test_the_page_names_no_test():
    assert "tests/" not in PAGE + "".join(map("".join, ROWS.values()))


@pytest.mark.slow
@pytest.mark.parametrize("number", QUICK)
def test_this_version_gives_the_stored_outcome(number, cases):
    assert cases.run_case(cases.CASES[number])["outcome"] == STORED["now"][str(number)]["outcome"]
