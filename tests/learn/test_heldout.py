"""The held-out term in closed form against automatic differentiation and against differences."""

from functools import cache

import jax
import jax.numpy as jnp
import jax_heldout
import numpy as np
import pytest
from numpy.testing import assert_allclose
from small_problems import DIFFUSIONS, gradient, make_parametrisation, make_samples, slope

from kdmaps.bases import make_basis
from kdmaps.kernels import Gaussian, Matern
from kdmaps.learn._heldout import Rotation, heldout
from kdmaps.learn.objectives import Objective
from kdmaps.learn.parametrisations import Anisotropy, Dictionary
from kdmaps.learn.problem import Problem
from kdmaps.learn.statistics import Samples
from kdmaps.selection.folds import Folds, make_splits
from kdmaps.utils.threads import single_thread

LOG_LAMBDA = np.log(0.05)


def objective(**change):
    return Objective(("heldout",), (1.0,), **{"n_components": 3, **change})


@cache
def oracle(n_components, center, roles, n_folds):
    """The oracle for given roles of the classes, as bytes: compiled once for every power and caution."""
    roles = np.frombuffer(roles, dtype=np.int64).reshape(-1, n_folds)

    def loss(statistics, log_lambda, power, caution):
        goal = objective(n_components=n_components, center=center, power=power, caution=caution)
        return jax_heldout.heldout(statistics, log_lambda, goal, roles)

    return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))


def by_jax(statistics, goal, roles):
    """Value, derivatives by the statistics, and by log λ."""
    with jax.enable_x64(True):
        loss = oracle(goal.n_components, goal.center, roles.astype(np.int64).tobytes(), roles.shape[1])
        numbers = (jnp.asarray(number) for number in (LOG_LAMBDA, goal.power, goal.caution))
        value, (by_statistics, by_lambda) = loss(jax.tree.map(jnp.asarray, statistics), *numbers)
        return float(value), jax.tree.map(np.asarray, by_statistics), float(by_lambda)


def symmetric(matrices):
    return (matrices + np.swapaxes(matrices, -1, -2)) / 2


def check(statistics, goal, roles, tolerance=1e-9):
    found = heldout(statistics, LOG_LAMBDA, goal, roles)
    by_statistics, by_lambda = found.adjoint()
    value, expected, expected_by_lambda = by_jax(statistics, goal, roles)
    assert found.value == pytest.approx(value, rel=1e-11, abs=1e-11)
    assert by_lambda == pytest.approx(expected_by_lambda, rel=tolerance)
    for name in ("totals", "grams", "energies", "ridge"):
        adjoint, reference = getattr(by_statistics, name), getattr(expected, name)
        if reference is None:
            assert adjoint is None
            continue
        # Only the symmetric part of a derivative by a symmetric matrix is defined.
        reference = reference if name == "totals" else symmetric(reference)
        # By symmetry the derivative by the totals may be zero.
        scale = max(np.abs(reference).max(), np.abs(expected.grams).max())
        assert_allclose(adjoint, reference, rtol=0, atol=tolerance * scale, err_msg=name)
    for name in ("beta", "log_bandwidths"):
        assert (getattr(by_statistics, name) is None) == (getattr(statistics, name) is None)
        assert not np.any(getattr(by_statistics, name) if getattr(statistics, name) is not None else 0)


GOALS = {
    "score of the search": objective(),
    "without centring": objective(center=False),
    "timescale": objective(power=1.0, caution=0.0),
    "cautious": objective(power=0.7, caution=2.5),
    "four modes": objective(n_components=4),
}


@pytest.mark.slow
@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
def test_value_and_adjoint_against_automatic_differentiation(samples, goal):
    parametrisation, theta = make_parametrisation("dictionary", samples)
    check(parametrisation.forward(theta)[0], goal, samples.roles)


@pytest.mark.slow
def test_value_and_adjoint_with_learned_bandwidths(samples):
    parametrisation, theta = make_parametrisation("bandwidths", samples)
    check(parametrisation.forward(theta)[0], objective(), samples.roles)


@pytest.mark.slow
@pytest.mark.parametrize("diffusion", DIFFUSIONS)
def test_value_and_adjoint_for_every_diffusion(diffusion):
    samples = make_samples(DIFFUSIONS[diffusion])
    parametrisation, theta = make_parametrisation("anisotropy", samples)
    check(parametrisation.forward(theta)[0], objective(), samples.roles)


def quarter_turns():
    """Statistics of samples, folds and landmarks that a quarter turn maps to themselves: all modes come in pairs."""
    rng = np.random.default_rng(0)
    turns = [np.linalg.matrix_power([[0, -1], [1, 0]], k) for k in range(4)]
    X, Z = (np.vstack([points @ turn for turn in turns]) for points in rng.standard_normal((2, 40, 2)))
    splits = [
        tuple(np.concatenate([part + 40 * k for k in range(4)]) for part in split)
        for split in make_splits(3, X[:40], None, 2, 0)
    ]
    samples = Samples.of(X, folds=Folds(splits, len(X)))
    kernels = [Gaussian(1.0), Matern(2.5, 2.0)]
    parametrisation = Dictionary(samples, kernels, np.vstack([Z[:3] @ turn for turn in turns]), np.zeros(2))
    return parametrisation.forward(np.array([0.1, -0.2]))[0], samples.roles


