"""Coarse states against other implementations and explicit cases."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

import kdmaps
from kdmaps.dynamics import CoarseStates, coarse_states, metastability, suggest_states
from kdmaps.report.text import count_states
from shared import wide_map

REFERENCES = Path(__file__).parents[1] / "references"


class TestCoarseStates:
    def test_same_memberships_as_deeptime(self):
        """Reference: a birth–death chain with three wells, computed by compare/deeptime_pcca.py."""
        reference = json.loads((REFERENCES / "deeptime_pcca.json").read_text())
        found = coarse_states(reference["modes"], 3, method="pcca", sample_weight=reference["stationary"])
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

    @pytest.mark.slow
    def test_new_points(self):
        """Memberships agree with the samples, are linear in between and never negative."""
        problem = kdmaps.problems.load("triplewell2d")
        X = problem.sample(500, random_state=0)
        modes = problem.eigenfunctions(X, 3)
        found = coarse_states(modes, 3, method="pcca")  # uses two modes; the third is ignored
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
        assert_allclose(coarse_states(mode, method="pcca").memberships, [[1, 0], [0.75, 0.25], [0, 1]], atol=1e-12)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([[1.0], [2.0]], 3), "n_states must be"),
            ((np.zeros((9, 2)), 3), "constant"),
            (([1.0, 2.0], 2), "modes must be"),
            ((np.empty((0, 2)), 2), "modes must be"),
        ],
    )
    def test_rejects_bad_arguments(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            coarse_states(*arguments)

    def test_names_the_remedy_for_a_model_in_place_of_modes(self):
        with pytest.raises(TypeError, match=r"m\.transform\(X\)"):
            coarse_states(kdmaps.AdaptiveDiffusionMap(), np.zeros((9, 2)))

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


def corners(n_wells, n, seed=0, spread=0.15):
    """Modes of a product of double wells, ±1 up to noise, and the exact states."""
    rng = np.random.default_rng(seed)
    wells = rng.integers(0, 2, (n, n_wells))
    return 2.0 * wells - 1 + rng.normal(0, spread, wells.shape), wells @ 2 ** np.arange(n_wells)


@pytest.mark.parametrize("n_wells", [1, 2, 3])
def test_products_of_wells(n_wells):
    modes, exact = corners(n_wells, 3000)
    found = coarse_states(modes)
    assert len(found.populations) == 2**n_wells
    assert adjusted_rand_score(exact, found.labels) == 1
    assert found.separated
    assert_allclose(found.memberships.sum(axis=1), 1)
    assert_allclose(found.memberships_at(modes), found.memberships)
    # A fast fourth mode, of values that do not depend on the states, is not used.
    fast = np.random.default_rng(1).normal(size=(3000, 1))
    assert_array_equal(coarse_states(np.hstack([modes, fast]), 2**n_wells).centres.shape, (2**n_wells, n_wells))


def test_a_single_well_is_not_separated():
    modes = np.random.default_rng(0).normal(size=(3000, 2))
    found = coarse_states(modes)
    assert found.valley > 1
    assert not found.separated


@pytest.mark.parametrize("seed", range(3))
def test_an_even_ring_is_not_clearly_separated(seed):
    """Exact modes of the uniform law on a circle, whose values are dense at arcs that have no meaning."""
    angle = np.random.default_rng(seed).uniform(0, 2 * np.pi, 4000)
    modes = np.sqrt(2) * np.column_stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)])
    found = coarse_states(modes)
    assert not found.separated
    assert count_states(found) in ("No separate states", "4 shallow states")


def test_vertices_are_the_centres():
    """Three clusters of two modes: barycentric coordinates, which are linear in the modes inside the simplex."""
    rng = np.random.default_rng(0)
    vertices = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    modes = np.repeat(vertices, [500, 300, 200], axis=0) + rng.normal(0, 0.1, (1000, 2))
    found = coarse_states(modes, 3)
    assert_allclose(found.centres, vertices, atol=0.03)  # means of 200 values with deviation 0.1: 0.007
    assert_allclose(found.memberships_at(vertices), np.eye(3), atol=0.03)
    assert_allclose(found.memberships_at([vertices.mean(axis=0)]), np.full((1, 3), 1 / 3), atol=0.03)


#: Each of two independent chains changes its state with these probabilities per step.
FLIP = (0.02, 0.05)


@pytest.fixture(scope="module")
def chains():
    """Two independent two-state chains with noise, a model of their pairs, and the states."""
    rng = np.random.default_rng(0)
    flips = rng.random((20_000, 2)) < FLIP
    X = 1.0 - 2 * (np.cumsum(flips, axis=0) % 2) + rng.normal(0, 0.1, (20_000, 2))
    model = kdmaps.KernelDiffusionMap(2, lag=2, bandwidth=2.0, regularization=1e-5, n_features=60, random_state=0).fit(
        X
    )
    return X, model, coarse_states(model.transform(X), suggest_states(model))


def test_shares_and_time_scales_of_a_chain(chains):
    X, model, states = chains
    assert len(states.populations) == 4
    found = metastability(model, X, states, random_state=0)
    # A state is left unless neither chain changes its state, or one does twice; the error from 20,000 steps is 0.2 %,
    # and lags overlap.
    stay = np.prod([(1 + (1 - 2 * p) ** 2) / 2 for p in FLIP])
    assert_allclose(found.stays, stay, atol=0.01)
    # 1 - 2p, 1 - 2q and their product are the eigenvalues of one step. About 400 changes: 5 %, three times.
    exact = -1 / np.log([1 - 2 * FLIP[0], 1 - 2 * FLIP[1], (1 - 2 * FLIP[0]) * (1 - 2 * FLIP[1])])
    assert_allclose(found.timescales, exact, rtol=0.15)
    assert (found.timescale_intervals[:, 0] < found.timescales).all()
    assert ((found.population_intervals[:, 0] < 0.25) & (found.population_intervals[:, 1] > 0.25)).all()
    assert found.cells()[1][0][2].startswith(f"{found.stays[0]:.1%} (")
    assert found.cells()[1][0][2] in repr(found)
    halves = metastability(model, [X[:10_000], X[10_000:]], states, random_state=0)
    assert_allclose(halves.populations, found.populations, atol=0.02)


def test_milestones_wait_for_the_next_core():
    memberships = np.array([0.5, 0.95, 0.6, 0.4, 0.7, 0.05, 0.55, 0.99])[:, None]
    memberships = np.hstack([memberships, 1 - memberships])
    states = CoarseStates(memberships.argmax(axis=1), memberships, memberships.mean(axis=0), None)
    assert_array_equal(states.milestones(), [-1, 0, 0, 0, 0, 1, 1, 0])
    assert_array_equal(states.milestones([0, 0, 0, 1, 1, 1, 1, 1]), [-1, 0, 0, -1, -1, 1, 1, 0])


def test_markov_model_by_deeptime(chains):
    pytest.importorskip("deeptime")
    _, _, states = chains
    model = states.to_deeptime(2)
    assert_allclose(model.stationary_distribution, states.populations, atol=0.02)
    exact = -1 / np.log([1 - 2 * FLIP[0], 1 - 2 * FLIP[1]])
    assert_allclose(model.timescales(2), exact, rtol=0.15)
    with pytest.raises(ValueError, match="use a shorter lag"):
        states.to_deeptime(30_000)
