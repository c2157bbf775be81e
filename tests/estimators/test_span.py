"""Samples with more columns than rows: the search runs in their span, and its modes are functions of the columns."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kdmaps
from kdmaps.estimators.span import Span
from kdmaps.kernels import Gaussian, Matern, Metric
from shared import known

D = 150
RNG = np.random.default_rng(0)
TURN = np.linalg.qr(RNG.standard_normal((D, D)))[0]
#: A double well in one direction of 150, and little noise in the others.
WELL = kdmaps.problems.load("dw1d+1x0.5").sample(100, random_state=0)
X = np.hstack([WELL, 0.02 * RNG.standard_normal((100, D - 2))]) @ TURN.T + 3.0


def searched(X, **options):
    search = kdmaps.KernelSearchCV(2, random_state=0, n_features=40, families=["gaussian", "matern32"], **options)
    return search.fit(X)


def span_of(X):
    return Span.of(kdmaps.data.ArraySource(X), kdmaps.KernelSearchCV()._plan())


@known("scales", "no-gap")
def test_coordinates_of_the_span_are_exact():
    """Distances, hence radial kernels at landmarks and their energies, are the same in the span."""
    span = span_of(X)
    Y = span.source.array
    assert Y.shape == (100, 99)
    assert_allclose(span.points(Y), X, atol=1e-12)
    parameters = {"kernel": "matern32", "bandwidth": 2.0, "basis": "landmarks", "random_state": 0}
    wide = kdmaps.KernelDiffusionMap(2, landmarks=X[:20], **parameters).fit(X)
    narrow = kdmaps.KernelDiffusionMap(2, landmarks=Y[:20], **parameters).fit(Y)
    assert_allclose(wide.rates_, narrow.rates_, rtol=1e-9)
    assert_allclose(np.abs(wide.transform(X)), np.abs(narrow.transform(Y)), atol=1e-7)


@known("scales", "ridge", "extrapolation")
def test_modes_are_functions_of_the_columns(tmp_path):
    model = searched(X)
    narrow = searched(span_of(X).source.array, basis="landmarks")
    assert model.n_features_in_ == D
    assert model.basis_.origin.shape == (D,)
    assert_allclose(model.rates_, narrow.rates_, rtol=1e-9)
    assert_allclose(model.transform(X), narrow.transform(span_of(X).source.array), atol=1e-8)
    # The gradient is the derivative along any direction, within the span or not.
    direction = RNG.standard_normal(D)
    forward, backward = (model.transform(X[:5] + step * direction) for step in (1e-5, -1e-5))
    assert_allclose(model.gradient(X[:5]) @ direction, (forward - backward) / 2e-5, atol=1e-6)
    # The part of a point that is orthogonal to the samples has no effect.
    away = direction - span_of(X).frame @ (span_of(X).frame.T @ direction)
    assert_allclose(model.transform(X[:5] + away), model.transform(X[:5]), atol=1e-9)
    # A model with the same parameters finds the same modes, and so does a file.
    again = kdmaps.KernelDiffusionMap(**model.best_estimator_.get_params()).fit(X)
    assert_allclose(np.abs(again.transform(X)), np.abs(model.transform(X)), atol=1e-5)
    model.save(tmp_path / "model.npz")
    assert_allclose(kdmaps.load(tmp_path / "model.npz").transform(X), model.transform(X), atol=1e-12)


def test_relevance_of_columns():
    """The slow direction is the first column of the rotation."""
    found = searched(X).relevance_details_
    assert found.shares.shape == (2, D)
    direction = found.combinations[0] / found.scales
    assert abs(direction @ TURN[:, 0]) / np.linalg.norm(direction) > 0.95
    assert found.matrix.shape == (D, D)


@pytest.mark.parametrize(
    "options",
    [
        {"diffusion": np.linspace(1, 2, D)},
        {"landmarks": X[:10]},
        {"basis": "fourier"},  # gradients of Fourier features leave the span
        {"families": ["laplacian"]},  # not radial
        {"families": [Gaussian(2.0)]},
        {"diffusion": "tangent"},
    ],
)
def test_settings_in_the_columns_of_x_keep_them(options):
    assert Span.of(kdmaps.data.ArraySource(X), kdmaps.KernelSearchCV(**options)._plan()) is None
    assert span_of(X[:, :50]) is None


def test_metric_with_fewer_directions():
    root = RNG.standard_normal((5, 2))
    kernel, (A, B) = Metric(Matern(1.5, 2.0), root), RNG.standard_normal((2, 7, 5))
    assert_allclose(kernel(A, B), Matern(1.5, 2.0)(A @ root, B @ root), rtol=1e-12)
    frequencies, weights = kernel.sample_frequencies(4000, 5, "sobol", 0)
    assert frequencies.shape == (4000, 5)
    waves = np.cos((A[:, None] - B[None]) @ frequencies.T) @ weights
    assert_allclose(waves, kernel(A, B), atol=0.02)  # 1/√4000 for independent draws
