"""The generalized eigenproblem against scipy, and what is said about its solutions."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg
from scipy.stats import ortho_group

from kdmaps.bases import make_basis
from kdmaps.exceptions import UnreliableModesWarning
from kdmaps.forms.energy import compute_moments
from kdmaps.forms.moments import Moments
from kdmaps.kernels import Gaussian, Matern
from kdmaps.spectrum import pencil
from kdmaps.spectrum.pencil import RegularizationPath, find_modes, solve

unhurried = settings(deadline=None)


def positive(seed, p, condition=1e3):
    """A symmetric positive definite matrix with eigenvalues from 1 down to 1/condition."""
    Q = ortho_group.rvs(p, random_state=seed) if p > 1 else np.eye(1)
    return (Q * np.geomspace(1, 1 / condition, p)) @ Q.T


def moments_of(covariance, energy, mean=None, count=10**6):
    """Moments of `count` samples with these operators."""
    mean = np.zeros(len(covariance)) if mean is None else mean
    return Moments(
        count, float(count), float(count), count * mean, count * (covariance + np.outer(mean, mean)), count * energy
    )


def with_spectrum(relaxation_times, seed=0, count=10**6):
    """Moments whose exact solution for λ → 0 is μ = `relaxation_times`, in a generic basis."""
    p = len(relaxation_times)
    B = np.linalg.inv(ortho_group.rvs(p, random_state=seed) @ np.diag(np.linspace(1, 2, p)))
    return moments_of(B.T @ np.diag(relaxation_times) @ B, B.T @ B, count=count)


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
        # An energy with an eigenvalue of -1e-9 of the largest, as rounding can leave: no Cholesky factor without help.
        p = 20
        Q = ortho_group.rvs(p, random_state=0)
        energy = (Q * np.r_[np.ones(p - 1), -1e-9]) @ Q.T
        with pytest.warns(UnreliableModesWarning, match="1e-08 of its mean diagonal was added"):
            values, a, condition, _ = solve(positive(1, p), energy, None, 3, 1e-12)
        assert np.isfinite(values).all()
        assert np.isfinite(a).all()
        assert condition > 1e7

    def test_no_jitter_without_need(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            solve(positive(1, 20), positive(2, 20, 1e10), None, 3, 1e-12)

    def test_hopeless(self):
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite even with jitter"):
            solve(np.eye(5), np.diag([1.0, 1, 1, 1, -1]), None, 2, 1e-3)


class TestRegularizationPath:
    @pytest.mark.parametrize("with_ridge", [False, True])
    @pytest.mark.parametrize(("p", "dense"), [(3, True), (40, True), (160, True), (160, False)])
    def test_against_scipy(self, p, dense, with_ridge, monkeypatch):
        if not dense:
            monkeypatch.setattr(pencil, "_DENSE_BLOCKS", 0)
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

    def test_same_as_one_solve_on_samples(self):
        # The decaying spectra of real features, with directions that the samples do not see.
        X = np.random.default_rng(0).standard_normal((400, 2))
        basis = make_basis("landmarks", Gaussian(2.0), X, 150, random_state=0)
        moments = compute_moments(basis, X)
        path = RegularizationPath(moments.covariance(), moments.mean_energy(), basis.ridge)
        for regularization in (1e-1, 1e-2, 1e-3):
            values, _ = path.solve(4, regularization)
            direct = find_modes(moments, basis.ridge, 4, regularization)
            # The jitter of R is 1e-9 of its trace: what lives below it is not determined better than 1e-6.
            assert_allclose(values, direct.eigenvalues, rtol=1e-6)


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
        assert not modes.complaints()


class TestReliability:
    @unhurried
    @given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.integers(0, 100))
    def test_degenerate_clusters(self, multiplicities, seed):
        # Time scales 1, 1/2, 1/4, ... with these multiplicities, and one more beyond the cut.
        times = np.repeat(0.5 ** np.arange(len(multiplicities)), multiplicities)
        modes = find_modes(with_spectrum(np.r_[times, 1e-3], seed), None, len(times), 1e-12)
        expected = np.split(np.arange(len(times)), np.cumsum(multiplicities)[:-1])
        assert [c.tolist() for c in modes.clusters] == [e.tolist() for e in expected]
        assert_allclose(modes.eigenvalues, times, rtol=1e-9)
        assert not modes.complaints()

    def test_cut_through_a_cluster(self):
        moments = with_spectrum([1.0, 0.5, 0.5, 0.5, 0.1])
        assert "Modes 3 and 4 have the same time scale" in str(find_modes(moments, None, 3, 1e-9).complaints()[0])
        assert not find_modes(moments, None, 4, 1e-9).complaints()
        assert_allclose(find_modes(moments, None, 2, 1e-9).gap, 1, rtol=1e-9)

    def test_close_eigenvalues_are_told_apart_by_many_samples_only(self):
        # 2 % apart: resolved to 2/√n, i.e. by more than 10^4 samples.
        times = [1.0, 0.98, 0.3]
        for count, n_clusters in ((5_000, 1), (50_000, 2)):
            modes = find_modes(with_spectrum(times, count=count), None, 2, 1e-9)
            assert len(modes.clusters) == n_clusters
        assert "same time scale" in str(find_modes(with_spectrum(times, count=5_000), None, 1, 1e-9).complaints()[0])
        assert not find_modes(with_spectrum(times, count=50_000), None, 1, 1e-9).complaints()

    def test_ill_conditioned(self):
        p = 10
        modes = find_modes(moments_of(positive(0, p), positive(1, p, 1e14)), None, 2, 1e-15)
        assert any("condition number of L+λR" in str(complaint) for complaint in modes.complaints())
        modes = find_modes(moments_of(positive(0, p), positive(1, p, 1e14)), None, 2, 1e-3)
        assert not any("condition number" in str(complaint) for complaint in modes.complaints())

    def test_too_few_samples(self):
        times = np.r_[3.0, 1.5, np.full(40, 0.4)]
        # tr/μ_1 = 6.8 and tr/μ_2 = 13.7 functions compete: √(6.8/n), √(13.7/n) > 1/2 for n < 27 and n < 55.
        few = find_modes(with_spectrum(times, count=40), None, 2, 1e-9).complaints()
        assert len(few) == 1
        assert "40 (effective) samples do not resolve mode 2: 14 functions" in str(few[0])
        fewer = find_modes(with_spectrum(times, count=20), None, 2, 1e-9).complaints()
        assert "20 (effective) samples do not resolve mode 1 and the modes after it" in str(fewer[0])
        assert not find_modes(with_spectrum(times, count=2000), None, 2, 1e-9).complaints()

    def test_more_modes_than_features(self):
        with pytest.raises(ValueError, match="n_components=4 exceeds the number of features 3"):
            find_modes(with_spectrum([3.0, 2.0, 1.0]), None, 4, 1e-9)

    @pytest.mark.parametrize("name", ["fourier", "landmarks"])
    @pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(1.5, 1.0)], ids=["gaussian", "matern32"])
    def test_modes_that_samples_do_not_determine(self, name, kernel):
        # Four distinct samples carry three functions of mean 0.
        X = np.repeat(np.random.default_rng(0).standard_normal((4, 2)), 10, axis=0)
        basis = make_basis(name, kernel, X, 20, landmarks=X[::10], random_state=0)
        moments = compute_moments(basis, X)
        assert find_modes(moments, basis.ridge, 3, 1e-3).eigenvalues.min() > 1e-3
        with pytest.raises(ValueError, match="determine only 3 modes, fewer than n_components=4"):
            find_modes(moments, basis.ridge, 4, 1e-3)
