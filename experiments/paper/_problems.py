"""Problems of the paper by name: those of `kdmaps.problems`, and the MD-like benchmark with slow mixtures."""

from __future__ import annotations

import re

import numpy as np

from kdmaps import problems
from kdmaps.problems import OrnsteinUhlenbeck, Problem
from kdmaps.problems.langevin import Langevin1D
from kdmaps.problems.product import Product

#: Standard deviation of the two Gaussians at ±1. From 0.4 to 0.5, the medians agree with the printed bandwidths.
MIXTURE_STD = 0.5
FAST_RATE = 25.0  # variance 0.04


class SlowMixtures(Product):
    """Two slow coordinates from Gaussians at ±1 with equal weights, and fast Gaussian coordinates.

    The paper says that slow coordinates are "drawn from mixtures of V(x) = (x² - 1)²/4 double-well potentials".
    Samples of e^{-V} have other medians than the printed bandwidths imply; those of such a mixture have these.
    """

    name = "slow-mixtures"
    n_slow = 2
    n_modes = 2

    def __init__(self, n_fast: int, std: float = MIXTURE_STD) -> None:
        well = mixture_well(std)
        super().__init__([well] * self.n_slow + [OrnsteinUhlenbeck([FAST_RATE] * n_fast)])


def mixture_well(std: float) -> Langevin1D:
    """Return the dynamics whose stationary law is the mixture: V = x²/(2s²) - log cosh(x/s²), up to a constant."""
    variance = std**2
    return Langevin1D(
        lambda x: x**2 / (2 * variance) - np.logaddexp(x / variance, -x / variance),
        lambda x: (x - np.tanh(x / variance)) / variance,
        (-1 - 9 * std, 1 + 9 * std),
    )


def load(name: str) -> Problem:
    """Return the problem with a name of `kdmaps.problems`, or "mixtures-<d>" with d coordinates, two of them slow."""
    if match := re.fullmatch(r"mixtures-(\d+)", name):
        problem = SlowMixtures(int(match[1]) - SlowMixtures.n_slow)
        problem.name = name
        return problem
    return problems.load(name)
