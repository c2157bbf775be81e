import json

import pytest

from experiments._runner import markdown, run_tasks


def counted(x, log):
    with open(log, "a") as file:
        file.write(f"{x}\n")
    return [{"x": x, "square": x * x}]


def test_finished_row_is_never_computed_again(tmp_path):
    path, log = tmp_path / "new" / "rows.jsonl", tmp_path / "log"
    tasks = [{"x": x, "log": str(log)} for x in range(4)]
    first = run_tasks(counted, tasks[:2], path, jobs=1, show=False)
    # As after a kill: the last line is cut off.
    path.write_text(path.read_text() + '\n{"task": {"x": 3')
    rows = run_tasks(counted, tasks, path, jobs=1, show=False)
    assert rows[:2] == first
    assert [row["square"] for row in rows] == [0, 1, 4, 9]
    assert log.read_text().split() == ["0", "1", "2", "3"]
    assert all("numpy" in json.loads(line)["versions"] for line in path.read_text().splitlines() if "versions" in line)


@pytest.mark.slow
def test_rows_are_in_the_order_of_the_tasks(tmp_path):
    tasks = [{"x": x, "log": str(tmp_path / "log")} for x in (5, 3, 4)]
    rows = run_tasks(counted, tasks, tmp_path / "rows.jsonl", jobs=2, show=False)
    assert [row["x"] for row in rows] == [5, 3, 4]


def test_markdown():
    assert markdown(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
