"""Warnings about wrong rates, and none about correct ones."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.signal import lfilter

import kdmaps
from experiments.coverage import double_well
from kdmaps import AdaptiveDiffusionMap, KernelDiffusionMap, KernelSearchCV, problems
from kdmaps.diagnostics.trust import Trust, ratio
from kdmaps.exceptions import CheckWarning, UnreliableModesWarning
from kdmaps.simulation import effective_sample_size
from kdmaps.summary import MARK, summarise
from shared import SMALL_SEARCH, expects, known


def quietly(model, X, **options):
    """Fit, and return the failed checks of modes, by code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckWarning)
        model.fit(X, **options)
    return {c.code: c for c in model.checks.failed if issubclass(c.category, UnreliableModesWarning)}


def with_a_far_row(far):
    X = problems.load("dw1d").sample(600, random_state=0)
    X[0] = far
    return X


@pytest.mark.parametrize("make", [KernelSearchCV, AdaptiveDiffusionMap])
def test_a_row_that_carries_a_mode_is_named(make):
    model = make(2, isolated="keep", random_state=0)
    warned = quietly(model, with_a_far_row(5.0))
    assert not model.trust_.ok.all()
    assert warned["variance-samples"].words["row"] == 0
    assert model.variance_samples_.min() < 5


@known("outliers")
@pytest.mark.parametrize("make", [KernelSearchCV, AdaptiveDiffusionMap])
def test_a_search_finds_the_modes_in_spite_of_a_very_far_row(make):
    """Three standard errors of rates of a double well from some 500 samples are 30 % (results/coverage)."""
    model = make(2, isolated="keep", random_state=0).fit(with_a_far_row(1000.0))
    assert_allclose(model.rates_, problems.load("dw1d").rates(2), rtol=0.3)
    assert model.trust_.ok.all()


