"""`kdmaps committor`."""

import numpy as np
import pytest
from typer.testing import CliRunner

import kdmaps
from kdmaps.cli import app

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    path = tmp_path_factory.mktemp("data") / "wells.csv"
    np.savetxt(
        path, np.column_stack([X, np.random.default_rng(0).normal(size=500)]), "%.8f", ",", header="x,y", comments=""
    )
    return path


def test_results_are_those_of_the_estimator(data, tmp_path):
    pytest.importorskip("jinja2")
    out = tmp_path / "out"
    found = RUNNER.invoke(
        app, ["committor", str(data), "--from", "x<-1", "--to", "x>1", "--out", str(out), "--features", "40"]
    )
    assert found.exit_code == 0, found.output
    model = kdmaps.load(out / "model.npz")
    X = np.loadtxt(data, delimiter=",", skiprows=1)
    same = kdmaps.AdaptiveCommittor(n_features=40, random_state=0).fit(X, (X[:, 0] < -1, X[:, 0] > 1))
    assert model.rate_ == pytest.approx(same.rate_)
    values = np.genfromtxt(out / "committor.csv", delimiter=",", names=True)["q"]
    np.testing.assert_allclose(values, same.predict(X), atol=1e-6)
    assert f"{same.rate_:.4g}" in (out / "report.html").read_text()
    assert f"{same.rate_:.4g}" in found.output


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        (("z<0", "x>1"), "not a column"),
        (("x=0", "x>1"), "not a condition"),
        (("x<-99", "x>1"), "no sample meets"),
        (("x<0.5", "x>0"), "overlap"),
    ],
)
def test_bad_conditions(data, tmp_path, conditions, message):
    out = tmp_path / "out"
    found = RUNNER.invoke(
        app, ["committor", str(data), "--from", conditions[0], "--to", conditions[1], "--out", str(out)]
    )
    assert found.exit_code != 0
    assert message in " ".join(found.output.split())
    assert not out.exists()
