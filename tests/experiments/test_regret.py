import json

import pytest

import kdmaps
from experiments import regret
from experiments._runner import rows_before
from experiments.paper._printed import MAIN_RESULTS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rows():
    return regret.run("dw1d", 7, n_features=60, n_bandwidths=3, n_fresh=2000)


def test_oracle_is_an_upper_bound(rows):
    r2 = {row["rule"]: row["r2"] for row in rows}
    oracle = r2.pop("oracle")
    r2.pop("KernelSearchCV")  # uses its own grid
    assert all(value <= oracle for value in r2.values())
    # On a double well, every rule but the two of the paper is close to the oracle.
    assert oracle - r2["timescale"] < 0.1


def test_reported_choice_equals_the_estimator(rows):
    row = next(row for row in rows if row["rule"] == "timescale")
    family, sigma, lam = row["kernel"].split()
    problem = kdmaps.problems.load("dw1d")
    X = problem.sample(500, random_state=7)
    model = kdmaps.KernelDiffusionMap(
        4, kernel=family, bandwidth=float(sigma), n_features=60, regularization=float(lam), random_state=7
    )
    modes = model.fit_transform(X)
    # The label rounds σ to three digits and λ to one.
    assert kdmaps.metrics.subspace_r2(modes, problem.reference(X, 4)) == pytest.approx(row["r2"], abs=5e-3)


def test_table_gives_mean_and_worst_regret():
    def row(rule, seed, r2):
        return {"problem": "dw1d", "rule": rule, "seed": seed, "r2": r2, "paper_r2": 0.5, "rate_errors": [0.1]}

    rows = [row("timescale", 0, 0.9), row("timescale", 1, 0.8), row("oracle", 0, 0.95), row("oracle", 1, 0.99)]
    rows += [row("fresh samples", 0, 0.93), row("fresh samples", 1, 0.95)]
    line = regret.table(rows).splitlines()[2]
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    assert cells[:6] == ["dw1d", "timescale", "0.8500", "0.1200", "0.1900", "+0.0900"]
    assert float(cells[8]) == MAIN_RESULTS["DW1D", "CV+RFF"][0]


def test_rows_of_0_1_0_belong_to_the_same_samples(tmp_path):
    """In any order in the file; only of problems where none is missing."""
    folder = tmp_path / "results" / "regret"
    folder.mkdir(parents=True)
    old = [("dw1d", 1, 0.7), ("dw1d", 0, 0.8), ("circle", 0, 0.9)]
    lines = [
        {"problem": p, "seed": s, "rule": "before", "r2": r2, "paper_r2": 0.5, "rate_errors": [0.1]} for p, s, r2 in old
    ]
    (folder / "rows_0_1_0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def row(rule, seed, r2, problem="dw1d"):
        return {"problem": problem, "rule": rule, "seed": seed, "r2": r2, "paper_r2": 0.5, "rate_errors": [0.1]}

    rows = [row(rule, seed, 0.9 + 0.05 * seed) for rule in ("oracle", "fresh samples") for seed in (0, 1)]
    found = rows_before("regret", [*rows, row("oracle", 0, 0.9, "circle"), row("oracle", 1, 0.9, "circle")], tmp_path)
    assert [(r["problem"], r["seed"]) for r in found] == [("dw1d", 0), ("dw1d", 1)]
    (line,) = [line for line in regret.table([*rows, *lines[:2]]).splitlines() if "before" in line]
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    assert cells[2:5] == ["0.7500", "0.1750", "0.2500"]  # 0.9 - 0.8 and 0.95 - 0.7
