"""Scores and folds of pairs of frames whose energy, or variance, is rounding: deterministic systems."""

import numpy as np
from numpy.testing import assert_allclose

from kdmaps.selection.scores import ROUNDED_QUOTIENT, PooledAutocorrelations, ritz_pairs


def test_functions_without_energy_have_the_largest_autocorrelation():
    """In exact arithmetic E = diag(0, 0.2): ν = 1 and 0.8 in two folds of variance 1, so that Σν² = 1.64."""
    covariance = np.stack([np.eye(2)] * 2)
    energy = np.stack([np.diag([-1e-17, 0.2]), np.diag([1e-17, 0.2])])
    pooled = PooledAutocorrelations(covariance, energy, 1.0, power=2)
    assert_allclose(pooled.lower_bound(1.0), 1.64, atol=1e-9)


def test_quotients_are_relative_to_the_variance():
    covariance = np.diag([4.0, 1e-8])[None]
    energy = np.diag([-1e-16, 5e-9])[None]  # quotients 0 within rounding, and 1/2
    times, directions = ritz_pairs(covariance, energy, ROUNDED_QUOTIENT)
    assert_allclose(times, [[2.0, 1 / ROUNDED_QUOTIENT]], rtol=1e-9)
    assert_allclose(directions[0].T @ covariance[0] @ directions[0], np.diag(times[0]), rtol=1e-9, atol=1e-6)


def test_other_scores_refuse_modes_without_energy():
    times, _ = ritz_pairs(np.eye(2)[None], np.diag([-1e-17, 0.2])[None])
    assert np.isneginf(times).all()
