"""`--bursts` of `kdmaps fit` and `kdmaps committor`."""

import numpy as np
import pytest
from typer.testing import CliRunner

import kdmaps
from kdmaps.cli import app

RUNNER = CliRunner()
STEP = 0.02
pytestmark = pytest.mark.filterwarnings("ignore")
KERNEL = ["--modes", "1", "--kernel", "gaussian", "--bandwidth", "1.0", "--lambda", "1e-4", "--resamples", "0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A double well: samples with weights, 60 bursts from random rows, the rows, and the file of where_to_start."""
    place = tmp_path_factory.mktemp("bursts")
    problem = kdmaps.problems.load("dw1d")
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.2, 2.2, (600, 1))
    weight = np.exp(-problem.potential(X[:, 0]))
    np.savetxt(place / "x.csv", np.column_stack([X, weight]), "%.17g", ",", header="x,w", comments="")
    model = kdmaps.KernelDiffusionMap(1, kernel="gaussian", bandwidth=1.0, regularization=1e-4, random_state=0)
    starts = kdmaps.dynamics.where_to_start(model.fit(X, sample_weight=weight), X, 60, sample_weight=weight)
    starts.save(place / "starts.npz")
    np.savetxt(place / "rows.txt", starts.rows, "%d")
    np.savetxt(place / "weights.txt", starts.weights)
    runs = problem.simulate(30, STEP, n_trajectories=60, x0=X[starts.rows], random_state=0)
    for number, run in enumerate(runs):
        np.savetxt(place / f"burst_{number:02}.csv", run, "%.17g", ",", header="x", comments="")
    return place, X, weight, starts, runs


def invoke(command, place, *options, out):
    data = [str(place / "x.csv"), "--weights", "w", "--bursts", str(place / "burst_*.csv"), "--out", str(out)]
    return RUNNER.invoke(app, [command, *data, *options])


def test_fit_is_the_fit_of_python(folder, tmp_path):
    pytest.importorskip("jinja2")
    place, X, weight, starts, runs = folder
    options = ["--time-step", str(STEP), "--unit", "ns", "--burst-start", str(place / "starts.npz"), *KERNEL]
    found = invoke("fit", place, *options, out=tmp_path / "out")
    assert found.exit_code == 0, found.output
    model = kdmaps.load(tmp_path / "out" / "model.npz")
    same = kdmaps.KernelDiffusionMap(
        1, kernel="gaussian", bandwidth=1.0, regularization=1e-4, time_step=STEP, random_state=0
    )
    same.fit(X, sample_weight=weight, bursts=list(runs), burst_start=starts)
    assert model.rates_ == pytest.approx(same.rates_, rel=1e-6)
    assert "real, in ns, by 60 bursts" in " ".join(found.output.split())
    page = (tmp_path / "out" / "report.html").read_text()
    assert "c G10,10" in page
    assert "bursts that carry the energy" in page


def test_committor_is_the_committor_of_python(folder, tmp_path):
    pytest.importorskip("jinja2")
    place, X, weight, starts, runs = folder
    sets = ["--from", "x<-1", "--to", "x>1", "--features", "40"]
    given = ["--time-step", str(STEP), "--burst-start", str(place / "starts.npz")]
    found = invoke("committor", place, *sets, *given, out=tmp_path / "out")
    assert found.exit_code == 0, found.output
    same = kdmaps.AdaptiveCommittor(n_features=40, time_step=STEP, random_state=0)
    same.fit(X, (X[:, 0] < -1, X[:, 0] > 1), sample_weight=weight, bursts=runs, burst_start=starts)
    assert kdmaps.load(tmp_path / "out" / "model.npz").rate_ == pytest.approx(same.rate_, rel=1e-6)
    assert "Times are real" in found.output


def test_weights_of_starts_from_files(folder, tmp_path):
    pytest.importorskip("jinja2")
    place = folder[0]
    given = ["--burst-start", str(place / "rows.txt"), "--burst-weights", str(place / "weights.txt")]
    found = invoke("fit", place, "--time-step", str(STEP), *given, *KERNEL, out=tmp_path / "out")
    assert found.exit_code == 0, found.output
    assert kdmaps.load(tmp_path / "out" / "model.npz").clock_.n_bursts == 60


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bursts", "nothing_*.csv", "--burst-start", "{rows}"], "no file has a name like"),
        (["--burst-start", "{rows}"], "add --bursts"),
        (["--bursts", "{bursts}"], "--burst-start"),
        (["--bursts", "{bursts}", "--burst-start", "{rows}"], "give the time between the frames"),
        (["--bursts", "{bursts}", "--burst-start", "{rows}", "--lag", "2"], "omit --lag"),
        (["--bursts", "{bursts}", "--burst-start", "gone.txt", "--time-step", "1"], "gone.txt does not exist"),
        (["--bursts", "{bursts}", "--burst-start", "{x}", "--time-step", "1"], "2 columns"),
        (["--bursts", "{bursts}", "--burst-start", "{weights}", "--time-step", "1"], "whole numbers"),
        (["--time-step", "1"], "add --lag"),
    ],
)
def test_bad_options_are_named(folder, tmp_path, options, message):
    place = folder[0]
    named = {"rows": "rows.txt", "weights": "weights.txt", "x": "x.csv", "bursts": "burst_*.csv"}
    given = [one.format(**{name: place / file for name, file in named.items()}) for one in options]
    data = [str(place / "x.csv"), "--columns", "x", "--out", str(tmp_path / "out")]
    found = RUNNER.invoke(app, ["fit", *data, *given, *KERNEL])
    assert found.exit_code != 0
    assert message in " ".join(found.output.replace("│", " ").split())
