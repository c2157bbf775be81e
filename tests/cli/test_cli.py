"""`kdmaps --version` and `kdmaps demo`."""

import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from matplotlib.image import imread

import kdmaps
from commands import run
from kdmaps.cli import _options
from kdmaps.cli._app import print_table
from kdmaps.cli._demo import _matched
from kdmaps.data import DESCRIPTORS, TABLE_FORMATS
from kdmaps.diagnostics.resampling import MIN_RESAMPLES
from kdmaps.estimators.adaptive import ENERGIES
from kdmaps.kernels import FAMILIES
from kdmaps.selection.plan import RATES
from kdmaps.summary import summarise
from shared import known

#: Runs commands that need no data, and prints the modules that are slow to import after each.
LIGHT = """
import sys
from kdmaps.cli import app
commands = ["--help", "fit --help-all", "fit missing.npy", "inspect missing.npz", "states m x", "fit --nope"]
for command in commands:
    try:
        app(command.split())
    except SystemExit as end:
        slow = {"numpy", "scipy", "sklearn", "numba", "matplotlib", "jax"} & sys.modules.keys()
        print(command, "ends with", end.code, "and", sorted(slow))
"""


def test_help_and_errors_need_no_slow_imports(tmp_path):
    done = subprocess.run([sys.executable, "-c", LIGHT], cwd=tmp_path, capture_output=True, text=True)
    ends = [line.partition("ends with ")[2] for line in done.stdout.splitlines() if "ends with" in line]
    assert ends == ["0 and []"] * 2 + ["2 and []"] * 4, done.stderr


def test_values_of_options_are_those_of_the_library():
    assert tuple(FAMILIES) == _options.FAMILIES
    assert tuple(DESCRIPTORS) == _options.DESCRIPTORS
    assert tuple(RATES) == _options.RATES
    assert ENERGIES == _options.ENERGIES
    assert _options.TABLE_FORMATS == TABLE_FORMATS
    assert _options.MIN_RESAMPLES == MIN_RESAMPLES


def test_version():
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"kdmaps {kdmaps.__version__}\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dw1d", "mdlike-6"])
@known("flat")
def test_demo(name, tmp_path, monkeypatch):
    # One family and few features keep the fit short.
    search = kdmaps.KernelSearchCV(families=["gaussian"])
    small = partial(kdmaps.AdaptiveDiffusionMap, search=search, n_features=60)
    monkeypatch.setattr(kdmaps, "AdaptiveDiffusionMap", small)
    result = run("demo", "--problem", name, "--samples", 400, "--seed", 3, "--out", tmp_path / "new" / "dir")
    assert result.exit_code == 0, result.output

    problem = kdmaps.problems.load(name)
    X = problem.sample(400, random_state=3)
    r = problem.n_modes
    model = kdmaps.AdaptiveDiffusionMap(r, random_state=3).fit(X)
    exact = 1 / problem.rates(r)
    rows = np.array(
        re.findall(r"│\s+(\d)\s+│\s+([\d.]+)\s+│\s+([\d.]+)\s+│\s+([-+][\d.]+)%", result.stdout), dtype=float
    )
    np.testing.assert_array_equal(rows[:, 0], np.arange(1, r + 1))
    np.testing.assert_allclose(rows[:, 1], model.timescales_, atol=6e-5)
    np.testing.assert_allclose(rows[:, 2], exact, atol=6e-5)
    np.testing.assert_allclose(rows[:, 3], 100 * (model.timescales_ / exact - 1), atol=0.06)
    agreement = kdmaps.metrics.subspace_r2(model.transform(X), problem.reference(X, r))
    assert f"SubR² = {agreement:.4f}" in result.stdout
    assert summarise(model).chosen in result.stdout

    picture = tmp_path / "new" / "dir" / "modes.png"
    assert f"Modes drawn in {picture}" in result.stdout
    assert len(np.unique(imread(picture).reshape(-1, 4), axis=0)) > 10  # not empty


def test_demo_replaces_nothing(tmp_path):
    (tmp_path / "modes.png").write_text("mine")
    assert run("demo", "--samples", 400, "--out", tmp_path).exit_code == 2
    assert (tmp_path / "modes.png").read_text() == "mine"


def test_tables_break_titles_before_numbers(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "48")
    print_table(("mode", "uncertainty of direction", "95 % interval"), [("1", "69°", "0.0526 – 0.0587")])
    printed = capsys.readouterr().out
    assert "uncertainty of direction" not in printed
    assert "│ 0.0526 – 0.0587 │" in printed
    monkeypatch.setenv("COLUMNS", "24")
    print_table(("mode", "95 % interval"), [("1", "0.0526 – 0.0587")])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 24


def test_unknown_problem():
    result = run("demo", "--problem", "nowhere")
    assert result.exit_code == 2
    for name in kdmaps.problems.names():
        assert name in result.stderr


@pytest.mark.parametrize("arguments", [("--samples", 3), ("--seed", -1), ("--samples", "many")])
def test_bad_options(arguments):
    assert run("demo", *arguments).exit_code == 2


def test_exact_modes_are_rotated_only_within_clusters():
    problem = kdmaps.problems.load("circle")  # two modes for each rate
    X = problem.sample(500, random_state=0)
    exact = problem.eigenfunctions(X, 4)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    modes = np.hstack([exact[:, :2] @ turn, -exact[:, 2:]])
    matched = _matched(problem, X, modes)
    for k in range(4):
        assert np.corrcoef(matched[:, k], modes[:, k])[0, 1] > 0.999
    # Modes of different rates that were mixed stay different from the exact ones.
    mixed = np.column_stack([modes[:, 0] + modes[:, 2], modes[:, 1], modes[:, 0] - modes[:, 2], modes[:, 3]])
    assert np.corrcoef(_matched(problem, X, mixed)[:, 0], mixed[:, 0])[0, 1] < 0.8
