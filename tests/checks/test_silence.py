"""Clean data are checked without complaint, and data with a mistake are not."""

import warnings

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import load_digits

import kdmaps
from kdmaps.checks import RULES, Checks, Subject
from kdmaps.data import check_data
from kdmaps.data.check import warn_of_data
from kdmaps.data.correlation import order_of
from kdmaps.data.sources import ArraySource
from kdmaps.language import CLI, PYTHON
from shared import codes

N = 600


def noise(d=2, seed=0):
    return np.random.default_rng(seed).standard_normal((N, d))


def transient():
    """Three species of a reaction that decays, measured with noise except the first."""
    t = np.linspace(0, 6, N)
    other = np.column_stack([np.exp(-t / 3), 1 - np.exp(-t / 2)]) + 0.01 * noise()
    return np.column_stack([np.exp(-t), other])


def cells():
    """Log expression of four genes in two types of cells."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, N)[:, None] * [2.0, -1.0, 0.5, 0.0]
    return np.log1p(rng.gamma(4.0, 1.0, (N, 4))) + kind


def digits():
    """Images of pixels whose grey values are not rounded, without those that are always black."""
    grey = load_digits().data
    grey = grey[:, np.ptp(grey, axis=0) > 0]
    return grey + np.random.default_rng(0).uniform(-0.5, 0.5, grey.shape)


def circle():
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, N)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def grid():
    """Points of a regular grid in any order, each a little off its place."""
    x, y = np.meshgrid(np.linspace(0, 1, 30), np.linspace(0, 2, 20))
    points = np.column_stack([x.ravel(), y.ravel()]) + 0.002 * noise()
    return np.random.default_rng(0).permutation(points)


def prices():
    """Logarithms of the prices of three shares, a random walk."""
    return np.cumsum(0.01 * noise(3), axis=0)


#: Data without a mistake whose rows have no order.
SAMPLES = {
    "strip": np.random.default_rng(0).uniform([0, 0], [2 * np.pi, 1], (N, 2)),
    "cells": cells(),
    "digits": digits(),
    "grid": grid(),
    "gaussian": noise(),
    "circle": circle(),
}
#: Trajectories without a mistake; that rows depend on each other is right.
PATHS = {
    "period of two": (-1.0) ** np.arange(N)[:, None] * [1.0, 0.5] + 0.1 * noise(),
    "period of five": np.sin(2 * np.pi * np.arange(N)[:, None] / 5 + [0, 1]) + 0.1 * noise(),
    "period of 40": np.sin(2 * np.pi * np.arange(N)[:, None] / 40 + [0, 1]) + 0.1 * noise(),
    "transient": transient(),
    "prices": prices(),
    "relaxation": kdmaps.problems.load("ou2d-4").simulate(N, dt=0.1, random_state=0)[0],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_is_wrong_with_samples(name):
    assert check_data(SAMPLES[name]).failed == []


@pytest.mark.parametrize("name", PATHS)
def test_only_the_order_of_rows_is_found_in_trajectories(name):
    assert {check.code for check in check_data(PATHS[name]).failed} <= {"consecutive-frames"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_data(ArraySource(PATHS[name]), None, None, lag=1)


@pytest.mark.parametrize("period", [2, 3, 4, 5, 7])
def test_a_periodic_signal_is_one_trajectory(period):
    x = np.sin(2 * np.pi * np.arange(N) / period + 0.3) + 0.2 * noise(1)[:, 0]
    assert order_of(x[:, None]).n_walkers == 1


@pytest.mark.parametrize("n_walkers", [2, 3, 5])
def test_walkers_are_still_found(n_walkers):
    paths = kdmaps.problems.load("ou2d-4").simulate(400, dt=0.1, n_trajectories=n_walkers, random_state=0)
    assert order_of(paths.transpose(1, 0, 2).reshape(-1, 2)).n_walkers == n_walkers


def test_a_column_that_relaxes_is_no_time():
    decay = np.exp(-np.linspace(0, 4, N))
    for x in (decay, 1 - decay, -decay):
        assert "time-or-index" not in [check.code for check in check_data(np.column_stack([x, noise()])).failed]
    slow = np.exp(-np.linspace(0, 0.2, N))  # nearly proportional to time
    assert "time-or-index" in [check.code for check in check_data(np.column_stack([slow, noise()])).failed]


def test_a_uniform_strip_is_a_note():
    checks = check_data(SAMPLES["strip"])
    assert [check.code for check in checks.notes] == ["possible-angles"]
    assert checks.headline() == "all checks passed"


def test_scales_that_fall_by_small_steps_are_right():
    """Principal components, or coordinates of one system; a gap of 10 between two of them is a change of units."""
    assert check_data(noise(12) * 2.0 ** -np.arange(12)).failed == []
    assert [check.code for check in check_data(noise(3) * [1, 30, 2000]).failed] == ["scales"]


@pytest.mark.parametrize("name", ["strip", "gaussian", "circle", "cells"])
def test_fits_of_clean_samples_raise_no_warnings_of_other_packages(name):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        kdmaps.KernelDiffusionMap(2, n_features=40, random_state=0).fit(SAMPLES[name])
    assert [one.category for one in record if issubclass(one.category, RuntimeWarning)] == []
    assert [code for code in codes(record) if RULES[code].subject is Subject.DATA] == []


# --- mistakes ---------------------------------------------------------------------------------------------------------
def far_row():
    X = noise()
    X[7] = 50
    return X


def wrapped():
    """An angle that crosses the end of its range."""
    phi = np.random.default_rng(0).normal(np.pi, 0.5, N)
    return np.column_stack([(phi + np.pi) % (2 * np.pi) - np.pi, noise(1)])


def molecule():
    """A rigid body of six atoms that rotates at random."""
    rng = np.random.default_rng(0)
    atoms = rng.standard_normal((6, 3))
    turns, _ = np.linalg.qr(rng.standard_normal((N, 3, 3)))
    return (atoms @ turns + 0.01 * rng.standard_normal((N, 6, 3))).reshape(N, -1)


def copies():
    X = noise()
    X[-60:] = X[:60]
    return X


def interleaved():
    return kdmaps.problems.load("ou2d-4").simulate(200, dt=0.1, n_trajectories=3, random_state=0).swapaxes(0, 1)


MISTAKES = {
    "time-or-index": np.column_stack([np.arange(N), noise()]),
    "constant-columns": np.column_stack([np.ones(N), noise()]),
    "discrete-columns": np.column_stack([np.round(norm.cdf(noise(1)) * 5), noise()]),
    "one-hot-columns": np.column_stack([np.eye(3)[np.random.default_rng(0).integers(0, 3, N)], noise()]),
    "scales": noise() * [1, 2000],
    "angles": wrapped(),
    "copies-of-rows": copies(),
    "unaligned-atoms": molecule(),
    "outliers": far_row(),
    "interleaved-walkers": interleaved().reshape(-1, 2),
    "consecutive-frames": PATHS["relaxation"],
    "sorted-rows": noise()[np.argsort(np.round(2 * noise()[:, 0]), kind="stable")],
}


@pytest.mark.parametrize("code", MISTAKES)
def test_a_mistake_is_found_alone(code):
    """One cause, one warning, with all words of its templates."""
    (check,) = check_data(MISTAKES[code]).failed
    assert check.code == code
    for language in (PYTHON, CLI):
        assert "nan" not in check.say(language).split()
        assert Checks([check]).verdict("1.0", language)


def test_weights_among_the_columns_and_weights_that_dominate():
    frame = {"x": noise()[:, 0], "y": noise()[:, 1], "weight": np.exp(0.3 * noise(3)[:, 2])}
    pandas = pytest.importorskip("pandas")
    assert [check.code for check in check_data(pandas.DataFrame(frame)).failed] == ["weight-columns"]
    weight = np.exp(6 * noise()[:, 0])
    assert [check.code for check in check_data(noise(), weight).failed] == ["dominating-weights"]
