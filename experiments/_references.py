"""Functions that the paper compares modes with; for some problems they are not the exact modes."""

from __future__ import annotations

from itertools import count, islice

import numpy as np

from kdmaps.problems import NoisyCircle, OrnsteinUhlenbeck, Problem
from kdmaps.problems.product import hermite_products


def paper_reference(problem: Problem, X: np.ndarray) -> np.ndarray:
    """Evaluate the paper's reference functions; the exact modes if the paper does not define others."""
    if isinstance(problem, OrnsteinUhlenbeck):
        # The first four of x_1, …, x_d, x_1² - 1, …, ordered by degree, without mixed terms. This is not the order by
        # rate: for α = (1, 16) the four slowest modes are all functions of x_1.
        d = problem.dim
        pure = (tuple(m * (i == j) for i in range(d)) for m in count(1) for j in range(d))
        return hermite_products(X * np.sqrt(problem.alpha / problem.diffusion), list(islice(pure, problem.n_modes)))
    if hasattr(problem, "n_slow"):  # MD-like
        return np.tanh(3 * X[:, : problem.n_slow])
    if isinstance(problem, NoisyCircle):
        angle = np.arctan2(X[:, 1], X[:, 0])
        return np.sqrt(2) * np.column_stack([f(k * angle) for k in (1, 2) for f in (np.cos, np.sin)])
    return problem.reference(X, problem.n_modes)
