"""Rates that are infinite: modes that have decayed within the lag."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from spectra import with_spectrum

from kdmaps.dynamics import coarse_states, suggest_states
from kdmaps.report.text import state_sentences
from kdmaps.spectrum.modes import Clock, rate_ratios
from kdmaps.spectrum.pencil import find_modes

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def test_equal_rates_have_the_ratio_one():
    assert_array_equal(rate_ratios(np.array([0, 0, 2, 5, np.inf, np.inf])), [1, np.inf, 2.5, np.inf, 1])


@pytest.fixture
def decayed():
    """One mode with a time scale, ν = 0.5, and two without, ν < 0."""
    modes = find_modes(with_spectrum([2.0, 0.9, 0.8, 0.7]), None, 3, 1e-9)
    return dataclasses.replace(modes, clock=Clock(lag=1))


def test_modes_without_time_scales_follow_the_gap(decayed):
    assert_array_equal(np.isinf(decayed.rates), [False, True, True])
    assert suggest_states(SimpleNamespace(modes_=decayed)) == 2
    values = np.random.default_rng(0).normal(size=(50, 3))
    assert "mode 2 relaxes within one lag" in state_sentences(coarse_states(values, 2), decayed.rates)[1]


@pytest.mark.parametrize(
    ("rates", "n_states", "words"),
    [
        ([1.0, 2.26], 2, ["mode 1 is nearly constant", "mode 2 relaxes 2.3 times as fast as mode 1."]),
        ([1.0, 104.0], 2, ["mode 1 is nearly constant", "mode 2 relaxes about 100 times as fast as mode 1."]),
        (
            [1.0, 2.0, 5180.0],
            3,
            ["the first 2 modes are nearly", "mode 3 relaxes about 2,600 times as fast as mode 2."],
        ),
    ],
)
def test_states_and_their_gap_in_words(rates, n_states, words):
    values = np.random.default_rng(0).normal(size=(50, len(rates)))
    found = state_sentences(coarse_states(values, n_states), np.array(rates))
    assert words[0] in found[0]
    assert words[1] in found[1]


def test_eigenvalues_give_the_gap_after_a_mode_without_time_scale(decayed):
    gap = next(check for check in decayed.checks if check.code == "no-gap")
    assert gap.shown == f"{decayed.gap:.4g}"
