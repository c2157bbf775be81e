"""Parts of the samples without a connection: found in a graph of neighbours, and compared with the modes."""

import numpy as np
import pytest

import kdmaps
from kdmaps.diagnostics.separation import crosses, find_parts, unseparated

pytestmark = pytest.mark.filterwarnings("ignore::kdmaps.exceptions.CheckWarning")


def intervals(n, gap, seed=0):
    """Uniform samples of two intervals of equal lengths, 3 together, with a gap between them."""
    x = np.random.default_rng(seed).uniform(0, 3 - gap, n)
    return np.where(x > 1.5 - gap / 2, x + gap, x)[:, None]


def test_parts_are_the_sides_of_a_gap():
    X = intervals(2000, 0.06)  # 40 mean distances between neighbours
    parts = find_parts(X)
    assert np.array_equal(parts == parts[X.argmax()], X[:, 0] > 1.5)


@pytest.mark.parametrize("share", [0.03, 0.1])
def test_small_parts_are_no_parts(share):
    X = np.random.default_rng(0).standard_normal((1000, 2))
    X[: int(1000 * share)] += 9
    assert (find_parts(X) is None) == (share < 0.05)


@pytest.mark.parametrize("name", ["triplewell2d", "ou2d-4", "ou10d", "circle", "mdlike-10", "sphere-5"])
def test_samples_of_one_region_are_connected(name):
    problem = kdmaps.problems.load(name)
    assert all(find_parts(problem.sample(n, random_state=seed)) is None for n in (500, 2000) for seed in range(5))


def test_unseparated_is_the_angle_to_the_indicators():
    """A cosine over two halves of an interval explains 8/π² of the step between them."""
    x = (np.arange(4000) + 0.5) / 4000
    parts = (x > 0.5).astype(int)
    assert unseparated(np.cos(np.pi * x)[:, None], parts, None) == pytest.approx(1 - 8 / np.pi**2, abs=1e-6)
    step = np.column_stack([3.0 * parts + 5, np.cos(2 * np.pi * x)])
    assert unseparated(step, parts, None) == pytest.approx(0, abs=1e-12)
    assert unseparated(step[:, ::-1], parts, None) > 0.9  # the other mode comes first
    thirds = np.minimum((3 * x).astype(int), 2)
    both = np.column_stack([thirds == 0, thirds == 1]).astype(float)
    assert unseparated(both @ [[1.0, 2.0], [-3.0, 1.0]], thirds, None) == pytest.approx(0, abs=1e-12)
    assert unseparated(both @ [[1.0], [-3.0]], thirds, None) == pytest.approx(0, abs=1e-12)  # one mode of two


def test_weights_are_weights_of_the_angle():
    rng = np.random.default_rng(0)
    x, count = rng.uniform(size=300), rng.integers(1, 4, 300)
    parts = (x > 0.4).astype(int)
    modes = np.cos(np.pi * x)[:, None]
    repeated = unseparated(np.repeat(modes, count, axis=0), np.repeat(parts, count), None)
    assert unseparated(modes, parts, count.astype(float)) == pytest.approx(repeated, rel=1e-12)


def test_pairs_that_cross():
    X = intervals(600, 0.1)
    parts = find_parts(X)
    assert not crosses(X, parts, X + 0.001)
    later = X.copy()
    later[7] = 3 - X[7]
    assert crosses(X, parts, later)


@pytest.mark.parametrize("gap", [0.03, 0.04])
def test_a_smooth_mode_across_a_gap_fails(gap):
    """The exact rate is 0; a search finds 1.1, the rate of the interval without its gap, (π/3)²."""
    X = intervals(3000, gap, seed=1)
    model = kdmaps.AdaptiveDiffusionMap(2, random_state=0).fit(X)
    assert model.rates_[0] > 0.5
    assert not model.trust_.ok.any()
    assert all("empty gap" in reasons for reasons in model.trust_.reasons)


def test_a_mode_that_separates_the_parts_passes(tmp_path):
    X = intervals(1000, 0.5, seed=1)
    model = kdmaps.AdaptiveDiffusionMap(2, random_state=0).fit(X)
    assert model.rates_[0] < 0.1
    assert model.trust_.unseparated < 1e-3
    assert not any("empty gap" in reasons for reasons in model.trust_.reasons)
    model.save(tmp_path / "model.npz")
    assert kdmaps.load(tmp_path / "model.npz").trust_.unseparated == model.trust_.unseparated


def test_trajectories_on_both_sides_of_a_gap():
    """No frame crosses; a smooth mode of pairs of frames has a finite time scale."""
    rng = np.random.default_rng(0)
    steps = 0.02 * rng.standard_normal((2, 3000)).cumsum(axis=1)
    folded = np.abs((steps + 0.7) % 2.9 - 1.45)  # reflected at 0 and 1.45
    runs = [folded[0][:, None], 1.5 + folded[1][:, None]]
    smooth = {"kernel": "gaussian", "bandwidth": 3.0, "regularization": 1e-2, "n_features": 40, "random_state": 0}
    model = kdmaps.KernelDiffusionMap(2, lag=5, **smooth).fit(runs)
    assert model.trust_.unseparated > 0.05
    assert not model.trust_.ok.any()
    together = np.abs((3 * steps[0] + 0.7) % 6 - 3)[:, None]  # one path over the whole interval
    assert kdmaps.KernelDiffusionMap(2, lag=5, **smooth).fit(together).trust_.unseparated is None
