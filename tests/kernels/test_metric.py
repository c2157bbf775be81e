"""Kernels in linear coordinates of their own."""

import numpy as np
import pytest

import kdmaps
from kdmaps.kernels import Gaussian, Laplacian, Matern, Metric, kernel_from_dict

RNG = np.random.default_rng(0)
ROOT = RNG.standard_normal((3, 3))
X, Z = RNG.standard_normal((6, 3)), RNG.standard_normal((4, 3))
KERNELS = [Gaussian(1.5), Gaussian([1.0, 2.0, 3.0]), Matern(2.5, 2.0), Laplacian(2.0)]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_is_the_kernel_in_the_coordinates_of_the_metric(kernel):
    metric = Metric(kernel, ROOT)
    np.testing.assert_allclose(metric(X, Z), kernel(X @ ROOT, Z @ ROOT), rtol=1e-13)
    assert kernel_from_dict(metric.to_dict()) == metric


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradient_by_differences(kernel):
    metric, step = Metric(kernel, ROOT), 1e-6
    for j, partial in enumerate(metric.partials(X, Z)):
        shift = step * np.eye(3)[j]
        np.testing.assert_allclose(partial, (metric(X + shift, Z) - metric(X - shift, Z)) / (2 * step), atol=1e-8)


def test_energy_of_fourier_features_is_that_of_the_inputs():
    """In coordinates Y = XH the same functions have the same energy with the tensor HᵀH."""
    samples = RNG.standard_normal((200, 3))
    inside = kdmaps.KernelDiffusionMap(2, kernel=Metric(Gaussian(3.0), ROOT), random_state=0).fit(samples)
    outside = kdmaps.KernelDiffusionMap(2, kernel=Gaussian(3.0), diffusion=ROOT.T @ ROOT, random_state=0).fit(
        samples @ ROOT
    )
    np.testing.assert_allclose(inside.rates_, outside.rates_, rtol=1e-8)  # cond(L+λR) × rounding
