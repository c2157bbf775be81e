"""The variational experiment: its oracle uses the grid of the search, and its table compares seed by seed."""

from itertools import islice

import numpy as np
import pytest

import kdmaps
from experiments._runner import finished
from experiments.variational import _grid, table
from kdmaps.data.distances import median_distance
from kdmaps.metrics import subspace_r2
from kdmaps.selection.grid import REGULARIZATIONS
from shared import known


@known("no-gap")
def test_oracle_and_search_have_the_same_candidates():
    X = kdmaps.problems.load("ou2d-4").sample(200, random_state=0)
    sigma = 1.5 * median_distance(X, random_state=3)  # start of the default grid
    candidates = islice(_grid(X, 2, 3), len(REGULARIZATIONS))
    for lam, modes in zip(REGULARIZATIONS, candidates, strict=True):
        model = kdmaps.KernelDiffusionMap(2, kernel="gaussian", bandwidth=sigma, regularization=lam, random_state=3)
        assert subspace_r2(modes, model.fit_transform(X)) == pytest.approx(1, abs=1e-8)  # rounding of the solves


def test_table_compares_the_same_seeds():
    def row(method, seed, r2, **more):
        return {"problem": "ou3d", "seed": seed, "method": method, "r2": r2, "paper_r2": 0.5, **more}

    rows = [row("search", 1, 0.9), row("search", 2, 0.8)]
    rows += [row("refined", 2, 0.85, kept=True), row("refined", 1, 0.89, kept=False)]  # in another order
    cells = [cell.strip() for cell in table(rows).splitlines()[-1].strip("|").split("|")]
    change = np.array([0.89 - 0.9, 0.85 - 0.8])
    assert cells == ["ou3d", "0.850 (0.500)", "0.870 (0.500)", f"{change.mean():+.4f}", f"{change.min():+.4f}", "1/2"]


def test_where_the_refinement_is_worse(request):
    """As docs/beyond.md says of the committed rows."""
    path = request.config.rootpath / "results" / "variational" / "rows.jsonl"
    rows = [row for found in finished(path).values() for row in found]
    search, refined = (
        {(r["problem"], r["seed"]): r["r2"] for r in rows if r["method"] == name} for name in ("search", "refined")
    )
    assert refined.keys() == search.keys()
    gains = {key: refined[key] - search[key] for key in refined}
    assert len(gains) == 45
    assert round(-min(gains.values()), 3) == 0.011
    for problem in ("ou2d-4", "ou2d-16", "ou3d", "ou10d"):
        assert np.mean([gain for (name, _), gain in gains.items() if name == problem]) > 0.001
