"""The boundary value problem against explicit solutions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdmaps.bases import make_basis
from kdmaps.forms.energy import compute_moments
from kdmaps.kernels import Gaussian
from kdmaps.spectrum.committor import BoundarySums

X = np.random.default_rng(0).normal(size=(200, 2))
WEIGHT = np.random.default_rng(1).uniform(0.5, 2, 200)
SIDE = np.where(X[:, 0] < -1, 0, np.where(X[:, 0] > 1, 1, -1))
BASIS = make_basis("fourier", Gaussian(1.0), X, 20, random_state=0)


def sums(basis, points, weight, side, rows=None):
    rows = np.arange(len(points)) if rows is None else rows
    parts = [
        compute_moments(basis, points, weight if one < 0 else None, None, rows[side[rows] == one]) for one in (-1, 0, 1)
    ]
    return BoundarySums(*parts, np.array([weight[rows][side[rows] == one].sum() for one in (0, 1)]))


def penalised(function, gradient, constant, ridge, regularization, penalty):
    """The objective, from values and gradients at the samples."""
    f, slopes = constant + function, np.sum(gradient**2, axis=1)
    outside = SIDE < 0
    energy = WEIGHT[outside] @ slopes[outside] / WEIGHT.sum()
    sets = np.mean(f[SIDE == 0] ** 2) + np.mean((1 - f[SIDE == 1]) ** 2)
    return energy + regularization * ridge + penalty * sets


def test_no_other_function_has_a_lower_objective():
    regularization, penalty = 1e-3, 10.0
    found = sums(BASIS, X, WEIGHT, SIDE).solve(BASIS, [regularization], penalty)

    def objective(a, constant):
        values, slopes = BASIS.combine(X, a[:, None])[:, 0], BASIS.gradient(X, a[:, None])[:, 0]
        return penalised(values, slopes, constant, a @ a, regularization, penalty)

    a, constant, rng = found.coefficients[:, 0], -found.offset[0], np.random.default_rng(2)
    least = objective(a, constant)
    for _ in range(20):
        step = 1e-3 * rng.normal(size=len(a) + 1)
        # A quadratic function at its minimum: both directions rise by the same amount.
        up, down = objective(a + step[1:], constant + step[0]), objective(a - step[1:], constant - step[0])
        assert up > least
        assert up - least == pytest.approx(down - least, rel=1e-4)


def test_sums_of_two_halves_add_up():
    first = np.arange(100)
    together = sums(BASIS, X, WEIGHT, SIDE, first) + sums(BASIS, X, WEIGHT, SIDE, first + 100)
    whole = sums(BASIS, X, WEIGHT, SIDE)
    np.testing.assert_allclose(together.energy(), whole.energy(), atol=1e-12 * np.abs(whole.energy()).max())
    np.testing.assert_allclose(together.masses, whole.masses, rtol=1e-12)


@given(st.floats(0.1, 10), st.floats(1e-6, 1e-1))
def test_exchange_of_the_sets_reflects_the_function(penalty, regularization):
    one = sums(BASIS, X, WEIGHT, SIDE).solve(BASIS, [regularization], penalty)
    other = sums(BASIS, X, WEIGHT, np.choose(SIDE, [1, 0], mode="wrap") * (SIDE >= 0) - (SIDE < 0)).solve(
        BASIS, [regularization], penalty
    )
    # To rounding, amplified by the condition number of at most 1e7.
    scale = np.abs(one.coefficients).max()
    np.testing.assert_allclose(other.coefficients, -one.coefficients, atol=1e-8 * scale)
    np.testing.assert_allclose(other.offset, -1 - one.offset, atol=1e-8 * scale)


def test_a_singular_matrix_has_no_solution():
    doubled = make_basis("landmarks", Gaussian(1.0), X, 2, landmarks=np.zeros((2, 2)))
    found = sums(doubled, X, WEIGHT, SIDE).solve(doubled, [0.0], 1.0)
    assert np.isnan(found.offset).all()
