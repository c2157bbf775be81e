"""The terms of the paper's objective in JAX, as functions of p×p operators and of the modes that they determine.

The modes have the gauge of the eigenproblem, aᵀ(L+λR)a = 1, so that aᵀΣa = μ: `eq:anchor-loss` says something only
in this gauge (in that of `eq:normalize-orth` it is zero).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve

from kdmaps.learn._pencil import Spectrum, top_modes
from kdmaps.learn.objective import Loss, Objective
from kdmaps.learn.statistics import Operators, Statistics, make_operators, rounding_variance


class State(NamedTuple):
    """What a term may look at."""

    objective: Objective
    operators: Operators
    modes: Spectrum
    ridge: Any
    statistics: Statistics


def eig(state: State) -> jax.Array:
    """-Σ_k μ_k (eq:eig-loss)."""
    return -jnp.sum(state.modes.values)


def sub(state: State) -> jax.Array:
    """Σ_k (E φ_k)² + Σ_k (E φ_k² - 1)² + η Σ_{k<j} (E φ_k φ_j)² (eq:anchor-loss); E φ_k = 0 once centred."""
    A = state.modes.vectors
    gram = A.T @ state.operators.covariance @ A
    mean = 0.0 if state.objective.center else A.T @ state.operators.mean
    diagonal = jnp.diagonal(gram)
    above = jnp.triu(gram, 1)
    return jnp.sum(mean**2) + jnp.sum((diagonal - 1) ** 2) + state.objective.eta * jnp.sum(above**2)


def rkhs(state: State) -> jax.Array:
    """Σ_k a_kᵀRa_k (eq:rkhs-loss); R = 1 for Fourier features."""
    A = state.modes.vectors
    return jnp.sum(A * (state.ridge @ A))


def pde(state: State) -> jax.Array:
    """Σ_k E(𝒢φ_k + λ̂_kφ_k)²/E φ_k² (eq:pde-loss), λ̂_k = -E φ_k𝒢φ_k/E φ_k² (eq:app_rayleigh_closed).

    The quotient makes the residual that of modes of unit norm, as thm:residual-gap has it.
    """
    square, cross, image = state.statistics.residual
    A = state.modes.vectors
    if state.objective.center:  # the modes are φ - E φ, and E 𝒢φ is zero for the law only, not for its samples
        cross = cross - jnp.outer(image, state.operators.mean)
    norm = _forms(state.operators.covariance, A)
    estimate = -_forms(cross, A) / norm
    return jnp.sum(_forms(square, A) / norm - estimate**2)


def entropy(state: State) -> jax.Array:
    """Ω(β) = Σ_ℓ β_ℓ log β_ℓ, smallest for equal weights."""
    beta = state.statistics.beta
    return jnp.sum(beta * jnp.log(beta))


def gini(state: State) -> jax.Array:
    """Ω(β) = 1 - Σ_ℓ β_ℓ², smallest for a single kernel."""
    return 1 - jnp.sum(state.statistics.beta**2)


def spread(state: State) -> jax.Array:
    """μ_1 - μ_r, the paper's regularizer (ii)."""
    return state.modes.values[0] - state.modes.values[-1]


def dirichlet(state: State) -> jax.Array:
    """Σ_k E|∇φ_k|²/E φ_k², the paper's regularizer (iii), for the space: tr[(AᵀΣA)⁻¹AᵀLA]."""
    A = state.modes.vectors
    return _trace_quotient(A.T @ state.operators.energy @ A, A.T @ state.operators.covariance @ A)


def anchor(state: State) -> jax.Array:
    """Σ (log σ - log σ_start)², the paper's regularizer (iv)."""
    return jnp.sum(state.statistics.log_bandwidths**2)


FUNCTIONS: dict[str, Callable[[State], Any]] = {
    term.__name__: term for term in (eig, sub, rkhs, pde, entropy, gini, spread, dirichlet, anchor)
}


def _forms(matrix: jax.Array, A: jax.Array) -> jax.Array:
    """a_kᵀ matrix a_k for every k."""
    return jnp.sum(A * (matrix @ A), axis=0)


def _trace_quotient(upper: jax.Array, lower: jax.Array) -> jax.Array:
    """tr[lower⁻¹ upper]."""
    return jnp.trace(cho_solve((jnp.linalg.cholesky(lower), True), upper))


def make_state(statistics: Statistics, log_regularization: Any, objective: Objective) -> State:
    """Solve the eigenproblem of all samples."""
    p = statistics.totals.shape[-1]
    ridge = jnp.eye(p) if statistics.ridge is None else statistics.ridge
    stacked = make_operators(statistics, np.ones((1, len(statistics.weights))), objective.center)
    operators = Operators(*(jnp.squeeze(array, axis=0) for array in stacked))
    penalty = operators.energy + jnp.exp(log_regularization) * ridge
    modes = top_modes(operators.covariance, penalty, objective.n_components, objective.single_vectors)
    return State(objective, operators, modes, ridge, statistics)


@partial(jax.jit, static_argnames="objective")
def _value_and_adjoint(statistics: Statistics, log_regularization: Any, weights: Any, objective: Objective) -> Any:
    """((J, report), (adjoint of the statistics, derivative by log λ)); `report` holds the terms, μ and the gap.

    `weights` are those of the objective, given apart so that their values are not compiled into the program.
    """

    def total(statistics: Statistics, log_regularization: Any) -> tuple[jax.Array, dict[str, Any]]:
        state = make_state(statistics, log_regularization, objective)
        terms = {name: FUNCTIONS[name](state) for name in objective.terms}
        loss = sum(weight * terms[name] for weight, name in zip(weights, objective.terms, strict=True))
        modes = state.modes
        determined = jnp.all(modes.values > rounding_variance(statistics) * jnp.sum(modes.vectors**2, axis=0))
        return jnp.where(determined, loss, jnp.nan), {
            "terms": terms,
            "eigenvalues": modes.values,
            "gap": modes.values[-1] / modes.below,
        }

    return jax.value_and_grad(total, argnums=(0, 1), has_aux=True)(statistics, log_regularization)


def variational(statistics: Statistics, log_regularization: float, objective: Objective) -> Loss:
    """Return the weighted sum of the terms; NaN where the samples do not determine the modes."""
    with jax.enable_x64(True):
        found = _value_and_adjoint(statistics, np.float64(log_regularization), objective.weights, objective)
        (value, report), adjoint = jax.tree.map(np.asarray, found)
    terms = {name: float(term) for name, term in report["terms"].items()}
    return Loss(float(value), terms, report["eigenvalues"], float(report["gap"]), lambda: adjoint)
