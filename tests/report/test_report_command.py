"""The page of `kdmaps fit` contains a program that reads the same data and fits the same model."""

import html
import re

import numpy as np
import pytest

import kdmaps
from commands import GIVEN, run
from shared import known

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = kdmaps.problems.load("ou2d-4").sample(240, random_state=1)
    lines = [f"{a!r},{b!r},{w!r},r{i // 40}" for i, (a, b, w) in enumerate(np.c_[X, rng.uniform(0, 2, 240)].tolist())]
    (tmp_path / "it's mine.csv").write_text("x,y,w,run\n" + "\n".join(lines) + "\n")
    np.save(tmp_path / "samples.npy", X)
    np.save(tmp_path / "w.npy", rng.uniform(0, 2, 240))
    np.save(tmp_path / "tensors.npy", rng.uniform(0.5, 2, (240, 2, 1)) * np.eye(2))
    return tmp_path


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (("it's mine.csv", "--weights", "w", "--groups", "run", "--rates", "cross-fitted"), 2),
        (("it's mine.csv", "--weights", "w", "--groups", "run", "--columns", "y", "--stride", "2"), 2),
        (("samples.npy", "--weights", "w.npy", "--ordered", "--diffusion", "tensors.npy", "--stride", "2"), 1),
        (("samples.npy", "--diffusion", "1,2", "--rates", "cross-fitted"), 0),
    ],
)
@pytest.mark.parametrize("searched", [False, True])
@known("no-gap", "variance-samples", "outliers", "mismatch")  # half of the rows, with weights, are few
def test_program_repeats_the_command(options, arguments, searched, folder):
    given = GIVEN[: GIVEN.index("--lambda")] if searched else GIVEN
    result = run("fit", *options, *given, "--resamples", 0, "--out", "out")
    assert result.exit_code == 0, result.output
    page = html.unescape((folder / "out" / "report.html").read_text())
    code = next(code for code in re.findall(r"<code>(.*?)</code>", page, re.DOTALL) if "model.fit" in code)
    assert code.count("sample_weight=") + code.count("groups=") == arguments
    names = {}  # the program needs nothing but the files
    exec(code, names)
    np.testing.assert_array_equal(names["model"].rates_, kdmaps.load("out/model.npz").rates_)
    assert ("one for each sample; " in page) == ("--weights" in options)
    assert (" groups of samples" in page) == ("--groups" in options)
