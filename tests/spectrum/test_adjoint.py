"""Leading modes by iteration and the derivative of their space, against the dense solution."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kdmaps.spectrum import adjoint, iteration
from kdmaps.spectrum.adjoint import leading_modes


def test_a_cut_through_a_cluster_has_a_finite_adjoint():
    """μ = 2, 1, 1, 1, ½ cut after the third: the space is partly arbitrary, its derivative is guarded."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    modes = leading_modes(Q @ np.diag([2.0, 1.0, 1.0, 1.0, 0.5]) @ Q.T, np.eye(5), 3, 1e-15)
    assert all(np.all(np.isfinite(part)) for part in modes.adjoint(rng.standard_normal((5, 3))))


def decaying_problem(p=150, gap=0.8, seed=0):
    """Σ and B with known eigenvalues of Σa = μBa: 1, ¾, ½, then `gap`·½ and falling by ⅞ each."""
    rng = np.random.default_rng(seed)
    values = np.concatenate([[1.0, 0.75, 0.5], 0.5 * gap * 0.875 ** np.arange(p - 3)])
    A = np.linalg.qr(rng.standard_normal((p, p)))[0] * rng.uniform(0.5, 2.0, p)
    covariance = A @ np.diag(values) @ A.T
    return (covariance + covariance.T) / 2, A @ A.T, values


def densely(monkeypatch, *arguments):
    with monkeypatch.context() as patch:
        patch.setattr(adjoint, "SMALLEST_ITERATED", 10_000)
        return leading_modes(*arguments)


@pytest.mark.parametrize("start", ["random", "similar"])
def test_iteration_against_the_dense_solution(start, monkeypatch):
    covariance, penalty, values = decaying_problem()
    other = None
    if start == "similar":
        other = leading_modes(covariance + 1e-3 * np.eye(len(values)), penalty, 3, 1e-15).reduced
    found = leading_modes(covariance, penalty, 3, 1e-15, other)
    dense = densely(monkeypatch, covariance, penalty, 3, 1e-15)
    assert found.reduced.shape == (150, 11)
    assert dense.reduced.shape == (150, 150)
    # Eigenvalues are as good as the square of the residuals, 1e-11: rounding remains.
    assert_allclose(found.values[:3], values[:3], rtol=1e-12)
    signs = np.sign(np.sum(found.vectors * (penalty @ dense.vectors), axis=0))
    assert_allclose(found.vectors, dense.vectors * signs, atol=1e-9 * np.abs(dense.vectors).max())
    by_vectors = np.random.default_rng(1).standard_normal((150, 3))
    for part, expected in zip(found.adjoint(by_vectors * signs), dense.adjoint(by_vectors), strict=True):
        # The residuals, enlarged by the relative gap of 1/10.
        assert_allclose(part * signs, expected, atol=1e-9 * np.abs(expected).max())


def test_dense_solution_where_iteration_fails(monkeypatch):
    covariance, penalty, _ = decaying_problem()
    expected = densely(monkeypatch, covariance, penalty, 3, 1e-15)
    monkeypatch.setattr(iteration, "MAX_FILTERS", 1)
    found = leading_modes(covariance, penalty, 3, 1e-15)
    assert_allclose(found.vectors, expected.vectors, rtol=1e-12)
    monkeypatch.undo()
    iterated = leading_modes(covariance, penalty, 3, 1e-15)
    by_vectors = np.random.default_rng(1).standard_normal((150, 3))
    converged = iterated.adjoint(by_vectors)
    monkeypatch.setattr(adjoint, "MAX_STEPS", 1)
    for part, reference in zip(iterated.adjoint(by_vectors), converged, strict=True):
        assert_allclose(part, reference, atol=1e-9 * np.abs(reference).max())


def test_a_cut_through_equal_eigenvalues_among_many_has_a_finite_adjoint():
    covariance, penalty, _ = decaying_problem(gap=1.0)
    modes = leading_modes(covariance, penalty, 3, 1e-15)
    assert all(np.all(np.isfinite(part)) for part in modes.adjoint(np.random.default_rng(1).standard_normal((150, 3))))


def test_undetermined_modes():
    """An indefinite B, and a Σ of rank 2 for three modes."""
    covariance, penalty, _ = decaying_problem(p=20)
    assert leading_modes(covariance, penalty - 10 * np.eye(20), 3, 1e-15) is None
    rank_two = np.diag(np.r_[1.0, 0.5, np.zeros(18)])
    assert leading_modes(rank_two, penalty, 2, 1e-15) is not None
    assert leading_modes(rank_two, penalty, 3, 1e-15) is None
    assert leading_modes(covariance, penalty, 21, 1e-15) is None  # of 20 functions
