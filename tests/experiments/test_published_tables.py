"""The tables under results/ are reproduced from their rows by the current code."""

import shutil
from importlib import import_module
from pathlib import Path

import pytest

RESULTS = Path(__file__).resolve().parents[2] / "results"
MODULES = {
    "honest": "honest",
    "regret": "regret",
    "variational": "variational",
    "failure_modes": "failure_modes.__main__",
    "dimension": "dimension",
    "surfaces": "surfaces",
    "dictionaries": "dictionaries",
    "reasons": "reasons",
    "clocks": "clocks",
    "swarms": "swarms",
}


class FigureOf:
    """A figure that writes the number of its rows."""

    def __init__(self, rows):
        self.rows = rows

    def savefig(self, file, **options):
        file.write(str(len(self.rows)).encode())


@pytest.mark.parametrize("name", MODULES)
def test_table_is_rendered_from_the_rows(name, tmp_path, monkeypatch, capsys):
    module = import_module(f"experiments.{MODULES[name]}")
    shutil.copy(RESULTS / name / "rows.jsonl", tmp_path)
    monkeypatch.setattr(module, "run", None)  # all rows exist, so nothing is computed
    monkeypatch.setattr(module, "figure", FigureOf)
    module.main(["--out", str(tmp_path), "--jobs", "1"])
    published = (RESULTS / name / "table.md").read_text()
    assert (tmp_path / "table.md").read_text() == published
    assert published in capsys.readouterr().out  # besides a progress bar
    assert int((tmp_path / f"{name}.png").read_text()) > 20  # the figure got the rows
