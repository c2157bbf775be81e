"""Chapman–Kolmogorov tests, committors and passage times against Markov chains and quadrature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import cumulative_trapezoid, trapezoid

import kdmaps
from kdmaps.dynamics import chapman_kolmogorov, coarse_states, committor, mean_first_passage_times
from shared import expects, known, wide_map

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:.*{text}:kdmaps.exceptions.UnreliableModesWarning")
    for text in ("relax within one lag", "same time scale", "weighs")
] + [pytest.mark.filterwarnings("ignore:.*distinct values:kdmaps.exceptions.DataWarning")]

#: A reversible chain of three states.
THREE = np.array([[0.95, 0.04, 0.01], [0.04, 0.9, 0.06], [0.02, 0.12, 0.86]])


def walk(matrix, n, seed, start=0):
    """Simulate a Markov chain."""
    rng, edges = np.random.default_rng(seed), np.cumsum(matrix, axis=1)
    states = np.empty(n, dtype=int)
    states[0] = start
    for t, u in enumerate(rng.random(n - 1)):
        states[t + 1] = min(np.searchsorted(edges[states[t]], u), len(matrix) - 1)
    return states


def ladder(n_states):
    """A birth–death chain: up with 0.3, down with 0.25, reflected at the ends."""
    matrix = np.diag(np.full(n_states - 1, 0.3), 1) + np.diag(np.full(n_states - 1, 0.25), -1)
    return matrix + np.diag(1 - matrix.sum(axis=1))


def chain_map(states, n_states, n_components, lag):
    """Fit a kernel at every state: all functions of the states are in its span."""
    points = np.arange(n_states, dtype=float)[:, None]
    model = kdmaps.KernelDiffusionMap(
        n_components, kernel="gaussian", bandwidth=0.8, basis="landmarks", landmarks=points, n_features=n_states,
        regularization=1e-10, lag=lag, random_state=0,
    )  # fmt: skip
    return model.fit(states[:, None].astype(float))


def counted(states, n_states, lag):
    """Count the transitions."""
    counts = np.zeros((n_states, n_states))
    np.add.at(counts, (states[:-lag], states[lag:]), 1)
    return counts


@known("independent-samples")
class TestChapmanKolmogorov:
    def test_states_of_a_chain(self):
        states = walk(THREE, 30_000, 0)
        model = chain_map(states, 3, 2, lag=2)
        X = states[:, None].astype(float)
        found = chapman_kolmogorov(model, X, steps=4, n_states=3, random_state=0)
        assert "  state 1 to 3 (labels 0 and 2): predicted/estimated" in repr(found)
        order = [int(found.states.labels[np.argmax(states == s)]) for s in range(3)]
        for s in (1, 2, 3, 4):
            counts = counted(states, 3, 2 * s)
            both = counts + counts.T
            expected = both / both.sum(axis=1, keepdims=True)
            assert_allclose(found.estimated[s - 1][np.ix_(order, order)], expected, atol=1e-6)
        assert_allclose(found.predicted[3], np.linalg.matrix_power(found.estimated[0], 4), rtol=1e-10)
        # The chain is Markovian: of 27 deviations (4 of 9 independent) hardly one beyond 4.
        assert np.abs(found.deviations).max() < 4
        exact = np.array([np.linalg.matrix_power(THREE, 2 * s) for s in (1, 2, 3, 4)])
        assert_allclose(found.estimated[:, order][:, :, order], exact, atol=0.05)
        assert len(found.table()) == 36
        assert "  passed: " in repr(found)

    def test_modes_of_a_chain(self):
        states = walk(THREE, 30_000, 1)
        model = chain_map(states, 3, 2, lag=1)
        X = states[:, None].astype(float)
        found = chapman_kolmogorov(model, X, steps=5, random_state=0)
        modes = model.transform(X)
        for s in (1, 3, 5):
            here, there = modes[:-s], modes[s:]
            mean, power = (here + there).mean(axis=0) / 2, ((here**2 + there**2) / 2).mean(axis=0)
            rho = ((here * there).mean(axis=0) - mean**2) / (power - mean**2)
            assert_allclose(found.estimated[s - 1], rho, rtol=1e-8)
        assert_allclose(found.predicted, found.estimated[0] ** np.arange(1, 6)[:, None], rtol=1e-12)
        eigenvalues = np.sort(np.linalg.eigvals(THREE).real)[-2::-1]
        assert_allclose(found.predicted[2], eigenvalues**3, atol=0.05)  # the errors are about 0.015

    def test_lumped_chain_fails(self):
        """States 0 and 2 cannot be distinguished: the observed process has memory."""
        slow = np.array([[0.98, 0.02, 0.0], [0.01, 0.98, 0.01], [0.0, 0.3, 0.7]])
        seen = np.where(walk(slow, 30_000, 0) == 1, 1, 0)
        model = chain_map(seen, 2, 1, lag=1)
        X = seen[:, None].astype(float)
        assert np.abs(chapman_kolmogorov(model, X, steps=5, random_state=0).deviations).max() > 6

    @known("independent-samples")  # of 300 frames
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"steps": 0}, "steps must be a positive integer"),
            ({"steps": 1.5}, "steps must be a positive integer"),
            ({"steps": 2000}, "steps=2000 of lag 1"),
            ({"n_states": 5}, "n_states must be from 2 to 2"),
            ({"n_resamples": 1}, "n_resamples"),
            ({"confidence": 2}, "confidence"),
        ],
    )
    def test_rejects_bad_arguments(self, options, message):
        X = walk(THREE, 2000, 0)[:, None].astype(float)
        with pytest.raises(ValueError, match=message):
            chapman_kolmogorov(wide_map(1, lag=1).fit(X), X, **options)


class TestPassages:
    def test_committor_of_a_chain(self):
        """The space contains all functions of the states, so the Galerkin solution is exact for the counted chain."""
        states = walk(ladder(8), 5000, 0)
        X = states[:, None].astype(float)
        found = committor(chain_map(states, 8, 2, lag=1), X, states == 0, states == 7, random_state=0)
        counts = counted(states, 8, 1)
        seen = counts / counts.sum(axis=1, keepdims=True)
        between = slice(1, 7)
        expected = np.r_[0, np.linalg.solve(np.eye(6) - seen[between, between], seen[between, 7]), 1]
        assert_allclose(found.values, expected[states], atol=1e-6)
        # Gambler's ruin: (1 - ρ^s)/(1 - ρ^7) with ρ = 0.25/0.3.
        ratio = 0.25 / 0.3
        exact = (1 - ratio ** np.arange(8)) / (1 - ratio**7)
        assert (np.abs(found.values - exact[states]) <= 4 * found.errors + 1e-9).all()
        assert found.errors.max() < 0.15

    @pytest.mark.parametrize("lag", [1, 4])
    def test_flux_and_rates_of_a_chain(self, lag):
        """The flux leaves state 0 upwards, 0.3 times in a step, and counts if the path goes on to state 7."""
        states = walk(ladder(8), 20_000, 5)
        X, step = states[:, None].astype(float), 0.5
        model = chain_map(states, 8, 2, lag).set_params(time_step=step).fit(X)
        found = committor(model, X, states == 0, states == 7, random_state=0)
        ratio = 0.25 / 0.3
        law, q = ratio ** -np.arange(8.0), (1 - ratio ** np.arange(8)) / (1 - ratio**7)
        law /= law.sum()
        flux = law[0] * 0.3 * q[1] / step
        expected = {"flux": flux, "rate": flux / (1 - law @ q), "reverse_rate": flux / (law @ q)}
        for name, value in expected.items():
            low, high = getattr(found, f"{name}_interval")
            assert low < value < high
            assert low < getattr(found, name) < high < 1.5 * low
        ends = states[np.isin(states, (0, 7))]
        seen = np.count_nonzero((ends[:-1] == 0) & (ends[1:] == 7)) / (len(X) * step)
        assert found.flux == pytest.approx(seen, rel=0.3)  # 81 transitions: three standard errors

    @pytest.mark.parametrize("lag", [2, 5])
    def test_pairs_stop_at_the_sets(self, lag):
        """Paths cross the sets within a lag; pairs that are not stopped would make the committor too flat."""
        states = walk(ladder(8), 20_000, 1)
        X = states[:, None].astype(float)
        found = committor(chain_map(states, 8, 2, lag=lag), X, [0, 1], [6, 7], states=states, random_state=0)
        ratio = 0.25 / 0.3
        exact = np.clip((1 - ratio ** (np.arange(8) - 1.0)) / (1 - ratio**5), 0, 1)
        assert (np.abs(found.values - exact[states]) <= 4 * found.errors + 1e-9).all()
        assert found.errors.max() < 0.05
        assert_array_equal(found.values[states <= 1], 0)

    @known("asymmetry")  # the map is fitted to the runs in one piece, in the order of their starts
    def test_starts_out_of_equilibrium(self):
        parts = [walk(ladder(8), 6, seed, start=1 + seed % 6) for seed in range(4000)]
        X = [part[:, None].astype(float) for part in parts]
        states, groups = np.concatenate(parts), np.repeat(np.arange(4000), 6)
        model = chain_map(states, 8, 2, lag=1)
        found = committor(model, X, 0, 7, states=states, random_state=0)
        ratio = 0.25 / 0.3
        exact = (1 - ratio ** np.arange(8)) / (1 - ratio**7)
        assert (np.abs(found.values - exact[states]) <= 4 * found.errors + 1e-9).all()
        # The order of the trajectories' frames in X does not matter.
        order = np.argsort(np.tile(np.arange(6), 4000), kind="stable")
        mixed = committor(
            model,
            states[order][:, None].astype(float),
            0,
            7,
            states=states[order],
            groups=groups[order],
            random_state=0,
        )
        assert_allclose(mixed.values, found.values[order], atol=1e-8)

    def test_passage_times_of_a_chain(self):
        states = walk(ladder(6), 5000, 2)
        X = states[:, None].astype(float)
        labels = np.array([0, 0, -1, -1, 1, 1])[states]
        model = chain_map(states, 6, 2, lag=1)
        found = mean_first_passage_times(model, X, labels, random_state=0)
        counts = counted(states, 6, 1)
        seen = counts / counts.sum(axis=1, keepdims=True)
        for start, target, rows in ((0, 1, [0, 1, 2, 3]), (1, 0, [2, 3, 4, 5])):
            times = np.zeros(6)
            times[rows] = np.linalg.solve(np.eye(4) - seen[np.ix_(rows, rows)], np.ones(4))
            assert_allclose(found.times[start, target], times[states][labels == start].mean(), rtol=1e-6)
            times[rows] = np.linalg.solve(np.eye(4) - ladder(6)[np.ix_(rows, rows)], np.ones(4))
            low, high = found.intervals[start, target]
            assert low < times[states][labels == start].mean() < high
        assert_array_equal(np.diagonal(found.times), 0)
        assert [row["to"] for row in found.table()] == [1, 0]
        assert repr(found).startswith("Mean first passage times in the unit of time_step (95 % intervals)\n")
        assert "from label 0 to label 1" in repr(found)

    @pytest.mark.slow
    def test_double_well_against_quadrature(self):
        """Frames detect entries into a set late, as if its edge were 0.5826 √(2 dt) further out."""
        problem, dt = kdmaps.problems.load("dw1d"), 0.01
        X = problem.simulate(100_000, dt=dt, random_state=0)[0]
        model = kdmaps.KernelDiffusionMap(2, lag=5, time_step=dt, regularization=1e-5, random_state=0).fit(X)
        x = X[:, 0]
        found = committor(model, X, x < -0.8, x > 0.8, random_state=0)
        edge = 0.8 + 0.5826 * np.sqrt(2 * dt)
        grid = np.linspace(-edge, edge, 2001)
        rise = cumulative_trapezoid(np.exp(problem.potential(grid)), grid, initial=0)
        inside = np.abs(x) < 0.8
        error = found.values - np.interp(x, grid, rise / rise[-1])
        assert np.sqrt(np.mean(error[inside] ** 2)) < 0.03  # found.errors are about 0.012, and correlated
        assert found.errors[inside].mean() < 0.03
        times = mean_first_passage_times(model, X, np.where(x > 0.8, 1, np.where(x < -0.8, 0, -1)), random_state=0)
        grid = np.linspace(-4, edge, 4001)
        weight = np.exp(-problem.potential(grid))
        mass = cumulative_trapezoid(weight, grid, initial=0)
        left = cumulative_trapezoid(np.exp(problem.potential(grid)) * mass, grid, initial=0)
        start = grid < -0.8
        exact = trapezoid((left[-1] - left)[start] * weight[start], grid[start]) / trapezoid(weight[start], grid[start])
        # About 150 passages each way: √(1/150) = 8 %; both directions, by symmetry, 6 %.
        assert times.times[[0, 1], [1, 0]].mean() == pytest.approx(exact, rel=0.2)
        assert (times.intervals[[0, 1], [1, 0], 0] < exact).all()
        assert (times.intervals[[0, 1], [1, 0], 1] > exact).all()

    def test_cores_of_coarse_states(self):
        """Paths between touching states turn round at once, so times to the next crossing are too short."""
        X = kdmaps.problems.load("dw1d").simulate(10_000, dt=0.05, random_state=0)[0]
        settings = {"lag": 2, "time_step": 0.05, "regularization": 1e-4, "n_features": 60, "random_state": 0}
        model = kdmaps.KernelDiffusionMap(1, **settings).fit(X)
        coarse = coarse_states(model.transform(X), 2)
        inside = coarse.memberships.max(axis=1) >= 0.9
        assert_array_equal(coarse.cores, np.where(inside, coarse.labels, -1))
        found = mean_first_passage_times(model, X, coarse, random_state=0)
        by_hand = mean_first_passage_times(model, X, np.where(inside, coarse.labels, -1), random_state=0)
        assert_array_equal(found.times, by_hand.times)
        with expects("touching-states"):
            touching = mean_first_passage_times(model, X, coarse.labels, random_state=0)
        # A path from one core counts the way to the border of the other core, too: the whole barrier, not half of it.
        assert (touching.times[[0, 1], [1, 0]] < 0.85 * found.times[[0, 1], [1, 0]]).all()
        between = committor(model, X, 0, 1, states=coarse, random_state=0)
        assert_array_equal(between.values[coarse.cores == 1], 1)
        assert_array_equal(between.values[coarse.cores == 0], 0)

    def test_lists_of_trajectories(self):
        """Lists of labels, masks and modes, one entry per trajectory, give the same results as groups."""
        parts = [walk(THREE, n, seed) for n, seed in ((2000, 0), (1000, 1))]
        X, states = [part[:, None].astype(float) for part in parts], np.concatenate(parts)
        model, groups = chain_map(states, 3, 2, lag=1), np.repeat([0, 1], [2000, 1000])
        joined, settings = np.concatenate(X), {"groups": groups, "random_state": 0}
        cores = [np.where(part == 1, -1, part) for part in parts]
        assert_array_equal(
            mean_first_passage_times(model, X, cores, random_state=0).times,
            mean_first_passage_times(model, joined, np.concatenate(cores), **settings).times,
        )
        expected = committor(model, joined, states == 0, states == 2, **settings)
        masks = committor(model, X, [part == 0 for part in parts], [part == 2 for part in parts], random_state=0)
        assert_array_equal(masks.values, expected.values)
        labels = committor(model, X, 0, 2, states=parts, random_state=0)
        assert_array_equal(labels.values, expected.values)
        coarse = coarse_states(model.transform(X), 3)
        assert_array_equal(coarse.labels, coarse_states(model.transform(joined), 3).labels)
        assert_array_equal(coarse.representatives(X), coarse.representatives(joined))
        assert_allclose(coarse.memberships_at(model.transform(X)), coarse.memberships)
        weight = [np.ones(2000), np.zeros(1000)]
        weighted = coarse_states(model.transform(X), 3, sample_weight=weight)
        assert_allclose(weighted.populations, np.bincount(weighted.labels[:2000]) / 2000)
        with pytest.raises(ValueError, match=r"states .* 1000, 2000 .* 2000, 1000"):
            mean_first_passage_times(model, X, cores[::-1])

    @pytest.mark.parametrize(
        ("source", "target", "options", "message"),
        [
            ([True, False], None, {}, "source must be True or False"),
            (None, np.zeros(500, bool), {}, "target contains no frame"),
            (None, np.ones(500, bool), {}, "must not overlap"),
            (np.arange(500), None, {}, "source must be True or False"),
            (0, 9, {"states": np.zeros(500, int)}, "target contains no frame"),
            (0.5, 1, {"states": np.zeros(500, int)}, "source must be one or several labels"),
            (0, 1, {"states": np.zeros(500)}, "states must contain an integer label"),
            (0, 1, {"states": [1, 2]}, "integer label for each of the 500 frames"),
            (None, None, {"n_resamples": 0}, "n_resamples"),
        ],
    )
    def test_rejects_bad_sets(self, source, target, options, message):
        states = walk(THREE, 500, 0)
        X = states[:, None].astype(float)
        source, target = (states == s if given is None else given for s, given in ((0, source), (2, target)))
        with pytest.raises(ValueError, match=message):
            committor(chain_map(states, 3, 1, lag=1), X, source, target, **options)

    @known("discrete-columns")
    def test_rejects_sets_without_frames_between(self):
        states = walk(THREE, 500, 0)
        X, model = states[:, None].astype(float), chain_map(states, 3, 1, lag=1)
        with pytest.raises(ValueError, match="no frame between"):
            committor(model, X, states == 0, states != 0)
        with pytest.raises(ValueError, match="at least two states"):
            mean_first_passage_times(model, X, np.zeros(500, int))
        static = wide_map(1).fit(np.random.default_rng(0).standard_normal((500, 1)))
        with pytest.raises(ValueError, match="without a lag"):
            committor(static, X, states == 0, states == 2)


@known("independent-samples")
@pytest.mark.parametrize("time", [-2.0, np.inf, np.nan])
def test_rejects_negative_and_infinite_times(time, monkeypatch):
    """With too few transitions the system of equations is ill-conditioned and a time may become negative."""
    states = walk(ladder(3), 2000, 0)
    frames, labels = states[:, None].astype(float), np.where(states == 1, -1, states)
    model = chain_map(states, 3, 2, 1)

    def poor(projection, member, target, counts):
        of_all = np.arange(len(counts))[:, None] == 0  # the other rows are resamples
        return np.where(np.arange(2) == target, 0.0, np.where(of_all, time, 2.0))

    monkeypatch.setattr("kdmaps.dynamics._passage._times_to", poor)
    with pytest.raises(ValueError, match="too few transitions"):
        mean_first_passage_times(model, frames, labels, n_resamples=20, random_state=0)
