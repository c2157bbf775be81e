"""`kdmaps --help`, `states`, `compare` and `export`, against the library."""

import json
import os
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import kdmaps
from commands import GIVEN, given, run, warned
from kdmaps.cli import app
from kdmaps.simulation import Distance, Torsion, descriptors, openmm_cv, plumed_input
from shared import ignoring, known

#: Small models, whose quality does not matter.
X = kdmaps.problems.load("triplewell2d").sample(400, random_state=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of samples and two models of it."""
    path = tmp_path_factory.mktemp("models")
    frame = pd.DataFrame(X, columns=["x", "y"])
    frame.assign(w=np.linspace(1, 2, 400)).to_csv(path / "data.csv", index=False)
    with ignoring("mismatch"):
        given(n_features=60).fit(frame).save(path / "a.npz")
        given(n_features=80, random_state=1).fit(frame).save(path / "b.npz")
    return path


def shown(*arguments):
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "80", "NO_COLOR": "1"}).stdout


def test_help_of_fit_fits_a_screen():
    brief, whole = shown("fit", "--help"), shown("fit", "--help-all")
    assert len(brief.splitlines()) <= 44
    panels = ["Data", "Trajectory", "Modes and kernel", "Output"]
    for page in (brief, whole):
        assert re.findall(r"^╭─ (.*?) ─", page, flags=re.M)[2:] == panels
    known = {name for name in re.findall(r"--[a-z-]+", whole)}
    assert {"--lag", "--weights", "--draw", "--modes", "--out"} <= set(re.findall(r"--[a-z-]+", brief)) < known
    assert {"--bandwidth", "--lambda", "--array", "--seed", "--resamples", "--groups"} <= known
    assert shown("fit", "--help") == brief  # --help-all changes nothing


def test_commands_share_the_options_of_samples():
    options = {name: set(re.findall(r"--[a-z-]+", shown(name, "--help-all"))) for name in ("fit", "check", "states")}
    assert options["check"] - {"--help-all"} <= options["fit"]
    assert {"--array", "--header", "--angles", "--stride", "--topology"} <= options["check"] & options["states"]


def test_states(folder):
    result = run("states", folder / "a.npz", folder / "data.csv", "--weights", "w", "--out", folder / "states.csv")
    assert result.exit_code == 0, result.output
    model = kdmaps.load(folder / "a.npz")
    n = kdmaps.dynamics.suggest_states(model)
    weight = np.linspace(1, 2, 400)
    expected = kdmaps.dynamics.coarse_states(
        model.transform(pd.DataFrame(X, columns=["x", "y"])), n, sample_weight=weight
    )
    table = pd.read_csv(folder / "states.csv")
    assert list(table) == ["row", "state", *(f"membership{k + 1}" for k in range(n))]
    np.testing.assert_array_equal(table["state"], expected.labels + 1)
    np.testing.assert_allclose(table.iloc[:, 2:], expected.memberships, atol=1e-6)
    for row, population in zip(expected.representatives(X, 3), expected.populations, strict=True):
        assert f"{population:.1%}" in result.stdout
        assert ", ".join(str(typical) for typical in row if typical >= 0) in result.stdout
    assert run("states", folder / "a.npz", folder / "data.csv", "--states", 7).exit_code == 2


@known("mismatch")
def test_states_of_a_weighted_fit_need_weights(tmp_path):
    """Two wells with equal numbers of samples, but four times the weight in the left one."""
    x = np.random.default_rng(0).normal(np.repeat([-1.0, 1.0], 150), 0.4)
    data = pd.DataFrame({"x": x, "w": np.repeat([4.0, 1.0], 150)})
    data.to_csv(tmp_path / "data.csv", index=False)
    kdmaps.KernelDiffusionMap(1, random_state=0).fit(data[["x"]], sample_weight=data["w"]).save(tmp_path / "m.npz")
    command = ("states", tmp_path / "m.npz", tmp_path / "data.csv", "--states", 2, "--out", tmp_path / "states.csv")
    without = run(*command).stdout
    assert "give --weights" in without
    assert "give --weights" not in run(*command, "--weights", "w").stdout


def test_states_of_rows_from_another_distribution(folder):
    np.save(folder / "half.npy", X[X[:, 0] > np.quantile(X[:, 0], 0.5)])
    output = run("states", folder / "a.npz", folder / "half.npy", "--states", 2, "--out", folder / "half.csv").stdout
    assert "the mean of mode 1" in output


def test_typical_rows_of_several_files(folder):
    for name, rows in (("first", X[:250]), ("second", X[250:])):
        np.save(folder / f"{name}.npy", rows)
    paths = (folder / "first.npy", folder / "second.npy")
    result = run("states", folder / "a.npz", *paths, "--states", 2, "--out", folder / "both.csv")
    assert result.exit_code == 0, result.output
    model = kdmaps.load(folder / "a.npz")
    states = kdmaps.dynamics.coarse_states(model.transform(pd.DataFrame(X, columns=["x", "y"])), 2)
    for row in states.representatives(X, 3).ravel():
        assert (f"first.npy:{row}" if row < 250 else f"second.npy:{row - 250}") in result.stdout


def test_passage_times(tmp_path, folder):
    """One of two trajectories in one file; times in one table, from state to state."""
    paths = kdmaps.problems.load("dw1d").simulate(4000, dt=0.02, n_trajectories=2, random_state=0)
    frame = pd.DataFrame({"x": paths.reshape(-1), "run": np.repeat([3, 8], 4000)})
    frame.to_csv(tmp_path / "runs.csv", index=False)
    model = kdmaps.KernelDiffusionMap(1, lag=5, time_step=0.02, regularization=1e-4, n_features=60, random_state=0)
    model.fit(frame[["x"]], groups=frame["run"]).save(tmp_path / "m.npz")
    command = ("states", tmp_path / "m.npz", tmp_path / "runs.csv", "--states", 2, "--passage-times")
    result = run(*command, "--groups", "run", "--out", tmp_path / "states.csv")
    assert result.exit_code == 0, result.output
    states = kdmaps.dynamics.coarse_states(model.transform(frame[["x"]]), 2)
    expected = kdmaps.dynamics.mean_first_passage_times(
        model, frame[["x"]], states, groups=frame["run"], random_state=0
    )
    for row in expected.table():
        assert f"{row['time']:.4g} ({row['time_low']:.3g} – {row['time_high']:.3g})" in result.stdout
    # Without the groups a pair leads from one trajectory to the other.
    assert run(*command, "--columns", "x", "--out", tmp_path / "one.csv").stdout != result.stdout
    assert "in the unit of the time step (95% intervals)" in result.stdout
    assert "0.02 apart" in result.stdout
    assert "biased dynamics" in run(*command, "--weights", "x").output
    refused = run("states", tmp_path / "m.npz", tmp_path / "runs.csv", "--groups", "run", "--out", tmp_path / "one.csv")
    assert refused.exit_code == 2
    assert "--passage-times" in refused.output
    # Frames on either side of an empty line do not follow one another.
    lines = (tmp_path / "runs.csv").read_text().splitlines()
    (tmp_path / "parted.csv").write_text("\n".join([*lines[:4001], "", *lines[4001:]]) + "\n")
    parted = run(
        "states", tmp_path / "m.npz", tmp_path / "parted.csv", "--passage-times", "--out", tmp_path / "one.csv"
    )
    assert parted.exit_code == 2
    assert "is empty" in parted.output
    static = run("states", folder / "a.npz", folder / "data.csv", "--passage-times", "--out", tmp_path / "none.csv")
    assert static.exit_code == 2
    assert "fit one with --lag" in static.output
    assert not (tmp_path / "none.csv").exists()


def test_typical_rows_lie_in_the_core():
    modes = np.column_stack([np.repeat([-1.0, 1.0], 50)])
    states = kdmaps.dynamics.coarse_states(modes, 2)
    rows = np.column_stack([np.r_[np.arange(50.0), np.arange(1000.0, 1050.0)]])
    typical = states.representatives(rows, 2)
    # The mean of 0 … 49 is 24.5: rows 24 and 25 are the nearest, and 74 and 75 of the other state.
    assert {frozenset(pair) for pair in typical.tolist()} == {frozenset((24, 25)), frozenset((74, 75))}
    with pytest.raises(ValueError, match="the 100 samples"):
        states.representatives(rows[:3])


def test_compare(folder):
    result = run("compare", folder / "a.npz", folder / "a.npz")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("1.000 (mode") == 2
    assert result.stdout.count("0.0°") == 2
    assert "SubR² = 1.0000" in result.stdout
    a, b = kdmaps.load(folder / "a.npz"), kdmaps.load(folder / "b.npz")
    result = run("compare", folder / "a.npz", folder / "b.npz")
    for k in range(2):
        assert f"{b.timescales_[k] / a.timescales_[k]:.3g}" in result.stdout
    points = np.concatenate([a.support_.samples, b.support_.samples])
    points = pd.DataFrame(points, columns=["x", "y"])
    r2 = kdmaps.metrics.subspace_r2(a.transform(points), b.transform(points))
    assert f"SubR² = {r2:.4f}" in result.stdout


@known("mismatch", "no-gap")
def test_compare_refuses_models_of_other_columns(folder):
    given().fit(X[:, :1]).save(folder / "one.npz")
    result = run("compare", folder / "a.npz", folder / "one.npz")
    assert result.exit_code == 2
    assert "2 columns" in result.stderr
    assert "to 1" in result.stderr


def test_export_to_plumed_and_jax(folder, monkeypatch):
    monkeypatch.chdir(folder)
    model = kdmaps.load("a.npz")
    assert run("export", "a.npz", "--to", "plumed", "--mode", 2).exit_code == 0
    assert (folder / "mode2.dat").read_text() == plumed_input(model, ["x", "y"], 1, label="mode2")
    assert run("export", "a.npz", "--to", "plumed", "--labels", "u,v").exit_code == 0
    assert "ARG=u,v" in (folder / "mode1.dat").read_text()
    assert run("export", "a.npz", "--to", "jax", "--out", "new/mode.py").exit_code == 0
    program = {}
    exec((folder / "new" / "mode.py").read_text(), program)
    # Single precision: eight digits of arguments up to a few tens.
    np.testing.assert_allclose(
        program["mode"](X[:5]), model.transform(pd.DataFrame(X[:5], columns=["x", "y"]))[:, 0], atol=1e-4
    )
    for arguments in (("--to", "gromacs"), ("--to", "jax", "--mode", 3), ("--to", "openmm")):
        assert run("export", "a.npz", *arguments).exit_code == 2


@known("mismatch", "no-gap")
@pytest.mark.parametrize(
    "inputs", [[Torsion((0, 1, 2, 3))], [Torsion((0, 1, 2, 3)), Distance(0, 3)]], ids=["table", "expression"]
)
def test_export_to_openmm(folder, inputs):
    openmm = pytest.importorskip("openmm")
    frames = np.random.default_rng(0).normal(size=(300, 4, 3))
    model = given(n_features=20).fit(descriptors(inputs, frames))
    model.save(folder / "torsion.npz")
    text = "torsion:0-1-2-3" + (",distance:0-3" if len(inputs) == 2 else "")
    result = run("export", folder / "torsion.npz", "--to", "openmm", "--inputs", text, "--out", folder / "mode.xml")
    assert result.exit_code == 0, result.output
    force = openmm.XmlSerializer.deserialize((folder / "mode.xml").read_text())
    how = {"method": "table"} if len(inputs) == 1 else {"method": "expression", "outside": "free"}
    values = []
    for one in (force, openmm_cv(model, 0, inputs, **how)):
        system = openmm.System()
        for _ in range(4):
            system.addParticle(1.0)
        system.addForce(one)
        context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
        context.setPositions(frames[7])
        values.append(context.getState(getEnergy=True).getPotentialEnergy()._value)
    assert values[0] == pytest.approx(values[1], abs=1e-9)
    assert values[0] == pytest.approx(model.transform(descriptors(inputs, frames[7:8]))[0, 0], abs=1e-5)
    assert run("export", folder / "torsion.npz", "--to", "openmm", "--inputs", "angle:1-2-3").exit_code == 2


def test_too_many_modes(folder):
    result = run("fit", folder / "data.csv", "--modes", 500, "--out", os.devnull + "x")
    assert result.exit_code == 2
    result = run("fit", folder / "data.csv", "--modes", 500, "--out", folder / "fit")
    assert "400 row(s)" in result.stderr
    assert "--features" not in result.stderr
    assert "increase --features" in run("fit", folder / "data.csv", "--modes", 350, "--out", folder / "fit").stderr


def points_of(report):
    return json.loads(re.search(r'<script id="points" type="application/json">(.*?)</script>', report.read_text())[1])


def test_drawn_columns_are_not_fitted(folder):
    angles = np.arctan2(X[:, 1], X[:, 0])
    pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "phi": angles}).to_csv(folder / "drawn.csv", index=False)
    np.save(folder / "radius.npy", np.hypot(X[:, 0], X[:, 1]))
    options = (*GIVEN, "--resamples", 0, "--out", folder / "fit")
    result = run("fit", folder / "drawn.csv", "--draw", f"phi,{folder / 'radius.npy'}", *options)
    assert result.exit_code == 0, result.output
    assert "400 samples of x, y\n" in result.stdout
    points = points_of(folder / "fit" / "report.html")
    assert points["names"] == ["mode 1", "mode 2", "phi", "radius", "x", "y"]
    np.testing.assert_allclose(points["values"][2], angles, rtol=1e-3)
    # An angle whose cosine and sine are fitted may be drawn, too.
    result = run("fit", folder / "drawn.csv", "--columns", "x,phi", "--angles", "phi", "--draw", "phi", *options)
    assert "400 samples of x, cos(phi), sin(phi)\n" in result.stdout
    result = run("fit", folder / "drawn.csv", "--draw", "x,y,phi", *options)
    assert result.exit_code == 2
    assert "--columns" in result.stderr
    assert (
        "--draw: 'psi' is neither a column nor a file"
        in run("fit", folder / "drawn.csv", "--draw", "psi", *options).stderr
    )


def test_first_line_shows_the_effective_number_of_samples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.save("x.npy", rng.standard_normal((300, 1)))
    np.save("w.npy", np.r_[np.full(200, 1e200), np.zeros(100)])
    result = run("fit", "x.npy", *GIVEN, "--modes", 1, "--resamples", 0, "--weights", "w.npy")
    assert "300 samples of 1 column; weights leave 200 effective samples\n" in result.stdout


def test_rows_far_from_the_fit_are_warned_of(folder, tmp_path):
    np.savetxt(tmp_path / "far.csv", np.vstack([X[:50], X[:5] + 100]), delimiter=",", header="x,y", comments="")
    for name in ("transform", "states"):
        result = run(name, folder / "a.npz", tmp_path / "far.csv", "--out", tmp_path / f"{name}.csv")
        assert "extrapolation" in warned(result.stderr), result.output
        assert "5 of 55" in result.stderr
        assert ".py:" not in result.stderr
