"""The quick path of a race against exact solves, and the directions that samples see."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg
from spectra import positive

from kdmaps.bases import make_basis
from kdmaps.forms.energy import compute_moments
from kdmaps.kernels import Gaussian, Matern
from kdmaps.spectrum.iteration import IteratedPath, seen_directions
from kdmaps.spectrum.path import RegularizationPath

X = np.random.default_rng(0).standard_normal((400, 2))


@pytest.mark.parametrize("with_ridge", [False, True])
def test_repeated_solves_converge_to_the_exact_pairs(with_ridge):
    p = 60
    covariance, energy = positive(0, p), positive(1, p)
    ridge = positive(2, p) if with_ridge else None
    penalty = energy + 0.1 * (np.eye(p) if ridge is None else ridge)
    exact = linalg.eigh(covariance, penalty, eigvals_only=True)[::-1][:3]
    path = IteratedPath(covariance, energy, ridge)
    for _ in range(100):  # every solve goes on from the one before
        values, a = path.solve(3, 0.1)
    assert_allclose(values, exact, rtol=1e-9)
    assert_allclose(a.T @ penalty @ a, np.eye(3), atol=1e-9)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Matern(1.5, 3.0)], ids=repr)
def test_one_pass_down_the_path_is_close(kernel):
    """Ritz values are never too large, and lack little: the spectra of features decay quickly."""
    basis = make_basis("fourier", kernel, X, 200, random_state=0)
    moments = compute_moments(basis, X)
    operators = moments.covariance(), moments.mean_energy()
    exact, quick = RegularizationPath(*operators), IteratedPath(*operators)
    for lam in (1e-1, 1e-3, 1e-5, 1e-7):
        values, expected = quick.solve(4, lam)[0], exact.solve(4, lam)[0]
        assert np.all(values <= expected * (1 + 1e-6))
        assert_allclose(values, expected, rtol=2e-2)


def test_a_guide_is_a_start():
    covariance, energy = positive(0, 80), positive(1, 80)
    near = covariance + 1e-3 * positive(3, 80)
    expected = linalg.eigh(near, energy + 0.1 * np.eye(80), eigvals_only=True)[::-1][:3]
    guide = IteratedPath(covariance, energy)
    for _ in range(50):
        guide.solve(3, 0.1)
    guided = IteratedPath(near, energy, guide=guide).solve(3, 0.1)[0]
    alone = IteratedPath(near, energy).solve(3, 0.1)[0]
    assert np.all(np.abs(guided - expected) < 0.2 * np.abs(alone - expected))


def test_a_pencil_that_is_not_definite_has_no_modes():
    values, a = IteratedPath(positive(0, 5), -positive(1, 5)).solve(2, 1e-3)
    assert len(values) == 0
    assert a.shape == (5, 0)


def test_nothing_is_lost_in_the_directions_that_samples_see():
    basis = make_basis("fourier", Gaussian(6.0), X, 200, random_state=0)
    moments = compute_moments(basis, X)
    frame = seen_directions(moments.gram, moments.energy)
    assert frame.shape[1] < 80
    assert_allclose(frame.T @ frame, np.eye(frame.shape[1]), atol=1e-12)
    small = moments.reduced(frame)
    whole = RegularizationPath(moments.covariance(), moments.mean_energy())
    reduced = RegularizationPath(small.covariance(), small.mean_energy())
    for lam in (1e-2, 1e-6):  # what is left out has 1e-15 of the variance: of 1e-6 of λ, that is 1e-9
        assert_allclose(reduced.solve(4, lam)[0], whole.solve(4, lam)[0], rtol=1e-8)


def test_rough_kernels_keep_all_directions():
    basis = make_basis("fourier", Gaussian(0.1), X, 100, random_state=0)
    moments = compute_moments(basis, X)
    assert seen_directions(moments.gram, moments.energy) is None
