"""The terms of the paper's objective in JAX, as functions of p×p operators and of the modes that they determine.

The modes have the gauge of the eigenproblem, aᵀ(L+λR)a = 1, so that aᵀΣa = μ: only in this gauge `eq:anchor-loss`
depends on the kernel (with modes of unit variance, `eq:normalize-orth`, it is zero).

Differentiating an eigensolver divides by the differences of all eigenvalues and gives NaN where two agree, as they do
by construction in systems with symmetries (Ornstein–Uhlenbeck). A loss of the *space* of the modes does not change
when the modes are rotated inside it, so only pairs across the cut count, and the derivative is finite and exact.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular

from kdmaps.learn.objectives import Loss, Objective
from kdmaps.learn.statistics import Statistics, rounding_variance
from kdmaps.spectrum.adjoint import guarded_reciprocal


# --- the eigenproblem ------------------------------------------------------------------------------------------------
class Spectrum(NamedTuple):
    """Leading eigenpairs."""

    values: Any  # (r,): μ, descending
    vectors: Any  # (p, r): A, with aᵀBa = 1 for each column a
    below: Any  # μ_{r+1} (0 if there is none), without a derivative


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def top_modes(covariance: Any, penalty: Any, n_modes: int, single_vectors: bool = False) -> Spectrum:
    """Top eigenpairs of Σa = μBa (eq:gen_eig_mat), differentiable with respect to Σ and B.

    With M = AᵀĀ for the adjoint Ā of the modes A, and modes O outside the cut, a change (dΣ, dB) moves a loss by

        Σ_k μ̄_k a_kᵀ(dΣ - μ_k dB)a_k + Σ_ok H_ok o_oᵀ(dΣ - μ_k dB)a_k - ½ tr[sym(M) AᵀdBA],
        H = OᵀĀ/(μ_k - μ_o).

    The antisymmetric part of M is the effect of a rotation inside the space. It is zero for a loss of the space; for a
    loss of single vectors, K_jk = anti(M)_jk/(μ_k - μ_j) joins H.

    NaN results where B = L+λR is not positive definite. With `single_vectors`, for a loss of single modes, the
    derivative is guarded, not exact, where eigenvalues agree.
    """
    return _forward(covariance, penalty, n_modes, single_vectors)[0]


def _forward(
    covariance: jax.Array, penalty: jax.Array, n_modes: int, single_vectors: bool
) -> tuple[Spectrum, tuple[jax.Array, jax.Array]]:
    factor = jnp.linalg.cholesky(penalty)
    half = solve_triangular(factor, covariance, lower=True)
    reduced = solve_triangular(factor, half.T, lower=True)
    values, vectors = jnp.linalg.eigh(reduced)
    values, vectors = values[::-1], solve_triangular(factor, vectors[:, ::-1], lower=True, trans=1)
    below = values[n_modes] if n_modes < values.shape[0] else jnp.zeros(())
    return Spectrum(values[:n_modes], vectors[:, :n_modes], below), (values, vectors)


def _backward(
    n_modes: int, single_vectors: bool, residuals: tuple[jax.Array, jax.Array], adjoint: Spectrum
) -> tuple[jax.Array, jax.Array]:
    values, vectors = residuals
    mu, A, outside = values[:n_modes], vectors[:, :n_modes], vectors[:, n_modes:]
    H = (outside.T @ adjoint.vectors) * guarded_reciprocal(mu[None, :] - values[n_modes:, None], values[0])
    M = A.T @ adjoint.vectors
    K = jnp.diag(adjoint.values)
    if single_vectors:
        K = K + (M - M.T) / 2 * guarded_reciprocal(mu[None, :] - mu[:, None], values[0])
    turned = outside @ H + A @ K  # dloss = tr[turnedᵀ (dΣ A - dB A diag μ)] - …
    covariance = turned @ A.T
    penalty = -(turned * mu) @ A.T - A @ (M + M.T) @ A.T / 4
    return (covariance + covariance.T) / 2, (penalty + penalty.T) / 2


top_modes.defvjp(_forward, _backward)


# --- the terms -------------------------------------------------------------------------------------------------------
class State(NamedTuple):
    """Arguments of a term: operators of all samples, their modes and the statistics."""

    objective: Objective
    mean: Any  # E φ, (p,)
    covariance: Any  # Σ, (p, p)
    energy: Any  # L, (p, p)
    ridge: Any  # R, (p, p)
    modes: Spectrum
    statistics: Statistics


def sub(state: State) -> jax.Array:
    """Σ_k (E φ_k)² + Σ_k (E φ_k² - 1)² + η Σ_{k<j} (E φ_k φ_j)² (eq:anchor-loss); E φ_k = 0 once centred."""
    A = state.modes.vectors
    gram = A.T @ state.covariance @ A
    mean = 0.0 if state.objective.center else A.T @ state.mean
    diagonal = jnp.diagonal(gram)
    above = jnp.triu(gram, 1)
    return jnp.sum(mean**2) + jnp.sum((diagonal - 1) ** 2) + state.objective.eta * jnp.sum(above**2)


def pde(state: State) -> jax.Array:
    """Σ_k E(𝒢φ_k + λ̂_kφ_k)²/E φ_k² (eq:pde-loss), λ̂_k = -E φ_k𝒢φ_k/E φ_k² (eq:app_rayleigh_closed).

    Divided by E φ_k², it is the residual of modes of unit norm, as in thm:residual-gap.
    """
    square, cross, image = state.statistics.residual
    A = state.modes.vectors
    if state.objective.center:  # the modes are φ - E φ, and E 𝒢φ is zero for the law only, not for its samples
        cross = cross - jnp.outer(image, state.mean)
    norm = _forms(state.covariance, A)
    estimate = -_forms(cross, A) / norm
    return jnp.sum(_forms(square, A) / norm - estimate**2)


def dirichlet(state: State) -> jax.Array:
    """Σ_k E|∇φ_k|²/E φ_k², the paper's regularizer (iii), for the space: tr[(AᵀΣA)⁻¹AᵀLA]."""
    A = state.modes.vectors
    factor = jnp.linalg.cholesky(A.T @ state.covariance @ A)
    return jnp.trace(cho_solve((factor, True), A.T @ state.energy @ A))


