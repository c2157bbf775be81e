"""Draws that depend on the seed, and on nothing else."""

import numpy as np
import pytest

from kdmaps import KernelDiffusionMap
from kdmaps.bases import make_basis
from kdmaps.kernels import Gaussian

X = np.random.default_rng(0).standard_normal((12_000, 2))
SETTINGS = {"n_features": 20, "random_state": 0}


class TestFrequencies:
    """They depend on the seed, the kernel and their number alone."""

    def test_a_kernel_and_its_name(self):
        one = KernelDiffusionMap(2, kernel=Gaussian(2.0), **SETTINGS).fit(X)
        two = KernelDiffusionMap(2, kernel="gaussian", bandwidth=2.0, **SETTINGS).fit(X)
        np.testing.assert_array_equal(one.coefficients_, two.coefficients_)

    @pytest.mark.parametrize("n", [500, 3_000, 12_000])
    def test_looking_at_samples_does_not_change_them(self, n):
        one = KernelDiffusionMap(2, **SETTINGS).fit(X[:n])
        unit = make_basis("fourier", Gaussian(1.0), X[:10], 20, random_state=0)
        np.testing.assert_allclose(one.basis_.frequencies * one.kernel_.bandwidth, unit.frequencies, rtol=1e-12)

    def test_a_stream_needs_no_median_for_a_kernel_with_a_bandwidth(self):
        model = KernelDiffusionMap(2, kernel=Gaussian(2.0), **SETTINGS).fit(iter(np.array_split(X, 4)))
        same = KernelDiffusionMap(2, kernel=Gaussian(2.0), **SETTINGS).fit(X)
        # The origin differs; the span of the features is the same.
        np.testing.assert_allclose(model.rates_, same.rates_, rtol=1e-9)
