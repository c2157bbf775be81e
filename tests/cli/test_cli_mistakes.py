"""Mistakes that users make on the command line: an error that names the option, or a warning with its code.

tests/estimators/test_mistakes.py has those of Python.
"""

import numpy as np
import pandas as pd
import pytest

import kdmaps
from commands import GIVEN, run, warned

pytestmark = pytest.mark.usefixtures("undrawn")

RNG = np.random.default_rng(0)
PROBLEM = kdmaps.problems.load("ou2d-4")
X = PROBLEM.sample(400, random_state=0)
FRAMES = PROBLEM.simulate(400, dt=0.05, n_trajectories=1, random_state=0).reshape(-1, 2)
WELLS = kdmaps.problems.load("dw1d").sample(600, random_state=0)[:, 0]
QUICK = (*GIVEN, "--resamples", 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("mistakes")
    clean = pd.DataFrame(X, columns=["x", "y"])
    frames = pd.DataFrame(FRAMES, columns=["x", "y"])
    wells = pd.DataFrame({"x": WELLS, "y": RNG.normal(size=600)})
    tables = {
        "clean": clean,
        "lag=5": clean,
        "five": clean.head(5),
        "none": clean.head(0),
        "nan": clean.assign(y=clean.y.where(clean.index != 7)),
        "biased": clean.assign(weight=RNG.random(400)),
        "zero": clean.assign(w=0.0),
        "negative": clean.assign(w=-1.0),
        "units": clean.assign(y=1e5 * clean.y),
        "copy": clean.assign(z=273 - clean.x),
        "constant": clean.assign(z=1.0),
        "degrees": clean.assign(phi=np.mod(RNG.normal(180, 60, 400) + 180, 360) - 180),
        "one group": clean.assign(run=1),
        "frames": frames,
        "shuffled": frames.sample(frac=1, random_state=0),
        "times": frames.assign(time=0.05 * np.arange(400)),
        "unequal": frames.assign(time=np.cumsum(RNG.integers(1, 4, 400))),
        "wells": wells,
        "wells weighted": wells.assign(weight=RNG.random(600)),
        "wells units": wells.assign(y=1e5 * wells.y),
    }
    for name, table in tables.items():
        table.to_csv(path / f"{name}.csv", index=False)
    clean.to_csv(path / "comma.csv", index=False, sep=";", decimal=",")
    (path / "book.xlsx").write_bytes(b"PK")
    np.save(path / "transposed.npy", X.T)
    run("fit", path / "frames.csv", *QUICK, "--lag", 2, "--out", path / "lagged")
    run("fit", path / "clean.csv", *QUICK, "--out", path / "fitted")
    return path


SETS = ("--from", "x<-0.8", "--to", "x>0.8")
#: Command, file, options, and parts of the message.
ERRORS = {
    "five rows": ("fit", "five.csv", ("--modes", 4), ("5 rows are too few", "at least 40")),
    "transposed": ("fit", "transposed.npy", QUICK, ("transpose",)),
    "no rows": ("fit", "none.csv", QUICK, ("no samples",)),
    "spreadsheet": ("fit", "book.xlsx", QUICK, ("Save the sheet as .csv",)),
    "no file": ("check", "lag=6.csv", (), ("lag=6.csv does not exist",)),
    "decimal commas": ("fit", "comma.csv", QUICK, ("line 2", "decimal comma")),
    "an empty entry": ("fit", "nan.csv", QUICK, ("line 9", "column y")),
    "unknown column": ("fit", "clean.csv", (*QUICK, "--columns", "z"), ("--columns: column 'z'", "x, y")),
    "a column twice": ("fit", "clean.csv", (*QUICK, "--columns", "x,x"), ("--columns x,x contains a column twice",)),
    "unknown angle": ("fit", "clean.csv", (*QUICK, "--angles", "psi"), ("--angles: X does not have a column 'psi'",)),
    "unknown weight": ("fit", "clean.csv", (*QUICK, "--weights", "w"), ("--weights", "x, y")),
    "weights of zero": ("fit", "zero.csv", (*QUICK, "--weights", "w"), ("--weights must hold",)),
    "negative weights": ("fit", "negative.csv", (*QUICK, "--weights", "w"), ("--weights",)),
    "one group": ("fit", "one group.csv", (*QUICK, "--groups", "run"), ("--groups",)),
    "long lag": ("fit", "frames.csv", (*QUICK, "--lag", 500), ("--lag 500",)),
    "fraction as lag": ("fit", "frames.csv", (*QUICK, "--lag", 2.5), ("--lag",)),
    "a time column": ("fit", "times.csv", (*QUICK, "--lag", 1), ("--columns x,y", "--keep-columns")),
    "unequal steps": ("fit", "unequal.csv", (*QUICK, "--lag", 1, "--columns", "x,y"), ("--groups",)),
    "overlapping sets": ("committor", "wells.csv", ("--from", "x<1", "--to", "x>-1"), ("--from", "--to", "overlap")),
    "an empty set": ("committor", "wells.csv", ("--from", "x<-50", "--to", "x>1"), ("--from", "no sample meets")),
    "decimal commas in a set": ("committor", "wells.csv", ("--from", "x<-0,8", "--to", "x>1"), ("--from", "a point")),
}
#: Command, file, options, codes of warnings, and a part of the output.
WARNINGS = {
    "a column of weights": ("fit", "biased.csv", QUICK, "weight-columns", "Not reliable: column weight"),
    "a committor with weights": ("committor", "wells weighted.csv", SETS, "weight-columns", "Not reliable"),
    "mixed units": ("fit", "units.csv", QUICK, "scales", "add --standardize"),
    "a committor of mixed units": ("committor", "wells units.csv", SETS, "scales", "convert columns to similar units"),
    "a copied column": ("fit", "copy.csv", QUICK, "copied-columns", "--columns"),
    "a constant column": ("fit", "constant.csv", QUICK, "constant-columns", "--columns"),
    "degrees": ("fit", "degrees.csv", (*QUICK, "--angles", "phi"), "angle-units", "give --degrees"),
    "shuffled frames": ("fit", "shuffled.csv", (*QUICK, "--lag", 1), "no-memory", "Not reliable"),
    "another time step": (
        "fit",
        "times.csv",
        (*QUICK, "--lag", 1, "--columns", "x,y", "--time-step", 0.1),
        "other-time-step",
        "omit --time-step",
    ),
}


def output(*arguments, out):
    result = run(*arguments, "--out", out) if arguments[0] != "check" else run(*arguments)
    return result.exit_code, " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_the_option(case, folder, tmp_path):
    command, file, options, parts = ERRORS[case]
    code, text = output(command, folder / file, *options, out=tmp_path / "out")
    assert code == 2
    for part in parts:
        assert part in text
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("case", WARNINGS)
def test_warnings_have_the_code(case, folder, tmp_path):
    command, file, options, code, part = WARNINGS[case]
    more = ("--features", 40) if command == "committor" else ()
    exit_code, text = output(command, folder / file, *options, *more, out=tmp_path / "out")
    assert exit_code == 0
    assert code in warned(text)
    assert part in text
    assert "nan" not in text.split()
    assert "all checks passed" not in text


def test_the_name_of_a_file_is_no_option(folder):
    assert "lag=5.csv, 400 samples" in run("check", folder / "lag=5.csv").output


def test_check_finds_few_rows(folder):
    result = run("check", folder / "five.csv")
    assert result.exit_code == 1
    assert "5 rows are too few" in result.output


@pytest.mark.parametrize(("time", "part"), [(1, "--time must be"), (3, "--time 3 is not a multiple")])
def test_times_of_forecasts_are_multiples_of_the_lag(time, part, folder, tmp_path):
    model = folder / "lagged" / "model.npz"
    code, text = output("forecast", model, folder / "frames.csv", "--time", time, out=tmp_path / "f.csv")
    assert code == 2
    assert part in text


def test_untested_times_of_a_forecast_are_not_nan(folder, tmp_path):
    model = folder / "lagged" / "model.npz"
    code, text = output("forecast", model, folder / "frames.csv", out=tmp_path / "f.csv")
    assert code == 0
    assert "nan" not in text


def test_rows_of_another_stride_have_another_time_step(folder, tmp_path):
    model = folder / "lagged" / "model.npz"
    _, text = output("forecast", model, folder / "frames.csv", "--stride", 2, "--time", 4, out=tmp_path / "f.csv")
    assert "other-time-step" in warned(text)
