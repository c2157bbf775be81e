"""Tests of a lag pass for a Markov process and fail for a process with memory."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kdmaps
from experiments.driven import rotating_ou
from kdmaps.dynamics import ChapmanKolmogorov, ImpliedTimescales, Validation
from shared import codes, expects, known

DOUBLE_WELL = kdmaps.problems.load("dw1d")


def fit(X, **settings):
    options = {
        "n_components": 1,
        "lag": 1,
        "time_step": 0.1,
        "regularization": 1e-4,
        "n_features": 60,
        "random_state": 0,
    } | settings
    return kdmaps.KernelDiffusionMap(**options).fit(X)


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
    with expects("not-flat", "chapman-kolmogorov") as record:
        tests = kdmaps.dynamics.validate(fit(noisy), noisy)
    assert codes(record) == [check.code for check in tests.checks.warnings]
    assert [check.code for check in tests.checks.failed] == ["not-flat", "chapman-kolmogorov"]
    assert tests.doubtful.tolist() == [True]
    assert not tests.flat
    assert tests.predicts is False
    # Noise decays at once, so one lag predicts too little for several.
    assert tests.chapman.difference_intervals[0, 0] > 0.1


def test_rotation_is_predicted_with_its_direction():
    path = rotating_ou(4000, 0).X
    tests = kdmaps.dynamics.validate(fit(path, n_components=2, reversible=False), path)
    assert tests.flat
    assert tests.predicts
    # Both modes decay at rate 1; 400 time units contain about 200 independent frames (7 %), three times.
    np.testing.assert_allclose(tests.implied.timescales[0], 1, rtol=0.2)
    # After five steps, e^{-1/2} cos 1 = 0.33; the symmetrised propagator would predict 0.89⁵ = 0.55.
    np.testing.assert_allclose(tests.chapman.predicted[-1], np.exp(-0.5) * np.cos(1), atol=0.08)


def chapman(means, ends, n_blocks=20):
    """A test of modes with these mean differences and intervals."""
    steps, shape = np.arange(1, 4), (3, len(means))
    predicted = np.full(shape, 0.5)
    sides = np.zeros((*shape, 2))
    return ChapmanKolmogorov(
        steps, 0.1 * steps, predicted, predicted, sides, sides, np.zeros(shape), np.array(means), np.array(ends), 0.95,
        n_blocks,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mean", "ends", "passed"),
    [
        (0.01, (-0.01, 0.03), True),
        (0.015, (0.012, 0.018), True),  # significant, but negligible
        (0.03, (0.021, 0.039), False),
        (-0.2, (-0.35, -0.05), False),
        (0.2, (-0.05, 0.45), None),
        (0.05, (0.01, 0.11), None),
    ],
)
def test_rule_of_the_chapman_kolmogorov_test(mean, ends, passed):
    test = chapman([0.0, mean], [(-0.01, 0.01), ends])
    assert test.passed is passed
    assert test.failed.tolist() == [False, passed is False]
    word = {True: "passed", False: "failed", None: "inconclusive"}[passed]
    assert f"{word}: estimate and prediction of mode 2 differ by {mean:+.2g}" in repr(test)
    few = chapman([0.0, mean], [(-0.01, 0.01), ends], n_blocks=9)
    assert few.passed is (False if passed is False else None)


def scan(changes, spread, n_blocks=30):
    """Implied time scales at lags 1, 2, 4, …, as ln t relative to lag 1, with an error that grows with the change."""
    rng = np.random.default_rng(0)
    lags = 2 ** np.arange(len(changes))
    logs = np.log(100) + np.array(changes)[:, None]
    # All lags vary together by 0.5, which cancels in comparisons; the differences vary by `spread`.
    common, own = rng.normal(0, 0.5, (200, 1, 1)), rng.normal(0, spread, (200, 1, 1)) * np.arange(len(changes))[:, None]
    samples = np.exp(logs + common + own / (len(changes) - 1))
    timescales = np.exp(logs)
    ends = np.stack([timescales / 2, timescales * 2], axis=-1)
    return ImpliedTimescales(lags, lags * 1.0, timescales, ends, 1.0, 0.95, samples, n_blocks)


@pytest.mark.parametrize(
    ("growing", "spread", "n_blocks", "flat"),
    [
        (0.0, 0.02, 30, True),
        (0.64, 0.08, 30, False),  # 55 → 73 → 85 → 98 → 104
        (0.64, 0.08, 9, False),
        (0.0, 0.02, 9, None),
        (0.0, 0.5, 30, None),
        (0.2, 0.2, 30, None),
    ],
)
def test_flat_needs_small_changes_with_small_errors(growing, spread, n_blocks, flat):
    found = scan(growing * np.array([0, 0.45, 0.68, 0.9, 1.0]), spread, n_blocks)
    assert found.flat_from(1) is flat
    assert (found.plateau == 1) is (flat is True)
    assert (found.undecided == 1) is (flat is None)
    assert Validation(1, found, None).flat is flat
    # If time scales are flat from a longer lag on, this is stated without a warning.
    assert len(Validation(1, found, None).checks.warnings) == (not flat and found.plateau is None)


def test_pieces_of_a_long_trajectory(monkeypatch):
    monkeypatch.setattr("kdmaps.dynamics._validation.MOST_FRAMES", 12_000)
    path = DOUBLE_WELL.simulate(40_000, dt=0.1, random_state=1)[0]
    tests = kdmaps.dynamics.validate(fit(path), path)
    assert tests.implied.lags[-1] < 5000  # pieces of 5,000 frames
    # 1,200 units of time contain about 480 independent frames: a standard error of 6 %.
    assert tests.implied.timescales[0, 0] == pytest.approx(1 / DOUBLE_WELL.rates(1)[0], rel=0.18)


@known("unresolved", "no-gap", "within-lag", "extrapolation", "ridge", "independent-samples", "not-flat")
def test_rejects_models_and_reports_short_trajectories():
    path = DOUBLE_WELL.simulate(400, dt=0.1, random_state=0)[0]
    with pytest.raises(ValueError, match="fitted without a lag"):
        kdmaps.dynamics.validate(fit(path, lag=None, time_step=1.0), path)
    pipeline = make_pipeline(StandardScaler(), kdmaps.KernelDiffusionMap(1, lag=2, random_state=0)).fit(path)
    with pytest.raises(ValueError, match="longest trajectory has 1"):
        kdmaps.dynamics.validate(fit(path, lag=2), path, groups=np.arange(400))
    one = kdmaps.dynamics.validate(pipeline, path)
    other = kdmaps.dynamics.validate(pipeline[-1], pipeline[:-1].transform(path))
    np.testing.assert_array_equal(one.implied.timescales, other.implied.timescales)
    long = kdmaps.dynamics.validate(fit(path[:100], lag=60), path[:100])
    assert long.chapman is None
    assert long.predicts is None
