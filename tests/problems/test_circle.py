"""The noisy circle against the Schrödinger form of its law, in polar and in Cartesian coordinates."""

import numpy as np
import pytest
from scipy.special import i0e, ive

import kdmaps.problems as problems


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


def test_paper_reference_is_the_angle():
    p = problems.load("circle")
    angle = np.linspace(-3, 3, 50)
    X = 1.1 * np.column_stack([np.cos(angle), np.sin(angle)])
    expected = np.column_stack([np.cos(angle), np.sin(angle), np.cos(2 * angle), np.sin(2 * angle)])
    np.testing.assert_allclose(p.paper_reference(X), np.sqrt(2) * expected)
    # For small noise the exact modes are close to these.
    np.testing.assert_allclose(p.eigenfunctions(X, 4), np.sqrt(2) * expected, rtol=0.02, atol=0.01)


def test_moments(assert_mean):
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
