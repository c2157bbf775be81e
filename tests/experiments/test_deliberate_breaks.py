"""Settings of the paper that no result depends on strongly: each has a test of its own that fails if it is changed."""

import numpy as np
import pytest

from experiments.paper import _learning, _protocol
from experiments.paper._learning import start_of_varrff, varrff, vmkl_one_by_one
from experiments.paper._protocol import METHODS, measure
from experiments.paper._sweep import BANDWIDTHS
from experiments.paper.corrections import printed_subspace_term
from kdmaps import VariationalKernelMap, problems
from kdmaps.data.distances import median_distance
from kdmaps.estimators.variational import START_BANDWIDTHS
from kdmaps.kernels import Gaussian
from kdmaps.learn.objectives import Objective, make_objective
from kdmaps.learn.parametrisations import Bandwidths
from kdmaps.learn.problem import Problem
from kdmaps.learn.statistics import Samples
from shared import known_warning


@pytest.fixture(scope="module")
def X():
    return problems.load("ou2d-4").sample(80, random_state=0)


# --- L_sub ------------------------------------------------------------------------------------------------------------
def test_subspace_term_is_the_printed_one(X):
    """All three terms of eq:anchor-loss for modes as solved and not centred, whose means are not zero."""
    pytest.importorskip("jax")
    parametrisation = Bandwidths(Samples.of(X), [Gaussian(0.8), Gaussian(2.0)], X[::10], np.zeros(2))
    theta = parametrisation.start
    found = Problem(parametrisation, make_objective({"sub": 1.0}, 3, center=False), 0.01).evaluate(theta).value
    statistics, _ = parametrisation.forward(theta)
    from experiments.paper._sweep import Operators

    operators = Operators(statistics.grams[0] / 80, statistics.energies[0] / 80 + 0.01 * statistics.ridge)
    modes = parametrisation.basis(theta).features(X) @ operators.eigenpairs(3)[1]
    assert np.max(np.abs(modes.mean(axis=0))) > 1
    assert found == pytest.approx(printed_subspace_term(modes), rel=1e-7)


@pytest.mark.parametrize("eta", [0.0, 1.0, 3.5])
def test_eta_multiplies_products_of_modes(eta):
    """For functions that are not modes of the eigenproblem, whose products are not zero."""
    jax = pytest.importorskip("jax")
    from kdmaps.learn._variational import Spectrum, State, sub

    rng = np.random.default_rng(0)
    values = rng.standard_normal((50, 4))
    A = rng.standard_normal((4, 3))
    with jax.enable_x64(True):
        state = State(
            Objective(("sub",), (1.0,), 3, False, eta),
            values.mean(axis=0),
            values.T @ values / 50,
            None,
            None,
            Spectrum(None, A, None),
            None,
        )
        found = float(sub(state))
    assert found == pytest.approx(printed_subspace_term(values @ A, eta), rel=1e-10)


# --- settings of runs -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("problem", "regularization"), [("circle", 0.005), ("dw1d", 0.01), ("ou3d", 0.01)])
@known_warning()  # few samples
def test_regularization_of_the_problems(problem, regularization):
    """λ = 0.01, or 0.005 for the circle (subsec:results)."""
    row = measure("Uniform+RFF", problem, 1, n_samples=60, n_features=30)
    assert row["asked_regularization"] == row["regularization"] == regularization
    other = measure("Uniform+RFF", problem, 1, n_samples=60, n_features=30, regularization=3 * regularization)
    assert other["rates"] != row["rates"]


def test_varrff_starts_at_the_widest_bandwidth(X, monkeypatch):
    """σ_CV is the end of the grid, 50 medians (tab:main-results), for both kinds of features."""
    assert start_of_varrff(X, 0) == pytest.approx(50 * median_distance(X))

    class Recorded:
        def __init__(self, **settings):
            self.settings = settings

        def fit(self, X):
            return self

    monkeypatch.setattr(_protocol, "VariationalKernelMap", Recorded)
    settings = METHODS["VarRFF"](X, 4, 0, 0.01, 300).settings
    assert settings["bandwidth"] == pytest.approx(50 * median_distance(X))
    assert settings["objective"] == "varrff"
    assert settings["n_features"] == 300


def test_varrff_with_random_phases_stays_within_its_bounds(X, monkeypatch):
    """σ_j in [σ_CV/e, σ_CV e], and at σ_CV without any steps."""
    pytest.importorskip("jax")
    start = 50 * median_distance(X)
    learned = varrff(X, 2, 0, 0.01, 40).kernel_
    assert np.all(np.abs(np.log(learned.bandwidth / start)) <= 1)
    monkeypatch.setattr(_learning, "minimise", lambda problem, steps: (problem.start, {}))
    assert varrff(X, 2, 0, 0.01, 40).kernel_.bandwidth == pytest.approx([start, start])


def test_vmkl_starts_from_five_equal_gaussians(X, monkeypatch):
    """L = 5 learnable Gaussians, u = 0 (tab:vmkl-vs-cv, alg:vmkl-kdm), at 60 landmarks."""
    assert len(START_BANDWIDTHS) == 5
    model = VariationalKernelMap(2, adam_steps=0, lbfgs_steps=0, n_features=20, random_state=0).fit(X)
    parts = model.kernel_.components()
    assert [weight for weight, _ in parts] == pytest.approx([0.2] * 5)
    monkeypatch.setattr(_learning, "minimise", lambda problem, steps: (problem.start, {}))
    fixed = vmkl_one_by_one("combined", X, 2, 0, 0.01, 300)
    assert [weight for weight, _ in fixed.kernel_.components()] == pytest.approx([0.2] * 5)
    assert fixed.coefficients.shape == (60, 2)


def test_weights_are_a_softmax_with_a_floor(X):
    """β = (1-τ) softmax(u) + τ/L (eq:softmax), τ = 0.01."""
    kernels = [Gaussian(s) for s in (0.5, 1.0, 2.0)]
    parametrisation = Bandwidths(Samples.of(X), kernels, X[::10], np.zeros(2))
    u = np.array([0.0, 1.0, -30.0])
    weights = [weight for weight, _ in parametrisation.kernel(np.concatenate([u, np.zeros(3)])).components()]
    soft = np.exp(u) / np.exp(u).sum()
    assert weights == pytest.approx((0.99 * soft + 0.01 / 3).tolist())


def test_uniform_baselines_have_ten_gaussians_on_the_grid_of_the_search(X):
    kernel = _protocol.uniform_mixture(2.0)
    sigmas = [float(part.bandwidth) for _, part in kernel.components()]
    assert sigmas == pytest.approx((2.0 * BANDWIDTHS).tolist())
    assert len(sigmas) == 10


@known_warning()  # few samples
def test_the_constant_is_one_of_the_modes(X):
    """The covariance of the paper is not centred: the first mode of every method of the paper is nearly constant."""
    for method in ("Uniform+RFF", "Uniform+RFF, single precision"):
        first = METHODS[method](X, 2, 0, 0.01, 60).transform(X)[:, 0]
        assert abs(first.mean()) > 3 * first.std()
