"""Ornstein–Uhlenbeck and MD-like problems: modes of products."""

from itertools import product
from math import factorial

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval

import kdmaps.problems as problems


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
    correlation = [np.corrcoef(a, b)[0, 1] for a, b in zip(p.paper_reference(X).T, columns(X), strict=True)]
    np.testing.assert_allclose(correlation, 1, rtol=1e-12)


def test_high_dimension_is_fast_enough_to_enumerate():
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
    np.testing.assert_array_equal(p.paper_reference(X), np.tanh(3 * X[:, :2]))
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
