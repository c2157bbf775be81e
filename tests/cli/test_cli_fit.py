"""`kdmaps fit`, `transform` and `inspect`: numbers of the library, complete files, and error messages."""

import errno
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import kdmaps
from commands import GIVEN, given, run, warned
from kdmaps.data import gather, open_table
from kdmaps.estimators import model_files
from kdmaps.kernels import Gaussian, Metric
from kdmaps.language import CLI, PYTHON
from kdmaps.selection import search
from kdmaps.summary import describe_independence
from shared import adaptive, known

pytestmark = pytest.mark.usefixtures("undrawn")

PROBLEM = kdmaps.problems.load("ou2d-4")
X = PROBLEM.sample(240, random_state=1)
WEIGHT = np.random.default_rng(0).uniform(0.5, 1.5, 240).round(3)
QUICK = (*GIVEN, "--resamples", 0)


def rows_of(output):
    return [re.split(r"\s*│\s*", line.strip("│ \n")) for line in output.splitlines() if line.startswith("│")]


@pytest.fixture
def data(tmp_path):
    np.save(tmp_path / "samples.npy", X)
    text = "\n".join(
        f"{a!r},{b!r},{w!r},r{i // 60}" for i, ((a, b), w) in enumerate(zip(X.tolist(), WEIGHT.tolist(), strict=True))
    )
    (tmp_path / "samples.csv").write_text(f"x,y,w,run\n{text}\n")
    return tmp_path


