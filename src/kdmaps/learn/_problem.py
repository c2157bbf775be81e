"""An objective over a parametrisation: a function of θ with its gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np

from kdmaps.learn._objective import Objective
from kdmaps.learn._parametrisation import Parametrisation
from kdmaps.learn._terms import value_and_adjoint

#: The statistics that a term needs, and how to have them.
NEEDS = {
    "entropy": ("beta", "the weights of a mixture: use basis='landmarks'"),
    "gini": ("beta", "the weights of a mixture: use basis='landmarks'"),
    "anchor": ("log_bandwidths", "bandwidths that are learned: use learn_bandwidths=True, or basis='fourier'"),
    "pde": ("residual", "a generator: give generator, with basis='landmarks' and learn_bandwidths=False"),
}


@dataclass(frozen=True)
class Evaluation:
    """J at θ; the gradient, which costs another pass over the samples, is computed when it is first asked for.

    Attributes
    ----------
    value : float
        J.
    terms : dict of str to float
    eigenvalues : ndarray of shape (r,)
        μ of all samples.
    gap : float
        μ_r/μ_{r+1}.
    """

    value: float
    terms: dict[str, float]
    eigenvalues: np.ndarray
    gap: float
    pullback: Callable[[], np.ndarray]

    @cached_property
    def gradient(self) -> np.ndarray:
        """dJ/dθ."""
        return self.pullback()


class Problem:
    """J(θ) for θ = (parameters of the kernel, log λ/λ_start if λ is learned).

    Parameters
    ----------
    parametrisation : Parametrisation
    objective : Objective
    regularization : float
        λ at the start.
    learn_regularization : bool
    """

    def __init__(
        self,
        parametrisation: Parametrisation,
        objective: Objective,
        regularization: float,
        learn_regularization: bool = False,
    ):
        self.parametrisation, self.objective = parametrisation, objective
        self.learn_regularization, self._log_lambda = learn_regularization, float(np.log(regularization))
        self.roles = tuple(tuple(int(role) for role in row) for row in parametrisation.samples.roles)
        self.start = np.append(parametrisation.start, 0.0) if learn_regularization else parametrisation.start
        if "heldout" in objective.terms and not self.roles[0]:
            raise ValueError("The term 'heldout' needs folds.")

    def split(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """The parameters of the kernel, and log λ."""
        return (theta[:-1], self._log_lambda + theta[-1]) if self.learn_regularization else (theta, self._log_lambda)

    def regularization(self, theta: np.ndarray) -> float:
        """λ at θ."""
        return float(np.exp(self.split(theta)[1]))

    def describe(self, theta: np.ndarray) -> dict[str, np.ndarray | float]:
        """What θ means: `beta`, `sigma`, `regularization`."""
        return {**self.parametrisation.describe(self.split(theta)[0]), "regularization": self.regularization(theta)}

    def evaluate(self, theta: np.ndarray) -> Evaluation:
        """J and, on demand, its gradient at θ."""
        parameters, log_lambda = self.split(np.asarray(theta, dtype=np.float64))
        statistics, pullback = self.parametrisation.forward(parameters)
        self._check_terms(statistics)
        with jax.enable_x64(True):
            (value, report), adjoint = value_and_adjoint(
                statistics, np.float64(log_lambda), self.objective.weights, self.objective, self.roles
            )
            report, (by_statistics, by_lambda) = jax.tree.map(np.asarray, (report, adjoint))

        def gradient() -> np.ndarray:
            kernel_part = pullback(by_statistics)
            return np.append(kernel_part, by_lambda) if self.learn_regularization else kernel_part

        terms = {name: float(term) for name, term in report["terms"].items()}
        return Evaluation(float(value), terms, report["eigenvalues"], float(report["gap"]), gradient)

    def _check_terms(self, statistics) -> None:
        for term, (name, remedy) in NEEDS.items():
            if term in self.objective.terms and getattr(statistics, name) is None:
                raise ValueError(f"The term {term!r} of the objective needs {remedy}.")
