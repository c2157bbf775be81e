"""Müller–Brown: rates against known figures, modes against their equation, biased frames against quadrature."""

import numpy as np
import pytest

import kdmaps.problems as problems
from kdmaps.generators import for_problem
from kdmaps.simulation import boltzmann_weights, effective_sample_size

pytestmark = pytest.mark.slow  # its modes need a fine grid


@pytest.fixture(scope="module")
def problem():
    return problems.load("muller-brown")


@pytest.fixture(scope="module")
def frames(problem):
    """Biased frames and weights: thousands in each well, where independent samples have a few."""
    return problem.biased_sample(50_000, random_state=0)


def test_potential(problem):
    # Stationary points and energies of the original potential, times 0.15.
    points = np.array([[-0.558224, 1.441726], [0.623499, 0.028038], [-0.050011, 0.466694], [-0.822002, 0.624313]])
    np.testing.assert_allclose(problem.potential(points), 0.15 * np.array([-146.700, -108.167, -80.768, -40.665]), 1e-5)
    np.testing.assert_allclose(problem.gradient(points), 0, atol=1e-3)


def test_rates(problem):
    assert problem.n_modes == 2
    assert problem.diffusion == 0.1
    rates = problem.rates(3)
    assert rates[0] == pytest.approx(1.2474e-4, abs=5e-9)
    assert 0.3559 < rates[1] < 0.3560
    # On the plateau outside of the wells; it does not depend on the domain.
    assert rates[2] == pytest.approx(0.6746, abs=5e-5)


def test_third_rate_depends_on_reflecting_sides(problem):
    box = problems.Langevin2D(problem.potential, problem.gradient, ((-1.7, 1.3), (-0.5, 2.2)), 64, diffusion=0.1)
    np.testing.assert_allclose(box.rates(2), problem.rates(2), rtol=1e-6)
    assert box.rates(3)[2] == pytest.approx(1.24, abs=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_effective_sample_size(problem, seed):
    X, weights = problem.biased_sample(2000, random_state=seed)
    assert X.shape == (2000, 2)
    assert 700 < effective_sample_size(weights) < 900
    np.testing.assert_allclose(weights, boltzmann_weights(problem.bias(X), kT=1.0), rtol=1e-12)
    again, _ = problem.biased_sample(2000, random_state=seed)
    np.testing.assert_array_equal(X, again)


def test_bias_fills_the_wells(problem):
    # Bottoms of the wells and the highest saddle: 22.0, 16.2, 12.1 and 6.1 become 10.3, 7.7, 7.0 and 6.0 below zero.
    points = np.array([[-0.558224, 1.441726], [0.623499, 0.028038], [-0.050011, 0.466694], [-0.822002, 0.624313]])
    filling = 5 / 6 * (-6 - problem.potential(points))
    expected = np.log(1 / (np.exp(-filling) + np.exp(-12)))
    np.testing.assert_allclose(problem.bias(points), expected, rtol=1e-12)
    barrier = np.ptp(problem.potential(points) + problem.bias(points))
    assert barrier < 5 < np.ptp(problem.potential(points)) / 3
    # Nothing is added above the saddles.
    np.testing.assert_allclose(problem.bias([[1.2, 1.5], [-1.7, 0.3]]), 0, atol=1e-5)


def test_weights_reproduce_averages(problem, frames, assert_mean):
    X, weights = frames
    grid = np.stack(np.meshgrid(*(np.linspace(*side, 600) for side in problem.domain)), axis=-1).reshape(-1, 2)
    law = np.exp(-22 - problem.potential(grid))
    law /= law.sum()

    def functions(X):
        right = (X[:, [0]] > -0.2) & (X[:, [1]] < 0.9)
        return np.hstack([X, X**2, np.tanh(3 * X), problem.potential(X)[:, None], right])

    exact = law @ functions(grid)
    assert exact[-1] == pytest.approx(0.0033, abs=1e-4)
    assert_mean(weights[:, None] * (functions(X) - exact), 0.0)


def test_modes_on_biased_frames(problem, frames, assert_mean):
    """Modes are orthonormal, their energies D E|∇φ|² are the rates, and they solve D(Δφ - ∇V·∇φ) = -rate φ."""
    X, weights = frames
    phi, rates, step = problem.eigenfunctions(X, 2), problem.rates(2), 1e-3
    assert_mean(weights[:, None] * phi, 0.0)
    assert_mean(weights[:, None] * (phi**2 - 1), 0.0)
    assert_mean(weights * phi[:, 0] * phi[:, 1], 0.0)

    residual, energy = rates * phi, np.zeros_like(phi)
    for j, e in enumerate(np.eye(2)):
        up, down = problem.eigenfunctions(X + step * e, 2), problem.eigenfunctions(X - step * e, 2)
        slope = (up - down) / (2 * step)
        energy += problem.diffusion * slope**2
        residual += problem.drift(X)[:, [j]] * slope + problem.diffusion * (up - 2 * phi + down) / step**2
    assert_mean(weights[:, None] * (energy - rates), 0.0)
    # Relative to rate 2 for both: cancellation in the second difference does not decrease with rate 1.
    assert (np.sqrt(weights @ residual**2 / len(X)) < 1e-2 * rates[1]).all()


def test_trajectories(problem, assert_mean):
    """Trajectories preserve the law, and E[φ_t φ_0] = e^{-rate t}; started from biased frames, with their weights."""
    X, weights = problem.biased_sample(8000, random_state=1)
    paths = problem.simulate(201, 2e-3, n_trajectories=len(X), x0=X, random_state=2)
    start, end = (problem.eigenfunctions(paths[:, frame], 2) for frame in (0, -1))
    # Euler–Maruyama widens the narrowest direction, of rate 61, by 61 dt / 2 = 6 %.
    assert_mean(weights[:, None] * end, 0.0, bias=0.02)
    assert_mean(weights[:, None] * (end**2 - 1), 0.0, bias=0.06)
    assert_mean(weights[:, None] * (start * end - np.exp(-0.4 * problem.rates(2))), 0.0, bias=0.02)


def test_generator_has_the_diffusion_constant(problem):
    assert for_problem(problem).diffusion == 0.1


@pytest.mark.parametrize("n", [0, -1, 2.5, "3"])
def test_bad_number(problem, n):
    with pytest.raises(ValueError, match="n_samples"):
        problem.biased_sample(n)


def test_bad_points(problem):
    with pytest.raises(ValueError, match="X must"):
        problem.bias(np.zeros((3, 3)))


@pytest.mark.parametrize("diffusion", [0, -1, np.nan, "x"])
def test_bad_diffusion(problem, diffusion):
    with pytest.raises(ValueError, match="diffusion must"):
        problems.Langevin2D(problem.potential, problem.gradient, problem.domain, diffusion=diffusion)
    with pytest.raises(ValueError, match="diffusion must"):
        problems.OrnsteinUhlenbeck([1.0], diffusion=diffusion)
