"""Statistics of parametrisations against `compute_moments`, and gradients against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_problems import DIFFUSIONS, make_parametrisation, make_samples

from kdmaps.bases import make_basis
from kdmaps.forms.energy import compute_moments
from kdmaps.kernels import Matern
from kdmaps.learn.objectives import make_objective
from kdmaps.learn.parametrisations import Anisotropy
from kdmaps.learn.problem import Problem
from kdmaps.learn.statistics import Samples


@pytest.mark.parametrize("diffusion", DIFFUSIONS)
@pytest.mark.parametrize("name", ["anisotropy", "bandwidths", "dictionary", "any dictionary"])
def test_statistics_are_the_moments_of_the_kernel(name, diffusion):
    samples = make_samples(DIFFUSIONS[diffusion])
    parametrisation, theta = make_parametrisation(name, samples)
    statistics, _ = parametrisation.forward(theta)
    basis = parametrisation.basis(theta)
    for c, rows in enumerate(samples.rows):
        moments = compute_moments(basis, samples.X, samples.sample_weight, samples.diffusion, rows)
        np.testing.assert_allclose(statistics.totals[c], moments.total, rtol=1e-10)
        np.testing.assert_allclose(statistics.grams[c], moments.gram, rtol=1e-10)
        np.testing.assert_allclose(statistics.energies[c], moments.energy, rtol=1e-8, atol=1e-10)
    if basis.ridge is not None:
        np.testing.assert_allclose(statistics.ridge, basis.ridge, rtol=1e-12)


def test_frequencies_agree_with_a_basis_of_the_refined_kernel(samples):
    parametrisation, theta = make_parametrisation("anisotropy", samples)
    drawn = make_basis("fourier", parametrisation.kernel(theta), samples.X, 12, random_state=0)
    np.testing.assert_allclose(drawn.frequencies, parametrisation.basis(theta).frequencies, rtol=1e-12)


@pytest.mark.slow
def test_streamed_gradient_against_automatic_differentiation():
    """The eigenvalue sum of a dense implementation, features and their Jacobian as arrays, differentiated by JAX."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    basis = make_basis("fourier", Matern(1.5, 2.0), X, 20, random_state=0)
    theta = np.array([0.2, -0.3, 0.5])

    def dense(theta):
        W = basis.frequencies / jnp.exp(jnp.tanh(theta))
        angles, amplitude = (X - basis.origin) @ W.T, jnp.sqrt(basis.weights)
        features = jnp.hstack([amplitude * jnp.cos(angles), amplitude * jnp.sin(angles)])
        slopes = jnp.hstack([-amplitude * jnp.sin(angles), amplitude * jnp.cos(angles)])
        jacobian = slopes[:, :, None] * jnp.tile(W, (2, 1))
        centred = features - features.mean(axis=0)
        energy = jnp.einsum("npd,nqd->pq", jacobian, jacobian) / len(X) + 0.01 * jnp.eye(20)
        F = jnp.linalg.cholesky(energy)
        half = jnp.linalg.solve(F, centred.T)
        return -jnp.sum(jnp.linalg.eigvalsh(half @ half.T / len(X))[-3:])

    problem = Problem(Anisotropy(Samples.of(X), basis), make_objective("eig-only", 3), 0.01)
    found = problem.evaluate(theta)
    with jax.enable_x64(True):
        value, gradient = jax.jit(jax.value_and_grad(dense))(theta)
    assert found.value == pytest.approx(float(value), rel=1e-9)
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-7)
