"""Claims of the documentation about the bounds, checked against the stored rows."""

from pathlib import Path

import numpy as np
import pytest

from experiments._runner import finished
from experiments.theory import __main__ as command
from experiments.theory._page import WIDE, regret_bound, table
from experiments.theory.optimism import nodes

RESULTS = Path(__file__).resolve().parents[2] / "results" / "theory"
ROWS = [row for rows in finished(RESULTS / "rows.jsonl").values() for row in rows]


def of(part):
    return [row for row in ROWS if row["part"] == part]


def test_table_matches_the_rows():
    assert (RESULTS / "table.md").read_text() == table(ROWS) + "\n"


def test_widest_kernel_is_selected_as_predicted():
    rows = of("constant")
    assert {row["problem"] for row in rows} == {"ou2d-4", "dw1d", "circle", "mdlike-10"}
    for row in rows:
        assert int(np.argmax(row["sum"])) == len(row["sum"]) - 1
        assert max(row["sum"]) <= 1 / row["λ"]
        wide = np.array(row["narrowness"]) < WIDE
        assert wide.sum() >= 3
        assert np.all(np.diff(np.array(row["predicted"])[wide]) > 0)
        # The bounds on the constant differ by the factor 1 + mq/λ, and by terms of second order in q.
        np.testing.assert_allclose(np.array(row["predicted"])[wide], np.array(row["sum"])[wide], rtol=WIDE / 2)


def test_bound_on_the_optimism_holds_and_is_informative():
    rows = of("optimism")
    for problem in {row["problem"] for row in rows}:
        mine = [row for row in rows if row["problem"] == problem]
        held = np.mean([row["score"] - row["population"] <= row["bound"] for row in mine])
        assert held >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / len(mine))  # the nominal level, within two standard errors
        # The trivial bound is the score itself.
        assert np.mean([row["bound"] < row["score"] / 2 for row in mine]) >= 0.95
        assert max(row["bound"] / row["score"] for row in mine) < 0.6


@pytest.mark.parametrize("n", sorted({row["n"] for row in of("continuous")}))
def test_regret_of_a_continuum_is_below_its_bound(n):
    found, regrets, best = regret_bound([row for row in of("continuous") if row["n"] == n])
    assert found.informative
    assert regrets.max() < found.value / 20
    assert found.value < best / 2


def test_quadratures_have_the_moments_of_their_laws():
    X, weights = nodes("ou2d-4")
    np.testing.assert_allclose(np.average(X**2, axis=0, weights=weights), [1, 1 / 4], rtol=1e-12)
    X, weights = nodes("dw1d")
    # ∫ (x e^{-V})' dx = 0: E[x V'] = 1, with V = (x² - 1)²/4.
    np.testing.assert_allclose(np.average(X[:, 0] * (X[:, 0] ** 3 - X[:, 0]), weights=weights), 1, rtol=1e-9)


@pytest.mark.slow
def test_one_task_of_each_part_runs():
    (row,) = command.run("optimism", problem="dw1d", n_modes=1, n=100, seed=0)
    assert row["population"] <= row["exact"] * 1.001
    (row,) = command.run("continuous", n=90, seed=0)
    assert min(row["scores"]) > 0
