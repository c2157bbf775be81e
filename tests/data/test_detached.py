"""Detached rows: groups of single linkage, their counts, and rows that are not detached."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

import kdmaps
from kdmaps.checks import Outcome
from kdmaps.data import detached
from kdmaps.data.detached import detached_check, find_groups, left_out


def normal(n, d=2, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def with_group(X, k, distance=40.0, spread=0.1, seed=1):
    """Rows, and k more of them around a point at a distance."""
    centre = np.zeros(X.shape[1])
    centre[0] = distance
    return np.vstack([X, centre + spread * normal(k, X.shape[1], seed)])


def limit_of(X):
    """1.4 median distances, or 2.1 to the third neighbour, over all pairs of at most 1,000 rows."""
    pairs = squareform(pdist(X))
    third = np.sort(pairs, axis=1)[:, 3]
    return 0.7 * max(2 * np.median(pairs[np.triu_indices(len(X), 1)]), 3 * np.median(third))


@pytest.mark.parametrize("n", [60, 300, 1000])
@pytest.mark.parametrize("k", [1, 2, 3, 20])
def test_finds_a_group_and_its_gap(n, k):
    k = min(k, n // 25)
    X = with_group(normal(n), k)
    (group,) = find_groups(X)
    assert group.rows.tolist() == list(range(n, n + k))
    assert np.isclose(group.gap, min(np.linalg.norm(X[:n] - row, axis=1).min() for row in X[n:]))
    assert np.isclose(group.share, k / (n + k))
    assert group.is_state == (k >= 3)


def test_groups_are_the_clusters_of_single_linkage():
    """Independent computation: all clusters at the cut, if none is a fragment of another one."""
    X = np.vstack([normal(700), [[30.0, 0.0], [0.0, 31.0]], [0.0, -50.0] + 0.1 * normal(12, seed=5)])
    clusters = fcluster(linkage(pdist(X), "single"), limit_of(X), "distance")
    expected = {frozenset(np.flatnonzero(clusters == label)) for label in np.unique(clusters)}
    found = find_groups(X)
    assert {frozenset(group.rows) for group in found} == {cluster for cluster in expected if len(cluster) < 100}
    assert [len(group.rows) for group in found] == [12, 1, 1]


def test_fragments_join_if_the_gap_between_them_is_narrow():
    near, far = [[60.0, 0.0], [64.0, 0.0], [68.0, 0.0]], [[60.0, 0.0], [0.0, 60.0], [-60.0, 0.0]]
    assert [len(group.rows) for group in find_groups(np.vstack([normal(500), near]))] == [3]
    assert [len(group.rows) for group in find_groups(np.vstack([normal(500), far]))] == [1, 1, 1]


def test_copies_of_a_row_count_once_and_so_does_a_weight():
    X = normal(500)
    copies = np.vstack([X, np.full((20, 2), 40.0)])
    (group,) = find_groups(copies)
    assert len(group.rows) == 20
    assert not group.is_state
    weight = np.ones(501)
    weight[-1] = 20
    (single,) = find_groups(np.vstack([X, [[40.0, 40.0]]]), weight)
    assert not single.is_state
    assert np.isclose(single.share, group.share)


def test_rows_of_zero_weight_are_ignored():
    X = with_group(normal(500), 5)
    weight = np.ones(505)
    weight[-5:] = 0
    assert find_groups(X, weight) == ()
    weight[-3:] = 1
    (group,) = find_groups(X, weight)
    assert group.rows.tolist() == [502, 503, 504]


def test_a_group_of_large_weight_is_not_small():
    """Ten rows of a biased simulation can carry half of the equilibrium."""
    X = with_group(normal(500), 10)
    weight = np.ones(510)
    weight[-10:] = 50
    assert find_groups(X, weight) == ()


def test_large_groups_take_part_in_the_fit():
    (group,) = find_groups(with_group(normal(2000), 60))
    assert group.is_fitted
    assert left_out([group]).size == 0
    assert find_groups(with_group(normal(500), 60)) == ()  # more than 5 % of the rows


def test_more_than_a_tenth_of_the_rows_is_not_detached():
    far = np.column_stack([100 * 3.0 ** np.arange(30), np.zeros(30)])  # each farther from the others than the last
    assert len(find_groups(np.vstack([normal(500), far]))) == 30
    assert find_groups(np.vstack([normal(200), far])) == ()


HONEST = ["triplewell2d", "ou2d-4", "ou10d", "circle", "dw1d", "prinz"]


@pytest.mark.parametrize("name", HONEST)
def test_no_false_alarms_on_light_tails(name):
    problem = kdmaps.problems.load(name)
    for seed in range(20):
        for n in (500, 2000):
            assert find_groups(problem.sample(n, random_state=seed)) == ()


@pytest.mark.parametrize("d", [1, 2, 10, 50])
def test_no_false_alarms_on_gaussians(d):
    for seed in range(20):
        assert find_groups(normal(500, d, seed)) == ()


def test_many_rows_give_the_same_groups_as_few(monkeypatch):
    """Components that grow by some of their rows only are joined again where this matters."""
    X = with_group(np.vstack([normal(3000), [8.0, 0.0] + 0.3 * normal(600, seed=2)]), 7)
    X = X[np.random.default_rng(3).permutation(len(X))]
    expected = [(group.rows.tolist(), group.gap) for group in find_groups(X)]
    monkeypatch.setattr(detached, "MOST_DISTANCES", 1e4)
    monkeypatch.setattr(detached, "DISTANCES_PER_ROW", 1)
    found = [(group.rows.tolist(), group.gap) for group in find_groups(X)]
    assert len(expected) == 1
    assert found == expected


def test_a_hundred_thousand_rows():
    X = with_group(normal(100_000, 5), 4)
    (group,) = find_groups(X)
    assert group.rows.tolist() == [100_000, 100_001, 100_002, 100_003]


@pytest.mark.parametrize("scale", [1e-100, 1e-6, 1.0, 1e6, 1e100])
def test_units_do_not_matter(scale):
    X = with_group(normal(500), 5)
    assert [group.rows.tolist() for group in find_groups(scale * X)] == [list(range(500, 505))]


def test_a_value_that_overflows_is_detached():
    X = normal(500)
    X[7, 1] = 1e300
    assert [group.rows.tolist() for group in find_groups(X)] == [[7]]


@pytest.mark.parametrize("X", [np.ones((100, 2)), np.zeros((1, 3)), normal(4), np.repeat(normal(10), 50, axis=0)])
def test_few_or_equal_rows_have_no_groups(X):
    assert find_groups(X) == ()


def test_the_indicator_ends_half_way():
    (group,) = find_groups(with_group(normal(500), 5))
    first = group.points[0]
    near = first + np.array([0, 0.49 * group.gap])
    far = first + np.array([0, 0.51 * group.gap + 0.5])
    assert group.indicator(np.vstack([group.points, near, far])).tolist() == [1.0] * 6 + [0.0]


def test_the_check_names_all_rows():
    X = np.vstack([with_group(normal(500), 5), [[0.0, 90.0]]])
    check = detached_check(find_groups(X))
    assert check.outcome is Outcome.FAILED
    assert check.where == tuple(range(500, 506))
    assert detached_check(()).outcome is Outcome.PASSED