#: The terms by name.
FUNCTIONS: dict[str, Callable[[State], Any]] = {
    "eig": lambda state: -jnp.sum(state.modes.values),  # -Σ_k μ_k (eq:eig-loss)
    "sub": sub,
    # Σ_k a_kᵀRa_k (eq:rkhs-loss); R = 1 for Fourier features.
    "rkhs": lambda state: jnp.sum(_forms(state.ridge, state.modes.vectors)),
    "pde": pde,
    # Ω(β) = Σ_ℓ β_ℓ log β_ℓ, smallest for equal weights, and 1 - Σ_ℓ β_ℓ², smallest for a single kernel.
    "entropy": lambda state: jnp.sum(state.statistics.beta * jnp.log(state.statistics.beta)),
    "gini": lambda state: 1 - jnp.sum(state.statistics.beta**2),
    # The paper's regularizers (ii), μ_1 - μ_r, (iii), and (iv), Σ (log σ - log σ_start)².
    "spread": lambda state: state.modes.values[0] - state.modes.values[-1],
    "dirichlet": dirichlet,
    "anchor": lambda state: jnp.sum(state.statistics.log_bandwidths**2),
}


def _forms(matrix: jax.Array, A: jax.Array) -> jax.Array:
    """a_kᵀ matrix a_k for every k."""
    return jnp.sum(A * (matrix @ A), axis=0)


# --- their sum -------------------------------------------------------------------------------------------------------
@partial(jax.jit, static_argnames="objective")
def _value_and_adjoint(statistics: Statistics, log_regularization: Any, weights: Any, objective: Objective) -> Any:
    """((J, report), (adjoint of the statistics, derivative by log λ)); `report` holds the terms, μ and the gap.

    The weights of the objective are a separate argument, so that their values are not compiled into the program.
    """

    def total(statistics: Statistics, log_regularization: Any) -> tuple[jax.Array, dict[str, Any]]:
        weight = statistics.weights.sum()
        sums = (statistics.totals, statistics.grams, statistics.energies)
        mean, covariance, energy = (part.sum(axis=0) / weight for part in sums)
        if objective.center:
            covariance = covariance - jnp.outer(mean, mean)
        ridge = jnp.eye(len(mean)) if statistics.ridge is None else statistics.ridge
        penalty = energy + jnp.exp(log_regularization) * ridge
        modes = top_modes(covariance, penalty, objective.n_components, objective.single_vectors)
        state = State(objective, mean, covariance, energy, ridge, modes, statistics)
        terms = {name: FUNCTIONS[name](state) for name in objective.terms}
        loss = sum(weight * terms[name] for weight, name in zip(weights, objective.terms, strict=True))
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