@pytest.mark.parametrize("distance", [2.0, 4.0])
def test_clusters_without_a_transition(distance):
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(-distance, 0.5, (250, 2)), rng.normal(distance, 0.5, (250, 2))]
    model = AdaptiveDiffusionMap(1, random_state=0)
    assert quietly(model, X)["transition-samples"].filled["modes"] == "mode 1"
    assert "transition samples" in model.trust_.reasons[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = kdmaps.uncertainty.bootstrap(model, X, n_resamples=20)
    assert found.rate_intervals[0].tolist() == [0, np.inf]
    assert found.timescale_intervals[0].tolist() == [0, np.inf]


#: A draw in which 9 samples lie within 0.4 of the barrier where 2.8 are expected (3 in 1,000 draws): its rate is 3.8
#: times too large, and is missed.
MISSED = pytest.param(4, marks=pytest.mark.xfail(reason="three times as many samples on the barrier as on average"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2, MISSED])
def test_barriers_that_samples_hardly_cross(seed):
    """6 kT, 500 samples: a rate off by more than a factor of 2 fails a check; its interval contains the exact one."""
    problem = double_well(6.0)
    X, exact = problem.sample(500, random_state=seed), problem.rates(1)[0]
    model = AdaptiveDiffusionMap(1, random_state=seed)
    quietly(model, X)
    assert ratio(model.rates_[None, :1], np.array([exact]))[0] < 2 or not model.trust_.ok[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        low, high = kdmaps.uncertainty.bootstrap(model, X, n_resamples=50).rate_intervals[0]
    assert low <= exact <= high


@pytest.mark.parametrize("spread", [2.7, 4.0])
def test_weights_that_leave_few_samples(spread):
    X = problems.load("ou2d-4").sample(1000, random_state=0)
    weight = np.exp(spread * np.random.default_rng(5).standard_normal(1000))
    assert effective_sample_size(weight) < 20
    model = KernelSearchCV(**{**SMALL_SEARCH, "n_components": 2})
    check = quietly(model, X, sample_weight=weight)["independent-samples"]
    assert check.failed.tolist() == [True, True]
    assert check.words["weaker"]
    assert not model.trust_.ok.any()


def test_warns_of_correlated_frames():
    X = double_well(2.0).simulate(4000, 0.005, random_state=0)[0]  # 20 time units, 9 relaxation times
    model = KernelDiffusionMap(1, random_state=0)
    check = quietly(model, X)["independent-samples"]
    assert check.failed.tolist() == [True]
    assert not check.words["weaker"]  # no weights
    assert "independent-samples" not in quietly(
        KernelDiffusionMap(1, random_state=0), np.random.default_rng(0).permutation(X)
    )


@pytest.mark.parametrize(("name", "r"), [("circle", 1), ("circle", 3), ("sphere-3", 2), ("sphere-3", 1)])
def test_cuts_through_degenerate_pairs(name, r):
    """The check has a level of 95 %: 3 or more of 20 fits pass in one case of 13. (0.1.0: 5 to 32 of 40.)"""
    problem = problems.load(name)
    warned = [quietly(KernelDiffusionMap(r, random_state=s), problem.sample(500, random_state=s)) for s in range(20)]
    assert sum("no-gap" in one for one in warned) >= 17


def test_cuts_through_degenerate_pairs_of_correlated_frames():
    """Repeating each of 200 frames five times does not make the gap more certain; one cut in ten is wide."""
    problem = problems.load("circle")
    once = [problem.sample(200, random_state=s) for s in range(10)]
    models = [KernelDiffusionMap(1, bandwidth=1.0, random_state=0) for _ in once]
    warned = [quietly(m, np.repeat(X, 5, axis=0)) for m, X in zip(models, once, strict=True)]
    assert sum("no-gap" in one for one in warned) >= 8
    plain = [KernelDiffusionMap(1, bandwidth=1.0, random_state=0) for _ in once]
    for model, X in zip(plain, once, strict=True):
        quietly(model, X)
    errors = [[m.modes_.gap_error for m in some] for some in (models, plain)]
    # Of five equal frames the triangle 1 + 2 (4 + 3 + 2 + 1)/5 = 5 is the correlation time.
    assert_allclose(np.mean(errors[0]), np.mean(errors[1]), rtol=0.15)


def test_no_warning_for_complete_clusters():
    for name, r in [("circle", 2), ("sphere-3", 3), ("triplewell2d", 2)]:
        X = problems.load(name).sample(500, random_state=0)
        assert "no-gap" not in quietly(KernelDiffusionMap(r, bandwidth=0.7, random_state=0), X)


@pytest.mark.parametrize(
    ("name", "n", "settings", "biased"),
    [
        ("triplewell2d+48x0.25", 1000, {}, True),  # rates 2.4 and 1.8 times too large
        ("triplewell2d", 1000, {"bandwidth": 0.8}, False),  # within 5 %
        ("dw1d", 500, {}, False),
    ],
)
def test_warns_of_over_smoothed_modes(name, n, settings, biased):
    problem = problems.load(name)
    model = KernelDiffusionMap(2, random_state=0, **settings)
    warned = quietly(model, problem.sample(n, random_state=0))
    error = ratio(model.rates_[None], problem.rates(2)).max()
    assert (error > 1.5) == biased
    assert ("mismatch" in warned) == biased


@pytest.mark.slow
def test_intervals_hold_what_other_random_states_find():
    """In 50 dimensions; 0.1.0 found rates from .38 to .69, with intervals such as [.43, .53]."""
    X = problems.load("triplewell2d+48x0.25").sample(1000, random_state=0)
    models = [AdaptiveDiffusionMap(1, random_state=s) for s in range(3)]
    for model in models:
        quietly(model, X)
    low, high = kdmaps.uncertainty.bootstrap(models[0], X, n_resamples=50).rate_intervals[0]
    assert all(low <= model.rates_[0] <= high for model in models)


def test_warns_of_bias_by_regularization():
    X = double_well(4.0).sample(1000, random_state=0)
    model = KernelDiffusionMap(1, bandwidth=0.4, regularization=1.0, random_state=0)
    quietly(model, X)
    with expects("bias"):
        kdmaps.uncertainty.bootstrap(model, X, n_resamples=50)


def test_other_choices_widen_intervals():
    X = problems.load("dw1d").sample(500, random_state=0)
    model = KernelDiffusionMap(1, random_state=0).fit(X)
    narrow = kdmaps.uncertainty.bootstrap(model, X, n_resamples=50).rate_intervals[0]
    model.trust_ = Trust(model.trust_.evidence, model.rates_, candidates=model.rates_ * np.array([[0.5], [1.1]]))
    wide = kdmaps.uncertainty.bootstrap(model, X, n_resamples=50).rate_intervals[0]
    reach = np.hypot(np.log(narrow / model.rates_), np.log([0.5, 1.1]))
    assert_allclose(np.abs(np.log(wide / model.rates_)), reach, rtol=1e-9)


@known("unresolved", "ridge", "variance-samples", "mismatch")
@known("outliers")
def test_failed_checks_are_shown():
    X = problems.load("dw1d").sample(600, random_state=0)
    X[0] = 1000.0
    model = KernelDiffusionMap(2, bandwidth=1.0, regularization=1e-8, isolated="keep", random_state=0).fit(X)
    bad = int(np.flatnonzero(~model.trust_.ok)[0])
    assert "not to be trusted" in repr(model.trust_)
    assert summarise(model).rows[bad][0] == f"{MARK} {bad + 1}"
    row = model.trust_.table()[bad]
    assert not row["ok"]
    assert "variance samples" in row["reasons"]
    failed = [check for check in summarise(model).checks if not check.passed]
    assert "variance-samples" in [check.code for check in failed]
    warned = [check.name for check in model.trust_.checks if check.warns]
    assert sorted(warned) == sorted(set(sum(model.trust_.reasons, ())))  # one per reason


def test_every_estimator_counts_samples(tmp_path):
    X = problems.load("dw1d").sample(300, random_state=0)
    for model in (KernelDiffusionMap(2, random_state=0), KernelSearchCV(**{**SMALL_SEARCH, "n_components": 2})):
        model.fit(X)
        assert model.energy_samples_.shape == model.variance_samples_.shape == (2,)
        model.save(tmp_path / "model.npz")
        again = kdmaps.load(tmp_path / "model.npz")
        assert repr(again.trust_) == repr(model.trust_)
        assert again.extrapolates([[0.0], [50.0]]).tolist() == [False, True]
    chunks = KernelDiffusionMap(2, random_state=0).partial_fit(X[:150])
    assert chunks.energy_samples_ is not None
    assert chunks.partial_fit(X[150:]).trust_ is None  # a later chunk alone does not represent all samples


@pytest.mark.parametrize("failing", [0, 1])
def test_fewer_modes_are_suggested_if_later_modes_fail(failing):
    X = problems.load("dw1d").sample(500, random_state=0)
    model = KernelDiffusionMap(2, random_state=0).fit(X)
    held_out = model.rates_.copy()
    held_out[failing] *= 4
    trust = Trust(model.trust_.evidence, model.rates_, held_out, candidates=held_out[None])
    warned = [check for check in trust.checks if check.warns]
    assert [check.code for check in warned] == ["held-out-factor", "kernel-factor"]
    assert all(bool(check.filled["fewer"].say()) == (failing == 1) for check in warned)


def test_infinite_factors_are_not_printed():
    X = problems.load("dw1d").sample(500, random_state=0)
    model = KernelDiffusionMap(2, random_state=0).fit(X)
    trust = Trust(model.trust_.evidence, model.rates_, held_out=model.rates_ * [1.0, np.inf])
    (check,) = [check for check in trust.checks if check.warns]
    assert "inf" not in check.say()


def test_rows_of_a_sorted_table_are_independent():
    """Their folds are random, too: the order of a table is not a correlation in time."""
    X = kdmaps.problems.load("ou2d-4").sample(500, random_state=0)
    table = X[np.argsort(np.round(X[:, 0]), kind="stable")]  # as cells by stage
    with expects("sorted-rows"):
        model = kdmaps.KernelSearchCV(1, families=["gaussian"], n_features=60, random_state=0).fit(table)
    assert model.trust_.evidence.independent_samples[0] > 250  # 5 in the order of the table


@known("consecutive-frames", "independent-samples", "mismatch", "held-out-factor")
@pytest.mark.parametrize("settings", [{}, {"cv": kdmaps.BlockedKFold(5)}], ids=["auto", "blocks"])
def test_frames_that_look_like_a_sorted_table_are_correlated(settings):
    """The search uses some frames only, which depend on each other by three rare transitions, not by short steps."""
    rng, n = np.random.default_rng(0), 20_000
    noise = lfilter([0.1], [1, -0.9], rng.standard_normal((n, 2)), axis=0)  # correlation time 19 frames
    X = noise + np.repeat([-1.0, 1.0, -1.0, 1.0], n // 4)[:, None] * [1, 0]
    search = {"families": ["gaussian"], "n_features": 40, "max_search_samples": 1000, "random_state": 0}
    model = kdmaps.KernelSearchCV(1, **search, **settings).fit(X)
    assert model.trust_.evidence.independent_samples[0] < 20
