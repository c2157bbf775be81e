"""The optimiser on functions with known answers, and on functions that misbehave."""

import jax
import numpy as np
import optax
import pytest

from kdmaps.learn._directions import LBFGS, MEMORY, Adam
from kdmaps.learn.optimiser import Optimiser, Settings, minimise
from kdmaps.learn.problem import Evaluation


class Toy:
    """A function of θ in the dress of a Problem."""

    def __init__(self, function, gradient, start):
        self.function, self.gradient, self.start = function, gradient, np.array(start)
        self.evaluations = 0

    def evaluate(self, theta):
        self.evaluations += 1
        value = self.function(theta)
        return Evaluation(value, {"term": value}, np.ones(1), 2.0, lambda: self.gradient(theta))

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


def test_the_first_step_is_as_long_as_asked_for():
    """On a slope of 1e-3 the gradient says little about how far to go; a step that is too long is halved."""
    flat = Toy(lambda t: -1e-3 * float(t @ [0.6, 0.8]), lambda t: -1e-3 * np.array([0.6, 0.8]), [0.0, 0.0])
    for first, length in ((None, 1e-3), (0.5, 0.5)):
        _, history = minimise(flat, Settings(adam_steps=0, lbfgs_steps=1, first_step=first))
        assert history["step_length"][1] == pytest.approx(length, rel=1e-12)
    steep = Toy(lambda t: float(t @ t), lambda t: 2 * t, [0.1, 0.0])
    _, history = minimise(steep, Settings(adam_steps=0, lbfgs_steps=1, first_step=0.5))
    assert history["step_length"][1] == pytest.approx(0.125, rel=1e-12)  # 0.5 and 0.25 overshoot the minimum


ORACLES = {"adam": (Adam(), optax.scale_by_adam()), "lbfgs": (LBFGS(), optax.scale_by_lbfgs())}


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])  # the first direction of L-BFGS is at most 1 long
@pytest.mark.parametrize("name", ORACLES)
def test_directions_are_those_of_optax(name, scale):
    """On a valley with a saddle: curvature of either sign, and more steps than L-BFGS remembers."""
    memory, oracle = ORACLES[name]
    theta = np.array([0.4, -0.7, 1.1])
    with jax.enable_x64(True):
        state, update = oracle.init(theta), jax.jit(oracle.update)
        for step in range(2 * MEMORY + 3):
            gradient = scale * np.array(
                [theta[0] ** 3 - theta[0], 9 * theta[1] + theta[2], np.sin(theta[2]) + theta[1]]
            )
            direction, memory = memory.update(gradient, theta)
            ascent, state = update(gradient, state, theta)
            np.testing.assert_allclose(direction, -np.asarray(ascent), rtol=1e-9, err_msg=str(step))
            if step != 4:  # a step of no length: the gradient and θ stay
                theta = theta + 0.3 * direction / max(1, np.linalg.norm(direction))


def walled():
    """A bowl around 1 that is not finite beyond 1.5: long steps fall over the edge."""
    return Toy(lambda t: float((t[0] - 1) ** 2) if t[0] < 1.5 else np.nan, lambda t: 2 * (t - 1), [0.0])


@pytest.mark.parametrize("settings", [Settings(40, 0, learning_rate=4.0), Settings(0, 30, max_step=10.0)])
def test_steps_that_are_not_finite_are_rejected_and_halved(settings):
    problem = walled()
    optimiser = Optimiser(problem, settings)
    state = optimiser.init()
    scales = []
    while state.phase != "done":
        state, _ = optimiser.step(state)
        scales.append(state.scale)
        assert np.isfinite(state.evaluation.value)
    assert state.best_value < 0.05
    if settings.adam_steps:
        assert scales[:2] == [0.5, 0.25]  # steps of 4 and 2 from 0 fall over the edge, one of 1 does not


def test_the_best_point_is_kept():
    problem = Toy(lambda t: float(t[0] ** 2), lambda t: 2 * t, [0.3])
    theta, history = minimise(problem, Settings(30, 0, learning_rate=0.7, patience=100))
    assert history["loss"][-1] > history["loss"].min()  # steps this long do not settle
    assert theta[0] ** 2 == history["loss"].min() == history["best_loss"][-1]


def test_it_stops_early_when_nothing_improves():
    _, history = minimise(Toy(lambda t: 1.0, lambda t: np.ones(1), [0.0]), Settings(50, 50, patience=4))
    assert list(history["phase"]) == ["start"] + ["adam"] * 4 + ["lbfgs"]


def test_a_start_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="regularization"):
        Optimiser(Toy(lambda t: np.nan, lambda t: t, [0.0])).init()
