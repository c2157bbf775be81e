"""`kdmaps fit --diffusion` and `--rates`."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold

import kdmaps
from commands import GIVEN, given, run
from kdmaps.data import gather, open_table
from shared import adaptive, known, topology

pytestmark = pytest.mark.usefixtures("undrawn")

X = kdmaps.problems.load("ou2d-4").sample(240, random_state=1)
MATRIX = np.array([[1.0, 0.3], [0.3, 0.5]])
TENSORS = np.random.default_rng(0).uniform(0.5, 2, (240, 1, 1)) * MATRIX


def fit(*arguments, data="samples.npy"):
    return run("fit", data, *GIVEN, "--resamples", 0, *arguments)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("samples.npy", X)
    np.save("matrix.npy", MATRIX)
    np.save("tensors.npy", TENSORS)
    np.save("run.npy", np.arange(240) // 60)


def assert_fitted(result, model):
    assert result.exit_code == 0, result.output
    stored = kdmaps.load("kdmaps-fit/model.npz")
    # The same program on the same numbers: nothing may differ.
    np.testing.assert_array_equal(stored.rates_, model.rates_)
    np.testing.assert_array_equal(stored.coefficients_, model.coefficients_)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", 0.5),
        ("1,2", [1.0, 2.0]),
        ("matrix.npy", MATRIX),
        ("tensors.npy", TENSORS),
    ],
)
@pytest.mark.slow
def test_tensors(text, value):
    assert_fitted(fit("--diffusion", text), given(diffusion=value).fit(X))


def test_tangent_spaces():
    circle = kdmaps.problems.load("circle").sample(300, random_state=0)
    np.save("samples.npy", circle)
    model = given(diffusion="tangent").fit(circle)
    assert model.tangents_.dimension == 1
    assert_fitted(fit("--diffusion", "tangent"), model)


@known("mismatch", "variance-samples", "outliers")
def test_stride_thins_tensors():
    # Detached rows are left out of data in memory only.
    model = given(diffusion=TENSORS[::2], isolated="keep").fit(X[::2])
    assert_fitted(fit("--diffusion", "tensors.npy", "--stride", 2), model)


@pytest.mark.parametrize(
    ("options", "cv", "groups"),
    [
        ((), 3, None),
        (("--ordered",), kdmaps.BlockedKFold(5), None),
        (("--groups", "run.npy"), GroupKFold(4), np.arange(240) // 60),
    ],
    ids=["random", "ordered", "groups"],
)
def test_cross_fitted_rates_use_the_folds_of_the_data(options, cv, groups):
    model = given(rates="cross-fitted", cv=cv).fit(X, groups=groups)
    assert np.all(model.rates_ > given().fit(X).rates_)  # without the optimism of the fit
    assert_fitted(fit("--rates", "cross-fitted", *options), model)


@pytest.mark.slow
@known("no-gap")
def test_trajectory_frames_are_ordered():
    mdtraj = pytest.importorskip("mdtraj")
    frames = np.random.default_rng(0).standard_normal((60, 3, 3))
    trajectory = mdtraj.Trajectory(frames, topology(1, ("N", "CA", "C")))
    trajectory.save("samples.xtc")
    trajectory[0].save("samples.pdb")
    atoms = gather(open_table("samples.xtc", topology="samples.pdb").select("0:3"))
    options = ("--topology", "samples.pdb", "--columns", "0:3", "--rates", "cross-fitted")
    for order, cv in ((), kdmaps.BlockedKFold(5)), (("--no-ordered",), 3):
        model = given(rates="cross-fitted", cv=cv).fit(atoms)
        assert_fitted(fit(*options, *order, data="samples.xtc"), model)


@pytest.mark.slow
@known("flat")
def test_searches():
    np.save("one.npy", TENSORS[:, :1, :1])  # with one column there is no slow refinement
    options = ("samples.npy", "--modes", 2, "--features", 30, "--resamples", 0, "--columns", 0, "--kernel", "rq2")
    options = (*options, "--diffusion", "one.npy", "--rates", "cross-fitted")
    settings = {"n_features": 30, "diffusion": TENSORS[:, :1, :1], "rates": "cross-fitted", "random_state": 0}
    refined = adaptive(2, families=("rq2",), regularizations=(0.01,), **settings)
    assert_fitted(run("fit", *options, "--lambda", 0.01), refined.fit(X[:, :1]))
    search = kdmaps.KernelSearchCV(2, families=("rq2",), bandwidths=[3.0], **settings)
    assert_fitted(run("fit", *options, "--bandwidth", 3), search.fit(X[:, :1]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--diffusion", "much"), "--diffusion much: could not convert"),
        (("--diffusion", "tangents"), "--diffusion tangents: did you mean tangent?"),
        (("--diffusion", "1,2,3"), r"--diffusion 1,2,3: .*shape (3,) does not fit X with 2 columns"),
        (("--diffusion", "-1"), "--diffusion -1: diffusion must be positive semidefinite"),
        (("--diffusion", "nowhere.npy"), "--diffusion nowhere.npy: .*No such file"),
        (("--diffusion", "run.npy"), "--diffusion run.npy: .*shape (240,) does not fit X with 2 columns"),
        (("--diffusion", "short.npy"), "--diffusion short.npy: diffusion holds 7 tensors but X has 240 samples"),
        (("--rates", "guessed"), "--rates.*'guessed' is not one of ritz, cross-fitted"),
    ],
)
def test_errors_name_option_and_remedy(options, message, tmp_path):
    np.save("short.npy", TENSORS[:7])
    result = fit(*options)
    assert result.exit_code == 2
    first, _, rest = message.partition(".*")
    assert first in result.stderr
    assert rest in result.stderr
    if "--diffusion" in options:
        assert "Give a number" in result.stderr
        assert "(2, 2)" in result.stderr
    assert not (tmp_path / "kdmaps-fit").exists()
