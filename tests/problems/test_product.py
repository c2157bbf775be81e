"""Products of independent coordinates against enumeration, Hermite polynomials and the factors."""

from itertools import product
from math import factorial

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval

import kdmaps.problems as problems
from experiments._references import paper_reference


@pytest.mark.parametrize("alpha", [(1.0,), (1.0, 4.0), (1.0, 2**0.5, 3.0), (1.0, 1.0, 1.0, 1.0)])
def test_rates_against_enumeration(alpha):
    # Degrees up to 8 in each coordinate cover all rates up to 8, the bound below.
    every = sorted(np.dot(m, alpha) for m in product(range(9), repeat=len(alpha)))[1:]
    every = [rate for rate in every if rate <= 8]
    np.testing.assert_allclose(problems.OrnsteinUhlenbeck(alpha).rates(len(every)), every, rtol=1e-14)


def test_modes_are_hermite_products():
    p = problems.load("ou2d-4")
    X = p.sample(100, random_state=0)
    x, y = X.T

    def he(m, z):
        return hermeval(z, [0] * m + [1]) / np.sqrt(factorial(m))

    # Rates 1, 2, 3, 4, 4, 5, 5, 6, 6: the tie is broken towards the lower degree.
    expected = [he(1, x), he(2, x), he(3, x), he(1, 2 * y), he(4, x), he(1, x) * he(1, 2 * y), he(5, x)]
    np.testing.assert_allclose(p.eigenfunctions(X, 7), np.column_stack(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "r", "rates"),
    [
        ("ou2d-4", 4, [1, 2, 3, 4, 4]),
        ("ou2d-16", 4, [1, 2, 3, 4]),
        ("ou10d", 4, [1, 2, 2, 3, 3]),
        ("ou20d", 4, [1, 2, 2, 3, 3]),
        ("ou20d", 6, [1, 2, 2, 3, 3, 4, 4, 4, 4]),
    ],
)
def test_reference_completes_the_cluster(name, r, rates):
    p = problems.load(name)
    X = p.sample(20, random_state=0)
    np.testing.assert_array_equal(p.rates(len(rates)), rates)
    assert p.reference(X, r).shape == (20, len(rates))
    assert p.rates(len(rates) + 1)[-1] > rates[-1]


def test_stationary_variance(assert_mean):
    p = problems.load("ou3d")
    X = p.sample(100_000, random_state=0)
    assert_mean(X**2, 1 / np.array([1, 4, 16]))
    assert_mean(X[:, [0]] * X[:, 1:], 0.0)


def test_exact_transition(assert_mean):
    """From x0 the law after any dt is normal with mean e^{-αdt} x0 and variance (1 - e^{-2αdt})/α."""
    p = problems.load("ou3d")
    alpha, dt, x0 = np.array([1, 4, 16]), 0.1, np.array([1.0, -1.0, 0.5])
    end = p.simulate(2, dt, n_trajectories=200_000, x0=x0, random_state=0)[:, 1]
    noise = end - np.exp(-alpha * dt) * x0
    assert_mean(noise, 0.0)
    assert_mean(noise**2, (1 - np.exp(-2 * alpha * dt)) / alpha)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("ou2d-16", lambda X: [X[:, 0], X[:, 1], X[:, 0] ** 2 - 1, X[:, 1] ** 2 - 1]),
        ("ou3d", lambda X: [X[:, 0], X[:, 1], X[:, 2], X[:, 0] ** 2 - 1]),
        ("ou10d", lambda X: list(X.T[:4])),
        ("ou20d", lambda X: list(X.T[:4])),
    ],
)
def test_paper_reference_is_ordered_by_degree(name, columns):
    p = problems.load(name)
    X = p.sample(100, random_state=0)
    correlation = [np.corrcoef(a, b)[0, 1] for a, b in zip(paper_reference(p, X).T, columns(X), strict=True)]
    np.testing.assert_allclose(correlation, 1, rtol=1e-12)


def test_enumeration_in_twenty_dimensions():
    rates = problems.load("ou20d").rates(2000)
    # Rates are all integers m with the multiplicity of partitions of m into powers of two: 1, 2, 2, 4, 4, 6, 6, 10, …
    values, counts = np.unique(rates, return_counts=True)
    np.testing.assert_array_equal(values[:10], np.arange(1, 11))
    np.testing.assert_array_equal(counts[:10], [1, 2, 2, 4, 4, 6, 6, 10, 10, 14])


