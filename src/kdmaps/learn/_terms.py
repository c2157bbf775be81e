"""The terms of the objective, as functions of p×p operators and of the modes that they determine.

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
from jax.scipy.linalg import cho_solve, solve_triangular

from kdmaps.learn._objective import Objective
from kdmaps.learn._pencil import Spectrum, polar, top_modes
from kdmaps.learn._statistics import Statistics
from kdmaps.spectrum.pencil import ROUNDING

Roles = tuple[tuple[int, ...], ...]


class Operators(NamedTuple):
    """E φ, Σ and L of some samples of total weight `weight`."""

    weight: Any
    mean: Any
    covariance: Any
    energy: Any


class Folds(NamedTuple):
    """Modes of the training samples of all folds, and operators of both their parts; the first axis is the fold's."""

    train: Operators
    test: Operators
    modes: Spectrum


class State(NamedTuple):
    """What a term may look at."""

    objective: Objective
    operators: Operators
    modes: Spectrum
    folds: Folds | None
    ridge: Any
    statistics: Statistics


def eig(state: State):
    """-Σ_k μ_k (eq:eig-loss)."""
    return -jnp.sum(state.modes.values)


def sub(state: State):
    """Σ_k (E φ_k)² + Σ_k (E φ_k² - 1)² + η Σ_{k<j} (E φ_k φ_j)² (eq:anchor-loss); E φ_k = 0 once centred."""
    A = state.modes.vectors
    gram = A.T @ state.operators.covariance @ A
    mean = 0.0 if state.objective.center else A.T @ state.operators.mean
    diagonal = jnp.diagonal(gram)
    above = jnp.triu(gram, 1)
    return jnp.sum(mean**2) + jnp.sum((diagonal - 1) ** 2) + state.objective.eta * jnp.sum(above**2)


def rkhs(state: State):
    """Σ_k a_kᵀRa_k (eq:rkhs-loss); R = 1 for Fourier features."""
    A = state.modes.vectors
    return jnp.sum(A * (state.ridge @ A))


def pde(state: State):
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


def entropy(state: State):
    """Ω(β) = Σ_ℓ β_ℓ log β_ℓ, smallest for equal weights."""
    beta = state.statistics.beta
    return jnp.sum(beta * jnp.log(beta))


def gini(state: State):
    """Ω(β) = 1 - Σ_ℓ β_ℓ², smallest for a single kernel."""
    return 1 - jnp.sum(state.statistics.beta**2)


def spread(state: State):
    """μ_1 - μ_r, the paper's regularizer (ii)."""
    return state.modes.values[0] - state.modes.values[-1]


def dirichlet(state: State):
    """Σ_k E|∇φ_k|²/E φ_k², the paper's regularizer (iii), for the space: tr[(AᵀΣA)⁻¹AᵀLA]."""
    A = state.modes.vectors
    return _trace_quotient(A.T @ state.operators.energy @ A, A.T @ state.operators.covariance @ A)


def anchor(state: State):
    """Σ (log σ - log σ_start)², the paper's regularizer (iv)."""
    return jnp.sum(state.statistics.log_bandwidths**2)


def heldout(state: State):
    """Minus Σ_k t_k^p of the λ-free time scales t on samples that the modes were not fitted to (see `selection.rules`).

    The t are the eigenvalues of (Σ_f n_f VᵀΣ_fV, Σ_f n_f VᵀL_fV) over the test samples of the folds f, the modes V of
    every fold turned towards those of all samples. For p = 1 that is tr[(Σ_f n_f VᵀL_fV)⁻¹ Σ_f n_f VᵀΣ_fV]. It depends
    on spaces only and has an exact derivative, that of the rotations included. `caution` standard errors, by the
    jackknife over folds, are subtracted from the score.
    """
    objective, operators, folds = state.objective, state.operators, state.folds
    assert folds is not None
    target = operators.covariance @ _orthonormal(state.modes.vectors, operators.covariance)

    def one(vectors, train, test):
        V = _orthonormal(vectors, train.covariance)
        V = V @ polar(V.T @ target)
        return test.weight * (V.T @ test.covariance @ V), test.weight * (V.T @ test.energy @ V)

    def score(covariance, energy):
        return jnp.sum(top_modes(covariance, energy, objective.n_components).values ** objective.power)

    parts = jax.vmap(one)(folds.modes.vectors, folds.train, folds.test)
    total = [jnp.sum(part, axis=0) for part in parts]
    if objective.caution == 0:
        return -score(*total)
    left_out = jax.vmap(score)(*(whole - part for whole, part in zip(total, parts, strict=True)))
    # Samples that are tested c times make deviations √c too small (see kdmaps.selection.rules).
    coverage = jnp.maximum(jnp.sum(folds.test.weight) / operators.weight, 1.0)
    error = jnp.sqrt((len(left_out) - 1) * jnp.var(left_out) * coverage)
    return objective.caution * error - score(*total)


