"""Tests of a lag pass for a Markov process and fail for a process with memory."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kdmaps
from kdmaps.dynamics import ChapmanKolmogorov
from kdmaps.exceptions import UnreliableModesWarning
from shared import known_warning

DOUBLE_WELL = kdmaps.problems.load("dw1d")


def fit(X, **settings):
    options = {"lag": 1, "time_step": 0.1, "regularization": 1e-4, "n_features": 60, "random_state": 0} | settings
    return kdmaps.KernelDiffusionMap(1, **options).fit(X)


def test_markov_process_passes():
    path = DOUBLE_WELL.simulate(5000, dt=0.1, random_state=0)[0]
    model = fit(path)
    tests = kdmaps.dynamics.validate(model, path)
    assert tests.flat
    assert tests.predicts
    assert 1 in tests.implied.lags
    alone = kdmaps.dynamics.chapman_kolmogorov(model, path, random_state=0)
    np.testing.assert_allclose(tests.chapman.estimated, alone.estimated, rtol=1e-12)
    same = kdmaps.dynamics.implied_timescales(model, path, tests.implied.lags, random_state=0)
    np.testing.assert_allclose(tests.implied.timescales, same.timescales, rtol=1e-12)


@pytest.fixture(scope="module")
def noisy():
    """A double well observed with strong noise, which is not a Markov process."""
    path = DOUBLE_WELL.simulate(5000, dt=0.1, random_state=0)[0]
    return path + np.random.default_rng(0).normal(0, 1, path.shape)


def test_warns_of_a_process_with_memory(noisy):
    with pytest.warns(UnreliableModesWarning) as record:
        tests = kdmaps.dynamics.validate(fit(noisy), noisy)
    assert [str(one.message) for one in record] == [str(one) for one in tests.warnings()]
    assert tests.checks()[-1].passed is False
    assert tests.doubtful.tolist() == [True]
    assert not tests.flat
    assert tests.predicts is False
    step, mode = tests.chapman.worst
    # Noise decays at once, so one lag predicts too little for several.
    assert tests.chapman.estimated[step, mode] > tests.chapman.predicted[step, mode] + 0.1
    assert abs(tests.chapman.deviations[step, mode]) > tests.chapman.limit


def test_limit_for_all_comparisons():
    path = DOUBLE_WELL.simulate(1000, dt=0.1, random_state=0)[0]
    tests = kdmaps.dynamics.validate(fit(path), path)
    # Four steps of one mode: two-sided 1 %/4, of Student's law; for many blocks the normal law (3.0233).
    n_blocks = tests.chapman.n_blocks
    assert tests.chapman.limit == pytest.approx(
        t.isf(0.00125, n_blocks - 1) * np.sqrt(n_blocks / (n_blocks - 1)), rel=1e-9
    )
    assert replace(tests.chapman, n_blocks=10**7).limit == pytest.approx(3.0233, abs=1e-4)


def chapman(differences, errors):
    """A test of modes with these differences, in rows of steps, and their standard errors."""
    differences = np.array([[0.0] * len(differences[0]), *differences])
    predicted, steps = np.full(differences.shape, 0.5), np.arange(1, len(differences) + 1)
    ends = np.zeros((*differences.shape, 2))
    return ChapmanKolmogorov(
        steps, 0.1 * steps, predicted, predicted + differences, ends, ends, differences / errors, 0.95, 10**7
    )


@pytest.mark.parametrize(
    ("difference", "error", "passed", "words"),
    [
        (0.015, 0.003, True, "passed: largest deviation below 0.02"),
        (0.03, 0.02, True, "passed: largest deviation 0.03 (mode 2), 1.5 standard errors"),
        (0.03, 0.006, False, "failed: largest deviation 0.03 (mode 2), 5.0 standard errors"),
    ],
)
def test_failure_needs_a_large_and_significant_deviation(difference, error, passed, words):
    test = chapman([[0.0, 0.0], [0.0, difference]], error)
    assert test.passed is passed
    assert test.failed.any(axis=0).tolist() == [False, not passed]
    assert words in repr(test)
    # Two-sided 1 %/4, of a table of the normal law.
    assert test.worst is None or "limit 3.0 for 4 comparisons" in repr(test)


def test_pieces_of_a_long_trajectory(monkeypatch):
    monkeypatch.setattr("kdmaps.dynamics._validation.MOST_FRAMES", 12_000)
    path = DOUBLE_WELL.simulate(40_000, dt=0.1, random_state=1)[0]
    tests = kdmaps.dynamics.validate(fit(path), path)
    assert tests.implied.lags[-1] < 5000  # pieces of 5,000 frames
    # 1,200 units of time contain about 480 independent frames: a standard error of 6 %.
    assert tests.implied.timescales[0, 0] == pytest.approx(1 / DOUBLE_WELL.rates(1)[0], rel=0.18)


@known_warning("do not resolve mode")
@known_warning("have the same time scale")
@known_warning("relax within one lag")
@known_warning("lie far outside the samples")
@known_warning("regularization weighs")
@known_warning("Too few independent samples")
@known_warning("not flat within their errors")
def test_rejects_models_and_reports_short_trajectories():
    path = DOUBLE_WELL.simulate(400, dt=0.1, random_state=0)[0]
    with pytest.raises(ValueError, match="fitted without a lag"):
        kdmaps.dynamics.validate(fit(path, lag=None, time_step=1.0), path)
    pipeline = make_pipeline(StandardScaler(), kdmaps.KernelDiffusionMap(1, lag=2, random_state=0)).fit(path)
    with pytest.raises(ValueError, match="model is a Pipeline"):
        kdmaps.dynamics.validate(pipeline, path)
    assert kdmaps.dynamics.validate(pipeline[-1], pipeline[:-1].transform(path)).lag == 2
    with pytest.raises(ValueError, match="reversible"):
        kdmaps.dynamics.validate(fit(path, reversible=False), path)
    long = kdmaps.dynamics.validate(fit(path[:100], lag=60), path[:100])
    assert long.chapman is None
    assert long.predicts is None
