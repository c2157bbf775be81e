"""The regularization path against scipy and against one solve for each λ."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg
from spectra import positive

from kdmaps.bases import make_basis
from kdmaps.forms.energy import compute_moments
from kdmaps.kernels import Gaussian
from kdmaps.spectrum import path as module
from kdmaps.spectrum.path import RegularizationPath
from kdmaps.spectrum.pencil import find_modes


@pytest.mark.parametrize("with_ridge", [False, True])
@pytest.mark.parametrize(("p", "dense"), [(3, True), (40, True), (160, True), (160, False)])
def test_against_scipy(p, dense, with_ridge, monkeypatch):
    if not dense:
        monkeypatch.setattr(module, "DENSE_BLOCKS", 0)
    covariance, energy = positive(0, p), positive(1, p)
    ridge = positive(2, p) if with_ridge else None
    path = RegularizationPath(covariance, energy, ridge)
    for regularization in (1.0, 1e-1, 1e-3, 1e-6):
        penalty = energy + regularization * (np.eye(p) if ridge is None else ridge)
        exact = linalg.eigh(covariance, penalty, eigvals_only=True)[::-1][:3]
        values, a = path.solve(3, regularization)
        assert_allclose(values, exact, rtol=1e-9)
        assert_allclose(a.T @ penalty @ a, np.eye(3), atol=1e-9)
        assert_allclose(a.T @ covariance @ a, np.diag(exact), atol=1e-9 * exact[0])
        if ridge is None:
            assert_allclose(path.condition_number(regularization), np.linalg.cond(penalty), rtol=1e-8)


def test_same_as_find_modes_on_samples():
    # Decaying spectra of real features, with directions of no variance and energy.
    X = np.random.default_rng(0).standard_normal((400, 2))
    basis = make_basis("landmarks", Gaussian(2.0), X, 150, random_state=0)
    moments = compute_moments(basis, X)
    path = RegularizationPath(moments.covariance(), moments.mean_energy(), basis.ridge)
    for regularization in (1e-1, 1e-2, 1e-3):
        values, _ = path.solve(4, regularization)
        direct = find_modes(moments, basis.ridge, 4, regularization)
        # The jitter of R is 1e-9 of its trace, which limits the accuracy to about 1e-6.
        assert_allclose(values, direct.eigenvalues, rtol=1e-6)
