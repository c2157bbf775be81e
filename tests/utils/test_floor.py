"""Metrics with few directions above a floor, against the same kernels with products of d×d matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist, squareform

import kdmaps
from kdmaps.bases import LandmarkBasis
from kdmaps.bases import _landmarks as landmarks_module
from kdmaps.data.distances import median_distance
from kdmaps.data.sources import ArraySource
from kdmaps.forms.energy import EnergyForm
from kdmaps.forms.tangent import checked_tensor
from kdmaps.kernels import Metric, make_kernel
from kdmaps.kernels._base import Kernel
from kdmaps.selection.roots import metric_root
from kdmaps.utils.floor import Floor, squares_between
from shared import known_warning

DIM, SAMPLES = 120, 200


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((SAMPLES, DIM)) + 3


def root(n_above, dim=DIM):
    """Root of a metric with so many directions above the floor, scaled."""
    slopes = np.random.default_rng(1).standard_normal((n_above, dim))
    return 1.7 * metric_root(slopes.T @ slopes)


@pytest.mark.parametrize("n_above", [0, 1, 4, 30])
def test_split_of_a_metric(n_above):
    T = root(n_above) if n_above else 0.3 * np.linalg.qr(np.random.default_rng(0).standard_normal((DIM, DIM)))[0]
    floor = Floor.of(T)
    assert floor.directions.shape == (DIM, n_above)
    M = T @ T.T
    assert_allclose(floor.level * np.eye(DIM) + floor.directions @ floor.directions.T, M, atol=1e-13)
    rows = np.random.default_rng(2).standard_normal((6, DIM))
    assert_allclose(floor.times(rows), rows @ M, atol=1e-12)
    near, far = floor.squared_distances(rows)
    differences = rows[:, None] - rows
    assert_allclose(near, np.sum((differences @ T) ** 2, axis=2), rtol=1e-12)
    assert_allclose(far, np.sum((differences @ M) ** 2, axis=2), rtol=1e-12)


def oblique():
    """Equal columns that are not orthogonal."""
    columns = np.random.default_rng(0).standard_normal((DIM, DIM))
    return columns / np.linalg.norm(columns, axis=0)


@pytest.mark.parametrize(
    "T",
    [None, np.array(2.0), np.ones(DIM), root(31), root(4, dim=99), root(4)[:, :10], oblique(), np.zeros((DIM, DIM))],
)
def test_other_maps_are_not_split(T):
    assert Floor.of(T) is None


@pytest.mark.parametrize("family", ["gaussian", "matern32", "rq2"])
@pytest.mark.parametrize("diffusion", ["none", "number", "diagonal", "per sample"])
def test_sums_and_functions_are_the_same(monkeypatch, X, family, diffusion):
    numbers = np.random.default_rng(3).random(SAMPLES) + 0.5
    tensors = {
        "none": None,
        "number": 2.0,
        "diagonal": np.linspace(0.5, 2, DIM),
        "per sample": numbers[:, None, None] * np.eye(DIM),
    }
    tensor = checked_tensor(tensors[diffusion], X, None)
    coefficients = np.random.default_rng(4).standard_normal((30, 2))

    def everything():
        basis = LandmarkBasis(Metric(make_kernel(family, 6.0), root(4)), X[:30] + 0.1, X.mean(axis=0))
        moments = EnergyForm(tensor).moments(basis, ArraySource(X, checked=True), numbers)
        functions = (basis.features(X), basis.gradient(X, coefficients), basis.ridge)
        return (moments.gram, moments.energy, moments.total, *functions)

    split = everything()
    monkeypatch.setattr(landmarks_module.Floor, "of", lambda T: None)
    for own, dense in zip(split, everything(), strict=True):
        assert_allclose(own, dense, rtol=0, atol=1e-12 * np.abs(dense).max())


@pytest.mark.parametrize("dim", [5, 120])
def test_squares_between_rows(dim):
    """Far from the origin, with two equal rows: they have the distance 0, so that pairs of them can be left out."""
    rows = np.random.default_rng(0).standard_normal((30, dim)) + 100
    rows[7] = rows[3]
    squares = squares_between(rows)
    assert squares[3, 7] == 0
    assert_allclose(squares, squareform(pdist(rows, "sqeuclidean")), rtol=1e-11)


def test_median_distance(X):
    assert_allclose(median_distance(X), np.median(pdist(X)), rtol=1e-12)
    H = root(4)
    assert Floor.of(H) is not None
    assert_allclose(median_distance(X, None, 0, H), np.median(pdist(X @ H)), rtol=1e-12)


@known_warning()
def test_a_search_at_landmarks_has_no_products_with_square_matrices(monkeypatch):
    """Distances of samples in a metric need the directions above its floor only, in every fold and candidate."""
    dim = 100
    X = kdmaps.problems.load(f"triplewell2d+{dim - 2}").sample(300, random_state=0)
    square, coordinates = [], Kernel.coordinates

    def counted(self, rows):
        T = self.linear_map
        if T is not None and T.shape == (dim, dim):
            square.append(self)
        return coordinates(self, rows)

    monkeypatch.setattr(Kernel, "coordinates", counted)
    options = {"basis": "landmarks", "n_features": 60, "refine": False, "random_state": 0}
    model = kdmaps.AdaptiveDiffusionMap(2, **options).fit(X)
    assert any(isinstance(one.kernel, Metric) for one in model.search_result_.candidates)
    assert square == []
