"""Finite volumes and samplers against the Schrödinger form, quadrature and closed forms."""

import numpy as np
import pytest
from scipy.integrate import quad

import kdmaps.problems as problems


@pytest.mark.parametrize("name", ["dw1d", "dw1d-asym", "triplewell1d", "prinz"])
def test_one_dimension(name, schroedinger):
    p = problems.load(name)
    rates, points, modes, mass = schroedinger(
        lambda X: p.potential(X[:, 0]), lambda X: p.gradient(X), (p.domain,), 400, 7
    )
    assert abs(rates[0]) < 1e-7
    np.testing.assert_allclose(p.rates(6), rates[1:], rtol=1e-6)
    ours = p.eigenfunctions(points, 6)
    # Overlaps of normalised modes are ±1; weights sum to 1.
    overlap = (ours * (mass / mass.sum())[:, None]).T @ modes[:, 1:]
    np.testing.assert_allclose(np.abs(overlap), np.eye(6), atol=1e-6)


def test_prinz_has_four_wells():
    p = problems.load("prinz")
    x = np.linspace(-1.2, 1.2, 2001)
    v = p.potential(x)
    wells = x[1:-1][(v[1:-1] < v[:-2]) & (v[1:-1] < v[2:])]
    assert len(wells) == 4
    # The formula at 0 and at 1/2, by hand; the bumps at the other centres are below 1e-4.
    np.testing.assert_allclose(p.potential(np.array([0.0, 0.5])), [3.2, 4 * (0.5**8 + 0.2)], atol=1e-3)


def test_known_double_well_rate():
    # Lowest excited level of -ψ'' + (V'²/4 - V''/2)ψ by shooting an odd solution from 0 and bisecting its divergence.
    from scipy.integrate import solve_ivp
    from scipy.optimize import brentq

    def end(rate):
        def slope(x, u):
            return [u[1], ((x * (x**2 - 1)) ** 2 / 4 - (3 * x**2 - 1) / 2 - rate) * u[0]]

        return solve_ivp(slope, (0, 3.5), [0, 1], rtol=1e-11, atol=1e-13).y[0, -1]

    assert problems.load("dw1d").rates(1)[0] == pytest.approx(brentq(end, 0.5, 1.5, xtol=1e-12), rel=1e-6)


def test_quadratic_potential_is_ornstein_uhlenbeck():
    p = problems.Langevin1D(lambda x: 3 * x**2 / 2, lambda x: 3 * x, (-20, 20))
    exact = problems.OrnsteinUhlenbeck([3.0])
    np.testing.assert_allclose(p.rates(12), 3 * np.arange(1, 13), rtol=1e-7)
    X = exact.sample(500, random_state=0)
    np.testing.assert_allclose(p.eigenfunctions(X, 4), exact.eigenfunctions(X, 4), atol=1e-5)


@pytest.mark.parametrize("name", ["dw1d", "dw1d-asym", "triplewell1d", "prinz"])
def test_sampler_follows_the_distribution_function(name):
    """Kolmogorov–Smirnov: a distance of 2.5/√n has a probability of 7e-6."""
    p = problems.load(name)
    x = np.sort(p.sample(100_000, random_state=0)[:, 0])
    weight = quad(lambda t: np.exp(-p.potential(t)), *p.domain, points=[-1, 0, 1], limit=200)[0]
    grid = np.linspace(*p.domain, 60)[1:-1]
    exact = [quad(lambda t: np.exp(-p.potential(t)), p.domain[0], g, limit=200)[0] / weight for g in grid]
    # A sample restricted to the centres of cells would pass the test below.
    assert len(np.unique(x)) == len(x)
    assert np.abs(np.searchsorted(x, grid) / len(x) - exact).max() < 2.5 / np.sqrt(len(x))


@pytest.mark.parametrize("name", ["dw1d-asym", "triplewell1d", "prinz", "triplewell2d", "muller-brown"])
def test_gradient(name):
    p = problems.load(name)
    X = p.sample(50, random_state=0)
    step = 1e-6
    for j, e in enumerate(np.eye(p.dim)):
        difference = (p.potential(X + step * e) - p.potential(X - step * e)).reshape(len(X)) / (2 * step)
        np.testing.assert_allclose(p.drift(X)[:, j], -p.diffusion * difference, atol=1e-6)