def test_mdlike():
    p = problems.load("mdlike-10")
    well = problems.load("dw1d")
    X = p.sample(100, random_state=0)
    first, second = well.rates(2)
    np.testing.assert_allclose(p.rates(6), [first, first, 2 * first, second, second, first + second], rtol=1e-7)
    one = well.eigenfunctions(X[:, [0]], 1), well.eigenfunctions(X[:, [1]], 1)
    np.testing.assert_allclose(p.eigenfunctions(X, 3), np.hstack([*one, one[0] * one[1]]), atol=1e-7)
    assert p.reference(X, 2).shape == (100, 2)
    assert p.reference(X, 1).shape == (100, 2)
    np.testing.assert_array_equal(paper_reference(p, X), np.tanh(3 * X[:, :2]))
    np.testing.assert_allclose(p.drift(X)[:, 2:], -25 * X[:, 2:])
    # The fast coordinates themselves have rate 25.
    assert np.isclose(p.rates(60), 25).sum() == 8


def test_mdlike_fast_variance(assert_mean):
    X = problems.load("mdlike-6").sample(100_000, random_state=0)
    assert_mean(X[:, 2:] ** 2, 0.04)


@pytest.mark.parametrize("rates", [(), (1, -1), (0.0,), (np.nan,), 3.0])
def test_bad_rates(rates):
    with pytest.raises(ValueError, match="rates must"):
        problems.OrnsteinUhlenbeck(rates)


def test_bad_mdlike():
    with pytest.raises(ValueError, match="n_slow"):
        problems.MDLike(n_slow=0)
    with pytest.raises(ValueError, match="n_fast"):
        problems.MDLike(n_fast=-1)
    with pytest.raises(ValueError, match="fast_variance"):
        problems.MDLike(fast_variance=-1.0)
    with pytest.raises(ValueError, match="factors"):
        problems.Product([])


# --- nuisance coordinates ---------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def base():
    return problems.load("triplewell2d")


@pytest.mark.parametrize("rotation", [None, 3])
@pytest.mark.parametrize("k", [1, 48])
def test_nuisance_keeps_the_slow_modes(base, k, rotation):
    p = problems.nuisance(base, k, 0.25, rotation=rotation)
    assert p.dim == 2 + k
    assert p.n_modes == base.n_modes
    # The new coordinates have rate 16, beyond the first modes of the base.
    np.testing.assert_array_equal(p.rates(4), base.rates(4))
    X = p.sample(300, random_state=0)
    plain = X if rotation is None else X @ p.rotation
    np.testing.assert_allclose(p.reference(X, 4), base.reference(plain[:, :2], 4), atol=1e-10)
    np.testing.assert_allclose(plain[:, :2], base.sample(300, random_state=np.random.default_rng(0)), atol=1e-12)


def test_products_of_modes_and_noise(assert_mean):
    well = problems.load("dw1d")
    p = problems.nuisance(well, 2, 0.5)
    first, second = well.rates(2)
    sums = [i + 4 * m + 4 * n for i in (0, *well.rates(6)) for m in range(4) for n in range(4)]
    np.testing.assert_allclose(p.rates(8), np.sort(sums)[1:9], rtol=1e-12)
    # Sorted: φ₁, φ₂, then z₁ and z₂ of rate 4, with z = x/0.5.
    assert first < second < 4 < well.rates(3)[2]
    X = p.sample(100_000, random_state=0)
    expected = np.hstack([well.eigenfunctions(X[:, :1], 2), 2 * X[:, 1:]])
    np.testing.assert_allclose(p.eigenfunctions(X, 4), expected, atol=1e-12)
    assert_mean(X[:, 1:] ** 2, 0.25)
    assert_mean(X[:, :1] * X[:, 1:], 0.0)


