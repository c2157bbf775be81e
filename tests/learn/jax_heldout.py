"""The held-out term in JAX, differentiated automatically but for the eigenproblem: an oracle for the closed form."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from kdmaps.learn._variational import top_modes


@jax.custom_vjp
def polar(matrix):
    """The rotation UVᵀ nearest to M = UDVᵀ; where singular values agree, the derivative of an SVD is not finite."""
    return _polar_forward(matrix)[0]


def _polar_forward(matrix):
    rotation = jnp.linalg.svd(matrix)
    rotation = rotation[0] @ rotation[2]
    return rotation, (rotation, rotation.T @ matrix)


def _polar_backward(residuals, adjoint):
    """dM = dQ S + Q dS with QᵀdQ antisymmetric: a Sylvester equation in S = QᵀM, solved as a linear system."""
    Q, S = residuals
    identity = jnp.eye(len(S))
    system = jnp.kron(identity, S) + jnp.kron(S.T, identity)
    skew = Q.T @ adjoint
    return (Q @ jnp.linalg.solve(system, (skew - skew.T).ravel()).reshape(S.shape),)


polar.defvjp(_polar_forward, _polar_backward)


def orthonormal(A, covariance):
    """A basis of the space of A with VᵀΣV = 1."""
    return solve_triangular(jnp.linalg.cholesky(A.T @ covariance @ A), A.T, lower=True).T


def heldout(statistics, log_regularization, objective, roles):
    """Minus Σ_k t_k^p (Σ_k log t_k for p = 0) of held-out time scales, plus `caution` jackknife errors."""
    ridge = jnp.eye(statistics.totals.shape[-1]) if statistics.ridge is None else statistics.ridge
    r, F = objective.n_components, roles.shape[1]
    members = np.vstack([np.ones(len(roles)), roles.T == 1, roles.T == 2])
    weight = members @ statistics.weights
    share = members / weight[:, None]
    mean, covariance, energy = (jnp.tensordot(share, sums, 1) for sums in statistics[1:4])
    if objective.center:
        covariance = covariance - mean[:, :, None] * mean[:, None, :]

    def modes(covariance, energy):
        vectors = top_modes(covariance, energy + jnp.exp(log_regularization) * ridge, r).vectors
        return orthonormal(vectors, covariance)

    def score(P, E):
        values = top_modes(P, E, r).values
        # A power of 0 stands for the logarithm; the power may be traced.
        return jnp.sum(jnp.where(objective.power == 0, jnp.log(values), values**objective.power))

    target = covariance[0] @ modes(covariance[0], energy[0])

    def forms(train_covariance, train_energy, weight, test_covariance, test_energy):
        V = modes(train_covariance, train_energy)
        V = V @ polar(V.T @ target)
        return weight * V.T @ test_covariance @ V, weight * V.T @ test_energy @ V

    train, test = slice(1, 1 + F), slice(1 + F, None)
    P, E = jax.vmap(forms)(covariance[train], energy[train], weight[test], covariance[test], energy[test])
    total = score(P.sum(axis=0), E.sum(axis=0))
    left_out = jax.vmap(score)(P.sum(axis=0) - P, E.sum(axis=0) - E)
    coverage = jnp.maximum(jnp.sum(weight[test]) / weight[0], 1.0)
    return objective.caution * jnp.sqrt((F - 1) * jnp.var(left_out) * coverage) - total