FUNCTIONS: dict[str, Callable[[State], Any]] = {
    term.__name__: term for term in (eig, sub, rkhs, pde, entropy, gini, spread, dirichlet, anchor, heldout)
}


def _forms(matrix, A):
    """a_kᵀ matrix a_k for every k."""
    return jnp.sum(A * (matrix @ A), axis=0)


def _trace_quotient(upper, lower):
    """tr[lower⁻¹ upper]."""
    return jnp.trace(cho_solve((jnp.linalg.cholesky(lower), True), upper))


def _orthonormal(A, covariance):
    """A basis of the space of A with VᵀΣV = 1; which one does not matter to a loss of the space."""
    return solve_triangular(jnp.linalg.cholesky(A.T @ covariance @ A), A.T, lower=True).T


def _operators(statistics: Statistics, members: np.ndarray, center: bool) -> Operators:
    """Of S unions of classes, given by the rows of `members` (S, C); the first axis of the result is the union's.

    One product for all unions: indexing would make the adjoint a scatter, which XLA does slowly.
    """
    weight = members @ statistics.weights
    share = members / weight[:, None]
    mean = share @ statistics.totals
    covariance, energy = (
        (share @ sums.reshape(len(sums), -1)).reshape(-1, *sums.shape[1:])
        for sums in (statistics.grams, statistics.energies)
    )
    if center:
        covariance = covariance - mean[:, :, None] * mean[:, None, :]
    return Operators(weight, mean, covariance, energy)


def make_state(statistics: Statistics, log_regularization, objective: Objective, roles: Roles) -> State:
    """Solve the eigenproblems of all samples and, if the objective wants them, of the folds."""
    p = statistics.totals.shape[-1]
    ridge = jnp.eye(p) if statistics.ridge is None else statistics.ridge
    penalty = jnp.exp(log_regularization) * ridge
    table = np.array(roles)

    def modes(operators, single_vectors=False):
        return top_modes(operators.covariance, operators.energy + penalty, objective.n_components, single_vectors)

    whole = _operators(statistics, np.ones((1, len(table))), objective.center)
    whole = jax.tree.map(lambda array: jnp.squeeze(array, axis=0), whole)
    folds = None
    if "heldout" in objective.terms:
        train, test = (
            _operators(statistics, np.equal(table.T, role).astype(np.float64), objective.center) for role in (1, 2)
        )
        folds = Folds(train, test, jax.vmap(modes)(train))
    return State(objective, whole, modes(whole, objective.single_vectors), folds, ridge, statistics)


def _determined(state: State):
    """Whether every mode has more variance than rounding leaves where there is none (see `rounding_variance`).

    A kernel that is ever smoother ends with fewer modes than are asked for: such a kernel is no answer. The factor 4 is
    on the safe side of the same test at the end of a fit.
    """
    statistics = state.statistics
    scale = jnp.trace(jnp.sum(statistics.grams, axis=0)) / jnp.sum(statistics.weights)
    spectra = [state.modes] if state.folds is None else [state.modes, state.folds.modes]
    floors = [8 * ROUNDING * scale * jnp.sum(modes.vectors**2, axis=-2) for modes in spectra]
    return jnp.all(jnp.array([jnp.all(m.values > floor) for m, floor in zip(spectra, floors, strict=True)]))


@partial(jax.jit, static_argnames=("objective", "roles"))
def value_and_adjoint(statistics: Statistics, log_regularization, weights, objective: Objective, roles: Roles):
    """((J, report), (adjoint of the statistics, derivative by log λ)); `report` holds the terms, μ and the gap.

    `weights` are those of the objective, given apart so that their values are not compiled into the program.
    """

    def total(statistics, log_regularization):
        state = make_state(statistics, log_regularization, objective, roles)
        terms = {name: FUNCTIONS[name](state) for name in objective.terms}
        loss = sum(weight * terms[name] for weight, name in zip(weights, objective.terms, strict=True))
        loss, modes = jnp.where(_determined(state), loss, jnp.nan), state.modes
        return loss, {"terms": terms, "eigenvalues": modes.values, "gap": modes.values[-1] / modes.below}

    return jax.value_and_grad(total, argnums=(0, 1), has_aux=True)(statistics, log_regularization)