def test_rotation_of_samples_modes_and_trajectories(base):
    plain, rotated, other = (problems.nuisance(base, 3, 0.6, rotation=seed) for seed in (None, 0, 1))
    Q = rotated.rotation
    np.testing.assert_allclose(Q @ Q.T, np.eye(5), atol=1e-12)
    assert np.abs(Q - other.rotation).max() > 0.1
    X = plain.sample(50, random_state=1)
    np.testing.assert_allclose(rotated.sample(50, random_state=1), X @ Q.T, atol=1e-12)
    np.testing.assert_allclose(rotated.drift(X @ Q.T), plain.drift(X) @ Q.T, atol=1e-9)
    # The new coordinates, of rate 1/0.36 = 2.8, and their products with φ₁ are among these.
    np.testing.assert_array_equal(rotated.rates(9), plain.rates(9))
    np.testing.assert_allclose(rotated.eigenfunctions(X @ Q.T, 9), plain.eigenfunctions(X, 9), atol=1e-9)
    paths, turned = (p.simulate(5, 0.01, 3, x0=p.sample(3, 2), random_state=4) for p in (plain, rotated))
    np.testing.assert_allclose(turned, paths @ Q.T, atol=1e-9)


def test_nuisance_has_the_diffusion_constant_of_the_base(assert_mean):
    p = problems.nuisance(problems.OrnsteinUhlenbeck([1.5], diffusion=0.1), 2, 0.2)
    assert p.diffusion == 0.1
    np.testing.assert_allclose(p.rates(4), [1.5, 2.5, 2.5, 3.0], rtol=1e-12)
    X = p.sample(50_000, random_state=0)
    assert_mean(X**2, [0.1 / 1.5, 0.04, 0.04])
    phi = p.eigenfunctions(X, 4)
    assert_mean(phi**2, 1.0)
    paths = p.simulate(2, 0.3, n_trajectories=50_000, x0=[0.1, 0.4, 0.0], random_state=0)[:, 1, 1:]
    decay = np.exp(-0.3 * 2.5)
    assert_mean(paths, [0.4 * decay, 0.0])
    assert_mean((paths - [0.4 * decay, 0.0]) ** 2, 0.04 * (1 - decay**2))


@pytest.mark.parametrize("name", ["circle", "sphere-3"])
@pytest.mark.parametrize("rotation", [None, 0])
def test_nuisance_of_problems_without_a_drift(name, rotation, assert_mean):
    base = problems.load(name)
    p = problems.nuisance(base, 2, 0.1, rotation=rotation)
    assert not hasattr(p, "drift")
    np.testing.assert_array_equal(p.rates(3), base.rates(3))
    x0 = p.sample(20_000, random_state=0)
    paths = p.simulate(2, 0.05, n_trajectories=len(x0), x0=x0, random_state=1)
    np.testing.assert_array_equal(paths[:, 0], x0)
    # The new coordinates have rate 100 and forget: e^{-5}. The circle draws new noise instead of following its modes.
    end = paths[:, 1] if rotation is None else paths[:, 1] @ p.rotation
    assert_mean(end[:, -2:] ** 2, 0.01)
    assert_mean(p.eigenfunctions(paths[:, 1], 2), 0.0)


def test_names_with_nuisance_coordinates(base):
    p = problems.load("triplewell2d+198x0.1")
    assert p.name == "triplewell2d+198x0.1"
    assert p.dim == 200
    np.testing.assert_array_equal(
        p.sample(5, random_state=0), problems.nuisance(base, 198, 0.1).sample(5, random_state=0)
    )
    np.testing.assert_allclose(problems.load("dw1d+3").drift(np.ones((1, 4)))[:, 1:], -16)
    assert problems.nuisance(base, 198, 0.1).name == "triplewell2d+198x0.1"


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3"])
def test_bad_number_of_coordinates(base, k):
    with pytest.raises(ValueError, match="k must"):
        problems.nuisance(base, k, 0.25)


@pytest.mark.parametrize("std", [0, -0.1, np.nan, "x"])
def test_bad_deviation(base, std):
    with pytest.raises(ValueError, match="std must"):
        problems.nuisance(base, 3, std)


def test_bad_problem():
    with pytest.raises(ValueError, match="problem must be"):
        problems.nuisance("triplewell2d", 3, 0.25)
    for name in ("nowhere+3", "dw1d+", "dw1d+3x"):
        with pytest.raises(ValueError, match="Unknown problem name"):
            problems.load(name)
    with pytest.raises(ValueError, match="same diffusion constant"):
        problems.Product([problems.OrnsteinUhlenbeck([1.0]), problems.OrnsteinUhlenbeck([1.0], 0.5)])
