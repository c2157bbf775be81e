"""The graph of neighbours against its definition, pair by pair, and against a ring, whose modes are known."""

import numpy as np
import pytest
from scipy import linalg

from kdmaps.exceptions import NotApplicable
from kdmaps.forms import neighbors
from kdmaps.forms.neighbors import NeighborBasis, NeighborForm
from kdmaps.spectrum.graph import find_components, graph_spectrum

K = 9
POINTS = np.random.default_rng(0).standard_normal((80, 3)) * [3, 1, 0.5]
NEW = np.random.default_rng(1).standard_normal((20, 3)) * [3, 1, 0.5]


def width(row, points, k=K):
    """Return the distance of a row to neighbour k/3 among points."""
    return np.sort(np.linalg.norm(points - row, axis=1))[k // 3 - 1]


def directed_weights(rows, points, k=K, itself=False):
    """Return the weights of rows with their k nearest points, with loops; `itself` if rows are the points."""
    others = [np.delete(points, i, axis=0) if itself else points for i in range(len(rows))]
    of_points = [width(point, np.delete(points, j, axis=0), k) for j, point in enumerate(points)]
    weights = np.zeros((len(rows), len(points)))
    for i, row in enumerate(rows):
        distances = np.linalg.norm(points - row, axis=1)
        candidates = [j for j in np.argsort(distances) if not (itself and j == i)]
        for j in candidates[:k]:
            weights[i, j] = np.exp(-(distances[j] ** 2) / (width(row, others[i], k) * of_points[j]))
    return weights


def definition(points, k=K):
    """Return W by the formulas of the module, and the neighbour means."""
    directed = directed_weights(points, points, k, itself=True)
    means = (points + directed @ points) / (1 + directed.sum(axis=1, keepdims=True))
    of_means = directed_weights(means, means, k, itself=True)
    graphs = [np.maximum(weights, weights.T) for weights in (directed, of_means)]
    return sum(graph / graph.sum() for graph in graphs) * len(points) / 2, means


def fitted(points=POINTS, k=K, r=4):
    form, graph = NeighborForm.of(points, k, 0)
    spectrum = graph_spectrum(graph, np.zeros(len(points), int), r, 0)
    return NeighborBasis(form, spectrum.values, spectrum.eigenvalues), graph, spectrum


def test_weights_are_their_definition():
    expected, means = definition(POINTS)
    form, graph = NeighborForm.of(POINTS, K, 0)
    np.testing.assert_allclose(graph.toarray(), expected, atol=1e-13)
    np.testing.assert_allclose(form.means.points, means, atol=1e-13)


def test_modes_solve_the_eigenproblem_of_energy_and_variance():
    W, _ = definition(POINTS)
    degrees = W.sum(axis=1)
    quotients, vectors = linalg.eigh(np.diag(degrees) - W, np.diag(degrees))
    _, _, spectrum = fitted()
    np.testing.assert_allclose(1 - spectrum.eigenvalues, quotients[1:5], rtol=1e-9)
    np.testing.assert_allclose(spectrum.next_eigenvalue, 1 - quotients[5], rtol=1e-9)
    exact = vectors[:, 1:5] * np.sqrt(degrees.sum())
    cosines = np.abs((degrees[:, None] * exact * spectrum.values).sum(axis=0)) / degrees.sum()
    np.testing.assert_allclose(cosines, 1, atol=1e-9)


def test_a_ring_has_the_eigenvalues_of_a_circulant_matrix():
    """Neighbour means of a ring are a smaller ring with the same weights."""
    n, k = 60, 6
    angles = 2 * np.pi * np.arange(n) / n
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    steps = np.arange(1, k // 2 + 1)
    chords = 2 * np.sin(np.pi * steps / n)
    weights = np.exp(-(chords**2) / chords[0] ** 2)  # neighbour k/3 = 2 is one step away
    expected = [(weights * np.cos(2 * np.pi * wave * steps / n)).sum() / weights.sum() for wave in (1, 1, 2, 2)]
    _, _, spectrum = fitted(ring, k)
    np.testing.assert_allclose(spectrum.eigenvalues, expected, rtol=1e-9)
    waves = np.column_stack([np.cos(angles), np.sin(angles)]) * np.sqrt(2)
    projected = waves @ (waves.T @ spectrum.values[:, :2]) / n
    np.testing.assert_allclose(projected, spectrum.values[:, :2], atol=1e-8)


def test_new_points_have_the_average_over_their_neighbours_divided_by_the_eigenvalue():
    basis, _, spectrum = fitted()
    form = basis.form
    of_rows = directed_weights(NEW, POINTS)
    averaged = (NEW + of_rows @ POINTS) / (1 + of_rows.sum(axis=1, keepdims=True))
    step = form.shares[0] * of_rows + form.shares[1] * directed_weights(averaged, form.means.points)
    step /= step.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(basis.features(NEW), step @ spectrum.values / spectrum.eigenvalues, atol=1e-12)


def test_rows_of_the_fit_have_the_values_of_the_eigenvectors():
    basis, _, spectrum = fitted()
    np.testing.assert_array_equal(basis.features(POINTS[::-1]), spectrum.values[::-1])


def test_gradients_are_limits_of_differences():
    basis, _, _ = fitted()
    coefficients = np.random.default_rng(2).standard_normal((4, 2))
    direction = np.array([0.3, -0.5, 0.8])
    step = 1e-6 * direction
    differences = (basis.features(NEW + step) - basis.features(NEW - step)) @ coefficients / 2e-6
    np.testing.assert_allclose(basis.gradient(NEW, coefficients) @ direction, differences, atol=1e-6)


def test_units_rotations_and_the_origin_do_not_matter():
    rotation = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    _, graph, _ = fitted()
    _, other, _ = fitted(POINTS @ rotation * 1e-4 + 100.0)
    np.testing.assert_allclose(other.toarray(), graph.toarray(), atol=1e-8)  # digits lost by the shift


def test_copies_of_rows_have_a_finite_weight():
    points = np.vstack([POINTS, np.repeat(POINTS[:1], 12, axis=0)])
    _, graph, spectrum = fitted(points)
    assert np.isfinite(graph.data).all()
    assert np.isfinite(spectrum.values).all()


def test_a_far_row_is_connected_to_its_neighbours():
    """Its weights underflow relative to others, but not relative to one another."""
    _, graph, _ = fitted(np.vstack([POINTS, [[1e6, 0, 0]]]))
    assert find_components(graph, K).max() == 0
    assert (find_components(graph, K) == 0).all()


def test_approximate_neighbours_are_nearly_the_exact_ones(monkeypatch):
    pytest.importorskip("pynndescent")
    points = np.random.default_rng(0).standard_normal((1500, 10))
    exact = neighbors._nearest_others(points, 15, 0)
    monkeypatch.setattr(neighbors, "EXACT_ROWS", 1000)
    found = neighbors._nearest_others(points, 15, 0)
    assert not (found.index == np.arange(1500)[:, None]).any()
    shared = [len(np.intersect1d(*pair)) for pair in zip(exact.index, found.index, strict=True)]
    assert np.mean(shared) > 0.95 * 15
    np.testing.assert_array_equal(neighbors._nearest_others(points, 15, 0).index, found.index)


def test_sums_of_gradients_are_refused():
    with pytest.raises(NotApplicable, match="no energy of gradients"):
        fitted()[0].start(10)
