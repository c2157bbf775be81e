"""`kdmaps fit --lag`: time scales, tests of the lag, and time steps of trajectory files."""

import re
from pathlib import Path

import numpy as np
import pytest

import kdmaps
from commands import GIVEN, given, run, warned
from kdmaps.data.pairs import common_step
from kdmaps.estimators.model_files import read_header
from shared import known, topology

pytestmark = pytest.mark.usefixtures("undrawn")

PATH = kdmaps.problems.load("dw1d").simulate(2000, dt=0.1, random_state=0)[0]
QUICK = (*GIVEN, "--resamples", 0)


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("path.npy", PATH)


def tables(output):
    """The rows of every table of the output."""
    found, before = [], None
    for number, line in enumerate(output.splitlines()):
        if line.startswith("│"):
            if before != number - 1:
                found.append([])
            found[-1].append(re.split(r"\s*│\s*", line.strip("│ \n")))
            before = number
    return found


def fitted(**settings):
    return given(**settings).fit(PATH)


@known("within-lag")
def test_time_scales_and_tests_of_the_lag():
    result = run("fit", "path.npy", *QUICK, "--lag", 2, "--time-step", 0.1, "--unit", "ns", "--out", "out")
    assert result.exit_code == 0, result.output
    model = fitted(lag=2, time_step=0.1)
    times, implied = tables(result.stdout)
    assert [row[1] for row in times] == [f"{t:.4g}" for t in model.timescales_]
    assert "time scale (ns)" in result.stdout
    assert "Time scales are in ns, from pairs of frames 0.2 ns (2 frames) apart." in result.stdout
    # Time scales of the library, where longer than the lag.
    lags = [int(row[0]) for row in implied]
    assert 2 in lags
    found = kdmaps.dynamics.implied_timescales(model, PATH, lags, random_state=0)
    for row, time, values in zip(implied, found.times, found.timescales, strict=True):
        assert row[1] == f"{time:g}"
        assert [cell.split(" ")[0] for cell in row[2:]] == [f"{t:.4g}" if t > time else "–" for t in values]
    tests = kdmaps.dynamics.validate(model, PATH)
    assert f"from a lag of {tests.implied.plateau} frame" in result.stdout
    assert tests.predicts is None  # 20 time scales are too few for mode 2
    assert f"Kolmogorov test of 5 lags {tests.chapman.outcome}." in result.stdout


def test_model_files_store_lag_time_step_and_unit():
    assert run("fit", "path.npy", *QUICK, "--lag", 3, "--time-step", 0.1, "--unit", "ns", "--out", "out").exit_code == 0
    parameters = read_header("out/model.npz")["parameters"]
    assert (parameters["lag"], parameters["time_step"]) == (3, 0.1)
    shown = run("inspect", "out/model.npz").stdout
    assert "Time scales are in ns, from pairs of frames 0.3 ns (3 frames) apart." in shown
    assert "rate (1/ns)" in shown


@known("within-lag")
def test_stride_multiplies_the_time_step():
    result = run("fit", "path.npy", *QUICK, "--lag", 1, "--time-step", 0.1, "--stride", 2, "--out", "out")
    assert result.exit_code == 0, result.output
    model = given(lag=1, time_step=0.2).fit(PATH[::2])
    assert [row[1] for row in tables(result.stdout)[0]] == [f"{t:.4g}" for t in model.timescales_]


@pytest.mark.parametrize("lag", ["1", "auto"])
def test_failed_lag_tests_are_reported_once(lag):
    """Observation noise: a failed test is a warning and a mark, in the table and on the page."""
    np.save("noisy.npy", PATH + np.random.default_rng(0).normal(0, 1, PATH.shape))
    result = run("fit", "noisy.npy", *QUICK, "--modes", 1, "--lag", lag, "--out", "out")
    assert result.exit_code == 0, result.output
    page = Path("out/report.html").read_text()
    for text in (result.stdout, page):
        assert "lag-not-flat" not in warned(text)  # the test of the fitted model replaces the scan
        assert text.count("#warning-not-flat)") == 1
        assert text.count("#warning-chapman-kolmogorov)") == 1
    if lag == "1":
        assert tables(result.stdout)[0][0][0] == "⚠ 1"
        assert "⚠ 1" in page


@known("lag-not-flat")
def test_automatic_lag():
    result = run("fit", "path.npy", *QUICK, "--lag", "auto", "--out", "out")
    chosen = fitted(lag="auto")
    frames = "1 frame" if chosen.lag_ == 1 else f"{chosen.lag_} frames"
    assert f"The lag of {frames} was chosen from {len(chosen.lag_choice_.lags)} lags" in result.stdout
    assert "choose the lag" in Path("out/report.html").read_text()


def test_trajectory_too_short_for_tests():
    np.save("short.npy", PATH[:40])
    result = run("fit", "short.npy", *QUICK, "--lag", 35, "--out", "out")
    assert result.exit_code == 0, result.output
    assert "too short" in result.stdout
    assert np.isfinite(np.genfromtxt("out/modes.csv", delimiter=",", skip_header=1)).all()  # with infinite rates too


@pytest.mark.parametrize(("options", "fragment"), [(("--time-step", 2), "add --lag"), (("--unit", "ps"), "with --lag")])
def test_time_options_need_a_lag(options, fragment):
    result = run("fit", "path.npy", *QUICK, *options)
    assert result.exit_code == 2
    assert fragment in result.output


@pytest.mark.parametrize("step", ["0", "-1", "nan", "inf"])
def test_time_steps_are_positive(step):
    result = run("fit", "path.npy", *QUICK, "--lag", 1, "--time-step", step)
    assert result.exit_code == 2
    assert "--time-step" in result.output


