"""From an unconstrained vector θ to the statistics of the samples, and from their adjoint back to θ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from kdmaps.bases import Basis
from kdmaps.kernels import Kernel, simplex_floor, softmax
from kdmaps.learn.statistics import Samples, Statistics

Pullback = Callable[[Statistics], np.ndarray]


class Parametrisation(ABC):
    """A family of kernels with a vector of parameters.

    Attributes
    ----------
    samples : Samples
    start : ndarray
        θ of the kernel that learning starts from.
    """

    samples: Samples
    start: np.ndarray

    @abstractmethod
    def forward(self, theta: np.ndarray) -> tuple[Statistics, Pullback]:
        """Return the statistics at θ, and the function that turns their adjoint into the derivative by θ."""

    @abstractmethod
    def kernel(self, theta: np.ndarray) -> Kernel:
        """Return the kernel at θ."""

    @abstractmethod
    def basis(self, theta: np.ndarray) -> Basis:
        """Return the basis at θ."""

    @abstractmethod
    def describe(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return what θ means: mixture weights `beta`, bandwidths `sigma`."""


def floored_softmax(u: np.ndarray, floor: float) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """β = (1-τ) softmax(u) + τ/L (eq:softmax), and its pullback."""
    soft = softmax(u)
    return simplex_floor(soft, floor), lambda adjoint: (1 - floor) * soft * (adjoint - soft @ adjoint)
