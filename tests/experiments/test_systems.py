"""Accuracy and warnings of the default estimator on many systems: counts of the table."""

from pathlib import Path

import kdmaps
from experiments import systems


def row(version, seed, r2, rate, flagged):
    task = {"version": version, "problem": "ou3d", "n": 200, "seed": seed}
    return {**task, "r2": r2, "rate": rate, "exact": 1.0, "flagged": flagged}


def test_lost_fits_and_flags_are_counted_by_version():
    rows = [
        row("old", 0, 0.5, 0.1, True),
        row("old", 1, 0.9, 0.3, False),
        row("now", 0, 0.95, 2.5, True),
        row("now", 1, 0.97, 1.9, False),
        row("now", 2, 0.99, 0.6, True),
    ]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in systems.table(rows).splitlines()]
    assert ["ou3d", "200", "0.7000 ± 0.1414", "1 of 2", "0.9700 ± 0.0094", "0 of 3"] in cells
    assert ["old", "200", "1 of 2", "0 of 0"] in cells
    assert ["now", "200", "1 of 1", "1 of 2"] in cells


def test_another_version_runs_from_its_source_tree():
    task = {"problem": "dw1d", "n": 100, "seed": 0}
    source = Path(kdmaps.__file__).parents[1]
    (other,), (own,) = (systems.run(version, **task, source=source) for version in ("other", systems.NOW))
    assert other["version"] == "other"
    assert abs(other["r2"] - own["r2"]) < 1e-6  # the same code in another process
