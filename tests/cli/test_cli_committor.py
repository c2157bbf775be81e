"""`kdmaps committor`."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

import kdmaps
from kdmaps.cli import app
from kdmaps.simulation import plumed_input
from kdmaps.summary import describe_kernel

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
    assert "length²/D" in found.output
    assert "LandmarkBasis" not in found.output


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        (("z<0", "x>1"), "not a column"),
        (("x=0", "x>1"), "not a condition"),
        (("x<-99", "x>1"), "no sample meets"),
        (("x<0.5", "x>0"), "A (--from) and B (--to) overlap"),
        (("x<0", "x>=0"), "neither --from nor --to"),
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


@pytest.fixture(scope="module")
def stored(data, tmp_path_factory):
    """A committor of Fourier features of a torsion's cosine and sine, with its file."""
    angles = np.random.default_rng(1).vonmises(0, 0.5, size=600)
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    model = kdmaps.AdaptiveCommittor(basis="fourier", n_features=30, n_resamples=50, random_state=0)
    model.fit(X, (X[:, 0] > 0.8, X[:, 0] < -0.6))
    path = tmp_path_factory.mktemp("model") / "model.npz"
    model.save(path)
    return model, X, path


def run(*arguments):
    found = RUNNER.invoke(app, list(map(str, arguments)))
    assert found.exit_code == 0, found.output
    return found.output


def test_inspect(stored):
    model, _, path = stored
    shown = run("inspect", path)
    for name in ("flux", "rate", "reverse_rate", "mean_first_passage_time"):
        assert f"{getattr(model, f'{name}_'):.4g}" in shown
        assert "{:.4g} – {:.4g}".format(*getattr(model, f"{name}_interval_")) in shown
    assert model.checks.headline() in shown
    for _, value, _, outcome in model.checks.cells()[1]:  # the texts of both others are wrapped
        assert re.search(rf"│\s*{re.escape(value)} │.*│\s*{outcome} │", shown)
    assert describe_kernel(model.kernel_) in " ".join(shown.split())
    assert shown.count("Warning") == len(model.checks.warnings)


@pytest.mark.parametrize("ending", ["csv", "npy"])
def test_transform(stored, tmp_path, ending):
    model, X, path = stored
    rows, out = tmp_path / "rows.npy", tmp_path / f"q.{ending}"
    np.save(rows, X[:50])
    run("transform", path, rows, "--out", out)
    values = np.genfromtxt(out, delimiter=",", names=True)["q"] if ending == "csv" else np.load(out)[:, 0]
    np.testing.assert_allclose(values, model.predict(X[:50]), atol=1e-9)  # ten digits in text


@pytest.mark.parametrize("logit", [False, True])
def test_export_to_plumed(stored, tmp_path, logit):
    model, _, path = stored
    out = tmp_path / "q.dat"
    run("export", path, "--to", "plumed", "--labels", "c,s", "--out", out, *(["--logit"] if logit else []))
    assert out.read_text() == plumed_input(model, ["c", "s"], label="q", logit=logit)


@pytest.mark.parametrize("logit", [False, True])
def test_export_to_openmm(stored, tmp_path, logit):
    openmm = pytest.importorskip("openmm")
    model, _, path = stored
    out = tmp_path / "q.xml"
    run("export", path, "--to", "openmm", "--inputs", "torsion:0-1-2-3", "--out", out, *(["--logit"] if logit else []))
    system = openmm.System()
    for _ in range(4):
        system.addParticle(1.0)
    system.addForce(openmm.XmlSerializer.deserialize(out.read_text()))
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    for angle in (1.0, 1.5):
        frame = np.array([[1, 0, 0], [0, 0, 0], [0, 0, 1], [np.cos(angle), np.sin(angle), 1.0]])
        context.setPositions(frame)
        energy = context.getState(getEnergy=True).getPotentialEnergy().value_in_unit(openmm.unit.kilojoule_per_mole)
        q = model.predict([[np.cos(angle), np.sin(angle)]])[0]
        assert 0.01 < q < 0.99
        assert energy == pytest.approx(np.log(q / (1 - q)) if logit else q, abs=1e-4)  # a spline of the table


def test_export_to_jax(stored, tmp_path):
    pytest.importorskip("jax")
    model, X, path = stored
    out, program = tmp_path / "q.py", {}
    run("export", path, "--to", "jax", "--out", out)
    exec(out.read_text(), program)
    np.testing.assert_allclose(program["mode"](X[:9]), model.decision_function(X[:9]), atol=1e-4)  # single precision
    assert "committor" in program["__doc__"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export", "MODEL", "--to", "plumed", "--labels", "c,s", "--mode", "2"), "1 mode"),
        (("export", "MODEL", "--to", "jax", "--logit"), "jax.scipy.special.logit"),
        (("compare", "MODEL", "MODEL"), "is a committor"),
        (("states", "MODEL", "DATA"), "is a committor"),
        (("forecast", "MODEL", "DATA", "--time", "1"), "is a committor"),
    ],
)
def test_unsuitable_requests(stored, data, tmp_path, arguments, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"MODEL": str(stored[2]), "DATA": str(data)}
    found = RUNNER.invoke(app, [names.get(one, one) for one in arguments])
    assert found.exit_code == 2
    assert message in " ".join(found.output.split())
    assert not list(tmp_path.iterdir())


def test_basis_is_an_option(data, tmp_path):
    pytest.importorskip("jinja2")
    given = ["committor", data, "--from", "x<-1", "--to", "x>1", "--features", "30", "--basis"]
    run(*given, "landmarks", "--out", tmp_path / "out")
    assert type(kdmaps.load(tmp_path / "out" / "model.npz").basis_).__name__ == "LandmarkBasis"
    found = RUNNER.invoke(app, ["export", str(tmp_path / "out" / "model.npz"), "--to", "plumed"])
    assert found.exit_code == 2
    assert "--basis fourier" in " ".join(found.output.split())


def test_warnings_of_the_data_are_in_the_report(data, tmp_path):
    pytest.importorskip("jinja2")
    weight = np.ones(500)
    weight[np.argmin(np.abs(np.loadtxt(data, delimiter=",", skiprows=1)[:, 0]))] = 1e6
    np.save(tmp_path / "weights.npy", weight)
    out = tmp_path / "out"
    given = ["--from", "x<-1", "--to", "x>1", "--features", "30", "--weights", tmp_path / "weights.npy", "--out", out]
    found = RUNNER.invoke(app, [*map(str, ["committor", data, *given])])
    assert found.exit_code == 0, found.output
    assert "effective samples" in (out / "report.html").read_text()
    assert "all checks passed" not in found.output
