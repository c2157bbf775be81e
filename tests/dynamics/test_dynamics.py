"""Lagged autocorrelations and coarse states, against closed forms and other implementations."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter

import kdmaps
from kdmaps.dynamics import coarse_states, compare_with_trajectory
from kdmaps.dynamics._lagged import _analyse
from shared import wide_map

REFERENCES = Path(__file__).parents[1] / "references"


def ou_trajectories(n, steps, diffusion, seed):
    """Simulate dX_j = -α_j D X_j dt + √(2D) dW exactly at time steps of 1, with α = 1, 4 and variances 1/α_j."""
    rng, columns = np.random.default_rng(seed), []
    for alpha in (1.0, 4.0):
        a = np.exp(-alpha * diffusion)
        noise = rng.standard_normal((n, steps)) * np.sqrt((1 - a**2) / alpha)
        first = a * rng.standard_normal((n, 1)) / np.sqrt(alpha)
        columns.append(lfilter([1.0], [1.0, -a], noise, zi=first)[0].ravel())
    return np.column_stack(columns)


class TestLaggedData:
    def test_diffusion_constant_of_an_ornstein_uhlenbeck_process(self):
        X, groups = ou_trajectories(4, 10_000, 0.02, 0), np.repeat(np.arange(4), 10_000)
        model = wide_map(2).fit(X)  # rates 1 and 2: x and x² - 1
        found = compare_with_trajectory(model, X, time_step=0.5, groups=groups)
        # D = 0.02 per sample is 0.04 per unit of time. 40,000 samples hold 400 correlation times 2/0.02: about 7 %.
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

    def test_lags_are_weighted_by_their_precision_and_noise_is_left_out(self):
        times, rho = np.arange(1.0, 8.0), np.array([0.9, 0.6, 0.5, 0.3, 0.05, 0.4, 0.2])
        sums = np.ones((8, 1, 2))
        sums[1:, 0, 0] = rho
        found, (decay, amplitude) = _analyse(sums, times)
        assert_allclose(found[:, 0], rho)
        # Least squares of log ρ with weights ρ², up to the first correlation below 0.1.
        A, weight = np.column_stack([np.ones(4), -times[:4]]), np.diag(rho[:4] ** 2)
        expected = np.linalg.solve(A.T @ weight @ A, A.T @ weight @ np.log(rho[:4]))
        assert_allclose([np.log(amplitude[0]), decay[0]], expected, rtol=1e-10)

    def test_errors_are_those_of_repeated_trajectories(self):
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

    def test_the_common_constant_weights_modes_by_their_errors(self):
        columns = SimpleNamespace(transform=lambda X: X, rates_=np.array([1.0, 4.0]))
        found = compare_with_trajectory(columns, ou_trajectories(1, 4000, 0.05, 3), lags=[1, 2, 3, 4, 5])
        precision = (found.diffusion / found.diffusion_errors) ** 2  # 1/Var log D
        expected = precision @ np.log(found.diffusion) / precision.sum()
        assert abs(expected - np.log(found.diffusion).mean()) > 0.01
        assert np.log(found.common_diffusion) == pytest.approx(expected, rel=1e-12)

    def test_pairs_never_cross_trajectories(self):
        X, groups = ou_trajectories(1000, 4, 0.1, 0)[:, :1], np.repeat(np.arange(1000), 4)
        found = compare_with_trajectory(wide_map(1).fit(X), X, groups=groups)
        # Lags end with the trajectories. The standard error of ρ is at most √((1 - ρ²)/1000), 0.02; pairs across
        # trajectories, a quarter of all at lag 1, would lower ρ by 0.2.
        assert_array_equal(found.times, [1, 2, 3])
        assert_allclose(found.autocorrelations[:, 0], np.exp(-0.1 * found.times), atol=0.06)

    def test_a_mode_that_is_constant_along_trajectories_has_no_time_scale(self):
        rng = np.random.default_rng(0)
        stuck, groups = np.repeat(rng.standard_normal((400, 1)), 10, axis=0), np.repeat(np.arange(400), 10)
        with pytest.raises(ValueError, match=r"No correlated mode decays over lags of up to 3 .* constant along"):
            compare_with_trajectory(wide_map(1).fit(stuck), stuck, lags=[1, 2, 3], groups=groups)
        # If a second mode decays by 0.1 per sample, only that one counts; 400 trajectories give it to about 10 %.
        X = np.column_stack([stuck, ou_trajectories(400, 10, 0.1, 1)[:, 0]])
        columns = SimpleNamespace(transform=lambda X: X, rates_=np.array([1.0, 2.0]))
        found = compare_with_trajectory(columns, X, lags=[1, 2, 3], groups=groups)
        assert_allclose(found.diffusion, [0, 0.05], rtol=0.3, atol=1e-12)
        assert found.common_diffusion == pytest.approx(found.diffusion[1], rel=1e-12)
        assert found.common_diffusion_error == pytest.approx(found.diffusion_errors[1], rel=1e-12)

    def test_the_error_of_the_common_diffusion_constant_is_its_spread(self):
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
            ({"lags": [1]}, "lags must hold"),
            ({"lags": [0, 1]}, "at least 1"),
            ({"lags": [1, 500]}, "too many"),
            ({"groups": [1]}, "groups"),
            ({"lags": [1, 50], "groups": np.repeat(np.arange(20), 50)}, "longest trajectory has 50"),
        ],
    )
    def test_bad_arguments_are_named(self, options, message):
        X = ou_trajectories(1, 1000, 0.1, 0)
        with pytest.raises(ValueError, match=message):
            compare_with_trajectory(wide_map().fit(X), X, **options)


class TestCoarseStates:
    def test_same_memberships_as_deeptime(self):
        """Reference: a birth–death chain with three wells, computed by compare/deeptime_pcca.py."""
        reference = json.loads((REFERENCES / "deeptime_pcca.json").read_text())
        found = coarse_states(reference["modes"], 3, sample_weight=reference["stationary"])
        expected = np.array(reference["memberships"])
        expected = expected[:, np.argsort(-np.array(reference["stationary"]) @ expected)]
        # Both optimise by Nelder–Mead to a relative 1e-4 in the matrix.
        assert_allclose(found.memberships, expected, atol=2e-3)
        lifted = np.column_stack([np.ones(len(expected)), reference["modes"]]) @ found.transformation
        assert_allclose(lifted, found.memberships, atol=1e-9)

    @pytest.mark.slow
    def test_wells_of_a_triple_well(self):
        problem = kdmaps.problems.load("triplewell2d")
        X = problem.sample(4000, random_state=0)
        modes = problem.eigenfunctions(X, 2)
        found = coarse_states(modes, 3)
        assert_allclose(found.populations, np.bincount(found.labels) / len(found.labels))
        assert (np.diff(found.populations) <= 0).all()
        # Every state is one region: its samples are those nearest to its corner in the space of the modes.
        corners = np.linalg.inv(found.transformation)[:, 1:]
        nearest = np.argmin(((modes[:, None] - corners) ** 2).sum(axis=2), axis=1)
        crisp = found.memberships.max(axis=1) > 0.9
        assert_array_equal(found.labels[crisp], nearest[crisp])

    def test_population_of_a_rare_state_is_its_share_of_the_samples(self):
        """20 samples of 4,000; mean memberships of the others in its state add up to more than itself."""
        x = np.random.default_rng(0).normal(np.repeat([-1.0, 1.0], [3980, 20]), 0.2)
        weight = np.repeat([1.0, 0.5], [3980, 20])
        found = coarse_states(np.tanh(2 * x)[:, None], 2, sample_weight=weight)
        assert_allclose(found.populations, [3980 / 3990, 10 / 3990])
        assert weight @ found.memberships[:, 1] / weight.sum() > 4 * found.populations[1]

    def test_signs(self):
        modes = np.array([[1.0, 1.0], [2.0, -1.0], [-1.0, 1.0], [1.0, 3.0]])
        found = coarse_states(modes, method="sign")
        assert_allclose(found.populations, [0.5, 0.25, 0.25])
        assert found.labels[0] == found.labels[3] == 0
        assert len(set(found.labels)) == 3
        assert_array_equal(found.memberships_at(modes[::-1]), found.memberships[::-1])
        with pytest.raises(ValueError, match="Point 1 of modes has a combination of signs that no sample had"):
            found.memberships_at([[1.0, 1.0], [-1.0, -1.0]])

    @pytest.mark.slow
    def test_new_points(self):
        """Memberships at new points equal those of the samples there, are linear in between and never negative."""
        problem = kdmaps.problems.load("triplewell2d")
        X = problem.sample(500, random_state=0)
        modes = problem.eigenfunctions(X, 3)
        found = coarse_states(modes, 3)  # uses two modes; the third is ignored
        assert_allclose(found.memberships_at(modes), found.memberships, atol=1e-14)  # rounding
        middle = (modes[:-1] + modes[1:]) / 2
        assert_allclose(found.memberships_at(middle), (found.memberships[:-1] + found.memberships[1:]) / 2, atol=1e-12)
        beyond = found.memberships_at(10 * modes)
        assert (beyond >= 0).all()
        assert_allclose(beyond.sum(axis=1), 1)
        with pytest.raises(ValueError, match="modes must hold the 2 modes used to find the states, got 1"):
            found.memberships_at(modes[:, :1])

    def test_two_states_are_linear_in_the_mode(self):
        mode = np.array([[-1.0], [0.0], [3.0]])
        assert_allclose(coarse_states(mode).memberships, [[1, 0], [0.75, 0.25], [0, 1]], atol=1e-12)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([[1.0], [2.0]], 3), "n_states must be"),
            ((np.zeros((9, 2)), 3), "linearly dependent"),
            (([1.0, 2.0], 2), "modes must be"),
        ],
    )
    def test_bad_arguments_are_named(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            coarse_states(*arguments)
