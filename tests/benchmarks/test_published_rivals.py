"""Numbers of docs/benchmarks.md about other libraries and about surfaces, against the committed rows."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.rivals._page import goals, goals_table, load_rows, mean_accuracy, page
from pages import read_page, states

ROOT = Path(__file__).resolve().parents[2]
ACCURACY, TIMES = (load_rows(ROOT / "results" / "rivals" / f"{part}.jsonl") for part in ("accuracy", "times"))
MEANS = mean_accuracy(ACCURACY)
PAGE = read_page("benchmarks.md")


def first(problem):
    return max((value, rival) for (rival, p), value in MEANS.items() if p == problem)[1]


def test_table_matches_the_rows():
    published = (ROOT / "results" / "rivals" / "table.md").read_text()
    assert published == page(ACCURACY, TIMES)
    assert goals_table(goals(ACCURACY, TIMES)) in published


@pytest.mark.parametrize("problem", ["ou10d", "triplewell1d"])
def test_the_default_is_first(problem):
    assert MEANS["kdmaps, adaptive", problem] == max(value for (_, p), value in MEANS.items() if p == problem)


def test_the_tangent_energy_is_first_on_the_circle_and_a_third_on_the_sphere():
    assert first("circle") == "kdmaps, tangent"
    errors = [1 - MEANS[rival, "sphere-3"] for rival in ("kdmaps, tangent", "kdmaps, adaptive")]
    assert errors[0] / errors[1] == pytest.approx(1 / 3, abs=0.05)  # as the page rounds it
    assert MEANS["kdmaps, tangent", "sphere-19"] == MEANS["kdmaps, adaptive", "sphere-19"]


def single(rival, problem):
    """Return SubR² of each sample."""
    rows = [row for row in ACCURACY if (row["rival"], row["problem"]) == (rival, problem)]
    return [f"{row['subr2']:.3f}"[1:] for row in sorted(rows, key=lambda row: row["seed"])]


def test_one_sample_of_ou2d_4_determines_the_order():
    ours, theirs = (single(rival, "ou2d-4") for rival in ("kdmaps, adaptive", "SpectralEmbedding, rbf"))
    assert first("ou2d-4") == "SpectralEmbedding, rbf"
    assert states(PAGE, "ou2d-4", *ours, *theirs)


def test_one_sample_of_dw1d_loses_a_mode():
    worst, *others = sorted(single("kdmaps, adaptive", "dw1d"))
    assert states(PAGE, "dw1d", worst, *others)


def test_surfaces():
    lines = (ROOT / "results" / "surfaces" / "rows.jsonl").read_text().split("\n")
    rows = [row for line in lines if line for row in json.loads(line)["rows"]]

    def error(problem, energy, of=np.mean):
        return of([1 - row["r2"] for row in rows if (row["problem"], row["energy"]) == (problem, energy)])

    for problem in ("sphere-2", "sphere-3", "sphere-5", "circle"):
        assert error(problem, "tangent") < 2 / 3 * error(problem, "ambient")
    changes = [error("ou2d-16", "ambient", of) - error("ou2d-16", "tangent", of) for of in (np.mean, np.max)]
    assert changes[0] > 0 > changes[1]
    assert states(PAGE, "ou2d-16", *(f"{abs(value):.3f}"[1:] for value in changes))
    noted = {row["problem"] for row in rows if row["noted"] is not None}
    assert noted == {"sphere-2", "sphere-3", "sphere-5"}
