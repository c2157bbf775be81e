"""The optimiser on functions with known minima, and on functions that are not finite everywhere."""

import jax
import numpy as np
import optax
import pytest

from kdmaps.learn.optimiser import MAX_GRADIENT_NORM, Settings, minimise
from kdmaps.learn.problem import Evaluation


class Toy:
    """A function of θ with the interface of a Problem."""

    def __init__(self, function, gradient, start):
        self.function, self.gradient, self.start = function, gradient, np.array(start)

    def evaluate(self, theta):
        value = self.function(theta)
        return Evaluation(theta, value, {"term": value}, np.ones(1), 2.0, lambda: self.gradient(theta))

    def describe(self, theta):
        return {"sigma": theta}


def rosenbrock():
    return Toy(
        lambda t: float((1 - t[0]) ** 2 + 100 * (t[1] - t[0] ** 2) ** 2),
        lambda t: np.array([-2 * (1 - t[0]) - 400 * t[0] * (t[1] - t[0] ** 2), 200 * (t[1] - t[0] ** 2)]),
        [-1.2, 1.0],
    )


def test_adam_then_lbfgs_finds_the_minimum():
    theta, history = minimise(rosenbrock(), Settings(adam_steps=20, lbfgs_steps=80, tolerance=1e-12))
    np.testing.assert_allclose(theta, 1.0, atol=1e-4)
    assert list(history["phase"][[0, 1, -1]]) == ["start", "adam", "lbfgs"]
    assert history["sigma"].shape == (len(history["loss"]), 2)
    np.testing.assert_array_equal(history["sigma"][np.argmin(history["loss"])], theta)
    moves = np.linalg.norm(np.diff(history["sigma"], axis=0), axis=1)
    lbfgs = history["phase"][1:] == "lbfgs"
    np.testing.assert_allclose(history["step_length"][1:][lbfgs][1:], moves[lbfgs][1:], rtol=1e-9)


@pytest.mark.parametrize(("first", "length"), [(None, 1e-3), (0.5, 0.5)])
def test_length_of_the_first_step_of_lbfgs(first, length):
    """On a slope of 1e-3 the gradient is a poor guess of how far to go."""
    tried = []
    flat = Toy(
        lambda t: tried.append(t) or -1e-3 * float(t @ [0.6, 0.8]), lambda t: -1e-3 * np.array([0.6, 0.8]), [0, 0]
    )
    minimise(flat, Settings(adam_steps=0, lbfgs_steps=1, first_step=first))
    assert np.linalg.norm(tried[1]) == pytest.approx(length, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])  # with and without clipping
def test_adam_takes_the_steps_of_optax(scale):
    """On a valley with a saddle: curvature of either sign."""

    def gradient(t):
        return scale * np.array([t[0] ** 3 - t[0], 9 * t[1] + t[2], np.sin(t[2]) + t[1]])

    problem = Toy(lambda t: 1.0, gradient, [0.4, -0.7, 1.1])
    _, history = minimise(problem, Settings(adam_steps=25, lbfgs_steps=0, patience=100))
    with jax.enable_x64(True):
        oracle = optax.chain(optax.clip_by_global_norm(MAX_GRADIENT_NORM), optax.adam(0.05))
        theta, state, update = problem.start, oracle.init(problem.start), jax.jit(oracle.update)
        for found in history["sigma"]:
            np.testing.assert_allclose(found, theta, rtol=1e-9)
            move, state = update(gradient(theta), state)
            theta = theta + np.asarray(move)


def walled():
    """A parabola around 1 that is not finite beyond 1.5."""
    return Toy(lambda t: float((t[0] - 1) ** 2) if t[0] < 1.5 else np.nan, lambda t: 2 * (t - 1), [0.0])


@pytest.mark.parametrize(
    "settings", [Settings(40, 0, learning_rate=4.0), Settings(0, 30, first_step=10.0)], ids=["adam", "lbfgs"]
)
def test_steps_that_are_not_finite_are_rejected(settings):
    _, history = minimise(walled(), settings)
    assert np.all(np.isfinite(history["loss"]))
    assert history["best_loss"][-1] < 0.05
    if settings.adam_steps:
        assert list(history["accepted"][1:4]) == [
            False,
            False,
            True,
        ]  # steps of 4 and 2 end beyond 1.5, one of 1 does not
        assert history["step_length"][3] == pytest.approx(1.0, rel=1e-6)


def test_lbfgs_stays_in_range():
    """exp(θ) overflows at 710; the objective falls without end."""
    theta, _ = minimise(Toy(lambda t: -float(np.exp(t[0])), lambda t: -np.exp(t), [0.5]), Settings(0, 50))
    assert theta[0] == 20.5


def test_the_best_point_is_kept():
    problem = Toy(lambda t: float(t[0] ** 2), lambda t: 2 * t, [0.3])
    theta, history = minimise(problem, Settings(30, 0, learning_rate=0.7, patience=100))
    assert history["loss"][-1] > history["loss"].min()  # steps this long do not settle
    assert theta[0] ** 2 == history["loss"].min() == history["best_loss"][-1]


def test_stops_when_nothing_improves():
    _, history = minimise(Toy(lambda t: 1.0, lambda t: np.ones(1), [0.0]), Settings(50, 50, patience=4))
    assert list(history["phase"]) == ["start"] + ["adam"] * 4
    _, history = minimise(rosenbrock(), Settings(0, 50, tolerance=0.9, patience=2))  # less than a tenth is left
    assert len(history["loss"]) < 20


def test_a_start_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="not finite at the start"):
        minimise(Toy(lambda t: np.nan, lambda t: t, [0.0]))


def test_a_start_of_zero_gradient_stays():
    theta, history = minimise(Toy(lambda t: float(t @ t), lambda t: 2 * t, [0.0, 0.0]))
    np.testing.assert_array_equal(theta, 0)
    assert list(history["phase"]) == ["start"]
