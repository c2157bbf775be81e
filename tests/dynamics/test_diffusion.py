"""Static modes compared with trajectories, against closed forms."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter

from kdmaps.dynamics import compare_with_trajectory
from kdmaps.dynamics._diffusion import _analyse
from shared import expects, wide_map


def ou_trajectories(n, steps, diffusion, seed):
    """Simulate dX_j = -α_j D X_j dt + √(2D) dW exactly at time steps of 1, with α = 1, 4 and variances 1/α_j."""
    rng, columns = np.random.default_rng(seed), []
    for alpha in (1.0, 4.0):
        a = np.exp(-alpha * diffusion)
        noise = rng.standard_normal((n, steps)) * np.sqrt((1 - a**2) / alpha)
        first = a * rng.standard_normal((n, 1)) / np.sqrt(alpha)
        columns.append(lfilter([1.0], [1.0, -a], noise, zi=first)[0].ravel())
    return np.column_stack(columns)


class TestCompareWithTrajectory:
    def test_ornstein_uhlenbeck_process(self):
        X, groups = ou_trajectories(4, 10_000, 0.02, 0), np.repeat(np.arange(4), 10_000)
        model = wide_map(2).fit(X)  # rates 1 and 2: x and x² - 1
        found = compare_with_trajectory(model, X, time_step=0.5, groups=groups)
        # D = 0.02 per sample is 0.04 per unit of time. 40,000 samples contain 400 correlation times 2/0.02: about 7 %.
        assert (found.diffusion_errors < 0.2 * 0.04).all()
        assert (np.abs(found.diffusion - 0.04) < 4 * found.diffusion_errors).all()
        assert found.common_diffusion == pytest.approx(0.04, rel=0.2)
        assert_allclose(found.timescales[0] * found.diffusion[0] * model.rates_[0], 1, rtol=1e-12)
        # Samples are Markovian at every lag; the modes are exact to the sampling error of the fit.
        assert_allclose(found.amplitudes, 1, atol=0.1)
        exact = np.exp(-np.outer(found.times, [1, 2]) * 0.04)
        assert (np.abs(found.autocorrelations - exact) < 5 * found.autocorrelation_errors + 0.03).all()
        rows = found.table()
        assert len(rows) == 2 * len(found.times)
        assert rows[-1]["autocorrelation"] == found.autocorrelations[-1, 1]

    def test_observation_noise_lowers_the_amplitude(self):
        """White noise added to the coordinate: ρ(t) = A e^{-Dt}, A = Var x/(Var x + Var noise) = 0.8."""
        X = ou_trajectories(1, 40_000, 0.02, 1)[:, :1]
        noisy = X + 0.5 * np.random.default_rng(2).standard_normal(X.shape)
        found = compare_with_trajectory(wide_map(1).fit(noisy), noisy, lags=np.arange(1, 80, 8))
        assert found.amplitudes[0] == pytest.approx(0.8, abs=0.04)
        # The noise changes the static rate to 1/Var = 1/1.25 but not the decay in time.
        assert abs(1 / found.timescales[0] - 0.02) < 4 * found.timescale_errors[0] / found.timescales[0] ** 2
        assert found.diffusion[0] == pytest.approx(0.02 * 1.25, rel=0.25)

    def test_fit_weights_lags_and_excludes_noise(self):
        times, rho = np.arange(1.0, 8.0), np.array([0.9, 0.6, 0.5, 0.3, 0.05, 0.4, 0.2])
        sums = np.ones((8, 1, 2))
        sums[1:, 0, 0] = rho
        found, (decay, amplitude) = _analyse(sums, times)
        assert_allclose(found[:, 0], rho)
        # Least squares of log ρ with weights ρ², up to the first correlation below 0.1.
        A, weight = np.column_stack([np.ones(4), -times[:4]]), np.diag(rho[:4] ** 2)
        expected = np.linalg.solve(A.T @ weight @ A, A.T @ weight @ np.log(rho[:4]))
        assert_allclose([np.log(amplitude[0]), decay[0]], expected, rtol=1e-10)

    def test_errors_match_repeated_trajectories(self):
        columns, runs = SimpleNamespace(transform=lambda X: X, rates_=np.array([1.0, 4.0])), []
        for seed in range(40):
            X = ou_trajectories(1, 4000, 0.05, seed) * [1.0, 2.0]
            runs.append(compare_with_trajectory(columns, X, lags=[1, 2, 3, 4, 5]))
        for name in ("diffusion", "autocorrelation"):
            values, errors = (
                np.array([np.ravel(getattr(run, field)) for run in runs])
                for field in (name if name == "diffusion" else f"{name}s", f"{name}_errors")
            )
            # The spread of 40 values is known to 11 %; allow three of those. Ten parts make the jackknife a bit large.
            ratio = np.sqrt(np.mean(errors**2, axis=0)) / np.std(values, axis=0, ddof=1)
            assert ((ratio > 0.65) & (ratio < 1.5)).all(), ratio

    def test_common_diffusion_weights_modes_by_precision(self):
        columns = SimpleNamespace(transform=lambda X: X, rates_=np.array([1.0, 4.0]))
        found = compare_with_trajectory(columns, ou_trajectories(1, 4000, 0.05, 3), lags=[1, 2, 3, 4, 5])
        precision = (found.diffusion / found.diffusion_errors) ** 2  # 1/Var log D
        expected = precision @ np.log(found.diffusion) / precision.sum()
        assert abs(expected - np.log(found.diffusion).mean()) > 0.01
        assert np.log(found.common_diffusion) == pytest.approx(expected, rel=1e-12)

    def test_pairs_stay_within_trajectories(self):
        X, groups = ou_trajectories(1000, 4, 0.1, 0)[:, :1], np.repeat(np.arange(1000), 4)
        found = compare_with_trajectory(wide_map(1).fit(X), X, groups=groups)
        # Lags end with the trajectories. The standard error of ρ is at most √((1 - ρ²)/1000), 0.02; pairs across
        # trajectories, a quarter of all at lag 1, would lower ρ by 0.2.
        assert_array_equal(found.times, [1, 2, 3])
        assert_allclose(found.autocorrelations[:, 0], np.exp(-0.1 * found.times), atol=0.06)

    def test_mode_constant_along_trajectories(self):
        rng = np.random.default_rng(0)
        stuck, groups = np.repeat(rng.standard_normal((400, 1)), 10, axis=0), np.repeat(np.arange(400), 10)
        with pytest.raises(ValueError, match="No correlated mode decays within 3"):
            compare_with_trajectory(wide_map(1).fit(stuck), stuck, lags=[1, 2, 3], groups=groups)
        # If a second mode decays by 0.1 per sample, only that one counts; 400 trajectories give it to about 10 %.
        X = np.column_stack([stuck, ou_trajectories(400, 10, 0.1, 1)[:, 0]])
        columns = SimpleNamespace(transform=lambda X: X, rates_=np.array([1.0, 2.0]))
        found = compare_with_trajectory(columns, X, lags=[1, 2, 3], groups=groups)
        assert_allclose(found.diffusion, [0, 0.05], rtol=0.3, atol=1e-12)
        assert found.common_diffusion == pytest.approx(found.diffusion[1], rel=1e-12)
        assert found.common_diffusion_error == pytest.approx(found.diffusion_errors[1], rel=1e-12)

    def test_error_of_common_diffusion_matches_its_spread(self):
        """Compare with the spread over independent trajectories whose coordinates are the modes, of rates 1 and 4."""
        columns = SimpleNamespace(transform=lambda X: X, rates_=np.array([1.0, 4.0]))
        draws = [
            compare_with_trajectory(columns, ou_trajectories(1, 8000, 0.05, seed), lags=[1, 2, 4, 8])
            for seed in range(60)
        ]
        constants = np.array([draw.common_diffusion for draw in draws])
        errors = np.array([draw.common_diffusion_error for draw in draws])
        assert abs(constants.mean() - 0.05) < 4 * constants.std() / np.sqrt(60)
        # The deviation of 60 draws is known to 1/√120 = 9 %, a jackknife of ten parts to 24 %, their mean to 3 %.
        assert np.sqrt(np.mean(errors**2)) == pytest.approx(constants.std(ddof=1), rel=0.3)
        # Both modes together are more precise than the better one.
        assert errors.mean() < min(np.mean([draw.diffusion_errors for draw in draws], axis=0))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"time_step": 0}, "time_step"),
            ({"lags": [1]}, "at least two lags"),
            ({"lags": [0, 1]}, "at least 1"),
            ({"lags": [1, 500]}, "too many"),
            ({"groups": [1]}, "groups"),
            ({"lags": [1, 50], "groups": np.repeat(np.arange(20), 50)}, "longest trajectory has 50"),
        ],
    )
    def test_rejects_bad_arguments(self, options, message):
        X = ou_trajectories(1, 1000, 0.1, 0)
        with pytest.raises(ValueError, match=message):
            compare_with_trajectory(wide_map().fit(X), X, **options)


def columns(n, diffusions, alphas, seed):
    """Simulate dX_j = -α_j D_j X_j dt + √(2D_j) dW exactly at time steps of 1."""
    rng, found = np.random.default_rng(seed), []
    for diffusion, alpha in zip(diffusions, alphas, strict=True):
        a = np.exp(-alpha * diffusion)
        noise = rng.standard_normal(n) * np.sqrt((1 - a**2) / alpha)
        found.append(lfilter([1.0], [1.0, -a], noise, zi=a * rng.standard_normal(1) / np.sqrt(alpha))[0])
    return np.column_stack(found)


def test_warns_of_different_diffusion_constants():
    """x (static rate 1) has D = 0.05 and y (1.6) D = 0.02: in time, y with 0.032 is slower than x with 0.05."""
    X = columns(40_000, [0.05, 0.02], [1.0, 1.6], 1)
    static, lagged = wide_map(2).fit(X), wide_map(2, lag=1).fit(X)
    with expects("disagreement"):
        comparison = compare_with_trajectory(static, X)
    assert comparison.disagreement > 4
    assert (np.abs(comparison.diffusion - [0.05, 0.02]) < 4 * comparison.diffusion_errors + 0.001).all()
    assert "standard errors" in repr(comparison)
    # Pairs of frames need no diffusion constant: the same decay, and no warning.
    assert compare_with_trajectory(lagged, X).diffusion[0] == pytest.approx(1, abs=0.15)
