"""The block bootstrap against closed forms, explicit refits and exact rates."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter
from sklearn.base import clone

import kdmaps
from experiments.driven import rotating_ou
from kdmaps.data.correlation import autocorrelation, integrated_correlation_time
from kdmaps.diagnostics.resampling import cut_blocks
from kdmaps.metrics import principal_angles
from kdmaps.uncertainty import _Refit, bootstrap
from shared import checks, expects, known, wide_map


def autoregressive(n, tau, seed):
    """Simulate dX = -X dt + √2 dW exactly at time steps of 1/tau."""
    rng, a = np.random.default_rng(seed), np.exp(-1 / tau)
    noise = rng.standard_normal(n) * np.sqrt(1 - a**2)
    return lfilter([1.0], [1.0, -a], noise, zi=[a * rng.standard_normal()])[0][:, None]


@pytest.fixture(scope="module")
def fitted():
    """Rates 1, 2 (x, x²-1), of independent samples."""
    X = kdmaps.problems.load("ou2d-16").sample(600, random_state=1)
    X.flags.writeable = False
    return wide_map().fit(X), X


def block_of(n, n_blocks):
    return np.repeat(np.arange(n_blocks), [len(part) for part in np.array_split(np.arange(n), n_blocks)])


def test_repr_is_a_table(fitted):
    """One line per mode; an end that samples do not bound is infinite."""
    found = bootstrap(*fitted, n_resamples=20, confidence=0.9)
    title, columns, *rows, angles = repr(found).splitlines()
    assert "20 resamples of 50 blocks" in title
    assert f"at least {found.block_length} samples" in title
    assert columns.count("90 % interval") == 2
    assert len(rows) == len(found.rates)
    for k, row in enumerate(rows):
        (low, high), rate = found.timescale_intervals[k], found.rates[k]
        assert row.split()[:5] == [str(k + 1), f"{found.timescales[k]:.4g}", f"{low:.4g}", "–", f"{high:.4g}"]
        assert row.split()[5] == f"{rate:.4g}"
        assert row.endswith(f"{np.degrees(found.mode_angles[k]):.2g}°")
    assert angles.endswith(", ".join(f"{angle:.2g}°" for angle in np.degrees(found.angles)))
    unbounded = replace(found, timescale_intervals=np.array([[1.0, np.inf]] * len(rows)))
    assert "1 – ∞" in repr(unbounded)


def test_rows_of_a_sorted_table_are_independent(fitted):
    """Random blocks, as if the rows had never been sorted, and no warning of a correlation time."""
    model, X = fitted
    by_first = X[np.argsort(X[:, 0] + 0.5 * np.random.default_rng(0).normal(size=len(X)))]
    found, shuffled = bootstrap(model, by_first), bootstrap(model, X)
    assert found.block_length == shuffled.block_length
    assert_allclose(found.rate_errors, shuffled.rate_errors, rtol=0.3)  # 200 resamples of 50 blocks
    # Folds that are blocks say that the rows are frames.
    frames = clone(model).set_params(cv=kdmaps.BlockedKFold(5)).fit(X)
    with expects("correlation-time"):
        assert bootstrap(frames, by_first).block_length > found.block_length


class TestAgainstExplicitRefits:
    def test_resamples_equal_refits_with_integer_weights(self, fitted):
        model, X = fitted
        found = bootstrap(model, X, n_resamples=20, random_state=3)
        assert found.n_blocks == 50
        counts = np.random.RandomState(3).multinomial(50, np.full(50, 1 / 50), size=20)
        for row, rates, angles in zip(counts, found.rate_samples, found.angle_samples, strict=True):
            weight = row[block_of(len(X), 50)]
            refit = clone(model).fit(X, sample_weight=weight)
            # Another origin turns cosines into sines, and λ = 1e-4 amplifies that rounding.
            assert_allclose(rates, refit.rates_, rtol=1e-7)
            assert_allclose(angles, principal_angles(refit.transform(X), model.transform(X)), atol=1e-5)

    def test_energies_use_the_tangent_spaces_of_the_fit(self):
        X = kdmaps.problems.load("circle").sample(500, random_state=0)
        model = wide_map(bandwidth=2.0, diffusion="tangent").fit(X)
        found = bootstrap(model, X, n_resamples=20)
        # On a circle of radius 1 both rates are 1. Radial noise of 0.05 raises them by the order of its square, and
        # 500 uniform phases determine a rate to a relative √(2/500).
        assert (np.abs(found.rates - 1) < 4 * found.rate_errors + 0.05).all()
        ambient = bootstrap(wide_map(bandwidth=2.0).fit(X), X, n_resamples=20)
        assert (found.rates < ambient.rates).all()  # the tangent energy is part of the full energy

    def test_an_integer_weight_equals_repeated_samples(self):
        X = kdmaps.problems.load("ou2d-16").sample(2000, random_state=2)
        groups, weight = np.repeat(np.arange(40), 50), np.tile([1, 2], 1000)
        options = {"n_resamples": 20, "block_length": 50, "max_blocks": 40}
        weighted = bootstrap(wide_map().fit(X, sample_weight=weight), X, sample_weight=weight, groups=groups, **options)
        copies, owners = np.repeat(X, weight, axis=0), np.repeat(groups, weight)
        repeated = bootstrap(wide_map().fit(copies), copies, groups=owners, **options)
        assert weighted.n_blocks == repeated.n_blocks == 40
        assert_allclose(weighted.rate_intervals, repeated.rate_intervals, rtol=1e-6)

    @known("independent-samples")
    def test_copies_within_a_group_add_no_information(self):
        X = kdmaps.problems.load("ou2d-16").sample(40, random_state=2)
        model, options = wide_map(n_components=1, regularization=1e-2), {"n_resamples": 30, "block_length": 1}
        alone = bootstrap(model.fit(X), X, **options)
        interleaved, groups = np.tile(X, (25, 1)), np.tile(np.arange(40), 25)
        model = clone(model).fit(interleaved)
        grouped = bootstrap(model, interleaved, groups=groups, **{**options, "block_length": 25})
        assert_allclose(grouped.rate_samples, alone.rate_samples, rtol=1e-7)
        with expects("interleaved-walkers") as record:
            detected = bootstrap(model, interleaved, **{**options, "block_length": 25})
        assert checks(record)[0].value == 40
        assert_array_equal(detected.rate_samples, grouped.rate_samples)
        # Every block of 20 rows contains half of all samples.
        blind = bootstrap(model, interleaved, groups=np.zeros(1000), **options)
        assert blind.rate_errors[0] < 0.5 * grouped.rate_errors[0]

    @known("correlation-time")
    def test_interleaved_walkers_are_detected(self):
        # 20 walkers of 200 frames, 0.02 apart: consecutive rows are independent, frames of one walker are not.
        problem = kdmaps.problems.load("dw1d")
        X = problem.simulate(200, dt=0.02, n_trajectories=20, random_state=0).swapaxes(0, 1).reshape(-1, 1)
        model = wide_map(n_components=1, bandwidth=2.0, regularization=1e-3).fit(X)
        with expects("interleaved-walkers") as record:
            detected = bootstrap(model, X, n_resamples=20)
        assert checks(record)[0].value == 20
        given = bootstrap(model, X, n_resamples=20, groups=np.arange(len(X)) % 20)
        assert_array_equal(detected.rate_intervals, given.rate_intervals)
        # (1+ρ)/(1-ρ) with ρ = e^{-0.02 rate}: 126; known to about a third from 4,000/126 independent samples.
        exact = 1 / np.tanh(0.01 * problem.rates(1)[0])
        assert_allclose(detected.correlation_time, exact, rtol=0.5)


class TestCoverage:
    @pytest.mark.slow
    def test_intervals_cover_the_exact_rates(self):
        problem, hits, rates, errors = kdmaps.problems.load("ou2d-16"), [], [], []
        exact = problem.rates(2)
        for seed in range(20):
            X = problem.sample(500, random_state=100 + seed)
            found = bootstrap(wide_map().fit(X), X, n_resamples=100)
            low, high = found.rate_intervals.T
            hits.append((low <= exact) & (exact <= high))
            assert_allclose(1 / found.timescale_intervals[:, ::-1], found.rate_intervals)
            rates.append(found.rates)
            errors.append(found.rate_errors)
        # Fewer than 16 of 20 hits have a probability of 0.3 % at the nominal 95 %, and of 4 % at 90 %.
        assert (np.sum(hits, axis=0) >= 16).all()
        # The spread of 20 estimates is known to 16 %; allow three of those, and 10 % for the few resamples.
        ratio = np.mean(errors, axis=0) / np.std(rates, axis=0, ddof=1)
        assert ((ratio > 0.55) & (ratio < 1.6)).all(), ratio

    @pytest.mark.slow
    @known("bias")
    def test_intervals_of_cross_fitted_rates(self):
        """Many modes compete on a sphere: the optimism of a fit must be removed once, not twice."""
        problem, hits = kdmaps.problems.load("sphere-3"), []
        options = {"bandwidth": 1.5, "regularization": 1e-3, "n_features": 60, "diffusion": "tangent"}
        exact = wide_map(3, **options).fit(problem.sample(10_000, random_state=99)).rates_
        for seed in range(12):
            X = problem.sample(400, random_state=seed)
            found = bootstrap(wide_map(3, rates="cross-fitted", **options).fit(X), X, n_resamples=60)
            low, high = found.rate_intervals.T
            hits.append((low <= exact) & (exact <= high))
        # Fewer than 9 of 12 hits have a probability of 0.2 % at the nominal 95 %, and of 3 % at 90 %.
        assert (np.sum(hits, axis=0) >= 9).all(), hits

    @pytest.mark.slow
    def test_correlated_samples_need_long_blocks(self):
        """Mode x of an OU process: the rate E|φ'|²/Var φ has the influence function 1 - x².

        With correlations e^{-2t/τ} of x², the variance of its mean over n samples is 2τ/n; if blocks of b ≪ τ are
        assumed to be independent, it is estimated as 2b/n.
        """
        n, tau, short = 20_000, 100.0, 10
        automatic, naive = [], []
        for seed in range(4):
            X = autoregressive(n, tau, seed)
            model = wide_map(n_components=1, n_features=20).fit(X)
            found = bootstrap(model, X)
            automatic.append(found.rate_errors[0])
            options = {"block_length": short, "max_blocks": n // short, "n_resamples": 50}
            naive.append(bootstrap(model, X, **options).rate_errors[0])
            assert found.correlation_time == pytest.approx(2 * tau, rel=0.5)
            assert found.block_length >= 4 * found.correlation_time
        # 20 blocks determine a standard error to 16 %, four runs to 8 %; allow three of those.
        assert np.mean(automatic) == pytest.approx(np.sqrt(2 * tau / n), rel=0.25)
        # 50 resamples determine it to 10 %, four runs to 5 %; samples in a block of τ/10 are not quite identical.
        assert np.mean(naive) == pytest.approx(np.sqrt(2 * short / n), rel=0.2)

    @pytest.mark.parametrize("turn", np.linspace(0, np.pi, 7))
    def test_swapped_modes_are_matched(self, turn):
        """Modes 0 and 1 of the fit are a cluster; the resample finds mode 2 first, then the rotated cluster."""
        refit = SimpleNamespace(modes=SimpleNamespace(clusters=[np.array([0, 1]), np.array([2])]))
        correlation = np.zeros((3, 3))
        correlation[2, 0] = -1
        correlation[:2, 1:] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
        assert_array_equal(_Refit._match(refit, correlation), [1, 2, 0])

    @known("no-gap")  # one of two equal modes
    def test_a_degenerate_cluster_is_compared_as_a_subspace(self):
        X = np.random.default_rng(0).standard_normal((2000, 2))  # rates 1, 1, 2, ...: x and y may rotate
        both = bootstrap(wide_map().fit(X), X, n_resamples=50)
        assert [list(cluster) for cluster in both.clusters] == [[0, 1]]
        # The subspace is not degenerate with others: its angle is of the order 1/√n, here within a few of those.
        assert np.degrees(both.mode_angles).max() < 10
        one = bootstrap(wide_map(n_components=1).fit(X), X, n_resamples=50)
        assert np.degrees(one.mode_angles[0]) > 30

    def test_errors_of_directed_fits_equal_the_spread_of_trajectories(self):
        """The first two singular values of a rotating process are e^{-t}."""
        systems = [rotating_ou(3000, seed, time_step=0.3) for seed in range(12)]
        settings = {"bandwidth": 4.0, "regularization": 1e-4, "n_features": 60, "random_state": 0}
        model = kdmaps.KernelDiffusionMap(2, lag=1, time_step=0.3, reversible=False, **settings)
        models = [clone(model).fit(system.X) for system in systems]
        found = bootstrap(models[0], systems[0].X)
        # A standard deviation of twelve values has an error of 21 %; the modes are degenerate.
        spread = np.std([one.rates_ for one in models], axis=0, ddof=1)
        assert_allclose(found.rate_errors, spread, rtol=0.7)
        assert ((found.rate_intervals[:, 0] < 1) & (found.rate_intervals[:, 1] > 1)).all()
        assert (np.degrees(found.angles) < 10).all()
        other = bootstrap(models[0], [systems[0].X[:1500], systems[0].X[1500:]], n_resamples=20, confidence=0.9)
        assert other.rate_errors.shape == (2,)


class TestBlocks:
    def test_correlation_time_of_an_autoregressive_series(self):
        a = np.exp(-1 / 20)
        series = autoregressive(200_000, 20, 0)[:, 0]
        # Relative error √(2(2M+1)/n) with a window of M = 100 (Madras and Sokal 1988): 4.5 %.
        assert integrated_correlation_time(series) == pytest.approx((1 + a) / (1 - a), rel=0.15)
        rows = np.arange(len(series)).reshape(100, -1)
        assert integrated_correlation_time(series, list(rows)) == pytest.approx((1 + a) / (1 - a), rel=0.15)
        assert integrated_correlation_time(np.random.default_rng(0).permutation(series)) < 1.1
        # With oscillations of 8 samples the sum nearly cancels; absolute values have the mean 2/π of |cos|.
        oscillating = series * np.cos(np.arange(len(series)) * np.pi / 4)
        assert integrated_correlation_time(oscillating) == pytest.approx(2 / np.pi * (1 + a) / (1 - a), rel=0.15)

    def test_rough_weights_do_not_shorten_blocks(self):
        """A random tenth of the samples has the same correlation time as all of them."""
        X = autoregressive(40_000, 20, 0)
        weight = np.random.default_rng(1).binomial(1, 0.1, len(X)).astype(float)
        model = wide_map(n_components=1, n_features=20).fit(X, sample_weight=weight)
        found = bootstrap(model, X, sample_weight=weight, n_resamples=20, max_blocks=2000)
        a = np.exp(-1 / 20)
        # g = (1 + a)/(1 - a) = 40 of the mode x. The sum over M = 100 lags has a relative error of √(2(2M+1)/n) = 10 %.
        assert found.correlation_time == pytest.approx((1 + a) / (1 - a), rel=0.3)
        assert found.block_length == np.ceil(5 * found.correlation_time)

    @known("mismatch", "bias")
    def test_correlated_weights_lengthen_blocks(self):
        """For independent signs x and w = 1 + cux with a slow u, w x = x + cu has the correlation time of u."""
        n, c = 40_000, 0.9
        u = np.tanh(3 * autoregressive(n, 20, 0)[:, 0])
        x = np.random.default_rng(1).choice([-1.0, 1.0], n)
        weight = 1 + c * u * x
        X = x[:, None] + 0.01 * autoregressive(n, 0.1, 2)
        model = wide_map(n_components=1, n_features=20).fit(X, sample_weight=weight)
        found = bootstrap(model, X, sample_weight=weight, n_resamples=20, max_blocks=2000)
        slow = c**2 * np.array([np.mean(u[: n - lag] * u[lag:]) for lag in range(1, 100)])
        # The window drops e^{-M/20} of the tail, M = 40, and the sum over that many lags is known to 6 %.
        assert found.correlation_time == pytest.approx(1 + 2 * slow.sum() / (1 + c**2 * np.mean(u**2)), rel=0.3)

    def test_autocorrelation_averages_pairs_within_trajectories(self):
        series = np.random.default_rng(0).standard_normal(30)
        trajectories = [np.arange(0, 30, 2), np.arange(1, 21, 2)]  # interleaved, of 15 and 10 samples
        centred, found = series - series.mean(), autocorrelation(series, trajectories)
        products = [
            np.concatenate([centred[t][lag:] * centred[t][: len(t) - lag] for t in trajectories]) for lag in range(9)
        ]
        assert_allclose(found[:9], [p.mean() / products[0].mean() for p in products], atol=1e-14)

    def test_blocks_are_long_enough_and_contain_every_sample_once(self):
        trajectories = np.split(np.arange(100), [37, 40, 42, 90])
        blocks = cut_blocks(trajectories, 12)
        assert_array_equal(np.concatenate(blocks), np.arange(100))
        assert min(map(len, blocks)) >= 12
        assert [block[0] for block in blocks] == [0, 13, 25, 37, 54, 66, 78]  # pieces of 3, 2 and 12 are joined
        assert_array_equal(cut_blocks([np.arange(3)], 12)[0], np.arange(3))

    @known("independent-samples")
    def test_few_blocks_warn(self, fitted):
        model, X = fitted
        with expects("few-blocks") as record:
            bootstrap(model, X, block_length=120, n_resamples=20)
        assert checks(record)[0].value == 5
        slow = autoregressive(500, 100, 0)
        with expects("correlation-time"):
            found = bootstrap(wide_map(n_components=1).fit(slow), slow, n_resamples=20)
        assert found.n_blocks == 10


class TestInterface:
    def test_search_and_its_best_estimator_give_the_same_result(self, fitted):
        X = fitted[1][:300]
        search = kdmaps.KernelSearchCV(2, families=["gaussian"], bandwidths=[6.0], regularizations=[1e-4])
        search.set_params(n_features=40, random_state=0, max_extensions=0).fit(X)
        one, two = (bootstrap(model, X, n_resamples=20) for model in (search, search.best_estimator_))
        assert_array_equal(one.rate_samples, two.rate_samples)
        rows = one.table()
        assert [row["mode"] for row in rows] == [1, 2]
        assert rows[1]["timescale"] == search.timescales_[1]
        assert rows[1]["timescale_low"] == one.timescale_intervals[1, 0] < rows[1]["timescale"]

    def test_accepts_files_and_rejects_streams(self, fitted, tmp_path):
        model, X = fitted[:2]
        np.save(tmp_path / "X.npy", X)
        found = bootstrap(model, tmp_path / "X.npy", n_resamples=20)
        assert_array_equal(found.rate_samples, bootstrap(model, X, n_resamples=20).rate_samples)
        with pytest.raises(ValueError, match="X must be an array"):
            bootstrap(model, lambda: iter([X]))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"block_length": 0}, "block_length must be"),
            ({"block_length": "long"}, "block_length must be"),
            ({"block_length": 500}, "leaves 1 block"),
            ({"n_resamples": 5}, "n_resamples must be"),
            ({"max_blocks": 1}, "max_blocks must be"),
            ({"confidence": 95}, "confidence must be"),
            ({"groups": [0, 1]}, "groups must have"),
            ({"sample_weight": np.linspace(0, 1, 600)}, "not fitted to this X"),
        ],
    )
    def test_bad_arguments_are_named(self, fitted, options, message):
        with pytest.raises(ValueError, match=message):
            bootstrap(*fitted, **options)