# --- trajectory files -------------------------------------------------------------------------------------------------
def save(name, times, seed=0):
    """A molecule of three atoms, one of which moves as the path does."""
    mdtraj = pytest.importorskip("mdtraj")
    rng = np.random.default_rng(seed)
    xyz = np.array([[0.0, 0, 0], [0.15, 0, 0], [0, 0.15, 0]]) + 0.01 * rng.standard_normal((len(times), 3, 3))
    xyz[:, 2, 1] += 0.1 * PATH[: len(times), 0]
    atoms = topology(1, ("N", "CA", "C"))
    mdtraj.Trajectory(xyz, atoms, time=times).save(name)
    mdtraj.Trajectory(xyz[0], atoms).save("t.pdb")
    return xyz


ATOMS = ("--topology", "t.pdb", "--features", 40, "--modes", 1, "--kernel", "gaussian", "--bandwidth", 0.3)
ATOMS = (*ATOMS, "--lambda", 0.0001, "--resamples", 0, "--out", "out")


def test_time_step_of_a_trajectory_file():
    save("run.xtc", 250.0 + 2.5 * np.arange(600))
    result = run("fit", "run.xtc", *ATOMS, "--lag", 2, "--stride", 2)
    assert result.exit_code == 0, result.output
    assert "Time scales are in ps, from pairs of frames 10 ps (2 frames) apart." in result.stdout
    assert read_header("out/model.npz")["parameters"]["time_step"] == pytest.approx(5.0, rel=1e-4)  # single precision
    given_by_hand = run("fit", "run.xtc", *ATOMS, "--lag", 2, "--time-step", 7)
    assert "pairs of frames 14 (2 frames) apart" in given_by_hand.stdout


def test_refuses_unequal_time_steps_with_a_lag():
    times = 2.0 * np.arange(300)
    times[120:] += 6
    save("run.xtc", times)
    result = run("fit", "run.xtc", *ATOMS, "--lag", 1)
    assert result.exit_code == 2
    assert "row 120 comes 8 after row 119" in result.output
    assert "--groups" in result.output
    assert run("fit", "run.xtc", *ATOMS).exit_code == 0  # samples have no order


def test_every_file_has_its_own_time_origin():
    save("a.xtc", 2.0 * np.arange(300))
    save("b.xtc", 50 + 2.0 * np.arange(300), seed=1)
    assert run("fit", "a.xtc", "b.xtc", *ATOMS, "--lag", 1).exit_code == 0
    save("b.xtc", 3.0 * np.arange(300), seed=1)
    assert "not at equal time steps" in run("fit", "a.xtc", "b.xtc", *ATOMS, "--lag", 1).output


def test_refuses_trajectory_objects_with_unequal_times():
    mdtraj = pytest.importorskip("mdtraj")
    frames = mdtraj.Trajectory(PATH[:300].reshape(-1, 1, 1) * np.ones(3), None)
    model = kdmaps.KernelDiffusionMap(1, n_features=20, lag=1, random_state=0)
    assert model.fit(frames).timescales_[0] > 1
    frames.time = np.r_[np.arange(150.0), np.arange(150.0)]  # two runs joined
    with pytest.raises(ValueError, match="row 150 comes -149 after row 149"):
        model.fit(frames)
    assert model.fit(frames, groups=np.repeat([0, 1], 150)).lag_ == 1


def test_time_steps_allow_rounding():
    late = np.float32(1e6) + np.arange(1000, dtype=np.float32) * np.float32(0.3)  # steps of 0.25, 0.3125, …
    assert common_step(late) == pytest.approx(0.3, abs=0.05)
    assert common_step(np.array([5.0])) is None
    with pytest.raises(ValueError, match="not at equal"):
        common_step(np.zeros(5))


def test_refuses_weights_with_a_lag():
    np.save("weights.npy", np.random.default_rng(0).random(len(PATH)))
    result = run("fit", "path.npy", *QUICK, "--lag", 1, "--weights", "weights.npy")
    assert result.exit_code == 2
    assert "biased dynamics" in re.sub(r"[\s│]+", " ", result.output)


def test_stride_without_a_lag():
    result = run("fit", "path.npy", *QUICK, "--stride", 2, "--out", "out")
    assert result.exit_code == 0, result.output
    assert "time_step" not in result.output


@known("energy-samples", "independent-samples", "ridge", "unresolved", "variance-samples", "within-lag")
@pytest.mark.parametrize("name", ["two.csv", "two.txt"])
def test_empty_lines_end_trajectories(name):
    """Except empty lines at the start, at the end and below the names; comments do not end trajectories."""
    mark = "," if name.endswith("csv") else " "
    rows = [f"{x}{mark}{-x}\n" for x in PATH[:60, 0]]
    head = f"\na{mark}b\n\n"
    Path(name).write_text(head + "".join([*rows[:30], "# a comment\n", *rows[30:], "\n\n"]))
    assert run("fit", name, *QUICK, "--modes", 1, "--lag", 1, "--out", "out").exit_code == 0
    Path(name).write_text(head + "".join([*rows[:30], "\n", *rows[30:]]))
    result = run("fit", name, *QUICK, "--modes", 1, "--lag", 1, "--out", "out")
    assert result.exit_code != 0
    assert "Line 34 of" in re.sub(r"[\s│]+", " ", result.output)
    assert run("fit", name, *QUICK, "--modes", 1, "--out", "out").exit_code == 0  # without a lag, rows are samples
    source = kdmaps.data.open_table(name).select()
    with pytest.raises(ValueError, match=r"Line 34 of .* is empty, as between trajectories.*groups"):
        given(lag=1).fit(source)
    assert np.isfinite(given(lag=1).fit(source, groups=np.repeat([0, 1], 30)).timescales_).all()
