"""An objective over a parametrisation: a function of θ with its gradient."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial, reduce

import numpy as np

from kdmaps.learn._heldout import Memory, heldout
from kdmaps.learn.objectives import Loss, Objective
from kdmaps.learn.parametrisations import Parametrisation
from kdmaps.learn.statistics import Statistics, map_arrays
from kdmaps.utils.optional import optional

#: The statistics that a term needs, and how to obtain them.
NEEDS = {
    "entropy": ("beta", "the weights of a mixture: use basis='landmarks'"),
    "gini": ("beta", "the weights of a mixture: use basis='landmarks'"),
    "anchor": ("log_bandwidths", "learned bandwidths: use learn_bandwidths=True, or basis='fourier'"),
    "pde": ("residual", "a generator: give generator, with basis='landmarks' and learn_bandwidths=False"),
}


@dataclass(frozen=True)
class Evaluation:
    """J at θ; the gradient, which costs another pass over the samples, is computed on first use."""

    theta: np.ndarray  #: θ.
    value: float  #: J.
    terms: dict[str, float]
    eigenvalues: np.ndarray  #: (r,): μ of all samples.
    gap: float  #: μ_r/μ_{r+1}.
    pullback: Callable[[], np.ndarray]  #: Returns dJ/dθ.

    @cached_property
    def gradient(self) -> np.ndarray:
        """dJ/dθ."""
        return self.pullback()


class Problem:
    """J(θ) for θ = (parameters of the kernel, log λ/λ_start if λ is learned); `regularization` is λ_start."""

    def __init__(
        self,
        parametrisation: Parametrisation,
        objective: Objective,
        regularization: float,
        learn_regularization: bool = False,
    ):
        self.parametrisation: Parametrisation = parametrisation
        self.objective: Objective = objective
        self.learn_regularization: bool = learn_regularization
        self._log_lambda = float(np.log(regularization))
        self.start: np.ndarray = (
            np.append(parametrisation.start, 0.0) if learn_regularization else parametrisation.start
        )
        if "heldout" in objective.terms and not parametrisation.samples.roles.size:
            raise ValueError("The term 'heldout' needs folds.")
        self._variational, self._memory = objective.without("heldout"), Memory()
        if self._variational.terms:
            optional("jax", "learn", "The variational objectives of the paper")

    def split(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the parameters of the kernel, and log λ."""
        return (theta[:-1], self._log_lambda + theta[-1]) if self.learn_regularization else (theta, self._log_lambda)

    def regularization(self, theta: np.ndarray) -> float:
        """λ at θ."""
        return float(np.exp(self.split(theta)[1]))

    def describe(self, theta: np.ndarray) -> dict[str, np.ndarray | float]:
        """Return `beta` and `sigma`, where they are learned, and `regularization` at θ."""
        return {**self.parametrisation.describe(self.split(theta)[0]), "regularization": self.regularization(theta)}

    def evaluate(self, theta: np.ndarray) -> Evaluation:
        """Return J at θ."""
        theta = np.asarray(theta, dtype=np.float64)
        parameters, log_lambda = self.split(theta)
        statistics, pullback = self.parametrisation.forward(parameters)
        for term, (name, remedy) in NEEDS.items():
            if term in self.objective.terms and getattr(statistics, name) is None:
                raise ValueError(f"The term {term!r} of the objective needs {remedy}.")
        parts = self._losses(statistics, log_lambda)

        def gradient() -> np.ndarray:
            # Adjoints are added before the pullback, which is a pass over the samples.
            scaled = [
                loss.adjoint() if weight == 1 else map_arrays(partial(np.multiply, weight), loss.adjoint())
                for loss, weight in parts
            ]
            by_statistics, by_lambda = map_arrays(lambda *arrays: reduce(np.add, arrays), *scaled)
            kernel_part = pullback(Statistics(*by_statistics))
            return np.append(kernel_part, by_lambda) if self.learn_regularization else kernel_part

        value = sum(weight * loss.value for loss, weight in parts)
        found = {name: term for loss, _ in parts for name, term in loss.terms.items()}
        terms = {name: found[name] for name in self.objective.terms}
        return Evaluation(theta, float(value), terms, parts[0][0].eigenvalues, parts[0][0].gap, gradient)

    def _losses(self, statistics: Statistics, log_lambda: float) -> list[tuple[Loss, float]]:
        """Return the losses and their weights: the held-out score in NumPy, the terms of the paper in JAX."""
        losses = []
        if self._variational.terms:
            from kdmaps.learn._variational import variational

            losses.append((variational(statistics, log_lambda, self._variational), 1.0))
        if "heldout" in self.objective.terms:
            # Solvers start from the previous solution; the result does not depend on it.
            loss = heldout(statistics, log_lambda, self.objective, self.parametrisation.samples.roles, self._memory)
            losses.append((loss, self.objective.weights[self.objective.terms.index("heldout")]))
        return losses
