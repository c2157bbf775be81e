"""Theorems of the paper that need a correction, against exact examples."""

import numpy as np
import pytest
from scipy import linalg

from experiments.paper.corrections import (
    CORRECTIONS,
    cluster_draws,
    landmark_operators,
    printed_subspace_term,
)
from experiments.theory.residuals import residual_gap
from kdmaps import problems
from kdmaps.kernels import Gaussian


def test_ritz_values_grow_with_the_space():
    """Courant–Fischer: in nested spaces every μ_k can only grow. They approach the limit from below."""
    X = problems.load("ou2d-4").sample(200, random_state=0)
    found = [landmark_operators(X, 0.5, X[:p])[1].eigenpairs(3)[0] for p in (5, 20, 60)]
    assert np.all(np.diff(found, axis=0) > -1e-8)
    assert found[-1][0] > 1.5 * found[0][0]


def test_cluster_bound_needs_the_distance_of_the_value():
    """Rates 1, 2, 3, 5 with the cluster {2, 3}: the printed gap is 1, but λ = 1.5 has the distance 0.5 from rate 1.

    φ = e_1 has the residual |1 - 1.5| = 0.5 and the distance 1 from the cluster, more than 0.5/1.
    """
    certificate = residual_gap(0.5, 1.5, [1.0, 2.0, 3.0, 5.0], [1, 2])
    assert certificate.value == pytest.approx(1.0)


def test_random_functions_violate_the_printed_bound_only():
    distance, printed, corrected = cluster_draws(0)
    assert np.sum(distance > printed * (1 + 1e-12)) >= 1
    assert np.all(distance <= corrected * (1 + 1e-12))


def test_the_only_mode_of_a_cluster_has_the_printed_bound():
    """For one mode and its exact rate, both bounds agree: rates 0, 1, 3, φ at an angle t to e_1."""
    t = 0.3
    coefficients = np.array([0.0, np.cos(t), np.sin(t)])
    rates = np.array([0.0, 1.0, 3.0])
    residual = np.linalg.norm((rates - 1.0) * coefficients)
    assert np.sin(t) <= residual / 1.0


def test_subspace_term_by_hand():
    modes = np.array([[1.0, 2.0], [3.0, 0.0]])
    gram = np.array([[5.0, 1.0], [1.0, 2.0]])
    expected = (2.0**2 + 1.0**2) + ((gram[0, 0] - 1) ** 2 + (gram[1, 1] - 1) ** 2) + 7.0 * 1.0
    assert printed_subspace_term(modes, eta=7.0) == pytest.approx(expected)


def test_landmark_operators_by_loops():
    X = np.random.default_rng(0).standard_normal((7, 2))
    Z = X[:3]
    values, operators = landmark_operators(X, 0.8, Z)
    J = Gaussian(0.8).gradient(X, Z)
    energy = sum(np.outer(J[i, :, j], J[i, :, j]) for i in range(7) for j in range(2)) / 7
    np.testing.assert_allclose(operators.penalty, energy + 0.01 * (values[:3] + 1e-10 * np.eye(3)), rtol=1e-10)
    mu, a = operators.eigenpairs(2)
    np.testing.assert_allclose(mu, linalg.eigh(operators.covariance, operators.penalty)[0][::-1][:2], rtol=1e-8)
    np.testing.assert_allclose(a.T @ operators.penalty @ a, np.eye(2), atol=1e-8)


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.place)
def test_every_correction_has_numbers(correction):
    numbers = correction.evidence(1)
    assert numbers
    assert all(np.isfinite(value) for value in numbers.values())
