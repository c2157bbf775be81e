"""The lag chosen for trajectories, against processes whose correlations are known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.signal import lfilter

import kdmaps
from kdmaps.checks import Outcome, muted
from kdmaps.selection.lag import choose_lag
from shared import checks, expects

pytestmark = pytest.mark.filterwarnings("ignore:.*relax within one lag:kdmaps.exceptions.UnreliableModesWarning")


def ou(n, rate, seed):
    """Simulate a stationary process of unit variance exactly, with the autocorrelation e^{-rate t} after t frames."""
    rng, a = np.random.default_rng(seed), np.exp(-rate)
    first = a * rng.standard_normal(1)
    return lfilter([1.0], [1.0, -a], rng.standard_normal(n) * np.sqrt(1 - a**2), zi=first)[0][:, None]


def test_markovian_frames_need_a_lag_of_one():
    lag, found = choose_lag(ou(10_000, 0.05, 0), time_step=2.0)
    assert lag == found.plateau == 1
    assert_allclose(found.timescales[0, 0], 2 / 0.05, rtol=0.25)  # √(2/500) = 6 %


@pytest.mark.slow
def test_markovian_frames_have_a_plateau():
    problem = kdmaps.problems.load("ou2d-4")
    paths = [problem.simulate(5000, dt=0.1, random_state=900 + seed)[0] for seed in range(20)]
    with muted():
        found = [choose_lag(path, time_step=0.1) for path in paths]
    assert [lag for lag, _ in found].count(1) >= 17  # 19 ± 1 at 95 %
    # With about 250 independent frames, the errors of a few are too large to tell.
    assert [scan.plateau for _, scan in found].count(1) >= 15


def test_observation_noise_needs_longer_lags():
    """A little noise (A = 1/1.04): 16.9 frames from a lag of one, 42 from ten, 50 in the end."""
    X = ou(40_000, 0.02, 1) + 0.2 * np.random.default_rng(9).standard_normal((40_000, 1))
    # More than 20,000 frames, of which pieces of 5,000 are used.
    lag, found = choose_lag(X, n_components=1)
    assert 5 <= lag == found.plateau <= 30
    assert found.timescales[0, 0] == pytest.approx(1 / (0.02 + np.log(1.04)), rel=0.15)


def test_warns_of_shuffled_frames():
    X = np.random.default_rng(0).permutation(ou(3000, 0.02, 0))
    with expects("no-memory"):
        lag, found = choose_lag(X)
    assert lag == 1
    assert found.plateau is None


def test_warns_without_a_plateau():
    X = ou(4000, 0.05, 0) + np.random.default_rng(9).standard_normal((4000, 1))
    with expects("lag-not-flat") as record:
        lag, _ = choose_lag(X, lags=[1, 2, 3, 4], n_components=1)
    (check,) = checks(record)
    assert (check.outcome, check.words["lag_frames"]) == (Outcome.FAILED, 4)
    assert lag == 4


def test_says_if_the_trajectory_is_too_short():
    with expects("lag-not-flat") as record:
        lag, found = choose_lag(ou(400, 0.02, 0), n_components=1)
    (check,) = checks(record)
    assert (check.outcome, check.words["lag_frames"]) == (Outcome.UNKNOWN, 1)
    assert lag == found.undecided == 1
    assert found.plateau is None


def test_trajectories_files_and_streams(tmp_path):
    parts = [ou(1000, 0.1, seed) for seed in range(3)]
    X, groups = np.concatenate(parts), np.repeat([0, 1, 2], 1000)
    np.save(tmp_path / "frames.npy", X)
    of_list, of_groups = choose_lag(parts), choose_lag(X, groups=groups)
    of_file = choose_lag(tmp_path / "frames.npy", groups=groups)
    of_stream = choose_lag(lambda: iter(parts), groups=groups)
    for other in (of_groups, of_file, of_stream):
        assert other.lag == of_list.lag
        assert_allclose(other.timescales.timescales, of_list.timescales.timescales, rtol=1e-8)


def test_rejects_bad_lags_and_groups():
    with pytest.raises(ValueError, match="lags must be ascending"):
        choose_lag(ou(500, 0.1, 0), lags=[3, 2])
    with pytest.raises(ValueError, match="groups"):
        choose_lag(ou(500, 0.1, 0), groups=[1])
