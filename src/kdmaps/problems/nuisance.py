"""Fast Gaussian coordinates beside any problem, which its slow modes do not depend on."""

from __future__ import annotations

import numpy as np
from scipy.stats import ortho_group

from kdmaps.problems.base import Diffusion, Problem, check_count, check_positive
from kdmaps.problems.ornstein_uhlenbeck import OrnsteinUhlenbeck
from kdmaps.problems.product import Independent, Product

DEFAULT_STD = 0.25


def nuisance(problem: Problem, k: int, std: float = DEFAULT_STD, rotation: int | None = None) -> Problem:
    """Add `k` independent Gaussian coordinates N(0, std²) to a problem.

    Each is an Ornstein–Uhlenbeck coordinate of rate D/std², with the diffusion constant D of the problem. Modes are
    products of modes of the problem and Hermite polynomials of the new coordinates, and their rates add; those slower
    than D/std² are the modes of the problem itself.

    Parameters
    ----------
    problem : Problem
        The problem, whose coordinates come first.
    k : int
        Number of Gaussian coordinates.
    std : float
        Their standard deviation.
    rotation : int, optional
        If given, the seed of a random orthogonal matrix by which all coordinates are rotated.

    Returns
    -------
    Problem
        It has the `n_modes` of `problem`, and a drift if `problem` has one.

    Examples
    --------
    >>> import kdmaps
    >>> base = kdmaps.problems.load("triplewell2d")
    >>> noisy = kdmaps.problems.nuisance(base, 48, 0.25, rotation=0)
    >>> noisy.sample(100, random_state=0).shape
    (100, 50)
    >>> bool((noisy.rates(4) == base.rates(4)).all())
    True
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a problem such as kdmaps.problems.load('dw1d'), got {problem!r}.")
    rate = problem.diffusion / check_positive(std, "std") ** 2
    noise = OrnsteinUhlenbeck(np.full(check_count(k, "k"), rate), problem.diffusion)
    matrix = None if rotation is None else ortho_group.rvs(problem.dim + k, random_state=rotation)
    noisy: Problem
    if isinstance(problem, Diffusion):
        noisy = Product([problem, noise], matrix)
    else:
        noisy = Independent([problem, noise], matrix)
    noisy.n_modes = problem.n_modes
    noisy.cluster_tolerance = problem.cluster_tolerance
    noisy.name = f"{problem.name}+{k}x{std:g}"
    return noisy
