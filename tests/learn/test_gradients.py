"""Every objective × every parametrisation against central differences, to 1e-6."""

from functools import cache

import jax
import numpy as np
import pytest
from small_problems import DIFFUSIONS, gradient, make_parametrisation, make_samples

from kdmaps.kernels import Gaussian, Matern
from kdmaps.learn.objectives import PRESETS, TERMS, Objective, make_objective
from kdmaps.learn.parametrisations import Bandwidths, Dictionary
from kdmaps.learn.problem import Problem
from kdmaps.learn.statistics import Samples
from kdmaps.selection.folds import Folds, make_splits

pytestmark = pytest.mark.slow

PARAMETRISATIONS = ("anisotropy", "bandwidths", "dictionary")
MISSING = {"anisotropy": {"entropy", "gini", "pde"}, "bandwidths": {"pde"}, "dictionary": {"anchor"}}


def check(problem, theta, tolerance=1e-6):
    found = problem.evaluate(theta).gradient
    expected = gradient(lambda t: problem.evaluate(t).value, theta)
    assert np.linalg.norm(found - expected) <= tolerance * np.linalg.norm(expected)
    assert np.linalg.norm(expected) > 0


def every_term(name, weights, center=True):
    """An objective with all terms, most of weight zero: they share one compiled program."""
    terms = tuple(t for t in TERMS if t not in MISSING[name])
    return Objective(terms, tuple(weights.get(t, 0.0) for t in terms), 3, center)


@cache
def differences(name, learn_regularization=False, center=True):
    """Derivatives of every term by θ, from differences of one evaluation of all terms."""
    parametrisation, theta = make_parametrisation(name, make_samples())
    problem = Problem(parametrisation, every_term(name, {}, center), 0.05, learn_regularization)
    theta = np.append(theta, 0.3) if learn_regularization else theta
    found = gradient(lambda t: np.array(list(problem.evaluate(t).terms.values())), theta)
    return dict(zip(problem.objective.terms, found.T, strict=True))


def check_weighted(problem, theta, expected, tolerance=1e-6):
    """Compare a gradient with the weighted sum of the differences of its terms."""
    weights = zip(problem.objective.terms, problem.objective.weights, strict=True)
    total = sum(weight * expected[term] for term, weight in weights)
    assert np.linalg.norm(problem.evaluate(theta).gradient - total) <= tolerance * np.linalg.norm(total)
    assert np.linalg.norm(total) > 0


@pytest.mark.parametrize(
    ("name", "term"), [(name, term) for name in PARAMETRISATIONS for term in TERMS if term not in MISSING[name]]
)
def test_gradient_of_every_term(samples, name, term):
    parametrisation, theta = make_parametrisation(name, samples)
    problem = Problem(parametrisation, every_term(name, {term: 1.0}), 0.05, learn_regularization=True)
    check_weighted(problem, np.append(theta, 0.3), differences(name, learn_regularization=True))


@pytest.mark.parametrize("term", [term for term in TERMS if term not in MISSING["dictionary"]])
def test_gradient_of_every_term_without_centring(samples, term):
    parametrisation, theta = make_parametrisation("dictionary", samples)
    problem = Problem(parametrisation, every_term("dictionary", {term: 1.0}, center=False), 0.05)
    check_weighted(problem, theta, differences("dictionary", center=False))


@pytest.mark.parametrize("name", PARAMETRISATIONS)
@pytest.mark.parametrize("preset", PRESETS)
def test_gradient_of_every_preset(samples, name, preset):
    parametrisation, theta = make_parametrisation(name, samples)
    problem = Problem(parametrisation, every_term(name, PRESETS[preset]), 0.05)
    assert sum(weight != 0 for weight in problem.objective.weights) == len(PRESETS[preset])
    check_weighted(problem, theta, differences(name))


@pytest.mark.parametrize("name", ["anisotropy", "bandwidths"])
def test_gradient_of_the_timescale_score(samples, name):
    parametrisation, theta = make_parametrisation(name, samples)
    check(Problem(parametrisation, Objective(("heldout",), (1.0,), 3, power=1.0, caution=0.0), 0.05), theta)


@pytest.mark.parametrize("diffusion", DIFFUSIONS)
@pytest.mark.parametrize("name", PARAMETRISATIONS)
def test_gradient_for_every_diffusion(name, diffusion):
    parametrisation, theta = make_parametrisation(name, make_samples(DIFFUSIONS[diffusion], weighted=False))
    problem = Problem(parametrisation, every_term(name, {"heldout": 1.0}), 0.05)
    if name == "bandwidths" and diffusion in ("array-factors", "tangent"):
        with pytest.raises(ValueError, match="basis='fourier'"):
            problem.evaluate(theta).gradient  # noqa: B018
        return
    check(problem, theta)


@pytest.mark.parametrize("name", PARAMETRISATIONS)
def test_error_names_the_term_without_its_statistics(samples, name):
    parametrisation, theta = make_parametrisation(name, samples)
    for term in MISSING[name]:
        with pytest.raises(ValueError, match=term):
            Problem(parametrisation, make_objective({term: 1.0}, 3), 0.05).evaluate(theta)


def test_double_precision_of_jax_stays_local(samples):
    parametrisation, theta = make_parametrisation("dictionary", samples)
    Problem(parametrisation, make_objective("eig-only", 3), 0.05).evaluate(theta)
    assert jax.numpy.ones(2).dtype == np.float32


def test_eta_multiplies_zero(samples):
    parametrisation, theta = make_parametrisation("dictionary", samples)
    found = [
        Problem(parametrisation, Objective(("sub",), (1.0,), 3, eta=eta), 0.05).evaluate(theta) for eta in (0.0, 7.0)
    ]
    assert found[0].value == pytest.approx(found[1].value, rel=1e-12)
    np.testing.assert_allclose(found[0].gradient, found[1].gradient, rtol=1e-7)


SPACE_TERMS = ("eig", "sub", "rkhs", "dirichlet", "heldout")


@pytest.mark.parametrize("term", SPACE_TERMS)
@pytest.mark.parametrize("name", ["bandwidths", "dictionary"])
def test_gradient_of_degenerate_modes(name, term):
    """Samples and landmarks that a quarter turn maps to themselves: modes come in pairs of equal time scale."""
    rng = np.random.default_rng(0)
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    X, Z = (
        np.vstack([points @ np.linalg.matrix_power(turn, k) for k in range(4)])
        for points in (rng.standard_normal((30, 2)), rng.standard_normal((3, 2)))
    )
    folds = Folds(make_splits(3, X, None, 2, 0), len(X))
    build = {"bandwidths": Bandwidths, "dictionary": Dictionary}[name]
    parametrisation = build(Samples.of(X, folds=folds), [Gaussian(1.0), Matern(2.5, 2.0)], Z, np.zeros(2))
    problem = Problem(parametrisation, Objective(SPACE_TERMS, tuple(float(t == term) for t in SPACE_TERMS), 2), 0.05)
    theta = parametrisation.start + np.linspace(0.1, -0.2, len(parametrisation.start))
    found = problem.evaluate(theta)
    assert found.eigenvalues[0] == pytest.approx(found.eigenvalues[1], rel=1e-10)
    assert found.gap > 1.05
    check(problem, theta)
