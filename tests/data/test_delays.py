"""Delay coordinates against explicit loops."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kdmaps.data import delays


def test_columns_newest_first():
    X = np.arange(20.0).reshape(10, 2)
    points = delays(X, 3, step=2)
    expected = [np.concatenate([X[t], X[t - 2], X[t - 4]]) for t in range(4, 10)]
    assert_array_equal(points, expected)
    assert_array_equal(delays(X, 1), X)


def test_gaps_and_trajectories():
    X = np.arange(12.0)
    X[5] = np.nan
    one, other = delays(X, 2)
    assert_array_equal(one[:, 0], [1, 2, 3, 4])
    assert_array_equal(other[:, 0], [7, 8, 9, 10, 11])
    groups = np.tile([1, 0], 6)
    first, second = delays(np.arange(12.0), 3, groups=groups)
    assert_array_equal(first[0], [4, 2, 0])
    assert_array_equal(second[-1], [11, 9, 7])
    parts = delays([np.arange(4.0), np.arange(2.0), np.arange(5.0)], 3)
    assert [len(part) for part in parts] == [2, 3]


@pytest.mark.parametrize(
    ("X", "n", "words"), [(np.ones(3), 4, "need 4 frames"), (np.ones(3), 0, "n must"), (["a"], 1, "X")]
)
def test_errors(X, n, words):
    with pytest.raises(ValueError, match=words):
        delays(X, n)
