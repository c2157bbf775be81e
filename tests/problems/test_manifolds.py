"""The noisy circle against the Schrödinger form of its law, and spherical harmonics against the addition theorem."""

from math import comb

import numpy as np
import pytest
from scipy.special import eval_chebyt, eval_gegenbauer, i0e, ive, sph_harm_y

import kdmaps.problems as problems
from experiments._references import paper_reference


def bessel_ratio(t):
    return ive(1, t) / i0e(t)


@pytest.mark.parametrize("wave", [1, 2])
def test_radial_rates(wave, schroedinger):
    s = 0.05
    rates = schroedinger(
        lambda r: ((r - 1) ** 2 / (2 * s**2) - np.log(r * i0e(r / s**2)))[:, 0],
        lambda r: -1 / r + r / s**2 - bessel_ratio(r / s**2) / s**2,
        ((0.58, 1.42),),
        200,
        1,
        killing=lambda r: (wave / r[:, 0]) ** 2,
    )[0]
    ours = problems.load("circle").rates(4)
    np.testing.assert_allclose(ours[2 * wave - 2 : 2 * wave], rates[0], rtol=1e-7)


def test_wide_noise_in_the_plane(schroedinger):
    # With noise 0.6 radial and angular modes mix in order and the domain reaches r = 0.
    s = 0.6
    p = problems.NoisyCircle(s)

    def potential(X):
        r = np.hypot(*X.T)
        return (r - 1) ** 2 / (2 * s**2) - np.log(i0e(r / s**2))

    def gradient(X):
        r = np.hypot(*X.T)[:, None] + 1e-300
        return X / s**2 - bessel_ratio(r / s**2) / s**2 * X / r

    rates, points, modes, mass = schroedinger(potential, gradient, ((-5.2, 5.2),) * 2, 40, 8)
    np.testing.assert_allclose(p.rates(7), rates[1:], rtol=1e-5)
    # Up to the first gap, so that the two bases span the same complete cluster.
    k = 1 + int(np.argmax(np.diff(rates[1:]) > 1e-3 * rates[1:-1]))
    overlap = (p.eigenfunctions(points, k) * (mass / mass.sum())[:, None]).T @ modes[:, 1 : k + 1]
    np.testing.assert_allclose(overlap @ overlap.T, np.eye(k), atol=1e-5)


def test_paper_reference_of_the_circle():
    p = problems.load("circle")
    angle = np.linspace(-3, 3, 50)
    X = 1.1 * np.column_stack([np.cos(angle), np.sin(angle)])
    expected = np.column_stack([np.cos(angle), np.sin(angle), np.cos(2 * angle), np.sin(2 * angle)])
    np.testing.assert_allclose(paper_reference(p, X), np.sqrt(2) * expected)
    # For small noise the exact modes are close to these.
    np.testing.assert_allclose(p.eigenfunctions(X, 4), np.sqrt(2) * expected, rtol=0.02, atol=0.01)


def test_moments_of_the_circle(assert_mean):
    X = problems.load("circle").sample(100_000, random_state=0)
    assert_mean(X, 0.0)
    assert_mean(X**2, 0.5 + 0.05**2)
    assert_mean(np.sum(X**2, axis=1) ** 2, 1 + 8 * 0.05**2 + 8 * 0.05**4)


def test_simulated_angle_is_brownian(assert_mean):
    # E[x_0·x_τ] = e^{-τ} for independent noise; frames 1 and 3 are 2 dt apart.
    paths = problems.load("circle").simulate(4, 0.3, n_trajectories=50_000, random_state=0)
    assert_mean(np.sum(paths[:, 1] * paths[:, 3], axis=1), np.exp(-0.6))
    assert_mean(np.sum(paths**2, axis=2), 1 + 2 * 0.05**2)


@pytest.mark.parametrize("noise", [0, -1, np.inf, "x"])
def test_bad_noise(noise):
    with pytest.raises(ValueError, match="noise must"):
        problems.NoisyCircle(noise)


