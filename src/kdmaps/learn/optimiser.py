"""Adam, then L-BFGS: minimise an objective over the parameters θ of a kernel."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

from kdmaps.learn.problem import Evaluation, Problem
from kdmaps.utils.progress import track

#: Decay of Adam's running means of the gradient and of its square, and the constant that keeps their quotient finite.
MEAN_DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8
#: Adam's gradients are clipped to this norm.
MAX_GRADIENT_NORM = 10.0
#: L-BFGS moves no component of θ further than this: a factor exp(20) exceeds any data, and nothing overflows.
RANGE = 20.0


@dataclass(frozen=True)
class Settings:
    """Settings of `minimise`."""

    adam_steps: int = 100  #: Maximum number of steps of Adam.
    lbfgs_steps: int = 30  #: Maximum number of steps of L-BFGS.
    learning_rate: float = 0.05  #: Of Adam, in units of θ.
    first_step: float | None = None  #: Length of the first step of L-BFGS; None is the norm of the gradient, at most 1.
    #: A phase ends after `patience` steps without a relative improvement of the best J by `tolerance`.
    tolerance: float = 1e-6
    patience: int = 10


#: Adds a step to the history: its phase, the point after it, whether it was accepted, its length and its number of
#: evaluations. Returns whether the phase ends.
Record = Callable[..., bool]


def minimise(
    problem: Problem, settings: Settings | None = None, progress: bool = False, start: Evaluation | None = None
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the best θ and the history, a dict of columns with one row per step, the start included.

    Deterministic. L-BFGS starts from the best point of Adam; points whose objective is not finite are rejected.
    """
    settings = Settings() if settings is None else settings
    best = problem.evaluate(problem.start) if start is None else start
    if not np.isfinite(best.value):
        raise ValueError(
            "The objective is not finite at the start: the samples do not determine n_components modes, or L+λR is "
            "not positive definite. Use narrower kernels, fewer modes or features, or more regularization."
        )
    stale, total, rows = 0, settings.adam_steps + settings.lbfgs_steps, list[dict[str, Any]]()

    def record(phase: str, here: Evaluation, accepted: bool = True, length: float = 0.0, evaluations: int = 1) -> bool:
        nonlocal best, stale
        stale = 0 if best.value - here.value > settings.tolerance * max(1.0, abs(best.value)) else stale + 1
        best = here if here.value < best.value else best
        rows.append(
            {
                "phase": phase,
                "accepted": accepted,
                "evaluations": evaluations,
                "step_length": length,
                "loss": here.value,
                "best_loss": best.value,
                **here.terms,
                "gradient_norm": float(np.linalg.norm(here.gradient)),
                "gap": here.gap,
                **problem.describe(here.theta),
            }
        )
        next(ticks, None)
        return stale >= settings.patience

    with closing(track(range(total + 1), total, lambda: f"learning {best.value:.5g}", progress)) as ticks:
        record("start", best)
        for phase in (_adam, _lbfgs):
            stale = 0
            phase(problem, best, settings, record)
    return best.theta, {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _adam(problem: Problem, here: Evaluation, settings: Settings, record: Record) -> None:
    """Kingma and Ba, "Adam: a method for stochastic optimization" (2015); a rejected step halves the next one."""
    mean, square, count, scale = np.zeros_like(here.theta), np.zeros_like(here.theta), 0, 1.0
    for _ in range(settings.adam_steps):
        norm = float(np.linalg.norm(here.gradient))
        if not 0 < norm < np.inf:
            return
        gradient = here.gradient * min(1.0, MAX_GRADIENT_NORM / norm)
        means = (
            (1 - MEAN_DECAY) * gradient + MEAN_DECAY * mean,
            (1 - SQUARE_DECAY) * gradient**2 + SQUARE_DECAY * square,
        )
        first, second = means[0] / (1 - MEAN_DECAY ** (count + 1)), means[1] / (1 - SQUARE_DECAY ** (count + 1))
        move = -scale * settings.learning_rate * first / (np.sqrt(second) + EPSILON)
        trial = problem.evaluate(here.theta + move)
        accepted = _is_finite(trial)
        if accepted:
            here, (mean, square), count, scale = trial, means, count + 1, min(1.0, 2 * scale)
        else:
            scale /= 2
        if record("adam", here, accepted, float(np.linalg.norm(move)) if accepted else 0.0):
            return


def _lbfgs(problem: Problem, start: Evaluation, settings: Settings, record: Record) -> None:
    """Minimise by L-BFGS-B of SciPy."""
    norm = float(np.linalg.norm(start.gradient))
    if settings.lbfgs_steps == 0 or not 0 < norm < np.inf:
        return
    # The first step is the gradient of the scaled objective; all others do not depend on the scale.
    scale = (min(1.0, norm) if settings.first_step is None else settings.first_step) / norm
    here, trial, tried = start, start, 0

    def scaled(theta: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal trial, tried
        trial = start if np.array_equal(theta, start.theta) else problem.evaluate(theta.copy())
        tried += trial is not start
        if not _is_finite(trial):  # a value above all that are accepted, so that the line search turns back
            return scale * (start.value + abs(start.value)), np.zeros_like(theta)
        return scale * trial.value, scale * trial.gradient

    def callback(theta: np.ndarray) -> None:
        nonlocal here, tried
        length = float(np.linalg.norm(theta - here.theta))
        here, evaluations, tried = trial, tried, 0
        if record("lbfgs", here, True, length, evaluations):
            raise StopIteration

    optimize.minimize(
        scaled,
        start.theta,
        jac=True,
        method="L-BFGS-B",
        bounds=optimize.Bounds(start.theta - RANGE, start.theta + RANGE),
        callback=callback,
        options={"maxiter": settings.lbfgs_steps, "ftol": 0.0, "gtol": 0.0},
    )


def _is_finite(evaluation: Evaluation) -> bool:
    return bool(np.isfinite(evaluation.value) and np.all(np.isfinite(evaluation.gradient)))
