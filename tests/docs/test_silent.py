"""The table of what 0.1.0 got wrong without a word: every row has a test, and is right or said now."""

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KEPT = json.loads((ROOT / "tests" / "references" / "silently_wrong.json").read_text())
PAGE = (ROOT / "docs" / "silent.md").read_text()
ROWS = {
    cells[0]: cells[1:]
    for line in (ROOT / "results" / "silent" / "table.md").read_text().splitlines()[2:]
    if (cells := [cell.strip() for cell in line.strip("|").split(" | ")])
}
#: Those that take a second or so; the others are run by `make compare`.
QUICK = (6, 7, 9, 10, 11, 17, 18, 19, 20, 21, 22)


def functions(path):
    """The names of the functions of a file, with those of their classes."""
    tree = ast.parse(path.read_text())
    within = {
        f"{c.name}::{f.name}" for c in tree.body if isinstance(c, ast.ClassDef) for f in c.body if hasattr(f, "name")
    }
    return within | {f.name for f in tree.body if isinstance(f, ast.FunctionDef)}


def test_all_rows_are_there():
    assert [*ROWS] == [str(number) for number in range(1, 24)]
    assert ROWS.keys() == KEPT["0.1.0"].keys() == KEPT["now"].keys()


@pytest.mark.parametrize("number", ROWS)
def test_a_row(number):
    _, old, now, verdict, test = ROWS[number]
    path, name = test.strip("`").split("::", 1)
    assert name in functions(ROOT / path)
    assert (old, verdict) == (KEPT["0.1.0"][number]["gave"], KEPT["now"][number]["verdict"])
    assert KEPT["0.1.0"][number]["verdict"] == "open"
    if verdict == "said":
        assert "⚠" in now
        assert re.search("“.{10,}”", now)
    elif verdict == "open":
        assert f"*Row {number}* is open:" in PAGE
    else:
        assert verdict == "right"


@pytest.mark.slow
@pytest.mark.parametrize("number", QUICK)
def test_the_table_tells_of_this_version(number, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "compare"))
    from silent import CASES, judge

    assert judge(CASES[number])["verdict"] == KEPT["now"][str(number)]["verdict"]
