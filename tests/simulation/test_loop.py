"""Rounds of simulation and fit: kept, resumed after a kill, ended when nothing changes."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kdmaps.simulation import Loop
from kdmaps.simulation.loop import spread
from shared import wide_map

#: A walker in V = x²/2 under the bias, exactly sampled by rejection; `kill` ends the process in a round.
SCRIPT = """
import os, signal, sys
sys.path[:0] = {paths!r}
from test_loop import loop, sampled
def simulate(bias, starts, seed):
    if bias is not None and {kill!r} == "simulation":
        os.kill(os.getpid(), signal.SIGKILL)
    return sampled(bias, starts, seed)
def fit(X, weight):
    from test_loop import fit
    if len(X) > 400 and {kill!r} == "fit":
        os.kill(os.getpid(), signal.SIGKILL)
    return fit(X, weight)
loop({directory!r}, simulate, fit).run(max_rounds=3)
"""


def sampled(bias, starts, seed):
    """Draw 400 points of e^{-x²/2 - U} by importance resampling of a wide uniform law."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-4, 4, (8000, 1))
    p = np.exp(-(x[:, 0] ** 2) / 2 - (0 if bias is None else bias.energy(x)))
    return x[rng.choice(len(x), 400, p=p / p.sum(), replace=False)]


def fit(X, weight):
    return wide_map(1).fit(X, sample_weight=weight)


def loop(directory, simulate=sampled, fit=fit, **options):
    return Loop(directory, simulate, fit, kT=1.0, n_starts=10, **options)


def test_rounds_find_the_rate_and_settle(tmp_path):
    done = loop(tmp_path).run(max_rounds=8)
    assert done.settled
    assert len(done.rounds) < 8
    # Var of the rate of N(0, 1) from n frames is about 2/n: with 1,600 frames and their weights, 0.05.
    assert done.rounds[-1]["rates"][0] == pytest.approx(1, abs=0.15)
    _, X, weight = done.weighted()
    assert np.average(X[:, 0] ** 2, weights=weight) == pytest.approx(1, abs=0.15)
    assert done.frames(len(done.rounds) - 1).std() > 1.2  # the bias widens what is sampled
    assert_allclose(done.model().rates_, done.rounds[-1]["rates"])


@pytest.mark.slow
@pytest.mark.parametrize("kill", ["simulation", "fit"])
def test_a_killed_round_is_run_again_with_the_same_result(tmp_path, kill):
    whole = loop(tmp_path / "whole").run(max_rounds=3)
    directory = tmp_path / "killed"
    code = SCRIPT.format(paths=[p for p in sys.path if p], kill=kill, directory=str(directory))
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=os.environ, check=False)
    assert run.returncode == -signal.SIGKILL
    assert not (directory / "round_001.json").exists()
    assert (directory / "round_001.npz").exists() == (kill == "fit")
    simulated = []

    def simulate(bias, starts, seed):
        simulated.append(seed)
        return sampled(bias, starts, seed)

    resumed = loop(directory, simulate)
    assert len(resumed.rounds) == 1
    resumed.run(max_rounds=3)
    assert len(simulated) == (1 if kill == "fit" else 2)  # whole frames are not simulated again
    assert json.dumps(resumed.rounds) == json.dumps(whole.rounds)


def test_frames_of_the_guide_are_spread_evenly():
    """A thousand rows in one place and eleven along a line: those of the line come first, the ends before the rest."""
    line = np.column_stack([np.linspace(0, 10, 11), np.zeros(11)])
    X = np.vstack([np.full((1000, 2), 0.001), line])
    chosen = X[spread(X, 12)]
    assert_allclose(chosen[:3, 0], [0.001, 10, 5])
    assert_allclose(np.sort(chosen[:11, 0]), [0.001, *range(1, 11)])
    assert len(spread(line, 100)) == 11  # no row twice


def test_weights_are_kept_for_the_next_round(tmp_path):
    """Asking for another round, and for the last again, gives what a new loop gives."""
    first = loop(tmp_path).run(max_rounds=3)
    for number in (2, 0, 2):
        for ours, theirs in zip(first.weighted(number), loop(tmp_path).weighted(number), strict=True):
            assert_allclose(ours, theirs)


def test_a_finished_loop_simulates_nothing(tmp_path):
    first = loop(tmp_path).run(max_rounds=2)

    def simulate(bias, starts, seed):
        raise AssertionError("simulated again")

    assert loop(tmp_path, simulate).run(max_rounds=2).rounds == first.rounds


def test_bad_arguments_are_named(tmp_path):
    with pytest.raises(ValueError, match="kT must be"):
        Loop(tmp_path, sampled, fit, kT=0.0)
    with pytest.raises(ValueError, match="memory must be a positive whole number, got 0"):
        loop(tmp_path, memory=0)
    with pytest.raises(ValueError, match="n_even must be"):
        loop(tmp_path, n_even=2.5)
    with pytest.raises(ValueError, match="simulate must return finite frames"):
        loop(tmp_path, lambda *_: np.array([[np.nan]])).run(1)
