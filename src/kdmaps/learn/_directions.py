"""Descent directions of Adam and of L-BFGS: `update(gradient, theta) → (direction, memory)`.

A memory is never changed in place, so that a step that is rejected leaves no trace.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Decay of Adam's running means of the gradient and of its square, and what keeps the quotient finite.
MEAN_DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8
#: Pairs of differences that L-BFGS remembers.
MEMORY = 10


class Adam(NamedTuple):
    """-m/(√v + ε) for running means m of the gradient and v of its square, corrected for their start at 0.

    Kingma and Ba, "Adam: a method for stochastic optimization" (2015), without the learning rate.
    """

    steps: int = 0
    mean: np.ndarray | float = 0.0
    square: np.ndarray | float = 0.0

    def update(self, gradient: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, Adam]:
        """Return the direction at θ, and the memory after it."""
        steps = self.steps + 1
        mean = (1 - MEAN_DECAY) * gradient + MEAN_DECAY * self.mean
        square = (1 - SQUARE_DECAY) * gradient**2 + SQUARE_DECAY * self.square
        corrected = mean / (1 - MEAN_DECAY**steps), square / (1 - SQUARE_DECAY**steps)
        return -corrected[0] / (np.sqrt(corrected[1]) + EPSILON), Adam(steps, mean, square)


class LBFGS(NamedTuple):
    """-Hg for the inverse Hessian H that the last differences s of θ and y of the gradient g suggest.

    Nocedal and Wright, "Numerical Optimization", algorithm 7.4: H starts from γ = s·y/y·y times the identity, with the
    latest pair. The first direction, without any pair, is the gradient, cut to the length 1.
    """

    theta: np.ndarray | None = None
    gradient: np.ndarray | None = None
    pairs: tuple[tuple[np.ndarray, np.ndarray], ...] = ()

    def update(self, gradient: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, LBFGS]:
        """Return the direction at θ, and the memory after it."""
        if self.theta is None or self.gradient is None:
            scale = min(1.0, 1.0 / float(np.linalg.norm(gradient)))
            return -scale * gradient, LBFGS(theta, gradient)
        step, change = theta - self.theta, gradient - self.gradient
        pairs = (*self.pairs, (step, change))[-MEMORY:]
        curvature = float(change @ change)
        scale = float(step @ change) / curvature if curvature > 0 else 1.0
        return -_times_inverse_hessian(gradient, pairs, scale), LBFGS(theta, gradient, pairs)


def _times_inverse_hessian(
    vector: np.ndarray, pairs: tuple[tuple[np.ndarray, np.ndarray], ...], scale: float
) -> np.ndarray:
    """Hv by two loops over the pairs, the latest first and then the earliest first."""
    products = [float(step @ change) for step, change in pairs]
    weights = [1 / product if product != 0 else 0.0 for product in products]
    alphas = []
    for (step, change), weight in zip(reversed(pairs), reversed(weights), strict=True):
        alphas.append(weight * float(step @ vector))
        vector = vector - alphas[-1] * change
    vector = scale * vector
    for (step, change), weight, alpha in zip(pairs, weights, reversed(alphas), strict=True):
        vector = vector + (alpha - weight * float(change @ vector)) * step
    return vector
