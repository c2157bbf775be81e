"""Kernels in other linear coordinates."""

import numpy as np
import pytest

import kdmaps
from kdmaps.bases import LandmarkBasis
from kdmaps.forms.energy import compute_moments
from kdmaps.generators import Generator
from kdmaps.kernels import Gaussian, Laplacian, Matern, Metric, kernel_from_dict
from shared import known, traced_peak

RNG = np.random.default_rng(0)
ROOT = RNG.standard_normal((3, 3))
X, Z = RNG.standard_normal((6, 3)), RNG.standard_normal((4, 3))
KERNELS = [Gaussian(1.5), Gaussian([1.0, 2.0, 3.0]), Matern(2.5, 2.0), Laplacian(2.0)]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_value_in_the_coordinates_of_the_metric(kernel):
    metric = Metric(kernel, ROOT)
    np.testing.assert_allclose(metric(X, Z), kernel(X @ ROOT, Z @ ROOT), rtol=1e-13)
    assert kernel_from_dict(metric.to_dict()) == metric


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradient_by_differences(kernel):
    metric, step = Metric(kernel, ROOT), 1e-6
    for j, partial in enumerate(metric.partials(X, Z)):
        shift = step * np.eye(3)[j]
        np.testing.assert_allclose(partial, (metric(X + shift, Z) - metric(X - shift, Z)) / (2 * step), atol=1e-8)


@known("no-gap")
def test_energy_is_computed_in_the_inputs():
    """In coordinates Y = XH the same functions have the same energy with the tensor HᵀH."""
    samples = RNG.standard_normal((200, 3))
    inside = kdmaps.KernelDiffusionMap(2, kernel=Metric(Gaussian(3.0), ROOT), random_state=0).fit(samples)
    outside = kdmaps.KernelDiffusionMap(2, kernel=Gaussian(3.0), diffusion=ROOT.T @ ROOT, random_state=0).fit(
        samples @ ROOT
    )
    np.testing.assert_allclose(inside.rates_, outside.rates_, rtol=1e-8)  # cond(L+λR) × rounding


def test_landmarks_use_no_coordinate_axis():
    """A radial kernel stays radial in a metric: a chunk of landmark sums needs no array (n, p, d)."""
    d, rows, p = 40, 256, 64
    rng = np.random.default_rng(1)
    points, root = rng.standard_normal((rows, d)), rng.standard_normal((d, d)) / d
    basis = LandmarkBasis(Metric(Matern(2.5, 1.0), root), points[:p], np.zeros(d))
    assert basis.radial
    assert traced_peak(lambda: compute_moments(basis, points)) < 8 * rows * p * d / 2


def test_memory_of_partials_of_nonradial_kernels():
    metric = Metric(Laplacian(1.0), np.eye(30) + 0.1)
    points, landmarks = RNG.standard_normal((200, 30)), RNG.standard_normal((50, 30))

    def consume():
        for _ in metric.partials(points, landmarks):
            pass

    # One (n, m, d), and a few (n, m) of 1/30 of its size each.
    assert traced_peak(consume) < 1.3 * 8 * 200 * 50 * 30


def test_gradient_at_kinks_is_zero_in_every_row():
    points = RNG.standard_normal((301, 37))
    metric = Metric(Laplacian(5.0), RNG.standard_normal((37, 37)))
    for i in (0, 150, 300):  # BLAS multiplies one row in another order than many rows
        assert np.all(metric.gradient(points, points[i : i + 1])[i] == 0)


def test_laplacian_where_points_coincide_up_to_rounding():
    """κ'' of Matérn 3/2 is infinite at s = 0, so its factor must be exactly 0."""
    points, root = RNG.standard_normal((50, 37)), np.zeros((37, 37))
    root[:, 0] = RNG.standard_normal(37)
    metric, laplacian = Metric(Matern(1.5, 2.0), root), Generator(np.zeros_like)
    found = [laplacian(metric, points, points[i : i + 1])[i, 0] for i in range(50)]
    exact = 2 * metric.profile(np.zeros(1), 1) * np.sum(root**2) / 4
    np.testing.assert_allclose(found, np.tile(exact, 50), rtol=1e-6)


@pytest.mark.parametrize(
    "root", [[[1.0, np.nan], [0.0, 1.0]], [[np.inf]], np.ones((2, 3)), np.ones(3), [], [["a"]], None]
)
def test_invalid_root(root):
    with pytest.raises(ValueError, match="root must be a finite matrix"):
        Metric(Gaussian(), root)


def test_wrong_number_of_columns():
    for use in (lambda k: k(X[:, :2]), lambda k: list(k.partials(X[:, :2], Z))):
        with pytest.raises(ValueError, match="3 coordinates but X has 2 columns"):
            use(Metric(Gaussian(), ROOT))


def test_equal_metrics_have_equal_hashes():
    one, two = Metric(Gaussian(), [[0.0, 1.0], [1.0, 0.0]]), Metric(Gaussian(), [[-0.0, 1.0], [1.0, 0.0]])
    assert one == two
    assert hash(one) == hash(two)
    assert one != Metric(Gaussian(), np.eye(2))
    assert one != Gaussian()


def test_bandwidths_at_landmarks_are_not_learned_in_a_metric():
    settings = {"basis": "landmarks", "n_features": 5, "learn_bandwidths": True, "random_state": 0}
    model = kdmaps.VariationalKernelMap(1, kernels=[Metric(Gaussian(2.0), np.eye(3))], **settings)
    with pytest.raises(ValueError, match="bandwidth that cannot be learned"):
        model.fit(RNG.standard_normal((50, 3)))
