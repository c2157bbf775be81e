"""Spherical harmonics in any dimension against the addition theorem and the formula of multiplicities."""

from math import comb

import numpy as np
import pytest
from scipy.special import eval_chebyt, eval_gegenbauer

import kdmaps.problems as problems


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


def test_first_modes_are_the_coordinates():
    p = problems.load("sphere-5")
    X = p.sample(10, random_state=0)
    np.testing.assert_allclose(p.reference(X, 1), np.sqrt(5) * X)
    assert p.reference(X, 6).shape == (10, 5 + 14)


def test_sample_is_uniform(assert_mean):
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


def test_too_many_monomials():
    with pytest.raises(ValueError, match="smaller k"):
        problems.load("sphere-60").eigenfunctions(np.ones((1, 60)), 2000)
