"""The differentiable eigenproblem against differences, also where eigenvalues agree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import linalg
from small_problems import slope

from kdmaps.learn._variational import top_modes

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def pencil(values, seed=0):
    """Σ and B whose generalized eigenvalues are `values`."""
    rng = np.random.default_rng(seed)
    p = len(values)
    B = np.cov(rng.standard_normal((p, 3 * p)))
    F = np.linalg.cholesky(B)
    Q = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return F @ Q @ np.diag(values) @ Q.T @ F.T, B


def direction(p, seed):
    rng = np.random.default_rng(seed)
    return tuple(m + m.T for m in 0.1 * rng.standard_normal((2, p, p)))


PENALTY = np.diag(np.arange(1.0, 8.0)) + 0.3
TEST_COVARIANCE, TEST_ENERGY = pencil(np.linspace(2, 0.1, 7), seed=9)

#: Losses of the space: each is unchanged when the modes are turned inside it.
SPACE_LOSSES = {
    "eigenvalue sum": lambda m: -jnp.sum(m.values),
    "symmetric function of eigenvalues": lambda m: jnp.sum(jnp.sqrt(m.values)),
    "norm": lambda m: jnp.trace(m.vectors.T @ PENALTY @ m.vectors),
    "projector": lambda m: jnp.sum((m.vectors @ m.vectors.T) ** 2),
    "timescale score": lambda m: jnp.trace(
        jnp.linalg.solve(m.vectors.T @ TEST_ENERGY @ m.vectors, m.vectors.T @ TEST_COVARIANCE @ m.vectors)
    ),
}
#: Ornstein–Uhlenbeck spectra are degenerate; the cut is after the third.
SPECTRA = {
    "generic": [3.0, 2.2, 1.5, 0.9, 0.5, 0.3, 0.1],
    "all equal inside": [2.0, 2.0, 2.0, 0.9, 0.5, 0.3, 0.1],
    "pairs on both sides": [2.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.1],
    "equal outside": [3.0, 2.2, 1.5, 0.5, 0.5, 0.5, 0.5],
    "nearly equal inside": [2.0, 2.0 - 1e-9, 1.2, 0.9, 0.5, 0.3, 0.1],
    "nearly crossing at the cut": [2.0, 1.5, 1.0 + 1e-2, 1.0, 0.5, 0.3, 0.1],
}


@pytest.mark.parametrize("loss", SPACE_LOSSES)
@pytest.mark.parametrize("spectrum", SPECTRA)
def test_losses_of_the_space_have_exact_derivatives(spectrum, loss):
    S, B = pencil(SPECTRA[spectrum])
    function = SPACE_LOSSES[loss]
    by_S, by_B = jax.grad(lambda S, B: function(top_modes(S, B, 3, False)), argnums=(0, 1))(S, B)
    step = 1e-5 if "crossing" in spectrum else 1e-3
    for seed in range(3):
        dS, dB = direction(7, seed)
        expected = slope(lambda t, dS=dS, dB=dB: float(function(top_modes(S + t * dS, B + t * dB, 3, False))), step)
        assert float(jnp.vdot(by_S, dS) + jnp.vdot(by_B, dB)) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_losses_of_single_vectors():
    """The guarded formula equals the usual one where eigenvalues differ, and stays finite where they agree."""

    def single(S, B):
        modes = top_modes(S, B, 3, True)
        return jnp.sum(modes.vectors[:, 1] ** 4) + modes.values[0] ** 2

    S, B = pencil(SPECTRA["generic"])
    dS, dB = direction(7, 0)
    by_S, by_B = jax.grad(single, argnums=(0, 1))(S, B)
    expected = slope(lambda t: float(single(S + t * dS, B + t * dB)), 1e-4)
    assert float(jnp.vdot(by_S, dS) + jnp.vdot(by_B, dB)) == pytest.approx(expected, rel=1e-6)
    for spectrum in SPECTRA.values():
        gradient = jax.grad(single, argnums=(0, 1))(*pencil(spectrum))
        assert all(np.all(np.isfinite(part)) for part in gradient)


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_eigenpairs(spectrum):
    S, B = pencil(SPECTRA[spectrum])
    modes = top_modes(S, B, 3, False)
    np.testing.assert_allclose(modes.values, linalg.eigh(S, B, eigvals_only=True)[::-1][:3], rtol=1e-10)
    np.testing.assert_allclose(modes.below, SPECTRA[spectrum][3], rtol=1e-10)
    np.testing.assert_allclose(S @ modes.vectors, B @ modes.vectors * modes.values, atol=1e-10)
    np.testing.assert_allclose(modes.vectors.T @ B @ modes.vectors, np.eye(3), atol=1e-10)


def test_a_cut_through_a_cluster_has_a_finite_derivative():
    S, B = pencil([2.0, 1.0, 1.0, 1.0, 0.5, 0.3, 0.1])
    gradient = jax.grad(lambda S: SPACE_LOSSES["projector"](top_modes(S, B, 3, False)))(S)
    assert np.all(np.isfinite(gradient))


def test_an_indefinite_penalty_gives_nan():
    S, B = pencil(SPECTRA["generic"])
    assert np.all(np.isnan(top_modes(S, B - 10 * np.eye(7), 3, False).values))
