"""Coarse states against other implementations and explicit cases."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kdmaps
from kdmaps.dynamics import CoarseStates, coarse_states
from shared import wide_map

REFERENCES = Path(__file__).parents[1] / "references"


class TestCoarseStates:
    def test_same_memberships_as_deeptime(self):
        """Reference: a birth–death chain with three wells, computed by compare/deeptime_pcca.py."""
        reference = json.loads((REFERENCES / "deeptime_pcca.json").read_text())
        found = coarse_states(reference["modes"], 3, sample_weight=reference["stationary"])
        expected = np.array(reference["memberships"])
        expected = expected[:, np.argsort(-np.array(reference["stationary"]) @ expected)]
        # Both optimise by Nelder–Mead to a relative 1e-4 in the matrix.
        assert_allclose(found.memberships, expected, atol=2e-3)
        lifted = np.column_stack([np.ones(len(expected)), reference["modes"]]) @ found.transformation
        assert_allclose(lifted, found.memberships, atol=1e-9)

    @pytest.mark.slow
    def test_wells_of_a_triple_well(self):
        problem = kdmaps.problems.load("triplewell2d")
        X = problem.sample(4000, random_state=0)
        modes = problem.eigenfunctions(X, 2)
        found = coarse_states(modes, 3)
        assert_allclose(found.populations, np.bincount(found.labels) / len(found.labels))
        assert (np.diff(found.populations) <= 0).all()
        # Every state is one region: its samples are nearest to its corner in the space of the modes.
        corners = np.linalg.inv(found.transformation)[:, 1:]
        nearest = np.argmin(((modes[:, None] - corners) ** 2).sum(axis=2), axis=1)
        crisp = found.memberships.max(axis=1) > 0.9
        assert_array_equal(found.labels[crisp], nearest[crisp])

    def test_population_of_a_rare_state(self):
        """20 samples of 4,000; the small memberships of all other samples add up to more."""
        x = np.random.default_rng(0).normal(np.repeat([-1.0, 1.0], [3980, 20]), 0.2)
        weight = np.repeat([1.0, 0.5], [3980, 20])
        found = coarse_states(np.tanh(2 * x)[:, None], 2, sample_weight=weight)
        assert_allclose(found.populations, [3980 / 3990, 10 / 3990])
        assert weight @ found.memberships[:, 1] / weight.sum() > 4 * found.populations[1]

    def test_signs(self):
        modes = np.array([[1.0, 1.0], [2.0, -1.0], [-1.0, 1.0], [1.0, 3.0]])
        found = coarse_states(modes, method="sign")
        assert_allclose(found.populations, [0.5, 0.25, 0.25])
        assert found.labels[0] == found.labels[3] == 0
        assert len(set(found.labels)) == 3
        assert_array_equal(found.memberships_at(modes[::-1]), found.memberships[::-1])
        with pytest.raises(ValueError, match="Point 1 of modes"):
            found.memberships_at([[1.0, 1.0], [-1.0, -1.0]])

    @pytest.mark.slow
    def test_new_points(self):
        """Memberships agree with the samples, are linear in between and never negative."""
        problem = kdmaps.problems.load("triplewell2d")
        X = problem.sample(500, random_state=0)
        modes = problem.eigenfunctions(X, 3)
        found = coarse_states(modes, 3)  # uses two modes; the third is ignored
        assert_allclose(found.memberships_at(modes), found.memberships, atol=1e-14)  # rounding
        middle = (modes[:-1] + modes[1:]) / 2
        assert_allclose(found.memberships_at(middle), (found.memberships[:-1] + found.memberships[1:]) / 2, atol=1e-12)
        beyond = found.memberships_at(10 * modes)
        assert (beyond >= 0).all()
        assert_allclose(beyond.sum(axis=1), 1)
        with pytest.raises(ValueError, match="2 modes used to find the states, got 1"):
            found.memberships_at(modes[:, :1])

    def test_two_states_are_linear_in_the_mode(self):
        mode = np.array([[-1.0], [0.0], [3.0]])
        assert_allclose(coarse_states(mode).memberships, [[1, 0], [0.75, 0.25], [0, 1]], atol=1e-12)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([[1.0], [2.0]], 3), "n_states must be"),
            ((np.zeros((9, 2)), 3), "linearly dependent"),
            (([1.0, 2.0], 2), "modes must be"),
        ],
    )
    def test_rejects_bad_arguments(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            coarse_states(*arguments)

    def test_core_has_at_least_a_tenth_of_a_state(self):
        """No sample of the first state has a membership of 0.9."""
        memberships = np.column_stack([np.linspace(0, 0.8, 101), 1 - np.linspace(0, 0.8, 101)])
        states = CoarseStates(memberships.argmax(axis=1), memberships, memberships.mean(axis=0), None)
        # 38 samples have a membership in state 0 above one half; the largest tenth of these are four.
        assert_array_equal(np.flatnonzero(states.cores == 0), np.arange(97, 101))
        assert_array_equal(states.cores == 1, memberships[:, 1] >= 0.9)


def test_repr_of_states():
    path = kdmaps.problems.load("dw1d").simulate(3000, dt=0.1, random_state=0)[0]
    states = coarse_states(wide_map(1).fit(path).transform(path), 2)
    assert f"state 1 (label 0) {states.populations[0]:.1%}, state 2 (label 1) " in repr(states)
