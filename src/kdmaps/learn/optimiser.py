"""Adam, then L-BFGS: `init(problem) → state`, `step(state) → (state, info)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kdmaps.learn._directions import LBFGS, Adam
from kdmaps.learn.problem import Evaluation, Problem
from kdmaps.utils.progress import track

#: Decrease of J that an L-BFGS step must reach, as a fraction of what the slope promises (Armijo).
SUFFICIENT_DECREASE = 1e-4
#: A step is halved at most this often before the optimiser gives up.
MAX_HALVINGS = 20
#: What remembers earlier steps in each phase.
MEMORIES: dict[str, Callable[[], Adam | LBFGS]] = {"adam": Adam, "lbfgs": LBFGS}


@dataclass(frozen=True)
class Settings:
    """How to minimise.

    Attributes
    ----------
    adam_steps, lbfgs_steps : int
        Most steps of each phase.
    learning_rate : float
        Of Adam, in units of θ.
    max_gradient_norm : float
        Adam's gradients are clipped to this norm.
    max_step : float
        L-BFGS moves θ by at most this much, in norm, in one step.
    first_step : float, optional
        How far the first step of L-BFGS tries to go; by default as far as the gradient is long, at most 1.
    tolerance, patience : float, int
        A phase ends after `patience` steps without a relative improvement of the best J by `tolerance`.
    """

    adam_steps: int = 100
    lbfgs_steps: int = 30
    learning_rate: float = 0.05
    max_gradient_norm: float = 10.0
    max_step: float = 1.0
    first_step: float | None = None
    tolerance: float = 1e-6
    patience: int = 10


class OptimiserState(NamedTuple):
    """Where the optimiser is.

    Attributes
    ----------
    theta, evaluation : ndarray, Evaluation
        The current point and J there.
    best_theta, best_value : ndarray, float
        The best point so far.
    phase : {"adam", "lbfgs", "done"}
    memory : Adam or LBFGS, optional
        What the phase remembers of earlier steps.
    scale : float
        Factor on the next step, below 1 after a rejected one.
    steps, stale : int
        Steps of this phase, and how many of the last ones did not improve the best J.
    """

    theta: np.ndarray
    evaluation: Evaluation
    best_theta: np.ndarray
    best_value: float
    phase: str
    memory: Adam | LBFGS | None
    scale: float
    steps: int
    stale: int


class StepInfo(NamedTuple):
    """What a step did: its phase, whether its point was accepted, the length of its move and evaluations of J."""

    phase: str
    accepted: bool
    length: float
    evaluations: int


class Optimiser:
    """Minimise a Problem. Deterministic: the same problem takes the same path.

    Steps of L-BFGS are halved until J decreases enough, which also rejects values that are not finite.
    """

    problem: Problem
    settings: Settings

    def __init__(self, problem: Problem, settings: Settings | None = None):
        self.problem, self.settings = problem, Settings() if settings is None else settings

    def init(self, theta: np.ndarray | None = None) -> OptimiserState:
        """Return the state at θ, by default the start of the problem."""
        theta = np.array(self.problem.start if theta is None else theta, dtype=np.float64)
        evaluation = self.problem.evaluate(theta)
        if not np.isfinite(evaluation.value):
            raise ValueError(
                "The objective is not finite at the start: the samples do not determine n_components modes, or L+λR is "
                "not positive definite. Use narrower kernels, fewer modes or features, or more regularization."
            )
        state = OptimiserState(theta, evaluation, theta, evaluation.value, "adam", None, 1.0, 0, 0)
        return self._enter("adam" if self.settings.adam_steps > 0 else "lbfgs", state)

    def _enter(self, phase: str, state: OptimiserState) -> OptimiserState:
        if phase == "lbfgs" and self.settings.lbfgs_steps == 0:
            phase = "done"
        if phase == "done":
            return state._replace(phase=phase)
        if not np.array_equal(state.theta, state.best_theta):  # L-BFGS refines the best point that Adam found
            state = state._replace(theta=state.best_theta, evaluation=self.problem.evaluate(state.best_theta))
        return state._replace(phase=phase, memory=MEMORIES[phase](), scale=1.0, steps=0, stale=0)

    def step(self, state: OptimiserState) -> tuple[OptimiserState, StepInfo]:
        """One accepted step, or one rejected step after which the next is half as long."""
        phase, gradient = state.phase, state.evaluation.gradient
        if not np.all(np.isfinite(gradient)) or np.linalg.norm(gradient) == 0:
            return self._enter(self._after(phase), state), StepInfo(phase, False, 0.0, 0)
        norm = float(np.linalg.norm(gradient))
        clipped = gradient * min(1.0, self.settings.max_gradient_norm / norm) if phase == "adam" else gradient
        assert state.memory is not None
        direction, memory = state.memory.update(clipped, state.theta)
        moved, info = (self._adam if phase == "adam" else self._lbfgs)(state, direction)
        # A rejected point teaches nothing.
        moved = moved._replace(memory=memory if info.accepted else state.memory, steps=state.steps + 1)
        return self._progressed(state, moved), info

    def _adam(self, state: OptimiserState, direction: np.ndarray) -> tuple[OptimiserState, StepInfo]:
        move = state.scale * self.settings.learning_rate * direction
        trial = self.problem.evaluate(state.theta + move)
        if not np.isfinite(trial.value) or not np.all(np.isfinite(trial.gradient)):
            return state._replace(scale=state.scale / 2), StepInfo("adam", False, 0.0, 1)
        moved = state._replace(theta=state.theta + move, evaluation=trial, scale=min(1.0, 2 * state.scale))
        return moved, StepInfo("adam", True, float(np.linalg.norm(move)), 1)

    def _lbfgs(self, state: OptimiserState, direction: np.ndarray) -> tuple[OptimiserState, StepInfo]:
        gradient, first = state.evaluation.gradient, self.settings.first_step
        if first is not None and state.steps == 0:
            direction = direction * (first / np.linalg.norm(direction))
        slope = float(gradient @ direction)
        if not slope < 0 or not np.all(np.isfinite(direction)):  # curvature misled the memory: start it again
            direction, slope = -gradient, -float(gradient @ gradient)
        shorten = min(1.0, self.settings.max_step / float(np.linalg.norm(direction)))
        for halving in range(MAX_HALVINGS):
            scale = shorten * 0.5**halving
            trial = self.problem.evaluate(state.theta + scale * direction)
            enough = trial.value <= state.evaluation.value + SUFFICIENT_DECREASE * scale * slope
            if enough and np.all(np.isfinite(trial.gradient)):
                length = scale * float(np.linalg.norm(direction))
                moved = state._replace(theta=state.theta + scale * direction, evaluation=trial)
                return moved, StepInfo("lbfgs", True, length, halving + 1)
        return state._replace(phase="done"), StepInfo("lbfgs", False, 0.0, MAX_HALVINGS)

    def _progressed(self, before: OptimiserState, state: OptimiserState) -> OptimiserState:
        """Keep the best point; go on to the next phase when this one is exhausted."""
        settings, value = self.settings, state.evaluation.value
        improved = before.best_value - value > settings.tolerance * max(1.0, abs(before.best_value))
        if value < before.best_value:
            state = state._replace(best_theta=state.theta, best_value=value)
        state = state._replace(stale=0 if improved else before.stale + 1)
        limit = settings.adam_steps if before.phase == "adam" else settings.lbfgs_steps
        if state.phase != "done" and (state.steps >= limit or state.stale >= settings.patience):
            return self._enter(self._after(before.phase), state)
        return state

    @staticmethod
    def _after(phase: str) -> str:
        return "lbfgs" if phase == "adam" else "done"


def minimise(
    problem: Problem, settings: Settings | None = None, progress: bool = False, start: np.ndarray | None = None
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the best θ found, and the history: one row per step (the start included), as a dict of columns."""
    optimiser = Optimiser(problem, settings)
    state = optimiser.init(start)
    rows = [_row(problem, state, StepInfo("start", True, 0.0, 1))]

    def steps() -> Iterator[None]:
        nonlocal state
        while state.phase != "done":
            state, info = optimiser.step(state)
            rows.append(_row(problem, state, info))
            yield

    total = optimiser.settings.adam_steps + optimiser.settings.lbfgs_steps
    for _ in track(steps(), total, lambda: f"learning {state.best_value:.5g}", progress):
        pass
    return state.best_theta, {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _row(problem: Problem, state: OptimiserState, info: StepInfo) -> dict[str, Any]:
    evaluation = state.evaluation
    return {
        "phase": info.phase,
        "accepted": info.accepted,
        "evaluations": info.evaluations,
        "step_length": info.length,
        "loss": evaluation.value,
        "best_loss": state.best_value,
        **evaluation.terms,
        "gradient_norm": float(np.linalg.norm(evaluation.gradient)),
        "gap": evaluation.gap,
        **problem.describe(state.theta),
    }
