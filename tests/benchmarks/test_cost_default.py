"""The predicted cost of a default fit, against the measured fits that its coefficients come from."""

import json
from pathlib import Path

import pytest

from benchmarks.cost_default import coefficients, is_plain
from kdmaps.estimators import cost

STORED = json.loads((Path(__file__).parents[2] / "results" / "cost_default" / "rows.json").read_text())
ROWS = [row for row in STORED["rows"] if is_plain(row)]


def test_coefficients_are_the_published_ones():
    assert coefficients(STORED["rows"]) == STORED["coefficients"]
    assert list(cost.SECONDS) == STORED["coefficients"]["seconds"]
    assert list(cost.MEGABYTES) == STORED["coefficients"]["MB"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['N']}x{row['d']}-{row['options'] or 'default'}")
def test_predictions_are_within_a_factor_of_two(row, monkeypatch):
    monkeypatch.setattr(cost, "unit_seconds", lambda: row["syrk"])
    n_features = row["options"].removeprefix("n_features=")
    seconds, megabytes = cost.predicted_cost(row["N"], row["d"], *([int(n_features)] if n_features else []))
    assert 0.5 < seconds / row["seconds"] < 2
    assert 0.4 < megabytes / row["MB"] < 2.5  # it also depends on the basis that is chosen
