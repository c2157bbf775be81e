"""Weights of biased samples, against closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kdmaps.exceptions import DataWarning
from kdmaps.simulation import boltzmann_weights, effective_sample_size
from shared import wide_map


def test_biased_samples_show_the_rates_of_the_system():
    """V = x²/2 with the bias x²/4 is sampled as N(0, 2/3); reweighted, it has the rates 1 and 2 of V."""
    X = np.sqrt(2 / 3) * np.random.default_rng(0).standard_normal((20_000, 1))
    weights = boltzmann_weights(X[:, 0] ** 2 / 4, kT=1.0)
    model = wide_map()
    # Influence function 1 - x² under weights: Var = E_V[w (1 - x²)²]/n with w = e^{x²/4}/Z < 1.2, about 2/n.
    assert model.fit(X, sample_weight=weights).rates_[0] == pytest.approx(1, abs=0.06)
    assert model.fit(X).rates_[0] == pytest.approx(1.5, abs=0.06)


def test_effective_sample_size_and_its_warning():
    assert effective_sample_size([1, 1, 0, 0]) == 2
    weights = boltzmann_weights(5.0 + np.log([1.0, 2.0, 3.0]), kT=1.0)
    assert_allclose(weights, [0.5, 1.0, 1.5])
    assert_allclose(boltzmann_weights(2.5 * np.log([1.0, 2.0, 3.0]), kT=2.5), weights)
    with pytest.warns(DataWarning, match=r"1\.0 effective samples of 1000"):
        boltzmann_weights(np.r_[np.zeros(999), 100.0], kT=1.0)


def test_only_differences_of_energy_matter():
    # e^{1e4} overflows; the difference is accurate to the last place of 1e4, about 1e-12.
    assert_allclose(boltzmann_weights([1e4, 1e4 + np.log(3.0)], kT=1.0), [0.5, 1.5], rtol=1e-11)


@pytest.mark.parametrize(("energy", "kT", "name"), [([0.0], 0, "kT"), ([np.nan], 1, "bias"), ([[0.0]], 1, "bias")])
def test_bad_arguments_are_named(energy, kT, name):
    with pytest.raises(ValueError, match=name):
        boltzmann_weights(energy, kT)
