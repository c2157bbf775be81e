"""Claims of the documentation about mlcolvar on biased frames, against the rows."""

from pathlib import Path

from benchmarks.biased_frames import table
from kdmaps.utils.files import read_lines

FOLDER = Path(__file__).resolve().parents[2] / "results" / "biased_frames"
ROWS = [row for line in read_lines(FOLDER / "rows.jsonl") for row in line["rows"]]
OURS, THEIRS = ([row for row in ROWS if row["method"] == method] for method in ("kdmaps", "mlcolvar"))


def test_table_matches_the_rows():
    assert table(OURS + THEIRS) in (FOLDER / "table.md").read_text()


def test_both_rates_and_modes_of_the_default():
    assert {row["seed"] for row in OURS} == {row["seed"] for row in THEIRS} == {9000, 9001, 9002}
    for row in OURS:
        assert all(abs(ratio - 1) < 0.4 for ratio in row["ratios"])
        assert row["r2"] > 0.998
        assert row["seconds"] < 4


def test_networks_find_the_slow_mode_and_once_the_second():
    assert sum(row["second"] > 0.9 for row in THEIRS) == 1
    (found,) = (row for row in THEIRS if row["second"] > 0.9)
    assert round(found["r2"], 3) == 0.994
    assert [round(max(ratio, 1 / ratio), 1) for ratio in found["ratios"]] == [1.6, 2.6]
    # Half of SubR² is the slow mode.
    assert all(row["r2"] > 0.5 and row["seconds"] > 290 for row in THEIRS)
