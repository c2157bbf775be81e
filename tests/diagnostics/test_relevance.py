"""Relevance of inputs against finite differences, systems of independent parts, and other units."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kdmaps
from kdmaps.bases import ModeBasis, make_basis
from kdmaps.diagnostics import relevance as module
from kdmaps.kernels import Gaussian, Matern, Metric
from kdmaps.selection.training import metric_root
from shared import MATRIX, known, traced_peak

X = kdmaps.problems.load("dw1d+2x0.5").sample(1500, random_state=0)


def fit(X, n=1, **options):
    defaults = {"bandwidth": 2.0, "regularization": 1e-4, "n_features": 120, "random_state": 0}
    return kdmaps.KernelDiffusionMap(n, **{**defaults, **options}).fit(X)


def test_mode_of_one_input():
    """The slow mode of a double well with two Gaussian coordinates depends on the first coordinate only."""
    found = kdmaps.relevance(fit(X), X)
    assert found.shares[0, 0] > 0.95
    assert found.overall[0] > 0.95
    assert found.combination_shares[0] > 0.95
    assert found.combinations[0, 0] > 0.95  # cos of the angle to the first axis, positive by convention
    assert_allclose(found.shares.sum(axis=1), 1, rtol=1e-12)


def test_repr_is_a_short_table():
    """At most ten inputs, by their mean share; the others are summed, and columns add up to 100 %."""
    shares = np.array([[1.0, 4, 0] + [1] * 12, [3.0, 4, 2] + [1] * 12])
    shares /= shares.sum(axis=1, keepdims=True)
    names = tuple("abcdefghijklmno")
    found = module.Relevance(
        names, shares, shares.mean(axis=0), np.eye(15), np.ones(15), np.eye(15)[:2], np.array([0.7, 0.2])
    )
    title, columns, *rows, combinations = repr(found).splitlines()
    assert title == "Shares of 15 inputs in 2 modes"
    assert columns.split() == ["input", "mode", "1", "mode", "2", "mean"]
    assert [row.split()[0] for row in rows[:2]] == ["b", "a"]
    assert rows[0].split()[1:] == [f"{shares[0, 1]:.1%}", f"{shares[1, 1]:.1%}", f"{shares[:, 1].mean():.1%}"]
    assert len(rows) == 11
    assert rows[-1].split()[:2] == ["5", "others"]
    for column in (-3, -2, -1):
        # Eleven rounded shares: each is off by 0.05 at most.
        assert sum(float(row.split()[column].rstrip("%")) for row in rows) == pytest.approx(100, abs=0.55)
    assert combinations == "leading combinations of inputs: 70.0%, 20.0% of all modes"


def test_combinations_find_a_rotated_input():
    turned = kdmaps.problems.nuisance(kdmaps.problems.load("dw1d"), 2, 0.5, rotation=3)
    samples = turned.sample(1500, random_state=0)
    found = kdmaps.relevance(fit(samples), samples)
    base = kdmaps.problems.nuisance(kdmaps.problems.load("dw1d"), 2, 0.5).sample(1500, random_state=0)
    matrix = np.linalg.lstsq(base, samples, rcond=None)[0]
    direction = matrix[0] * found.scales  # φ(x·m) has the gradient m, in standard deviations m∘scales
    assert abs(found.combinations[0] @ direction) > 0.98 * np.linalg.norm(direction)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Metric(Matern(2.5, 2.0), MATRIX)], ids=["gaussian", "metric"])
@pytest.mark.parametrize("weighted", [False, True])
@known("no-gap")
def test_against_finite_differences(kernel, weighted, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 8 * 2 * 3 * 100)  # several blocks
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X)) if weighted else None
    model = fit(X, 2, kernel=kernel, basis="landmarks", n_features=40)
    found = kdmaps.relevance(model, X, weight)
    w = np.full(len(X), 1 / len(X)) if weight is None else weight / weight.sum()
    h = 1e-5  # truncation h²|φ'''|/6, rounding 1e-16·|coefficients|/h
    slopes = np.stack([(model.transform(X + h * e) - model.transform(X - h * e)) / (2 * h) for e in np.eye(3)], axis=2)
    variances = np.array([np.cov(column, aweights=w, ddof=0) for column in X.T])
    parts = np.einsum("n,nkj->kj", w, slopes**2) * variances
    matrix = np.einsum("n,nki,nkj,k->ij", w, slopes, slopes, 1 / model.rates_)
    assert_allclose(found.shares, parts / parts.sum(axis=1, keepdims=True), atol=1e-6)
    assert_allclose(found.matrix, matrix, rtol=0, atol=1e-6 * np.trace(matrix))
    assert_allclose(found.overall, found.shares.mean(axis=0), rtol=1e-14)
    scaled = matrix * np.sqrt(np.outer(variances, variances))
    for share, u in zip(found.combination_shares, found.combinations, strict=True):
        assert_allclose(scaled @ u, share * np.trace(scaled) * u, atol=1e-5 * np.trace(scaled))


def test_invariance_to_units():
    """The same system with its second column in other units has the same shares, and the same combinations."""
    unit = np.array([1.0, 250.0, 1.0])
    settings = {"basis": "landmarks", "landmarks": X[:60]}
    one = fit(X, kernel=Gaussian([2.0, 2.0, 2.0]), **settings)
    settings["landmarks"] = X[:60] * unit
    two = fit(X * unit, kernel=Gaussian(2 * unit), diffusion=unit**2, **settings)
    first, second = kdmaps.relevance(one, X), kdmaps.relevance(two, X * unit)
    # The same numbers, up to rounding times the condition number of the landmarks.
    assert_allclose(second.shares, first.shares, atol=1e-6)
    assert_allclose(second.combinations[0], first.combinations[0], atol=1e-6)
    assert_allclose(second.matrix * np.outer(unit, unit), first.matrix, atol=1e-6 * np.trace(first.matrix))


@pytest.mark.filterwarnings("ignore:.*are constant:kdmaps.exceptions.DataWarning")
def test_constant_input_has_zero_share():
    constant = np.column_stack([X[:, 0], np.full(len(X), 3.0)])
    found = kdmaps.relevance(fit(constant), constant)
    assert_allclose(found.shares, [[1.0, 0.0]], atol=1e-15)  # a variance of rounding


def test_large_data_are_subsampled(monkeypatch):
    monkeypatch.setattr(module, "SAMPLES", 200)
    model = fit(X)
    one, same, other = (kdmaps.relevance(model, X, random_state=seed) for seed in (0, 0, 1))
    assert_array_equal(one.shares, same.shares)
    assert not np.array_equal(one.shares, other.shares)
    # In the first 200 rows alone it would be the same for every seed.
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[:200])
    assert_allclose(one.shares, kdmaps.relevance(model, X[rows]).shares, atol=0.05)


def test_names():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = fit(frame)
    assert kdmaps.relevance(model, frame).names == ("a", "b", "c")
    assert kdmaps.relevance(model, X).names == ("a", "b", "c")
    assert kdmaps.relevance(fit(X), X).names == ("x1", "x2", "x3")
    assert_array_equal(kdmaps.relevance(model, [X[:700], X[700:]]).shares, kdmaps.relevance(model, X).shares)
    with pytest.raises(ValueError, match="a, b, c"):
        kdmaps.relevance(model, frame[["b", "a", "c"]])
    with pytest.raises(ValueError, match="X has 2 features"):
        kdmaps.relevance(model, X[:, :2])
    with pytest.raises(ValueError, match="sample_weight"):
        kdmaps.relevance(model, X, np.ones(3))


@known("no-gap")
def test_memory():
    """Gradients of the features, 2,000 × 100 × 300 numbers of 480 MB, are never held."""
    samples = np.random.default_rng(0).standard_normal((2000, 100))
    model = fit(samples, 3, bandwidth=30.0, n_features=300, basis="landmarks", landmarks="uniform")
    assert traced_peak(lambda: kdmaps.relevance(model, samples)) < 60e6


@pytest.mark.parametrize("name", ["fourier", "random-phase", "landmarks"])
def test_products_of_gradients_in_the_span_of_frequencies(name):
    """Fewer frequencies than inputs span the gradients; the root of a metric has the same square in their span."""
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((50, 40)), np.full(50, 0.02)
    basis = make_basis(name, Gaussian(5.0), X, 12, random_state=0)
    modes = ModeBasis(basis, rng.standard_normal((basis.n_features, 3)), np.zeros(3))
    products, frame = module.gradient_products(modes, X, weight)
    gradients = modes.gradient(X, np.eye(3))
    expected = np.einsum("nki,nkj->kij", gradients, gradients) / 50
    assert (frame is None) == (name == "landmarks")
    full = products if frame is None else frame @ products @ frame.T
    assert_allclose(full, expected, atol=1e-13 * np.abs(expected).max())  # rounding
    root, direct = metric_root(products.sum(axis=0), frame), metric_root(full.sum(axis=0))
    assert_allclose(root @ root.T, direct @ direct.T, atol=1e-13)