def multiplicity(d, degree):
    return (2 * degree + d - 2) * comb(degree + d - 2, degree) // (degree + d - 2)


def zonal(d, degree, t):
    """Gegenbauer polynomial C_ℓ^{(d-2)/2}(t)/C_ℓ^{(d-2)/2}(1); its limit at d = 2 is Chebyshev's."""
    if d == 2:
        return eval_chebyt(degree, t)
    order = (d - 2) / 2
    return eval_gegenbauer(degree, order, t) / eval_gegenbauer(degree, order, 1.0)


@pytest.mark.parametrize(("d", "top"), [(2, 5), (3, 5), (4, 4), (5, 3), (11, 3), (19, 2)])
def test_addition_theorem(d, top):
    """Σ_m Y_m(x) Y_m(y) = N_ℓ · zonal(x·y) holds for an orthonormal basis of the harmonics of degree ℓ and no other."""
    p = problems.load(f"sphere-{d}")
    X = p.sample(40, random_state=0)
    sizes = [multiplicity(d, degree) for degree in range(1, top + 1)]
    np.testing.assert_array_equal(
        p.rates(sum(sizes)), np.repeat([degree * (degree + d - 2) for degree in range(1, top + 1)], sizes)
    )
    phi = p.eigenfunctions(X, sum(sizes))
    for degree, block in enumerate(np.split(phi, np.cumsum(sizes)[:-1], axis=1), start=1):
        np.testing.assert_allclose(block @ block.T, sizes[degree - 1] * zonal(d, degree, X @ X.T), atol=1e-9)


def test_span_of_a_degree_on_the_sphere_in_space():
    """Against scipy's spherical harmonics; both bases are orthonormal, so that their overlap is orthogonal."""
    cosine, weight = np.polynomial.legendre.leggauss(8)
    azimuth = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    polar, azimuth = (part.ravel() for part in np.meshgrid(np.arccos(cosine), azimuth, indexing="ij"))
    X = np.column_stack([np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)])
    phi = problems.load("sphere-3").eigenfunctions(X, 3 + 5 + 7)[:, 8:]
    exact = np.sqrt(4 * np.pi) * np.column_stack([sph_harm_y(3, m, polar, azimuth) for m in range(-3, 4)])
    overlap = (phi * np.repeat(weight / 32, 16)[:, None]).T @ exact
    np.testing.assert_allclose(overlap @ overlap.conj().T, np.eye(7), atol=1e-12)


def test_first_modes_of_the_sphere_are_the_coordinates():
    p = problems.load("sphere-5")
    X = p.sample(10, random_state=0)
    np.testing.assert_allclose(p.reference(X, 1), np.sqrt(5) * X)
    assert p.reference(X, 6).shape == (10, 5 + 14)


def test_sample_on_the_sphere_is_uniform(assert_mean):
    X = problems.load("sphere-5").sample(100_000, random_state=0)
    np.testing.assert_allclose(np.sum(X**2, axis=1), 1)
    assert_mean(X**2, 1 / 5)
    assert_mean(X**4, 3 / (5 * 7))
    assert_mean(X[:, [0]] ** 2 * X[:, 1:] ** 2, 1 / (5 * 7))


def test_simulation_stays_on_the_sphere():
    paths = problems.load("sphere-3").simulate(500, 0.1, random_state=0)
    np.testing.assert_allclose(np.sum(paths**2, axis=2), 1)


def test_walk_on_the_circle_is_exact(assert_mean):
    paths = problems.load("sphere-2").simulate(2, 0.8, n_trajectories=50_000, random_state=0)
    assert_mean(np.sum(paths[:, 0] * paths[:, 1], axis=1), np.exp(-0.8))


def test_too_many_harmonics():
    with pytest.raises(ValueError, match="smaller k"):
        problems.load("sphere-60").eigenfunctions(np.ones((1, 60)), 2000)
