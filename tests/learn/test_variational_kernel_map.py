"""VariationalKernelMap: the scikit-learn contract, the paper's variants, bounds and errors."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from small_problems import ornstein_uhlenbeck_action

import kdmaps
from kdmaps import VariationalKernelMap
from kdmaps.kernels import Gaussian, Laplacian, Matern
from shared import known_warning

pytestmark = pytest.mark.slow

QUICK = {"n_components": 2, "adam_steps": 2, "lbfgs_steps": 1, "n_features": 8, "random_state": 0}


@parametrize_with_checks([VariationalKernelMap(**QUICK, kernels=("gaussian", "rq2"))])
@known_warning()  # the checks fit blobs and a few points
@pytest.mark.filterwarnings("ignore::kdmaps.exceptions.DataWarning")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


VARIANTS = {
    "vmkl": {},
    "eig-only": {"objective": "eig-only"},
    "sub-only": {"objective": "sub-only"},
    "heldout": {"objective": "heldout", "learn_regularization": True},
    "held-out landmarks": {"objective": "heldout", "landmarks": "uniform"},
    "any kernels": {"learn_bandwidths": False, "kernels": [Laplacian(2.0), Gaussian([1.0, 2.0]), "matern52"]},
    "varrff": {"basis": "fourier", "objective": "varrff"},
    "residual": {
        "objective": {"eig": 1.0, "pde": 0.1, "entropy": 0.1},
        "learn_bandwidths": False,
        "generator": ornstein_uhlenbeck_action,
    },
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_lowers_its_loss(X, variant):
    settings = {**QUICK, "n_features": 16, "adam_steps": 5, "lbfgs_steps": 3, **VARIANTS[variant]}
    model = VariationalKernelMap(**settings).fit(X)
    assert model.best_loss_ < model.history_["loss"][0]
    assert model.best_loss_ == model.history_["loss"].min()
    again = VariationalKernelMap(**settings).fit(X)
    np.testing.assert_array_equal(model.history_["loss"], again.history_["loss"])
    np.testing.assert_array_equal(model.transform(X), again.transform(X))


def test_no_steps_keep_the_uniform_mixture(X):
    model = VariationalKernelMap(**{**QUICK, "adam_steps": 0, "lbfgs_steps": 0}).fit(X)
    np.testing.assert_allclose(model.kernel_.weights, 0.2)
    reference = kdmaps.KernelDiffusionMap(2, kernel=model.kernel_, basis="landmarks", landmarks=model.basis_.landmarks)
    np.testing.assert_allclose(model.timescales_, reference.fit(X).timescales_, rtol=1e-6)


def test_varrff_stays_in_its_bounds(X):
    model = VariationalKernelMap(**{**QUICK, "adam_steps": 30, "learning_rate": 1.0}, basis="fourier").fit(X)
    ratio = model.kernel_.bandwidth / kdmaps.data.distances.median_distance(X, random_state=0)
    assert isinstance(model.kernel_, Matern)
    assert np.all((ratio > 1 / np.e - 1e-9) & (ratio < np.e + 1e-9))


@known_warning()  # trivial modes are the point
def test_uncentred_eigenvalue_sum_keeps_all_modes(X):
    """Without centring the eigenvalue sum grows with the bandwidth without end (the paper's trivialisation)."""
    settings = {**QUICK, "n_components": 4, "adam_steps": 100, "learning_rate": 0.5}
    model = VariationalKernelMap(**settings, objective="eig-only", center=False).fit(X)
    assert model.history_["sigma"][-1].max() > 10 * model.history_["sigma"][0].max()
    assert np.linalg.matrix_rank(model.transform(X)) == 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"objective": "best"},
        {"objective": {"eigen": 1.0}},
        {"objective": {"eig": 0.0}},
        {"basis": "full"},
        {"adam_steps": -1},
        {"bound": 0.0},
        {"floor": 1.0},
        {"kernels": []},
        {"kernels": ["laplacian"]},
        {"objective": {"pde": 1.0}},
    ],
)
def test_invalid_arguments(X, wrong):
    with pytest.raises(ValueError, match=r"objective|term|basis|adam_steps|bound|floor|kernels|bandwidth"):
        VariationalKernelMap(**{**QUICK, **wrong}).fit(X)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_components": "a"}, "n_components .*'a'"),
        ({"n_components": None}, "n_components .*None"),
        ({"bandwidth": -1}, "bandwidth .*-1"),
        ({"bandwidth": None}, "bandwidth .*None"),
        ({"bandwidth": ["a"]}, r"bandwidth .*\['a'\]"),
        ({"objective": None}, "objective .*eig-only.*None"),
        ({"objective": {1: 1.0}}, r"term\(s\) 1 .*eig"),
        ({"objective": {"eig": "a"}}, "finite number"),
        ({"objective": {"eig": np.nan}}, "finite number"),
        ({"kernels": 5}, "kernels .*5"),
        ({"generator": 5}, "generator .*callable"),
        ({"objective": {"pde": 1.0}, "learn_bandwidths": False}, "'pde' .*generator"),
        ({"objective": {"anchor": 1.0}, "learn_bandwidths": False}, "'anchor' .*learn_bandwidths=True"),
        ({"objective": {"gini": 1.0}, "basis": "fourier"}, "'gini' .*basis='landmarks'"),
    ],
)
def test_errors_name_argument_and_value(X, wrong, message):
    with pytest.raises(ValueError, match=message):
        VariationalKernelMap(**{**QUICK, **wrong}).fit(X)


def test_import_does_not_import_jax():
    code = "import sys, kdmaps.learn; sys.exit('jax' in sys.modules or 'optax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "settings", [{}, {"kernels": [kdmaps.kernels.Gaussian(1.0), "matern52"]}, {"basis": "fourier"}]
)
def test_save_and_load(settings, tmp_path):
    X = kdmaps.problems.load("dw1d").sample(200, random_state=0)
    settings = {"learn_bandwidths": False, **settings} if "kernels" in settings else settings
    model = VariationalKernelMap(2, n_features=20, adam_steps=2, lbfgs_steps=1, random_state=0, **settings).fit(X)
    model.save(tmp_path / "model.npz")
    loaded = kdmaps.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    assert loaded.kernel_ == model.kernel_
