"""A bias along a mode: its gradient, its force in OpenMM, and wells of known depth that it fills."""

import sys

import numpy as np
import pytest
from molecules import INPUTS, evaluate, fit, frames
from numpy.testing import assert_allclose

from kdmaps.simulation import ModeBias, boltzmann_weights, descriptors
from shared import known_finding, known_warning, wide_map

pytestmark = [known_warning(), known_finding()]  # small fits of noise


@pytest.fixture(scope="module")
def bias():
    model = fit(INPUTS["distances"])
    return ModeBias(model, 0, np.linspace(-1.5, 1.5, 9), np.random.default_rng(0).uniform(0, 5, 9))


def test_gradient(bias):
    X = descriptors(INPUTS["distances"], frames(30, spread=0.2, seed=4))
    direction, step = np.array([0.3, -1.0, 0.7]), 1e-6
    slopes = (bias.energy(X + step * direction) - bias.energy(X - step * direction)) / (2 * step)
    assert_allclose(bias.gradient(X) @ direction, slopes, rtol=1e-5, atol=1e-5)  # rounding of energies over the step


def test_force_in_openmm(bias):
    pytest.importorskip("openmm")
    positions = frames(20, seed=3)
    energies, forces = evaluate(bias.force(INPUTS["distances"]), positions)
    assert_allclose(energies, bias.energy(descriptors(INPUTS["distances"], positions)), atol=1e-9)
    direction, step = np.random.default_rng(1).standard_normal(positions.shape[1:]), 1e-5
    ahead, behind = (evaluate(bias.force(INPUTS["distances"]), positions + h * direction)[0] for h in (step, -step))
    assert_allclose(-np.einsum("nad,ad->n", forces, direction), (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("stiffness", [0.0, -0.5])
def test_filling_of_a_harmonic_well(stiffness):
    """For N(0, 1) the slowest mode is x, and F = kT x²/2: the bias decreases by (1 - 1/γ) F from the middle.

    The same holds for weighted frames with the bias kx²/2, which are N(0, 1/(1+k)).
    """
    X, kT, factor = np.random.default_rng(0).standard_normal((20_000, 1)) / np.sqrt(1 + stiffness), 2.5, 4.0
    weight = boltzmann_weights(stiffness * X[:, 0] ** 2 / 2, 1.0) if stiffness else None
    bias = ModeBias.filling(wide_map(1).fit(X, sample_weight=weight), 0, X, weight, kT, factor)
    x = np.array([[-1.5], [-0.7], [0.8], [1.6]])
    fall = bias.energy(np.zeros((1, 1))) - bias.energy(x)
    # A bin at 1.6 has 20000·0.11·0.13 = 290 frames, an error of 0.06 kT; smoothing adds about as much.
    assert_allclose(fall, (1 - 1 / factor) * kT * x[:, 0] ** 2 / 2, atol=0.25 * kT)
    last = bias.model.support_.samples.max(axis=0)
    assert bias.energy(last[None] + 50.0) == pytest.approx(bias.energy(last[None]), abs=1e-9)


def test_invalid_arguments():
    X = np.random.default_rng(0).standard_normal((100, 1))
    model = wide_map(1).fit(X)
    with pytest.raises(ValueError, match="sample_weight"):
        ModeBias.filling(model, 0, X, np.ones(99), 1.0)
    with pytest.raises(ValueError, match="kT must be"):
        ModeBias.filling(model, 0, X, None, -1.0)
    with pytest.raises(ValueError, match="mode must be"):
        ModeBias.filling(model, 1, X, None, 1.0)


def test_equal_weights():
    X = np.random.default_rng(0).standard_normal((500, 1))
    model = wide_map(1).fit(X)
    without, equal = (ModeBias.filling(model, 0, X, weight, 1.0) for weight in (None, np.full(500, 7.0)))
    assert_allclose(without.energies, equal.energies, atol=1e-12)
    assert without.height > 1


def test_openmm_missing(bias, monkeypatch):
    monkeypatch.setitem(sys.modules, "openmm", None)
    with pytest.raises(ImportError, match=r"pip install 'kdmaps\[openmm\]'"):
        bias.force(INPUTS["distances"])
