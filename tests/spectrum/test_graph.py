"""Modes of graphs with several components."""

import numpy as np
import pytest
from scipy import sparse

from kdmaps.spectrum import graph as graphs
from kdmaps.spectrum.graph import find_components, graph_spectrum, span_agreement


def random_graph(n, seed):
    """Return a dense symmetric matrix of weights."""
    W = np.random.default_rng(seed).uniform(0.1, 1, (n, n))
    W = W + W.T
    np.fill_diagonal(W, 0)
    return W


def path(n):
    """Return a path of n nodes with loops of half the weight of an edge at both ends.

    The walk has the eigenvalues cos(πm/n) with eigenvectors cos(πm(i + ½)/n).
    """
    W = np.diag(np.ones(n - 1), 1)
    W = W + W.T
    W[0, 0] = W[-1, -1] = 1
    return W


def joined(*parts):
    return sparse.csr_array(sparse.block_diag(parts))


@pytest.mark.parametrize("dense_rows", [1000, 10])
def test_a_path_has_cosines(dense_rows, monkeypatch):
    monkeypatch.setattr(graphs, "DENSE_ROWS", dense_rows)
    n, m = 200, np.arange(1, 4)
    found = graph_spectrum(sparse.csr_array(path(n)), np.zeros(n, int), 3, 0)
    np.testing.assert_allclose(found.eigenvalues, np.cos(np.pi * m / n), rtol=1e-9)
    assert found.next_eigenvalue == pytest.approx(np.cos(4 * np.pi / n), rel=1e-9)
    exact = np.sqrt(2) * np.cos(np.pi * m * (np.arange(n)[:, None] + 0.5) / n)
    signs = np.sign((exact * found.values).sum(axis=0))
    np.testing.assert_allclose(found.values * signs, exact, atol=1e-6)


def test_components_are_found_and_sorted_by_size():
    W = joined(random_graph(20, 0), random_graph(40, 1), random_graph(3, 2))
    labels = find_components(W, 5)
    assert labels.tolist() == [1] * 20 + [0] * 40 + [-1] * 3


def test_a_negligible_weight_connects_nothing():
    W = joined(random_graph(20, 0), random_graph(40, 1)).toarray()
    for weight, count in ((1e-3, 1), (1e-12, 2)):
        W[0, 30] = W[30, 0] = weight
        assert find_components(sparse.csr_array(W), 5).max() + 1 == count


def test_a_node_with_tiny_weights_only_is_connected():
    W = np.zeros((21, 21))
    W[:20, :20] = random_graph(20, 0)
    W[20, 3] = W[3, 20] = 1e-20
    assert (find_components(sparse.csr_array(W), 5) == 0).all()


def test_indicators_come_first_and_other_modes_live_on_one_component():
    one, other = path(60), path(40)
    found = graph_spectrum(joined(one, other), np.repeat([0, 1], [60, 40]), 4, 0)
    np.testing.assert_allclose(found.eigenvalues, [1, np.cos(np.pi / 60), np.cos(np.pi / 40), np.cos(2 * np.pi / 60)])
    indicator = found.values[:, 0]
    assert np.unique(indicator.round(12)).size == 2
    assert indicator[0] < 0 < indicator[-1]
    assert (found.values[60:, 1] == 0).all()
    assert (found.values[:60, 2] == 0).all()
    gram = found.values.T @ found.values / 100  # all degrees are 2
    np.testing.assert_allclose(gram, np.eye(4), atol=1e-9)
    alone = graph_spectrum(sparse.csr_array(one), np.zeros(60, int), 1, 0).values[:, 0]
    ratio = found.values[:60, 1] / alone
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-7)


def test_more_components_than_modes():
    W = joined(*(random_graph(10, seed) for seed in range(5)))
    found = graph_spectrum(W, np.repeat(np.arange(5), 10), 2, 0)
    assert found.eigenvalues.tolist() == [1, 1]
    assert found.next_eigenvalue == 1


def test_rows_of_no_component_have_no_weight():
    W = joined(random_graph(30, 0), random_graph(3, 1))
    labels = np.repeat([0, -1], [30, 3])
    found = graph_spectrum(W, labels, 2, 0)
    alone = graph_spectrum(joined(random_graph(30, 0)), np.zeros(30, int), 2, 0)
    np.testing.assert_allclose(found.values[:30], alone.values, atol=1e-8)
    assert (found.values[30:] == 0).all()


def test_agreement_is_the_mean_squared_cosine_of_spans():
    rng = np.random.default_rng(0)
    frame = np.linalg.qr(rng.standard_normal((50, 4)))[0]
    frame -= frame.mean(axis=0)
    frame = np.linalg.qr(frame)[0]
    angle = 0.4
    second = np.column_stack([frame[:, 0] * 3, np.cos(angle) * frame[:, 1] + np.sin(angle) * frame[:, 2]]) + 7
    agreement = span_agreement(frame[:, :2] - 5, second)
    np.testing.assert_allclose(agreement, [1, (1 + np.cos(angle) ** 2) / 2])
