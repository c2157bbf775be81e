"""Learned kernels of the paper with settings that `VariationalKernelMap` does not have.

Features √(2/p) cos(wᵀx + b) instead of pairs for VarRFF, and L_sub of modes that are centred and scaled one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from experiments.paper._sweep import BANDWIDTHS, Features, Operators, fit_features, frequencies
from kdmaps.bases import FourierBasis, select_landmarks
from kdmaps.data.distances import median_distance
from kdmaps.estimators.variational import START_BANDWIDTHS
from kdmaps.kernels import Gaussian, Kernel, Matern
from kdmaps.learn.objectives import PRESETS, Objective, make_objective
from kdmaps.learn.optimiser import Settings as Steps
from kdmaps.learn.optimiser import minimise
from kdmaps.learn.parametrisations import Anisotropy, Bandwidths, Pullback
from kdmaps.learn.problem import Evaluation, Problem
from kdmaps.learn.statistics import Samples, Statistics

N_LANDMARKS = 60


@dataclass(frozen=True)
class Learned:
    """A learned kernel and its modes."""

    kernel_: Kernel
    rates_: np.ndarray
    features: Any  #: A function from samples to features, (n, p).
    coefficients: np.ndarray  #: (p, r).

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Evaluate the modes, which include the constant-like one."""
        return np.asarray(self.features(X) @ self.coefficients, dtype=np.float64)


# --- VarRFF with random phases ----------------------------------------------------------------------------------------
class RandomPhases(Anisotropy):
    """σ_j = σ·exp(tanh θ_j) for features √(2/p) cos(wᵀx + b), which are combinations of the pairs of the base class."""

    def __init__(self, samples: Samples, basis: FourierBasis, phases: np.ndarray):
        super().__init__(samples, basis)
        self.phases = phases
        self._mixing = np.sqrt(2) * np.vstack([np.diag(np.cos(phases)), -np.diag(np.sin(phases))])

    def forward(self, theta: np.ndarray) -> tuple[Statistics, Pullback]:
        pairs, pullback = super().forward(theta)
        M = self._mixing
        mixed = pairs._replace(totals=pairs.totals @ M, grams=M.T @ pairs.grams @ M, energies=M.T @ pairs.energies @ M)

        def pull(adjoint: Statistics) -> np.ndarray:
            return pullback(
                adjoint._replace(
                    totals=adjoint.totals @ M.T, grams=M @ adjoint.grams @ M.T, energies=M @ adjoint.energies @ M.T
                )
            )

        return mixed, pull


def start_of_varrff(X: np.ndarray, seed: int) -> float:
    """Return σ_CV, where the paper's refinement starts: its search selects the widest bandwidth of the grid."""
    return float(BANDWIDTHS[-1] * median_distance(X, random_state=seed))


def varrff(X: np.ndarray, r: int, seed: int, regularization: float, n_features: int) -> Learned:
    """Learn σ_j of Matérn-3/2 features with random phases by -Σμ + 0.001 Σ|a|²."""
    rng = np.random.RandomState(seed)
    base = frequencies("matern32", (n_features, X.shape[1]), rng, "exact")
    phases = rng.uniform(0, 2 * np.pi, n_features)
    kernel = Matern(1.5, start_of_varrff(X, seed))
    equal = np.full(n_features, 1 / n_features)
    basis = FourierBasis(kernel, base / kernel.bandwidth, equal, np.zeros(X.shape[1]))
    parametrisation = RandomPhases(Samples.of(X), basis, phases)
    problem = Problem(parametrisation, make_objective("varrff", r, center=False), regularization)
    theta, _ = minimise(problem, Steps())
    features = Features(parametrisation.basis(theta).frequencies, phases)
    operators, coefficients = fit_features(features, X, r, regularization)
    rates = 1 / operators.eigenpairs(r)[0]
    return Learned(parametrisation.kernel(theta), rates, features.values, coefficients)


# --- L_sub of modes that are centred and scaled one by one ------------------------------------------------------------
class OneByOne(Problem):
    """J with L_sub of modes that are centred and scaled to variance 1 one by one, without QR.

    The first two terms of eq:anchor-loss vanish, and Σ_{k<j} corr(φ_k, φ_j)² remains.
    """

    def evaluate(self, theta: np.ndarray) -> Evaluation:
        import jax

        theta = np.asarray(theta, dtype=np.float64)
        statistics, pullback = self.parametrisation.forward(theta)
        with jax.enable_x64(True):
            loss = partial(_one_by_one, log_lambda=self.split(theta)[1], objective=self.objective)
            (value, report), adjoint = jax.value_and_grad(loss, has_aux=True)(statistics)
            adjoint = jax.tree.map(np.asarray, adjoint)
        terms = {name: float(term) for name, term in report["terms"].items()}
        eigenvalues = np.asarray(report["eigenvalues"])
        return Evaluation(theta, float(value), terms, eigenvalues, float(report["gap"]), lambda: pullback(adjoint))


def _one_by_one(statistics: Statistics, log_lambda: float, objective: Objective) -> tuple[Any, dict[str, Any]]:
    """Return J and its terms, in JAX."""
    import jax.numpy as jnp

    from kdmaps.learn._variational import top_modes

    weight = statistics.weights.sum()
    mean, covariance, energy = (part.sum(axis=0) / weight for part in statistics[1:4])
    penalty = energy + jnp.exp(log_lambda) * statistics.ridge
    modes = top_modes(covariance, penalty, objective.n_components, True)
    A = modes.vectors
    means = A.T @ mean
    centred = A.T @ covariance @ A - jnp.outer(means, means)
    scale = jnp.sqrt(jnp.diagonal(centred))
    correlations = centred / jnp.outer(scale, scale)
    values = {
        "eig": -jnp.sum(modes.values),
        "sub": objective.eta * jnp.sum(jnp.triu(correlations, 1) ** 2),
        "rkhs": jnp.sum(A * (statistics.ridge @ A)),
    }
    terms = {name: values[name] for name in objective.terms}
    total = sum(w * terms[name] for w, name in zip(objective.weights, objective.terms, strict=True))
    return total, {"terms": terms, "eigenvalues": modes.values, "gap": modes.values[-1] / modes.below}


def vmkl_one_by_one(
    objective: str, X: np.ndarray, r: int, seed: int, regularization: float, n_features: int
) -> Learned:
    """Learn five Gaussians at 60 landmarks from equal weights, as `VariationalKernelMap` does."""
    median = median_distance(X, random_state=seed)
    kernels = [Gaussian(median * factor) for factor in START_BANDWIDTHS]
    landmarks = select_landmarks(X, N_LANDMARKS, "kmeans", np.random.RandomState(seed))
    parametrisation = Bandwidths(Samples.of(X), kernels, landmarks, X.mean(axis=0))
    problem = OneByOne(parametrisation, make_objective(PRESETS[objective], r, center=False), regularization)
    theta, _ = minimise(problem, Steps())
    basis = parametrisation.basis(theta)
    statistics, _ = parametrisation.forward(theta)
    n = statistics.weights.sum()
    operators = Operators(statistics.grams[0] / n, statistics.energies[0] / n + regularization * statistics.ridge)
    values, coefficients = operators.eigenpairs(r)
    return Learned(basis.kernel, 1 / values, basis.features, coefficients)