def test_fit_with_a_given_kernel(data):
    result = run("fit", data / "samples.npy", *GIVEN, "--resamples", 50, "--seed", 7, "--out", data / "new" / "out")
    assert result.exit_code == 0, result.output
    model = given(random_state=7).fit(X)
    bars = kdmaps.uncertainty.bootstrap(model, X, n_resamples=50, random_state=7)
    for k, (number, time, interval, rate, angle) in enumerate(rows_of(result.stdout)):
        assert number == str(k + 1)
        assert time == f"{model.timescales_[k]:.4g}"
        assert interval == "{:.4g} – {:.4g}".format(*bars.timescale_intervals[k])
        assert rate == f"{model.rates_[k]:.4g}"
        assert angle == f"{np.degrees(bars.mode_angles[k]):.0f}°"
    assert "Chosen: Gaussian(bandwidth=3), regularization 0.001, 40 features" in result.stdout
    expected = [check.code for check in kdmaps.Analysis(model, X, uncertainty=bars).checks.warnings]
    assert warned(result.stdout) == expected[:3]
    again = kdmaps.load(data / "new" / "out" / "model.npz")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    page = (data / "new" / "out" / "report.html").read_text()
    assert "samples.npy" in page
    assert f"<td>{'{:.4g} – {:.4g}'.format(*bars.timescale_intervals[1])}</td>" in page
    assert warned(page) == expected
    written = open_table(data / "new" / "out" / "modes.csv").select()
    assert written.feature_names == ["row", "mode1", "mode2"]
    expected = np.column_stack([np.arange(240), model.transform(X)])
    np.testing.assert_allclose(gather(written), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@known("no-gap", "outliers", "mismatch")  # of every second sample
def test_weights_groups_columns_and_stride(data):
    out = data / "out"
    result = run("fit", data / "samples.csv", *QUICK, "--weights", "w", "--groups", "run", "--stride", 2, "--out", out)
    assert result.exit_code == 0, result.output
    fitted = kdmaps.load(out / "model.npz")
    assert list(fitted.feature_names_in_) == ["x", "y"]  # without w and run
    model = given().fit(X[::2], sample_weight=WEIGHT[::2])
    np.testing.assert_allclose(fitted.timescales_, model.timescales_, rtol=1e-10)
    run("fit", data / "samples.csv", *QUICK, "--columns", "y", "--out", out)
    assert list(kdmaps.load(out / "model.npz").feature_names_in_) == ["y"]
    np.testing.assert_allclose(kdmaps.load(out / "model.npz").timescales_, given().fit(X[:, [1]]).timescales_)


def test_independent_modes(data):
    result = run("fit", data / "samples.npy", *QUICK, "--independent", "--out", data / "out")
    assert result.exit_code == 0, result.output
    text = describe_independence(kdmaps.independent_modes(given(random_state=0).fit(X).transform(X)))
    assert text in result.stdout
    page = (data / "out" / "report.html").read_text()
    assert text in page
    assert 'aria-label="How much of each mode is new"' in page


def test_error_bars_use_weights_and_groups(data):
    # Interleaved runs of five samples: blocks of groups differ from blocks of rows.
    turns = np.arange(240) % 48
    np.save(data / "turns.npy", turns)
    options = ("--weights", "w", "--groups", data / "turns.npy", "--columns", "x,y", "--resamples", 20)
    result = run("fit", data / "samples.csv", *GIVEN, *options, "--out", data / "out")
    assert result.exit_code == 0, result.output
    model = given().fit(X, sample_weight=WEIGHT)
    bars = kdmaps.uncertainty.bootstrap(
        model, X, sample_weight=WEIGHT, groups=turns, n_resamples=20, random_state=0
    ).timescale_intervals
    assert [row[2] for row in rows_of(result.stdout)] == [f"{low:.4g} – {high:.4g}" for low, high in bars]


@pytest.mark.slow
def test_searches_everything_that_is_not_given(data):
    options = ("--modes", 2, "--features", 30, "--resamples", 0, "--out", data / "out", "--kernel", "rq2")
    result = run("fit", data / "samples.npy", *options, "--ordered")
    assert result.exit_code == 0, result.output
    settings = {"n_features": 30, "random_state": 0, "cv": kdmaps.BlockedKFold(5)}
    model = adaptive(2, families=["rq2"], **settings).fit(X)
    np.testing.assert_array_equal(kdmaps.load(data / "out" / "model.npz").timescales_, model.timescales_)
    assert f"{len(model.cv_results_['selection_score'])} candidates" in result.stdout
    assert f"scores {model.best_selection_score_:.4g} ±" in result.stdout
    result = run("fit", data / "samples.npy", *options, "--bandwidth", 4)
    search = kdmaps.KernelSearchCV(2, families=["rq2"], bandwidths=[4.0], n_features=30, random_state=0).fit(X)
    np.testing.assert_array_equal(kdmaps.load(data / "out" / "model.npz").timescales_, search.timescales_)


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy"])
@pytest.mark.slow
def test_transform_selects_the_columns_of_the_fit(ending, data):
    run("fit", data / "samples.csv", *QUICK, "--columns", "y,x", "--table", ending, "--out", data / "out")
    assert (data / "out" / f"modes.{ending}").exists()
    model, target = data / "out" / "model.npz", data / "deep" / f"m.{ending}"
    result = run("transform", model, data / "samples.csv", "--out", target)  # by name: y, x
    assert result.exit_code == 0, result.output
    expected = given().fit(X[:, ::-1]).transform(X[:, ::-1])
    modes = None if ending == "npy" else "mode1,mode2"  # an array has no names
    np.testing.assert_allclose(gather(open_table(target).select(modes)), expected, rtol=1e-9, atol=1e-12)
    result = run("transform", model, data / "samples.npy", "--columns", "1,0", "--out", target)
    np.testing.assert_allclose(gather(open_table(target).select(modes)), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_transform_refuses_other_columns(data):
    run("fit", data / "samples.csv", *QUICK, "--columns", "x,y", "--out", data / "out")
    (data / "other.csv").write_text("x,z\n1,2\n")
    result = run("transform", data / "out" / "model.npz", data / "other.csv", "--out", data / "m.csv")
    assert result.exit_code == 2
    assert "missing here: y" in result.stderr
    result = run(
        "transform", data / "out" / "model.npz", data / "samples.npy", "--columns", "0", "--out", data / "m.csv"
    )
    assert result.exit_code == 2
    assert "fitted to 2 columns" in result.stderr
    assert not (data / "m.csv").exists()


def test_inspect(data):
    run("fit", data / "samples.csv", *QUICK, "--columns", "x,y", "--out", data / "out")
    result = run("inspect", data / "out" / "model.npz")
    assert result.exit_code == 0
    model = given().fit(X)
    rows = rows_of(result.stdout)
    assert [row[1] for row in rows[:2]] == [f"{t:.4g}" for t in model.timescales_]
    assert rows[2:] == model.checks.cells()[1]
    assert model.checks.headline() in result.stdout
    assert "240 samples" in result.stdout
    assert "Columns: 2: x, y" in result.stdout
    assert f"numpy {np.__version__}" in result.stdout
    shown = {row[0]: row[1:] for row in rows[2:]}
    assert shown["condition number of L+λR"] == [f"{model.modes_.condition_number:.2g}", "at most 1e+12", "passed"]
    error = np.sqrt(model.modes_.effective_rank[1] / 240)
    assert shown["relative sampling error of eigenvalue 2, √(effective rank/n)"][0] == f"{error:.3g}"


def test_inspect_a_kernel_in_a_metric(tmp_path):
    metric = Metric(Gaussian(3.0), np.diag([1.0, 0.1]))
    given().set_params(kernel=metric).fit(X).save(tmp_path / "model.npz")
    result = run("inspect", tmp_path / "model.npz")
    assert result.exit_code == 0
    assert "Kernel: Gaussian(bandwidth=3) in a metric (about 1 of 2 directions count), regularization" in result.stdout


# --- failures ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.npy"], "nothing.npy does not exist"),
        (["samples.csv", "--columns", "q"], "column 'q' does not exist"),
        (["samples.csv", "--weights", "q"], "--weights: 'q' is neither a column nor a file"),
        (["samples.csv", "--columns", "x", "--weights", "run"], "--weights: run has"),
        (["samples.csv", "--columns", "x", "--weights", "negative.npy"], "--weights: negative.npy has"),
        (["samples.npy", "--kernel", "cubic"], "'cubic' is not one of auto, gaussian"),
        (["samples.npy", "--table", "xlsx"], "--table: 'xlsx' is not one of csv"),
        (["samples.npy", "--modes", "500"], "240 row(s) are too few for 500 mode(s)"),
        (["samples.npy", "--diffusion", "abc"], "'abc'. Give"),
        (["samples.npy", "--bandwidth", "0"], "--bandwidth: give a positive"),
        (["samples.npy", "--lambda", "0"], "--lambda: give a positive"),
        (["samples.npy", "--resamples", "19"], "--resamples: give 0, or 20 or more"),
        (["nan.npy"], "NaN"),
    ],
)
def test_user_errors(arguments, message, data, monkeypatch):
    monkeypatch.chdir(data)
    np.save("nan.npy", np.where(np.arange(480).reshape(240, 2) == 7, np.nan, X))
    np.save("negative.npy", np.full(240, -1.0))
    result = run("fit", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.output
    assert not (data / "kdmaps-fit").exists()


def test_option_traceback(data):
    result = run("--traceback", "inspect", data / "samples.npy")
    assert isinstance(result.exception, ValueError)


def test_inspect_refuses_other_files(data):
    result = run("inspect", data / "samples.csv")
    assert result.exit_code == 2
    assert "not a kdmaps model" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=str)
