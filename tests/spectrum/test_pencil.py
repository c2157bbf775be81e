"""The generalized eigenproblem against scipy, and modes of samples with a known spectrum."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg
from scipy.stats import ortho_group
from spectra import moments_of, positive, with_spectrum

from kdmaps.bases import make_basis
from kdmaps.forms.energy import compute_moments
from kdmaps.kernels import Gaussian, Matern
from kdmaps.spectrum.pencil import find_modes, solve
from shared import checks, expects


class TestSolve:
    @pytest.mark.parametrize("regularization", [1e-6, 1e-2, 1.0])
    @pytest.mark.parametrize("with_ridge", [False, True])
    @pytest.mark.parametrize(("p", "r"), [(1, 1), (8, 1), (40, 6), (40, 40), (150, 5)])
    def test_against_scipy(self, p, r, with_ridge, regularization):
        covariance, energy = positive(0, p), positive(1, p)
        ridge = positive(2, p) if with_ridge else None
        penalty = energy + regularization * (np.eye(p) if ridge is None else ridge)
        values, a, _, trace = solve(covariance, energy, ridge, r, regularization)
        # Condition numbers of 1e3 leave 12 digits.
        all_values = linalg.eigh(covariance, penalty, eigvals_only=True)[::-1]
        assert_allclose(values, all_values[:r], rtol=1e-10)
        assert_allclose(covariance @ a, penalty @ a * values, rtol=0, atol=1e-10 * values[0])
        assert_allclose(a.T @ penalty @ a, np.eye(r), atol=1e-10)
        assert_allclose(trace, all_values.sum(), rtol=1e-10)

    def test_inputs_are_not_changed(self):
        matrices = [positive(s, 12) for s in range(3)]
        before = [m.copy() for m in matrices]
        solve(*matrices, 3, 0.1)
        for matrix, old in zip(matrices, before, strict=True):
            assert_array_equal(matrix, old)

    @pytest.mark.parametrize("condition", [1e1, 1e5, 1e9])
    def test_condition_number(self, condition):
        p = 30
        energy = positive(3, p, condition)
        estimate = solve(positive(0, p), energy, None, 1, 1e-14)[2]
        # LAPACK's estimate of the 1-norm condition number is a lower bound, rarely off by more than 3.
        exact = np.linalg.cond(energy, 1)
        assert exact / 3 < estimate < 1.1 * exact

    def test_jitter_is_escalated_and_reported(self):
        # An eigenvalue of -1e-9 of the largest, as rounding can leave, rules out a Cholesky factor.
        p = 20
        Q = ortho_group.rvs(p, random_state=0)
        energy = (Q * np.r_[np.ones(p - 1), -1e-9]) @ Q.T
        with expects("jitter") as record:
            values, a, condition, _ = solve(positive(1, p), energy, None, 3, 1e-12)
        assert_allclose(checks(record)[0].value, 1e-8)
        assert np.isfinite(values).all()
        assert np.isfinite(a).all()
        assert condition > 1e7

    def test_no_jitter_without_need(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            solve(positive(1, 20), positive(2, 20, 1e10), None, 3, 1e-12)

    def test_indefinite_matrix(self):
        with pytest.raises(np.linalg.LinAlgError, match="even with jitter"):
            solve(np.eye(5), np.diag([1.0, 1, 1, 1, -1]), None, 2, 1e-3)


class TestModes:
    @pytest.mark.parametrize("center", [True, False])
    @pytest.mark.parametrize("weighted", [True, False])
    @pytest.mark.parametrize("name", ["fourier", "landmarks"])
    def test_orthonormal_under_the_training_law(self, name, weighted, center):
        rng = np.random.default_rng(0)
        X, weight = rng.standard_normal((300, 2)), rng.uniform(0, 2, 300) if weighted else np.ones(300)
        basis = make_basis(name, Gaussian(1.5), X, 40, random_state=0)
        moments = compute_moments(basis, X, weight)
        modes = find_modes(moments, basis.ridge, 4, 1e-3, center)
        phi = basis.features(X) @ modes.coefficients - modes.offset
        second = phi.T @ (phi * weight[:, None]) / weight.sum()
        # A second moment is aᵀ E[φφᵀ] a: entries of rounding 1e-16 times large coefficients (1e3 with landmarks).
        rounding = 1e-15 * np.trace(moments.gram) / weight.sum() * np.max(np.sum(modes.coefficients**2, axis=0))
        assert rounding < 1e-4
        assert_allclose(second, np.eye(4), atol=rounding)
        if center:
            assert_allclose(weight @ phi / weight.sum(), 0, atol=rounding)
        gradient = basis.gradient(X, modes.coefficients)
        rates = np.einsum("n,nrd->r", weight, gradient**2) / weight.sum()
        assert_allclose(modes.rates, rates, rtol=1e-7)
        assert_allclose(modes.timescales, 1 / modes.rates, rtol=1e-14)

    def test_exact_spectrum(self):
        times = np.array([3.0, 2.0, 1.0, 0.5, 0.1])
        modes = find_modes(with_spectrum(times), None, 3, 1e-13)
        assert_allclose(modes.eigenvalues, times[:3], rtol=1e-10)
        assert_allclose(modes.rates, 1 / times[:3], rtol=1e-10)
        assert_allclose(modes.next_eigenvalue, 0.5, rtol=1e-10)
        assert_allclose(modes.gap, 2.0, rtol=1e-10)
        assert_allclose(modes.effective_rank, times.sum() / times[:3], rtol=1e-10)
        assert_allclose(modes.sampling_error, np.sqrt(times.sum() / times[:3] / 1e6), rtol=1e-10)

    def test_rates_do_not_shrink_with_regularization(self):
        # Σ and L with common eigenvectors that R = 1 shares: λ changes μ but neither the modes nor their rates.
        Q = ortho_group.rvs(4, random_state=0)
        variances, energies = np.array([1.0, 0.8, 0.3, 0.1]), np.array([0.2, 0.5, 0.9, 1.0])
        moments = moments_of((Q * variances) @ Q.T, (Q * energies) @ Q.T)
        for regularization in (1e-9, 0.1, 10.0):
            modes = find_modes(moments, None, 2, regularization)
            assert_allclose(modes.rates, (energies / variances)[:2], rtol=1e-9)
            assert_allclose(modes.eigenvalues, (variances / (energies + regularization))[:2], rtol=1e-9)

    def test_uncentred_problem_has_the_constant_first(self):
        X = np.random.default_rng(0).standard_normal((500, 2))
        basis = make_basis("fourier", Gaussian(2.0), X, 60, random_state=0)
        moments = compute_moments(basis, X)
        uncentred = find_modes(moments, None, 4, 1e-3, center=False)
        phi = basis.features(X) @ uncentred.coefficients
        # |mean| = 1 for the constant of unit second moment; it costs only λR, so its time scale is ~1/λ.
        assert abs(phi[:, 0].mean()) > 0.999
        assert uncentred.eigenvalues[0] > 50 * uncentred.eigenvalues[1]
        assert_array_equal(uncentred.offset, 0)
        centred = find_modes(moments, None, 3, 1e-3)
        assert_allclose(uncentred.rates[1:], centred.rates, rtol=0.05)

    def test_sign_does_not_depend_on_the_solver(self, monkeypatch):
        moments = with_spectrum([3.0, 2.0, 1.0, 0.5])
        expected = find_modes(moments, None, 3, 1e-6).coefficients
        import kdmaps.spectrum.pencil as pencil

        def flipped(*arguments):
            values, a, *rest = solve(*arguments)
            return values, a * np.where(np.arange(a.shape[1]) % 2, 1, -1), *rest

        monkeypatch.setattr(pencil, "solve", flipped)
        assert_allclose(find_modes(moments, None, 3, 1e-6).coefficients, expected, rtol=1e-13)

    def test_all_modes_have_no_gap(self):
        modes = find_modes(with_spectrum([3.0, 2.0, 1.0]), None, 3, 1e-9)
        assert np.isnan(modes.next_eigenvalue)
        assert modes.gap == np.inf
        assert not any(check.warns for check in modes.checks)

    def test_more_modes_than_features(self):
        with pytest.raises(ValueError, match=r"n_components=4 .* features 3"):
            find_modes(with_spectrum([3.0, 2.0, 1.0]), None, 4, 1e-9)

    @pytest.mark.parametrize("name", ["fourier", "landmarks"])
    @pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(1.5, 1.0)], ids=["gaussian", "matern32"])
    def test_modes_not_determined_by_the_samples(self, name, kernel):
        # Four distinct samples carry three functions of mean 0.
        X = np.repeat(np.random.default_rng(0).standard_normal((4, 2)), 10, axis=0)
        basis = make_basis(name, kernel, X, 20, landmarks=X[::10], random_state=0)
        moments = compute_moments(basis, X)
        assert find_modes(moments, basis.ridge, 3, 1e-3).eigenvalues.min() > 1e-3
        with pytest.raises(ValueError, match=r"only 3 modes, .* n_components=4"):
            find_modes(moments, basis.ridge, 4, 1e-3)
        with pytest.raises(ValueError, match=r"only 1 mode, .* n_components=2"):
            find_modes(compute_moments(basis, X[:20]), basis.ridge, 2, 1e-3)  # two distinct samples
