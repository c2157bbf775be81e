"""Claims of the page on faults, against its tables."""

import re
from pathlib import Path

from benchmarks.faults.__main__ import FOUND, table
from benchmarks.faults._work import WORK
from kdmaps.utils.files import is_intact, read_lines
from pages import states

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "faults.md").read_text()
LINES = read_lines(ROOT / "results" / "faults" / "rows.jsonl")
ROWS = [row for line in LINES for row in line["rows"]]
WRONG = ("half-written", "lost", "unequal", "unclear", "left behind")
FUZZ = (ROOT / "results" / "fuzz" / "table.md").read_text()


def test_all_planned_faults_were_tried_without_a_failure():
    assert all(map(is_intact, LINES))
    tried = {}
    for row in ROWS:
        tried[row["fault"], row["work"]] = tried.get((row["fault"], row["work"]), 0) + row["tried"]
    wanted = {(fault, work): times for fault, times in (("kill", 100), ("full", 20)) for work in WORK}
    assert tried == wanted | {("worker", "search of Dask data"): 10}
    assert sum(row.get(what, 0) for row in ROWS for what in WRONG) == 0
    # Most faults came before the work had ended; a kill at a random moment may come too late.
    assert sum(row["interrupted"] for row in ROWS) > 0.9 * sum(tried.values())


def test_the_table_matches_the_rows():
    text = (ROOT / "results" / "faults" / "table.md").read_text()
    assert text == "\n".join(table(ROWS, fault) for fault in FOUND)


def test_outcomes_of_the_fuzz_tests():
    head, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in FUZZ.splitlines() if "|" in line]
    counts = {row[0]: dict(zip(head[1:], map(int, row[1:]), strict=True)) for row in rows if row[1].isdigit()}
    total = int(re.match(r"(\d+) cases", FUZZ)[1])
    assert total == sum(sum(row.values()) for row in counts.values())
    calls = sum(sum(row.values()) for name, row in counts.items() if ", " in name)
    assert states(PAGE, "thousand calls", round(calls / 1000))
    assert re.match(r"\d+ cases, 2 failed", FUZZ)
    assert re.match(r"\d+ cases, 0 failed", (ROOT / "results" / "fuzz" / "mended.md").read_text())
    changed = {name for name, row in counts.items() if row["other numbers"]}
    assert changed <= {"a .csv", "a .tsv", "a .dat", "a .npy", "a .zarr"}  # formats without checksums
