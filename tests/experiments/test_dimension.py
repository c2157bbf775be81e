"""Kernels against graphs: the graphs agree with the literature, and the claims with the rows."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from experiments import dimension
from experiments._runner import finished
from kdmaps import baselines, metrics, problems

ROWS = Path(__file__).resolve().parents[2] / "results" / "dimension" / "rows.jsonl"


@pytest.mark.parametrize(("method", "alpha"), [("Laplacian eigenmaps", 0.0), ("diffusion maps", 0.5)])
def test_graphs_equal_the_baseline(method, alpha):
    X = problems.load("triplewell2d+1x0.6").sample(300, random_state=0)
    sigma = 0.5
    rates, modes = dimension.graph_modes(cdist(X, X, "sqeuclidean"), 3, method, sigma, 0)
    other = baselines.DiffusionMap(2, bandwidth=sigma, alpha=alpha).fit(X)
    # Lanczos with a tolerance of 1e-6 against a dense solver.
    assert metrics.subspace_r2(modes, other.transform(X)) == pytest.approx(1, abs=1e-8)
    # One step of the walk against its logarithm.
    time = sigma**2 / 2
    np.testing.assert_allclose(1 - time * rates, np.exp(-time * other.rates_), rtol=1e-6)


def test_variable_bandwidth_has_the_generator_as_its_limit():
    system = problems.load("dw1d")
    X = system.sample(1000, random_state=1)
    rates, modes = dimension.graph_modes(cdist(X, X, "sqeuclidean"), 1, "variable bandwidth", 0.08, 0)
    assert metrics.subspace_r2(modes, system.reference(X, 2)) > 0.99
    # A bias of order σ² × rate and a sampling error of a few per cent; another power of the density, as -1/2 in the
    # place of -1/3, would change the drift by a factor.
    np.testing.assert_allclose(rates, system.rates(2), rtol=0.1)


def test_disconnected_graph_counts_as_an_error_of_one():
    X = problems.load("triplewell2d+18x0.6").sample(200, random_state=0)
    reference = problems.load("triplewell2d+18x0.6").reference(X, 2)
    assert dimension.graph_error(X, "diffusion maps", 0.02, reference, 0) > 0.9


def test_exponent_is_a_slope_with_its_error_over_seeds():
    sizes = np.array([100, 200, 400])
    errors = np.array([3.0 * sizes**-0.9, 2.0 * sizes**-1.1])
    value, spread = dimension.exponent(sizes, errors)
    assert value == pytest.approx(-1)
    assert spread == pytest.approx(0.1)  # sd of (-0.9, -1.1) with ddof=1 is 0.1414, over √2


def test_table_has_exponents_and_errors():
    rows = [
        {"method": method, "d": 2, "n": n, "seed": seed, "error": scale / n}
        for method, scale in (("diffusion maps", 5.0), ("kdmaps, default", 1.0))
        for n in (100, 1000)
        for seed in (0, 1)
    ]
    text = dimension.table(rows)
    assert "| kdmaps, default | -1.00 ± 0.00 |" in text
    assert "| diffusion maps | 0.0500 → 0.0050 |" in text


def test_row_of_a_graph_has_the_best_bandwidth():
    (row,) = dimension.run("diffusion maps", 2, 150, 0)
    assert row["error"] == min(row["tried"])
    assert len(row["tried"]) == len(dimension.BANDWIDTHS)


def test_claims_of_the_page_hold_for_the_rows():
    rows = [row for found in finished(ROWS).values() for row in found]
    rows = [row for row in rows if row["n"] in dimension.SIZES and row["seed"] < 6003]
    gaussian, default = dimension.KERNELS
    slopes, first, last = {}, {}, {}
    for d in dimension.DIMENSIONS:
        for method in (*dimension.GRAPHS, *dimension.KERNELS):
            sizes, errors = dimension.errors(rows, method, d)
            assert errors.shape == (3, 3)
            slopes[method, d], _ = dimension.exponent(sizes, errors)
            first[method, d], last[method, d] = errors[:, 0].mean(), errors[:, -1].mean()
        assert min(last[method, d] for method in (*dimension.GRAPHS, gaussian)) > last[default, d]
    exponents = [slopes[default, d] for d in dimension.DIMENSIONS]
    assert (round(max(exponents), 2), round(min(exponents), 2)) == (-0.3, -0.96)
    assert max(dimension.DIMENSIONS, key=lambda d: slopes[default, d]) == 10
    assert all(0.0095 < first[default, d] < 0.0125 for d in dimension.DIMENSIONS)
    assert all(0.0025 < last[default, d] < 0.0085 for d in dimension.DIMENSIONS)
    best = {d: min(last[graph, d] for graph in dimension.GRAPHS) / last[default, d] for d in dimension.DIMENSIONS}
    assert min(dimension.GRAPHS + dimension.KERNELS, key=lambda method: first[method, 2]) == "diffusion maps"
    assert (round(best[2], 1), round(best[20])) == (1.6, 30)
    assert all(slopes[gaussian, d] < slopes[graph, d] for d in (2, 10, 20) for graph in dimension.GRAPHS)
    assert all(slopes[graph, d] > -0.4 for d in (10, 20) for graph in dimension.GRAPHS)
