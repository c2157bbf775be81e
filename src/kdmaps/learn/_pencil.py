"""The generalized eigenproblem Σa = μBa as a JAX function with a derivative of its own.

Differentiating an eigensolver divides by the differences of all eigenvalues and gives NaN where two agree, which
systems with symmetries (Ornstein–Uhlenbeck) have by construction. A loss that depends on the *space* of the modes does
not see how the modes are turned inside it, so only pairs across the cut count, and the derivative is finite and exact.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from kdmaps.spectrum.adjoint import guarded_reciprocal


class Spectrum(NamedTuple):
    """Leading eigenpairs.

    Attributes
    ----------
    values : array of shape (r,)
        μ, descending.
    vectors : array of shape (p, r)
        a, with aᵀBa = 1.
    below : array of shape ()
        μ_{r+1} (0 if there is none), without a derivative.
    """

    values: Any
    vectors: Any
    below: Any


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def top_modes(covariance: Any, penalty: Any, n_modes: int, single_vectors: bool = False) -> Spectrum:
    """Top eigenpairs of Σa = μBa (eq:gen_eig_mat), differentiable with respect to Σ and B.

    With M = AᵀĀ for the adjoint Ā of the modes A, and modes O outside the cut, a change (dΣ, dB) moves a loss by

        Σ_k μ̄_k a_kᵀ(dΣ - μ_k dB)a_k + Σ_ok H_ok o_oᵀ(dΣ - μ_k dB)a_k - ½ tr[sym(M) AᵀdBA],
        H = OᵀĀ/(μ_k - μ_o).

    The part of M that is not symmetric is what a rotation inside the space does to the loss. It is zero for a loss of
    the space; for one that looks at single vectors, K_jk = anti(M)_jk/(μ_k - μ_j) joins H.

    Parameters
    ----------
    covariance, penalty : arrays of shape (p, p)
        Σ and the positive definite B = L+λR. NaN results where B is not positive definite.
    n_modes : int
        r < p.
    single_vectors : bool
        Whether the loss depends on single modes; its derivative is then guarded, not exact, where eigenvalues agree.
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
