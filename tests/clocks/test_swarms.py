"""Weights of swarms of short runs, against exact populations."""

import numpy as np
import pytest

import kdmaps
from kdmaps.clocks.swarms import SwarmWeights
from kdmaps.exceptions import ArgumentError, UnreliableModesWarning

pytestmark = pytest.mark.filterwarnings("ignore::kdmaps.exceptions.CheckWarning")

STEP, N = 0.0025, 200
WELLS = kdmaps.problems.load("triplewell2d")


def region(X):
    """Return the well of each point: left, right, top."""
    return np.where(X[:, 1] > 0.8, 2, (X[:, 0] > 0).astype(int))


@pytest.fixture(scope="module")
def populations():
    X = WELLS.sample(200_000, random_state=0)
    return np.bincount(region(X), minlength=3) / len(X)


def runs_from(starts, n_frames, seed):
    return WELLS.simulate(n_frames, STEP, n_trajectories=len(starts), x0=starts, random_state=seed)


def anywhere(seed, n=N):
    X = np.random.default_rng(seed).uniform([-2, -1], [2, 2.4], (40 * n, 2))
    energy = WELLS.potential(X)
    return X[energy < energy.min() + 6][:n]


def error_of(weights, runs, populations):
    X = np.concatenate(list(runs))
    found = np.bincount(region(X), weights.joined, 3) / weights.joined.sum()
    return np.abs(found - populations).max()


def test_populations_of_runs_that_start_anywhere(populations):
    errors = []
    for seed in range(3):
        runs = runs_from(anywhere(seed), 250, seed)  # a quarter of the slowest relaxation time
        weights = kdmaps.simulation.swarm_weights(runs)
        assert all(check.passed for check in weights.checks)
        errors.append(error_of(weights, runs, populations))
        flat = SwarmWeights([np.ones(len(run)) for run in runs], 0, 0, 0, ())
        assert error_of(flat, runs, populations) > 0.1  # the top well has too many starts
    assert np.median(errors) < 0.08


def test_log_weights_agree_with_the_potential():
    # The law of the frames of very short runs is that of their starts, uniform here, so that log w = -V + constant.
    problem = kdmaps.problems.OrnsteinUhlenbeck((1.0,))
    starts = np.random.default_rng(0).uniform(-2.5, 2.5, (2000, 1))
    runs = problem.simulate(10, 0.01, n_trajectories=2000, x0=starts, random_state=0)
    weights = kdmaps.simulation.swarm_weights(runs)
    x = np.concatenate(list(runs))[:, 0]
    inside = np.abs(x) < 2
    logs = np.log(weights.joined[inside])
    slope, _ = np.polyfit(-(x[inside] ** 2) / 2, logs, 1)
    # Displacements of √(2·0.02) in runs of total length 200 leave an error of about √(2·4/200) over the range.
    assert slope == pytest.approx(1, abs=0.2)
    assert (logs + x[inside] ** 2 / 2).std() < 0.2


def test_the_same_seed_gives_the_same_weights():
    runs = list(runs_from(anywhere(0, 60), 60, 0))
    first, second = (kdmaps.simulation.swarm_weights(runs).joined for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.mean() == pytest.approx(1)
    assert first.min() > 0


def codes(runs):
    with pytest.warns(UnreliableModesWarning) as caught:
        kdmaps.simulation.swarm_weights(runs)
    return {item.message.check.code for item in caught}


@pytest.mark.parametrize("seed", range(4))
def test_wells_that_no_run_connects_are_reported(seed):
    rng = np.random.default_rng(seed)
    centres = np.where(rng.random(100)[:, None] < 0.5, [[-1.0, 0.0]], [[1.0, 0.0]])
    assert codes(runs_from(centres + 0.05 * rng.standard_normal((100, 2)), 15, seed)) & {"swarm-connected"}


@pytest.mark.parametrize("seed", range(4))
def test_runs_from_one_well_are_reported(seed):
    starts = np.array([-1.0, 0.0]) + 0.2 * np.random.default_rng(seed).standard_normal((N, 2))
    assert codes(runs_from(starts, 50, seed)) & {"swarm-spreads"}


def test_bad_runs_are_named():
    with pytest.raises(ArgumentError, match="runs must be a list"):
        kdmaps.simulation.swarm_weights(np.zeros((10, 2)))
    with pytest.raises(ArgumentError, match="at least 4 frames"):
        kdmaps.simulation.swarm_weights(np.zeros((10, 3, 2)))
