"""`kdmaps check`, `--angles`, and columns that are not coordinates."""

import numpy as np
import pandas as pd
import pytest

import kdmaps
from commands import GIVEN, given, run, warned
from kdmaps.data import angles, check_data, gather, open_table

pytestmark = pytest.mark.usefixtures("undrawn")

RNG = np.random.default_rng(0)
X = kdmaps.problems.load("ou2d-4").sample(240, random_state=1)
PHI = np.mod(RNG.normal(np.pi, 0.5, 240) + np.pi, 2 * np.pi) - np.pi
QUICK = (*GIVEN, "--resamples", 0)


@pytest.fixture
def data(tmp_path):
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1]})
    frame.to_csv(tmp_path / "clean.csv", index=False)
    frame.assign(phi=PHI).to_csv(tmp_path / "angles.csv", index=False)
    frame.assign(phi=np.degrees(PHI)).to_csv(tmp_path / "degrees.csv", index=False)
    frame.loc[3, "x"] = 40.0
    frame.assign(time=np.arange(240) * 0.1, phi=PHI).to_csv(tmp_path / "messy.csv", index=False)
    return tmp_path


def test_check_lists_findings_with_remedies(data):
    result = run("check", data / "messy.csv")
    assert result.exit_code == 1
    for check in check_data(pd.read_csv(data / "messy.csv")).failed:
        assert check.name in result.stdout
    for name in ("time or index", "angles", "outliers"):
        assert name in result.stdout
    assert "--columns" in result.stdout
    assert "--angles phi" in result.stdout
    result = run("check", data / "clean.csv")
    assert result.exit_code == 0
    assert "Nothing suspicious" in result.stdout
    assert "default fit takes about" in result.stdout


def test_notes_are_no_findings(data):
    pd.DataFrame({"x": X[:, 0], "y": RNG.uniform(-np.pi, np.pi, 240)}).to_csv(data / "strip.csv", index=False)
    result = run("check", data / "strip.csv")
    assert "possible angles (note)" in result.stdout
    assert result.exit_code == 0


def test_scales_are_a_finding(data):
    pd.DataFrame({"x": X[:, 0], "y": 1000 * X[:, 1]}).to_csv(data / "scales.csv", index=False)
    result = run("check", data / "scales.csv")
    assert "--standardize" in result.stdout
    assert result.exit_code == 1


def test_check_uses_weights_and_groups(data):
    np.save(data / "w.npy", np.r_[np.full(4, 1e5), np.ones(236)])
    result = run("check", data / "clean.csv", "--weights", data / "w.npy")
    assert "leave 4.0 effective samples of 240" in result.stdout
    paths = kdmaps.problems.load("ou2d-4").simulate(120, dt=0.05, n_trajectories=2, random_state=0)
    np.save(data / "one.npy", paths.reshape(-1, 2))
    np.save(data / "group.npy", np.repeat([0, 1], 120))
    assert run("check", data / "one.npy").exit_code == 1
    assert run("check", data / "one.npy", "--groups", data / "group.npy").exit_code == 0
    assert run("check", data / "nothing.csv").exit_code == 2


def test_check_shows_warnings_of_reading(data):
    pd.DataFrame(np.column_stack([X, X[:, 0] ** 2 + X[:, 1]])).to_csv(data / "numbered.csv", index=False)
    result = run("check", data / "numbered.csv")
    assert result.exit_code == 1
    assert "numbers of the columns" in result.stdout


def test_fit_refuses_a_time_column(data):
    result = run("fit", data / "messy.csv", *QUICK, "--columns", "time,y", "--out", data / "out")
    assert result.exit_code == 2
    assert "Column(s) time" in result.stderr
    assert "--keep-columns" in result.stderr
    assert "--columns y" in result.stderr
    assert not (data / "out").exists()


def test_keep_columns_fits_a_time_column_with_warnings(data):
    result = run("fit", data / "messy.csv", *QUICK, "--keep-columns", "--out", data / "out")
    assert result.exit_code == 0, result.output
    page = (data / "out" / "report.html").read_text()
    assert warned(result.stderr) == ["time-or-index"]
    assert {"time-or-index", "angles", "outliers"} <= set(warned(page.partition('id="times"')[0]))
    assert len(warned(result.stdout)) <= 3
    printed = set(warned(result.output))
    assert f"{len(set(warned(page)) - printed)} more in" in result.stdout


@pytest.mark.parametrize(("file", "options"), [("angles.csv", ()), ("degrees.csv", ("--degrees",))])
def test_angles(file, options, data):
    options = ("--angles", "phi", *options)
    result = run("fit", data / file, *QUICK, *options, "--out", data / "out")
    assert result.exit_code == 0, result.output
    assert "samples of x, y, cos(phi), sin(phi)" in result.stdout
    frame = angles(pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "phi": PHI}), ["phi"])
    model = given().fit(frame)
    # Degrees are written with 17 digits.
    np.testing.assert_allclose(kdmaps.load(data / "out" / "model.npz").timescales_, model.timescales_, rtol=1e-9)
    result = run("transform", data / "out" / "model.npz", data / file, *options, "--out", data / "m.csv")
    assert result.exit_code == 0, result.output
    modes = gather(open_table(data / "m.csv").select("mode1,mode2"))
    np.testing.assert_allclose(modes, model.transform(frame), rtol=1e-6, atol=1e-8)
    result = run("transform", data / "out" / "model.npz", data / file, "--out", data / "m.csv")
    assert result.exit_code == 2
    assert "--angles" in result.stderr


def test_program_of_the_report_reads_angles(data):
    run("fit", data / "degrees.csv", *QUICK, "--angles", "phi", "--degrees", "--out", data / "out")
    page = (data / "out" / "report.html").read_text().replace("&#39;", "'")
    assert "from kdmaps.data import angles, gather, open_table\n" in page
    assert "X = gather(angles(table.select(), ['phi'], degrees=True))" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--angles", "psi"), "'psi'"),
        (("--degrees",), "--degrees needs --angles"),
    ],
)
def test_wrong_options(options, message, data):
    result = run("fit", data / "angles.csv", *QUICK, *options, "--out", data / "out")
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_warns_of_columns_without_numbers(data, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "state": np.where(X[:, 0] > 0, "right", "left")})
    getattr(frame, f"to_{suffix}")(data / f"words.{suffix}", index=False)
    result = run("check", data / f"words.{suffix}")
    assert result.exit_code == 1
    assert "left out: state." in " ".join(result.stdout.replace("│", " ").split())
    for option in (("--groups", "state"), ("--columns", "x,y")):
        assert "left out" not in run("check", data / f"words.{suffix}", *option).stdout
