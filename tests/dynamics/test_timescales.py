"""Implied time scales against closed forms and explicit sums over pairs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from scipy.signal import lfilter

import kdmaps
from kdmaps.checks import muted
from kdmaps.data.sources import ArraySource
from kdmaps.diagnostics.resampling import basic_intervals
from kdmaps.dynamics import ImpliedTimescales, implied_timescales
from kdmaps.dynamics._timescales import project_model
from shared import known, wide_map

pytestmark = pytest.mark.filterwarnings("ignore:.*relax within one lag:kdmaps.exceptions.UnreliableModesWarning")


def ou(n, rate, seed):
    """Simulate a stationary process of unit variance exactly, with the autocorrelation e^{-rate t} after t frames."""
    rng, a = np.random.default_rng(seed), np.exp(-rate)
    first = a * rng.standard_normal(1)
    return lfilter([1.0], [1.0, -a], rng.standard_normal(n) * np.sqrt(1 - a**2), zi=first)[0][:, None]


class TestImpliedTimescales:
    def test_ornstein_uhlenbeck_process(self):
        """x and x² - 1 decay with rates 0.05 and 0.1 per frame, whatever the lag."""
        X = ou(40_000, 0.05, 0)
        model = wide_map(2, lag=1, time_step=0.5).fit(X)
        found = implied_timescales(model, X, [1, 2, 5, 10, 20], random_state=0)
        exact = 0.5 / np.array([0.05, 0.1])
        # n frames give a rate κ to a relative error of about √(2/(nκ)), 3 % and 2 %; those of x² have heavier tails.
        assert_allclose(found.timescales[:4], np.tile(exact, (4, 1)), rtol=0.12)
        assert_array_equal(found.times, [0.5, 1, 2.5, 5, 10])
        assert found.plateau == 1
        assert len(found.table()) == 10
        assert found.table()[-1]["timescale"] == found.timescales[-1, 1]
        assert "flat within the errors from lag 1" in repr(found)

    def test_observation_noise_shortens_time_scales_at_short_lags(self):
        """With ρ(t) = A e^{-κt} for white noise added to x, the implied time scale is τ/(κτ - ln A), not 1/κ."""
        rng = np.random.default_rng(9)
        X = ou(40_000, 0.02, 1) + 0.5 * rng.standard_normal((40_000, 1))
        model = wide_map(1, lag=1).fit(X)
        lags = np.array([1, 2, 5, 10, 20, 40, 80])
        found = implied_timescales(model, X, lags, random_state=0)
        # The mode is linear: noise and signal are Gaussian. 40,000 frames hold 800 correlation times 1/0.02: 5 %.
        assert_allclose(found.timescales[:, 0], lags / (0.02 * lags - np.log(0.8)), rtol=0.12)
        assert found.plateau is None or found.plateau >= 20

    def test_repr_omits_time_scales_shorter_than_the_lag(self):
        """They are noise and grow with the lag."""
        values = np.array([[8.0, 2.5], [9.0, 2.5]])
        intervals = np.stack([values - 1, values + 1], axis=-1)
        found = ImpliedTimescales(
            np.array([1, 4]), np.array([1.0, 4.0]), values, intervals, 1.0, 0.95, np.tile(values, (20, 1, 1)), 10
        )
        _, first, second, _ = repr(found).splitlines()
        assert first == "  lag 1 (time 1): 8 (7 – 9), 2.5 (1.5 – 3.5)"
        assert second == "  lag 4 (time 4): 9 (8 – 10), –"

    @known("weighted-pairs")
    def test_explicit_sums_over_pairs(self):
        """Three interleaved trajectories with weights: pairs counted one by one."""
        rng = np.random.default_rng(0)
        X, weight = ou(600, 0.1, 0), rng.uniform(0.5, 2, 600)
        groups = rng.choice(["a", "b", "c"], 600, p=[0.5, 0.3, 0.2])
        model = wide_map(2, lag=2, n_features=20).fit(X, sample_weight=weight, groups=groups)
        found = implied_timescales(model, X, [1, 3, 7], groups=groups, sample_weight=weight, random_state=0)
        projection = project_model(model, X, groups)
        values = projection.in_order_of_rows(projection.values)
        for i, lag in enumerate([1, 3, 7]):
            pairs = []
            for name in "abc":
                rows = np.flatnonzero(groups == name)
                pairs += [(rows[t], rows[t + lag]) for t in range(len(rows) - lag)]
            first, second = np.array(pairs).T
            w = weight[first] / weight[first].sum()
            here, there = values[first], values[second]
            mean = w @ (here + there) / 2
            here, there = here - mean, there - mean
            same = (here.T @ (here * w[:, None]) + there.T @ (there * w[:, None])) / 2
            cross = (here.T @ (there * w[:, None]) + there.T @ (here * w[:, None])) / 2
            nu = eigh(cross, same, eigvals_only=True)[::-1][:2]
            assert_allclose(found.timescales[i], -lag / np.log(nu), rtol=1e-6)

    def test_list_of_arrays(self):
        parts = [ou(800, 0.1, seed) for seed in range(3)]
        model = wide_map(1, lag=1).fit(parts)
        found = implied_timescales(model, parts, [1, 4], random_state=0)
        labelled = implied_timescales(
            model, np.concatenate(parts), [1, 4], groups=np.repeat([0, 1, 2], 800), random_state=0
        )
        assert_array_equal(found.samples, labelled.samples)

    @pytest.mark.slow
    @known("drift")  # the check of drift has one false alarm in 100 runs
    def test_coverage_of_intervals(self):
        hits = []
        for seed in range(60):
            X = ou(4000, 0.1, seed)
            model = wide_map(1, lag=1).fit(X)
            found = implied_timescales(model, X, [2], confidence=0.9, random_state=seed)
            hits.append(found.intervals[0, 0, 0] < 10 < found.intervals[0, 0, 1])
        # Of 60 intervals at 90 %, 54 ± 2.3; blocks of five correlation times make them 5 % too narrow (87 %).
        assert 45 <= sum(hits) <= 60

    def test_reads_frames_once_for_all_lags(self, monkeypatch):
        X, read = ou(3000, 0.1, 0), []
        model = wide_map(1, lag=1).fit(X)
        original = ArraySource.read
        monkeypatch.setattr(ArraySource, "read", lambda self, part: read.append(part) or original(self, part))
        implied_timescales(model, X, [1, 2, 3, 4, 5, 6], random_state=0)
        assert sum(part.stop - part.start for part in read) == 3000

    def test_double_well(self):
        problem = kdmaps.problems.load("dw1d")
        X = problem.trajectory(20_000, 0.1, substeps=5, random_state=0)
        model = kdmaps.KernelDiffusionMap(2, lag=2, time_step=0.1, regularization=1e-4, random_state=0).fit(X)
        found = implied_timescales(model, X, [1, 2, 4], random_state=0)
        # 2,000 units of time hold 1,600 times the slowest time scale, 1.3: √(2/1600) = 4 %; the second is less exact.
        assert_allclose(found.timescales, np.tile(1 / problem.rates(2), (3, 1)), rtol=0.1)

    @pytest.mark.parametrize(
        ("lags", "options", "message"),
        [
            ([2, 1], {}, "ascending integers"),
            ([1, 1], {}, "ascending integers"),
            ([1.5, 2], {}, "ascending integers"),
            ([], {}, "ascending integers"),
            ([0, 1], {}, "at least 1 frame"),
            ([1, 500], {}, "longest trajectory has 500"),
            ([1, 50], {"groups": np.repeat(np.arange(10), 50)}, "longest trajectory has 50"),
            ([1], {"groups": [1, 2]}, "groups must have one entry"),
            ([1], {"n_resamples": 3}, "n_resamples"),
            ([1], {"confidence": 95}, "confidence"),
            ([1], {"sample_weight": -np.ones(500)}, "[Nn]egative"),
        ],
    )
    def test_rejects_bad_arguments(self, lags, options, message):
        X = ou(500, 0.2, 0)
        with pytest.raises(ValueError, match=message):
            implied_timescales(wide_map(1, lag=1).fit(X), X, lags, **options)

    def test_too_few_frames(self):
        X = ou(500, 0.2, 0)
        with pytest.raises(ValueError, match=r"X does not determine \d+ function"), muted():
            implied_timescales(wide_map(1, lag=1).fit(X), np.ones((20, 1)), [1, 2])

    def test_rejects_bad_models_and_columns(self):
        X = ou(500, 0.2, 0)
        with pytest.raises(ValueError, match="without a lag"):
            implied_timescales(wide_map(1).fit(X), X, [1])
        with pytest.raises(ValueError, match="X has 2 features"):
            implied_timescales(wide_map(1, lag=1).fit(X), np.hstack([X, X]), [1])
        with pytest.raises(ValueError, match="known number of frames"):
            implied_timescales(wide_map(1, lag=1).fit(X), lambda: iter([X]), [1])


def test_intervals_contain_their_time_scales():
    """Resamples of few frames are more optimistic than the fit by more than they vary: reflected, they miss it."""
    X = kdmaps.problems.load("dw1d").trajectory(400, 0.1, random_state=7)
    settings = {"lag": 1, "time_step": 0.1, "regularization": 1e-4, "n_features": 100, "random_state": 0}
    with muted():  # there are few frames
        model = kdmaps.KernelDiffusionMap(2, **settings).fit(X)
        found = implied_timescales(model, X, [1, 10, 20], random_state=0)
    known = ~np.isnan(found.intervals).any(axis=-1)
    low, high = np.moveaxis(found.intervals, -1, 0)
    assert known[:, 0].all()
    assert np.all((low <= found.timescales) & (found.timescales <= high) | ~known)
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = basic_intervals(np.log(found.timescales), np.log(found.samples), 0.95, found.n_blocks)
    assert np.any(np.log(found.timescales[known]) > alone[known][:, 1])  # otherwise this case is trivial
