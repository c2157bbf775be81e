"""The median bandwidth against numpy."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist, pdist
from scipy.special import gammaincinv

from kdmaps.data.distances import MEDIAN_SAMPLES, median_distance, nearest_distances, resolve_bandwidth

X = np.random.default_rng(0).standard_normal((150, 3)) * [1.0, 2.0, 0.5]
whole_weights = st.lists(st.integers(0, 4), min_size=8, max_size=8).filter(lambda w: np.count_nonzero(w) > 1)


def test_median_of_all_pairs():
    assert_allclose(median_distance(X), np.median(pdist(X)), rtol=1e-14)
    assert_allclose(median_distance(X, np.ones(150)), np.median(pdist(X)), rtol=1e-14)


@given(whole_weights, st.booleans())
def test_weights_are_repetitions(times, ties):
    Z = np.arange(8)[:, None] // 2 * 1.0 if ties else X[:8]  # equal distances, and equal samples
    assume(len(np.unique(Z[np.array(times) > 0], axis=0)) > 1)
    weighted = median_distance(Z, np.array(times, dtype=float))
    repeated = pdist(np.repeat(Z, times, axis=0))
    assert_allclose(weighted, np.median(repeated[repeated > 0]), rtol=1e-12)
    assert_allclose(median_distance(Z, 0.3 * np.array(times)), weighted, rtol=1e-12)
    assert_allclose(median_distance(np.repeat(Z, times, axis=0)), weighted, rtol=1e-12)


def test_subsample_of_large_data():
    many = np.random.default_rng(1).standard_normal((20 * MEDIAN_SAMPLES, 3))
    # |x - z|² is 2 χ²_3, whose median is 2·2·P⁻¹(3/2, 1/2).
    exact = np.sqrt(4 * gammaincinv(1.5, 0.5))
    one, two, other = (median_distance(many, random_state=seed) for seed in (0, 0, 1))
    assert one == two != other
    # The median of a U-statistic over 1,000 samples is known to about 1/√1000 relative; three of them.
    assert_allclose([one, other], exact, rtol=0.1)
    # Weights that keep one half-space only: a smaller cloud, as if the rest were not there.
    half = (many[:, 0] > 0).astype(float)
    assert_allclose(
        median_distance(many, half, random_state=0), median_distance(many[half > 0], random_state=0), rtol=0.1
    )


@pytest.mark.parametrize("c", [1e-6, 1e6])
def test_median_scales_with_the_samples(c):
    assert_allclose(median_distance(c * X), c * median_distance(X), rtol=1e-12)


@pytest.mark.parametrize("n", [5, 2 * MEDIAN_SAMPLES])
def test_equal_samples(n):
    with pytest.raises(ValueError, match="All samples of X are equal"):
        median_distance(np.ones((n, 2)))


@pytest.mark.parametrize("n", [50, 2 * MEDIAN_SAMPLES])
def test_a_single_row_whose_distances_overflow(n):
    with pytest.raises(ValueError, match="distances between samples of X overflow"):
        median_distance(np.r_[np.random.default_rng(0).standard_normal((n, 2)), [[1e200, 0.0]]])


def test_resolve_bandwidth():
    assert resolve_bandwidth(2.5, X) == 2.5
    assert resolve_bandwidth("median", X) == median_distance(X)
    with pytest.raises(ValueError, match="bandwidth must be 'median'"):
        resolve_bandwidth("silverman", X)


@pytest.mark.parametrize("d", [2, 8, 9, 40])
def test_nearest_distances(d):
    X = np.random.default_rng(0).standard_normal((700, d)) + 100.0
    distances = cdist(X, X) + np.diag(np.full(700, np.inf))
    assert_allclose(nearest_distances(X, X[::2]), distances.min(axis=1)[::2], rtol=1e-9)