@pytest.mark.slow
@pytest.mark.parametrize("caution", [0.0, 1.0])
def test_value_and_adjoint_where_eigenvalues_agree(caution):
    statistics, roles = quarter_turns()
    goal = objective(n_components=2, caution=caution)
    values = heldout(statistics, LOG_LAMBDA, goal, roles).eigenvalues
    assert values[0] == pytest.approx(values[1], rel=1e-10)
    check(statistics, goal, roles)


@pytest.mark.parametrize("case", ["generic", "degenerate"])
def test_adjoint_against_differences(samples, case):
    if case == "generic":
        parametrisation, theta = make_parametrisation("dictionary", samples)
        statistics, roles, goal = parametrisation.forward(theta)[0], samples.roles, objective()
    else:
        (statistics, roles), goal = quarter_turns(), objective(n_components=2)
    adjoint, by_lambda = heldout(statistics, LOG_LAMBDA, goal, roles).adjoint()
    rng = np.random.default_rng(0)
    for name in ("totals", "grams", "energies", "ridge"):
        array = getattr(statistics, name)
        # Relative changes, small where the sums are: the operators stay positive.
        change = rng.standard_normal(array.shape[-1]) * 1e-2
        direction = array * change if name == "totals" else array * (change[:, None] + change)

        def at(t, name=name, array=array, direction=direction):
            return heldout(statistics._replace(**{name: array + t * direction}), LOG_LAMBDA, goal, roles).value

        # By symmetry the derivative by the totals may be zero: rounding of the loss, some 1e-15, divided by the step.
        expected = pytest.approx(slope(at, 1e-3), rel=1e-6, abs=1e-11)
        assert np.vdot(getattr(adjoint, name), direction) == expected, name
    expected = slope(lambda t: heldout(statistics, LOG_LAMBDA + t, goal, roles).value, 1e-3)
    assert by_lambda == pytest.approx(expected, rel=1e-6)


def test_same_result_for_any_number_of_threads(samples, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    parametrisation, theta = make_parametrisation("dictionary", samples)
    statistics, _ = parametrisation.forward(theta)

    def found():
        loss = heldout(statistics, LOG_LAMBDA, objective(), samples.roles)
        return loss.value, *loss.adjoint()[0][1:5]

    several = found()
    with single_thread():
        one = found()
    for first, second in zip(several, one, strict=True):
        np.testing.assert_array_equal(first, second)


def test_loss_is_nan_if_the_samples_do_not_determine_the_modes(samples):
    parametrisation, theta = make_parametrisation("dictionary", samples)
    statistics, _ = parametrisation.forward(theta)
    assert np.isfinite(heldout(statistics, LOG_LAMBDA, objective(), samples.roles).value)
    mean = statistics.totals.sum(axis=0) / statistics.weights.sum()
    constant = statistics.weights[:, None] * mean  # all samples have the same features
    flat = statistics._replace(totals=constant, grams=constant[:, :, None] * mean)
    indefinite = statistics._replace(energies=-statistics.energies)
    for broken in (flat, indefinite):
        loss = heldout(broken, LOG_LAMBDA, objective(), samples.roles)
        assert np.isnan(loss.value)
        assert np.all(np.isnan(loss.adjoint()[0].grams))


def test_same_loss_from_any_start_of_the_solvers():
    X = np.random.default_rng(0).standard_normal((200, 2))
    samples = Samples.of(X, folds=Folds(make_splits(3, X, None, 3, 0), len(X)))
    parametrisation = Anisotropy(samples, make_basis("fourier", Gaussian(3.0), X, 120, random_state=0), bound=2.0)
    problem = Problem(parametrisation, objective(), 1e-4)
    theta = np.array([0.2, -0.1])
    cold = problem.evaluate(theta)
    for away in ([1.0, 1.0], [0.21, -0.1]):
        problem.evaluate(np.array(away))
        warm = problem.evaluate(theta)
        assert warm.value == pytest.approx(cold.value, rel=1e-10)
        assert_allclose(warm.gradient, cold.gradient, rtol=1e-7)
    numeric = gradient(lambda t: problem.evaluate(t).value, theta, step=1e-3)
    assert_allclose(cold.gradient, numeric, rtol=1e-6)


@pytest.mark.parametrize("singular_values", [[1.0, 0.8, 0.3], [1.0, 1.0, 1.0], [0.9, 0.9, 1e-3]])
def test_nearest_rotation(singular_values):
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in range(2))
    M, dM, weight = U @ np.diag(singular_values) @ V, *rng.standard_normal((2, 3, 3))
    assert_allclose(Rotation.nearest(M).matrix, U @ V, atol=1e-12)
    step = 1e-2 * min(singular_values) ** 1.5
    expected = slope(lambda t: np.vdot(weight, Rotation.nearest(M + t * dM).matrix), step)
    assert np.vdot(Rotation.nearest(M).adjoint(weight), dM) == pytest.approx(expected, rel=1e-6)
