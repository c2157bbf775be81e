"""Tables under results/ follow from the rows beside them, by the programs as they are."""

import shutil
from importlib import import_module
from pathlib import Path

import pytest

RESULTS = Path(__file__).resolve().parents[2] / "results"
MODULES = {"regret": "regret", "variational": "variational", "failure_modes": "failure_modes.__main__"}


@pytest.mark.parametrize("name", MODULES)
def test_the_table_is_that_of_the_rows(name, tmp_path, monkeypatch, capsys):
    module = import_module(f"kdmaps.experiments.{MODULES[name]}")
    shutil.copy(RESULTS / name / "rows.jsonl", tmp_path)
    monkeypatch.setattr(module, "run", None)  # every row is there: nothing is computed
    monkeypatch.setattr(module, "figure", lambda rows, path: path.write_text(str(len(rows))))
    module.main(["--out", str(tmp_path), "--jobs", "1"])
    published = (RESULTS / name / "table.md").read_text()
    assert (tmp_path / "table.md").read_text() == published
    assert published in capsys.readouterr().out  # beside a progress bar
    assert int((tmp_path / f"{name}.png").read_text()) > 20  # the figure got the rows