@pytest.mark.parametrize("call", range(6))  # two writers and three files; the last one fails nowhere
def test_failed_writes_keep_the_old_results(failure, call, data, monkeypatch):
    out = data / "out"
    run("fit", data / "samples.npy", *QUICK, "--out", out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    calls = 0

    def failing(function):
        def wrapped(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == call + 1:
                raise failure
            return function(*arguments, **options)

        return wrapped

    n_files = len(before)
    for module, name in ((model_files, "write_archive"), (np, "savetxt"), (os, "fsync")):
        monkeypatch.setattr(module, name, failing(getattr(module, name)))
    result = run("fit", data / "samples.npy", *QUICK, "--seed", 1, "--out", out)
    monkeypatch.undo()
    after = {path.name: path.read_bytes() for path in out.iterdir()}
    if call >= 2 + n_files:  # two writers, then fsync of every file: nothing failed
        assert result.exit_code == 0
        assert after.keys() == before.keys()
        assert after != before
        return
    assert result.exit_code == (130 if isinstance(failure, KeyboardInterrupt) else 2)
    assert after == before


@pytest.mark.slow
def test_ctrl_c(data):
    """A real signal to a real process in the middle of its search."""
    script = (  # processes started in the background ignore the signal by default
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import sys; from kdmaps.selection import search; from kdmaps.cli import app; track = search.track\n"
        "def printing(items, *arguments):\n"
        "    for item in track(items, *arguments):\n"
        "        print('searching', flush=True); yield item\n"
        "search.track = printing; app(sys.argv[1:])"
    )
    command = [sys.executable, "-c", script, "fit", str(data / "samples.npy"), "--out", str(data / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert "searching\n" in (process.stdout.readline(), process.stdout.readline())  # below the heading
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Interrupted" in errors
    assert "Traceback" not in errors
    assert not (data / "out").exists()


def test_interrupted_search_writes_nothing(data, monkeypatch):
    def interrupted(items, *arguments):
        for number, item in enumerate(items):
            if number == 3:
                raise KeyboardInterrupt
            yield item

    def refitted(*_, **__):
        raise AssertionError("The best candidate so far was fitted to all samples.")  # which may take minutes

    monkeypatch.setattr(search, "track", interrupted)
    monkeypatch.setattr(kdmaps.KernelDiffusionMap, "fit", refitted)
    result = run("fit", data / "samples.npy", "--features", 40, "--modes", 2, "--out", data / "out")
    assert result.exit_code == 130
    assert "Interrupted" in result.stderr
    assert not (data / "out").exists()


def test_errors_of_the_library_name_options(tmp_path):
    # 240 rows, but three points: the message comes from the eigenproblem.
    np.save(tmp_path / "few.npy", np.tile(X[:3], (80, 1)))
    failed = run("fit", tmp_path / "few.npy", *QUICK, "--modes", 4, "--out", tmp_path / "out")
    assert failed.exit_code == 2
    assert "--modes" in failed.output
    assert "n_components" not in failed.output


@pytest.mark.parametrize(
    ("template", "of_python", "of_command_line"),
    [
        ("fewer than {n_components:4}; use", "fewer than n_components=4; use", "fewer than --modes 4; use"),
        ("Use another {n_components}.", "Use another n_components.", "Use another --modes."),
        ("{time_step:0.5}.", "time_step=0.5.", "--time-step 0.5."),
        (
            "use {lag:auto} and {time_step} for",
            "use lag='auto' and time_step for",
            "use --lag auto and --time-step for",
        ),
        ("{standardize:True}", "standardize=True", "--standardize"),
        ("pass {cv:3}.", "pass cv=3.", "pass --no-ordered."),
        ("{reversible:False}", "reversible=False", "--no-reversible"),
        ("{file} does not exist", "lag=5.csv does not exist", "lag=5.csv does not exist"),
    ],
)
def test_messages_name_arguments_or_options(template, of_python, of_command_line):
    words = {"file": "lag=5.csv"}  # words of users stay as they are
    assert PYTHON.render(template, words) == of_python
    assert CLI.render(template, words) == of_command_line


@pytest.mark.parametrize("name", ["fit", "check", "transform", "states", "export", "demo", "inspect", "compare"])
def test_help_names_values_instead_of_types(name):
    words = ("--help-all",) if name in ("fit", "check", "transform", "states") else ("--help",)
    text = run(name, *words, force=False).output
    assert "<" not in text.replace("<name>", "")
    assert "range" not in text


def test_exit_codes_are_in_the_help():
    assert "130 interrupted" in run("--help").output


def test_earlier_results_are_kept_unless_forced(tmp_path):
    X = np.random.default_rng(0).standard_normal((200, 2)) * [2, 1]
    np.save(tmp_path / "X.npy", X)
    command = ("fit", tmp_path / "X.npy", *GIVEN, "--resamples", 0, "--out", tmp_path / "out")
    first = run(*command, force=False)
    assert first.exit_code == 0, first.output
    lines = first.stdout.splitlines()
    assert "slowest" in lines[1]
    assert "checks" in lines[1]
    assert sum(line.startswith(("Time scales", "Kernel:", "Mode 1 depends")) for line in lines) in (2, 3)
    assert "held-out" not in first.stdout  # reasons need --details
    before = (tmp_path / "out" / "model.npz").read_bytes()
    again = run(*command, "--modes", 1, force=False)
    assert again.exit_code == 2
    assert "--force" in again.output
    assert (tmp_path / "out" / "model.npz").read_bytes() == before
    assert run(*command, "--modes", 1).exit_code == 0
    assert len(kdmaps.load(tmp_path / "out" / "model.npz").rates_) == 1
    for name, *words in (("transform", tmp_path / "X.npy"), ("states", tmp_path / "X.npy", "--states", 2)):
        table = tmp_path / f"{name}.csv"
        table.write_text("mine")
        refused = run(name, tmp_path / "out" / "model.npz", *words, "--out", table, force=False)
        assert refused.exit_code == 2
        assert "--force" in refused.output
        assert table.read_text() == "mine"
        assert run(name, tmp_path / "out" / "model.npz", *words, "--out", table).exit_code == 0
        assert table.read_text() != "mine"


def test_features_are_a_number_or_auto(data):
    options = ("fit", data / "samples.npy", "--modes", 2, "--resamples", 0, "--out", data / "out")
    kernel = ("--kernel", "gaussian", "--bandwidth", 3)
    result = run(*options, *kernel, "--features", "auto")
    assert result.exit_code == 0, result.output
    assert kdmaps.load(data / "out" / "model.npz").n_features == 300
    for wrong in (("--features", "many"), ("--features", "1"), (*kernel, "--lambda", 0.1, "--features", "auto")):
        result = run(*options, *wrong)
        assert result.exit_code == 2
        assert "--features" in result.output


def test_columns_of_different_scales_are_in_the_headline(tmp_path):
    np.save(tmp_path / "table.npy", X * [1.0, 500.0])
    noted = run("fit", tmp_path / "table.npy", *QUICK, "--out", tmp_path / "out")
    assert noted.exit_code == 0
    assert warned(noted.stderr) == ["scales"]
    assert "scales" not in warned(noted.stdout)  # printed once, while the fit ran
    assert "Not reliable: " in noted.stdout
    given = run("fit", tmp_path / "table.npy", *QUICK, "--diffusion", "1,2.5e5", "--out", tmp_path / "given")
    assert "scales" not in warned(given.output)
    assert "Not reliable" not in given.output
    np.save(tmp_path / "huge.npy", X * 1e200)
    refused = run("fit", tmp_path / "huge.npy", "--out", tmp_path / "huge")
    assert refused.exit_code == 2
    assert "encountered" not in refused.output


def test_a_graph_of_neighbours(data):
    settings = ("--energy", "neighbors", "--neighbors", 20, "--modes", 2, "--seed", 3)
    result = run("fit", data / "samples.npy", *settings, "--out", data / "graph")
    assert result.exit_code == 0, result.output
    assert "no unit of time" in result.stdout
    model = kdmaps.AdaptiveDiffusionMap(2, energy="neighbors", n_neighbors=20, random_state=3).fit(X)
    stored = kdmaps.load(data / "graph" / "model.npz")
    np.testing.assert_array_equal(stored.transform(X), model.transform(X))
    assert "graph of 20 neighbours of 240 rows" in run("inspect", data / "graph" / "model.npz").stdout
    table = run("transform", data / "graph" / "model.npz", data / "samples.npy", "--out", data / "new.npy")
    assert table.exit_code == 0, table.output
    np.testing.assert_array_equal(np.load(data / "new.npy"), model.transform(X))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--energy", "neighbors", "--lag", "3"), "--lag"),
        (("--energy", "neighbors", "--diffusion", "2"), "--diffusion"),
        (("--energy", "neighbors", "--kernel", "gaussian"), "--kernel"),
        (("--energy", "graph"), "--energy"),
        (("--neighbors", "20"), "--neighbors"),
    ],
)
def test_options_without_a_meaning_for_a_graph(data, options, named):
    result = run("fit", data / "samples.npy", *options, "--out", data / "graph")
    assert result.exit_code == 2
    assert named in result.output
