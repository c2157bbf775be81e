"""The rough solution for all folds against exact solves, and directions without variance or energy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg
from spectra import positive

from kdmaps.bases import make_basis
from kdmaps.data import ArraySource
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.forms.energy import EnergyForm, compute_moments
from kdmaps.forms.moments import Moments
from kdmaps.kernels import Gaussian, Matern
from kdmaps.selection import folds as folds_module
from kdmaps.selection.cross_fit import cross_fit
from kdmaps.selection.folds import Folds, make_splits
from kdmaps.spectrum.iteration import EXTRA, cross_fit_path, seen_directions
from kdmaps.spectrum.path import RegularizationPath

X = np.random.default_rng(0).standard_normal((400, 2))


EVERYTHING = np.ones((1, 1), dtype=bool)


def as_moments(covariance, energy):
    """Moments with these operators, if they are not centred."""
    return Moments(10, 1.0, 0.1, np.zeros(len(energy)), covariance, energy)


@pytest.mark.parametrize("with_ridge", [False, True])
@pytest.mark.parametrize(("n_steps", "bounded"), [(20, False), (6, True)])
def test_steps_converge_to_the_exact_pairs(with_ridge, n_steps, bounded):
    """Chebyshev steps need a bound of the eigenvalues beyond the modes; six plain steps do not converge."""
    p = 60
    covariance, energy, ridge = positive(0, p), positive(1, p), positive(2, p) if with_ridge else None
    penalty = energy + 0.1 * (np.eye(p) if ridge is None else ridge)
    exact = linalg.eigh(covariance, penalty, eigvals_only=True)[::-1]
    steps, bound = np.array([n_steps, 1]), exact[3 + EXTRA] if bounded else 0.0
    found = cross_fit_path(EVERYTHING, [as_moments(covariance, energy)], ridge, np.array([0.1]), 3, False, steps, bound)
    a = found.modes[0, 0].T
    assert_allclose(found.values[0, 0], exact[:3], rtol=1e-9)
    assert_allclose(a.T @ covariance @ a, np.eye(3), atol=1e-9)
    assert_allclose(found.rates[0], np.diag(a.T @ energy @ a), rtol=1e-9)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Matern(1.5, 3.0)], ids=repr)
def test_a_few_steps_are_close(kernel):
    """Ritz values are never too large, and lack little: the spectra of features decay quickly."""
    basis = make_basis("fourier", kernel, X, 200, random_state=0)
    moments = compute_moments(basis, X)
    exact, lambdas = RegularizationPath(moments.covariance(), moments.mean_energy()), np.array([1e-1, 1e-3, 1e-5, 1e-7])
    found = cross_fit_path(EVERYTHING, [moments], None, lambdas, 4)
    for lam, values in zip(lambdas, found.values[:, 0], strict=True):
        expected = exact.solve(4, lam)[0]
        assert np.all(values <= expected * (1 + 1e-6))
        assert_allclose(values, expected, rtol=2e-2)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("basis", ["fourier", "landmarks"])
def test_folds_agree_with_an_exact_fit(basis, center):
    """With enough steps, every number of every fold agrees with `cross_fit`."""
    made = make_basis(basis, Gaussian(2.0), X, 40, random_state=0)
    folds = Folds(make_splits(3, X, None, 3, 0), len(X))
    arguments = (ArraySource(X, checked=True), EnergyForm(DiffusionTensor(None, 2)), made)
    sums, members = folds.sums(*arguments)
    path = cross_fit_path(members, sums, made.ridge, np.array([1e-2]), 3, center, np.array([60, 60]))
    (exact,) = cross_fit(*folds.moments(*arguments), made.ridge, 3, [1e-2], center)
    assert_allclose(path.values[0, 0], exact.eigenvalues, rtol=1e-6)  # 1e-9 is the jitter of R relative to its trace
    for f, fold in enumerate(exact.folds):
        assert_allclose(path.values[0, 1 + f], fold.eigenvalues, rtol=1e-6)
        turn = np.sign(np.sum(path.modes[0, 1 + f].T * fold.coefficients, axis=0))
        names = ("test_covariance", "test_energy", "test_ridge", "train_energy")
        for found, name in zip(path.forms[0, f], names, strict=False):
            expected = getattr(fold, name)
            assert_allclose(found * np.outer(turn, turn), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
        assert path.weight[4 + 3 + f] == fold.test_weight
        assert_allclose(np.sum(path.forms[0, f, 4] ** 2), np.sum(exact.overlaps[f] ** 2), rtol=1e-5)


def test_folds_summed_without_classes_are_the_same():
    splits = make_splits(3, X, None, 3, 0)
    made = make_basis("fourier", Gaussian(2.0), X, 40, random_state=0)
    arguments = (ArraySource(X, checked=True), EnergyForm(DiffusionTensor(None, 2)), made)
    values = []
    for n_classes in (0, 3):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(folds_module, "MAX_CLASSES_PER_FOLD", n_classes)
            sums, members = Folds(splits, len(X)).sums(*arguments)
        values.append(cross_fit_path(members, sums, None, np.array([1e-2]), 3).values)
    assert_allclose(*values, rtol=1e-9)


def test_an_indefinite_pencil_has_no_modes():
    moments = as_moments(positive(0, 5), -positive(1, 5))
    assert not cross_fit_path(EVERYTHING, [moments], None, np.array([1e-3, 1e-4]), 2).known.any()


def test_reduced_moments_have_the_same_eigenvalues():
    basis = make_basis("fourier", Gaussian(6.0), X, 200, random_state=0)
    moments = compute_moments(basis, X)
    frame = seen_directions(moments.gram, moments.energy)
    assert frame.shape[1] < 80
    assert_allclose(frame.T @ frame, np.eye(frame.shape[1]), atol=1e-12)
    small = moments.reduced(frame)
    whole = RegularizationPath(moments.covariance(), moments.mean_energy())
    reduced = RegularizationPath(small.covariance(), small.mean_energy())
    for lam in (1e-2, 1e-6):  # the omitted directions have 1e-15 of the variance, 1e-9 relative to λ = 1e-6
        assert_allclose(reduced.solve(4, lam)[0], whole.solve(4, lam)[0], rtol=1e-8)


def test_rough_kernels_keep_all_directions():
    basis = make_basis("fourier", Gaussian(0.1), X, 100, random_state=0)
    moments = compute_moments(basis, X)
    assert seen_directions(moments.gram, moments.energy) is None
