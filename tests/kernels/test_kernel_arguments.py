"""Kernels reject invalid arguments with messages that name the valid ones."""

import numpy as np
import pytest

from kdmaps.kernels import (
    FAMILIES,
    Gaussian,
    Laplacian,
    Matern,
    Mixture,
    RationalQuadratic,
    kernel_from_dict,
    make_kernel,
)

X = np.random.default_rng(0).standard_normal((4, 3))


class TestBadArguments:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Gaussian(0), "bandwidth must be positive and finite"),
            (lambda: Gaussian(-1.0), "bandwidth must be positive and finite"),
            (lambda: Gaussian([1.0, np.nan]), "bandwidth must be positive and finite"),
            (lambda: Laplacian(np.inf), "bandwidth must be positive and finite"),
            (lambda: Gaussian([]), "one number per coordinate"),
            (lambda: Gaussian([[1.0]]), "one number per coordinate"),
            (lambda: Matern(1.0), "nu must be a positive half-integer"),
            (lambda: Matern(-0.5), "nu must be a positive half-integer"),
            (lambda: Matern(np.inf), "nu must be a positive half-integer"),
            (lambda: RationalQuadratic(0.0), "alpha must be positive and finite"),
            (lambda: RationalQuadratic(np.nan), "alpha must be positive and finite"),
            (lambda: Mixture([]), "at least one kernel"),
            (lambda: Mixture([Gaussian()], [0.5, 0.5]), r"one number per kernel \(1\)"),
            (lambda: Mixture([Gaussian(), Laplacian()], [1.5, -0.5]), "non-negative and sum to 1"),
            (lambda: Mixture([Gaussian(), Laplacian()], [0.5, 0.4]), "non-negative and sum to 1"),
            (lambda: Mixture([Gaussian(), Laplacian()], [np.nan, 1.0]), "non-negative and sum to 1"),
            (lambda: make_kernel("sinc"), "Unknown kernel 'sinc'"),
            (lambda: make_kernel(Gaussian), "Unknown kernel"),
            (lambda: kernel_from_dict({"family": "Sinc"}), "Unknown kernel family 'Sinc'"),
            (lambda: Gaussian().sample_frequencies(4, 2, "halton"), "sampling must be"),
        ],
    )
    def test_message(self, make, message):
        with pytest.raises(ValueError, match=message):
            make()

    @pytest.mark.parametrize("name", FAMILIES)
    @pytest.mark.parametrize("bandwidth", [[1.0], [1.0, 2.0]])
    @pytest.mark.parametrize(
        "use",
        [
            lambda k: k(X),
            lambda k: k.gradient(X, X),
            lambda k: k.sample_frequencies(8, 3, random_state=0),
        ],
        ids=["value", "gradient", "frequencies"],
    )
    def test_wrong_number_of_bandwidths(self, name, bandwidth, use):
        with pytest.raises(ValueError, match=f"bandwidth has {len(bandwidth)} entries but X has 3 columns"):
            use(make_kernel(name, bandwidth))

    def test_not_a_kernel(self):
        assert Gaussian() != "Gaussian(bandwidth=1.0)"
