import numpy as np
import pytest

import kdmaps
from experiments import failure_modes
from experiments.failure_modes import CLAIMS, Laboratory, Landscape, Settings, minima

pytestmark = pytest.mark.slow

CASE = {"problem": "ou2d-4", "family": "gaussian", "basis": "fourier", "seed": 0}


@pytest.fixture(scope="module")
def rows():
    return failure_modes.run("landscape", **CASE, n_sigmas=9)


@pytest.fixture(scope="module")
def lowest(rows):
    """Return a function that locates the minimum of a loss, with SubR² there."""
    land, claims = Landscape(rows), {claim.name: claim for claim in CLAIMS}
    return lambda name, setup, weight=1.0: minima([land], claims[name], setup, weight)[0]


def test_eigenvalue_sum_widens_the_kernel_without_end_only_if_uncentred(lowest):
    assert lowest("eig", "uncentred")["where"] == "right edge"
    centred = lowest("eig", "centred")
    assert centred["where"] == "interior"
    assert 0.3 < centred["sigma"] < 5


def test_sub_narrows_the_kernel_only_if_uncentred(lowest):
    assert lowest("sub", "uncentred")["sigma"] < 0.2 < lowest("sub", "centred")["sigma"]
    assert lowest("sub", "uncentred")["r2"] < 0.7 < lowest("sub", "centred")["r2"]


def test_heldout_finds_a_good_bandwidth(lowest):
    found = lowest("eig", "heldout")
    assert found["where"] == "interior"
    assert found["r2"] > 0.9


def test_residual_vanishes_for_wide_kernels_in_the_gauge_of_the_solver_only(lowest):
    for setup in ("uncentred", "centred"):
        assert lowest("residual", setup)["where"] == "right edge"
        assert lowest("held-out residual", setup)["where"] == "right edge"
        assert lowest("residual, unit modes", setup)["where"] == "interior"


def test_refreshing_the_rayleigh_estimate_keeps_the_gradient(rows):
    # λ̂ minimises the residual, so its derivative contributes nothing and descents (i) and (ii) agree.
    for row in rows:
        assert np.max(row["mismatch"]) < 1e-3


def test_one_gaussian_exceeds_the_ceiling(rows):
    uncentred, centred = rows
    assert max(uncentred["paper_r2"]) > 0.9
    assert max(centred["r2"]) > 0.9


def test_residuals_of_the_generator():
    lab = Laboratory("ou2d-4", "gaussian", "fourier", 3, Settings(n_samples=200))
    basis, fit = lab.fit(1.5, center=True)
    found = lab.residual(basis, fit, center=True)
    model = kdmaps.KernelDiffusionMap(
        4, kernel="gaussian", bandwidth=1.5 * lab.median, n_features=300, random_state=3
    ).fit(lab.X)
    expected = lab.generator.residuals(model, lab.X)
    np.testing.assert_allclose(-found["cross"], expected.rates, rtol=1e-6)
    np.testing.assert_allclose(found["square"] - found["cross"] ** 2, expected.norms**2, rtol=1e-6)


@pytest.mark.parametrize("basis", ["fourier", "landmarks"])
def test_gradient_by_the_bandwidth(basis):
    lab = Laboratory("ou2d-4", "gaussian", basis, 0, Settings(n_samples=100))
    problem = lab.problem(1.0, {"eig": 1.0, "anchor": 0.3}, True)
    theta, step = np.array([0.3]), 1e-5
    expected = (problem.evaluate(theta + step).value - problem.evaluate(theta - step).value) / (2 * step)
    assert problem.evaluate(theta).gradient[0] == pytest.approx(expected, rel=1e-6)


def test_table_and_figure(rows, tmp_path):
    path = {"part": "descent", **CASE, "loss": "eig", "center": False, "start": 2.0, "path": [2.0, 90.0], "r2": 0.5}
    text = failure_modes.table([*rows, path])
    line = next(line for line in text.splitlines() if line.startswith("| eig |"))
    assert [cell.split(",")[0].split(" σ")[0].strip() for cell in line.split("|")[3:6]] == [
        "right edge",
        "interior",
        "interior",
    ]
    assert "σ ends at 90" in text
    failure_modes.figure([*rows, path]).savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