@pytest.mark.slow
def test_two_dimensions(schroedinger, assert_mean):
    p = problems.load("triplewell2d")
    rates, points, modes, mass = schroedinger(p.potential, p.gradient, p.domain, 45, 7, cutoff=22.0)
    # The coarse sinc grid is accurate to about 1e-5; the finite volumes are better.
    np.testing.assert_allclose(p.rates(6), rates[1:], rtol=1e-4)
    overlap = (p.eigenfunctions(points, 6) * (mass / mass.sum())[:, None]).T @ modes[:, 1:]
    np.testing.assert_allclose(np.abs(overlap), np.eye(6), atol=1e-3)
    # The sampler against moments by the trapezoidal rule on the same points.
    X = p.sample(200_000, random_state=0)
    for f in (lambda X: X, lambda X: X**2, lambda X: np.prod(X, axis=1, keepdims=True), np.tanh):
        assert_mean(f(X), mass @ f(points) / mass.sum(), bias=1e-6)


@pytest.mark.slow
def test_two_dimensions_refined():
    p = problems.load("triplewell2d")
    finer = problems.Langevin2D(p.potential, p.gradient, p.domain, cells=60)
    np.testing.assert_allclose(p.rates(5), finer.rates(5), rtol=1e-6)
    X = p.sample(500, random_state=0)
    np.testing.assert_allclose(p.eigenfunctions(X, 3), finer.eigenfunctions(X, 3), atol=1e-4)


@pytest.mark.slow
def test_degenerate_two_dimensional_modes():
    """An isotropic Gaussian has rates 1, 1, 2, 2, 2, 3, …; the first pair spans x and y up to a rotation."""
    p = problems.Langevin2D(lambda X: np.sum(X**2, axis=1) / 2, lambda X: X, ((-9, 9), (-9, 9)))
    np.testing.assert_allclose(p.rates(5), [1, 1, 2, 2, 2], rtol=1e-6)
    X = np.random.default_rng(0).standard_normal((300, 2))
    assert p.reference(X, 1).shape == (300, 2)
    pair = p.eigenfunctions(X, 2)
    rotation = np.linalg.lstsq(X, pair)[0]
    np.testing.assert_allclose(X @ rotation, pair, atol=1e-4)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(2), atol=1e-4)


@pytest.mark.parametrize("domain", [(1, 0), (0, np.inf), (0, 1, 2)])
def test_bad_domain(domain):
    with pytest.raises(ValueError, match="domain must"):
        problems.Langevin1D(np.square, np.square, domain)
    with pytest.raises(ValueError, match="domain must"):
        problems.Langevin2D(np.square, np.square, (domain, (0, 1)))


def test_infinite_potential():
    with pytest.raises(ValueError, match="potential must be finite"), np.errstate(all="ignore"):
        problems.Langevin1D(np.log, lambda x: 1 / x, (-1, 1))


def test_too_many_modes():
    p = problems.load("triplewell2d")
    with pytest.raises(ValueError, match="more cells"):
        problems.Langevin2D(p.potential, p.gradient, p.domain, cells=10).rates(20)


@pytest.mark.parametrize("name", ["dw1d-asym", "triplewell2d"])
def test_one_step(name, assert_mean):
    """Euler–Maruyama: the increment is normal with mean -∇V dt and covariance 2 dt."""
    p = problems.load(name)
    dt = 0.01
    x0 = np.full(p.dim, 0.4)
    paths = p.simulate(2, dt, n_trajectories=200_000, x0=x0, random_state=0)
    noise = paths[:, 1] - x0 - p.drift([x0]) * dt
    assert_mean(noise, 0.0)
    assert_mean(noise**2, 2 * dt)
    assert_mean(noise**4, 3 * (2 * dt) ** 2)


def test_diverging_simulation():
    with pytest.raises(ValueError, match="smaller dt"):
        problems.load("dw1d").simulate(100, 5.0, n_trajectories=50, random_state=0)


def test_problems_of_one_name_share_only_their_solution():
    first, second = (problems.load("triplewell2d") for _ in range(2))
    rates = first.rates(2)
    assert second._modes is first._modes
    rates *= 2  # a copy
    np.testing.assert_array_equal(2 * second.rates(2), rates)
    first.name, first.diffusion = "mine", 3.0
    assert (second.name, second.diffusion) == ("triplewell2d", 1.0)
