"""Biases along a mode and of a committor: gradients, forces in OpenMM, and energies of known potentials."""

import sys

import numpy as np
import pytest
from molecules import INPUTS, evaluate, fit, frames
from numpy.testing import assert_allclose

import kdmaps
from kdmaps.simulation import KolmogorovBias, ModeBias, boltzmann_weights, descriptors
from shared import known, wide_map

pytestmark = known("no-gap", "extrapolation")  # small fits of noise


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


@pytest.mark.parametrize("basis", ["fourier", "landmarks"])
def test_kolmogorov_bias_of_a_molecule(basis):
    pytest.importorskip("openmm")
    inputs, positions = INPUTS["distances"], frames(80, spread=0.3, seed=3)
    X = descriptors(inputs, frames(400, spread=0.05))
    ends = np.quantile(X[:, 0], [0.3, 0.7])
    committor = kdmaps.AdaptiveCommittor(basis=basis, n_features=60, random_state=0)
    bias = KolmogorovBias(committor.fit(X, (X[:, 0] < ends[0], X[:, 0] > ends[1])), kT=2.5)
    rows = descriptors(inputs, positions)
    energies, forces = evaluate(bias.force(inputs), positions)
    assert_allclose(energies, bias.energy(rows), atol=1e-9)
    far, inside = committor.extrapolates(rows), abs(committor.decision_function(rows) - 0.5) > 0.5
    assert np.any(far & (energies < 0))  # where the bias fades
    assert_allclose(energies[inside], 0)
    direction, step = np.random.default_rng(1).standard_normal(positions.shape[1:]), 1e-5
    ahead, behind = (evaluate(bias.force(inputs), positions + h * direction)[0] for h in (step, -step))
    slopes = (ahead - behind) / (2 * step)
    # Differences of second order: third derivatives of the ramp at the edges of A and B are large.
    assert_allclose(-np.einsum("nad,ad->n", forces, direction), slopes, rtol=1e-3, atol=1e-4 * np.abs(slopes).max())
    columns = np.random.default_rng(2).standard_normal(rows.shape[1])
    ahead, behind = (bias.energy(rows + h * columns) for h in (1e-6, -1e-6))
    assert_allclose(bias.gradient(rows) @ columns, (ahead - behind) / 2e-6, rtol=1e-3, atol=1e-3)


def test_kolmogorov_bias_of_a_known_committor():
    """Between sets without a potential, q is linear: |∇q| = 1/2, and U = -λ kT log(1 + R²/4 ε) in the middle."""
    X = np.random.default_rng(0).uniform(-2, 2, (4000, 1))
    committor = kdmaps.AdaptiveCommittor(random_state=0).fit(X, (X[:, 0] < -1, X[:, 0] > 1))
    bias = KolmogorovBias(committor, kT=3.0, strength=0.5, floor=1e-2)
    expected = -1.5 * np.log1p(X.var() / 4 / 1e-2)
    # 2,000 samples between the sets: slopes of q are wrong by 10 % at a point, and by 2 % on average.
    assert np.mean(bias.energy(np.linspace(-0.8, 0.8, 81)[:, None])) == pytest.approx(expected, rel=0.05)
    assert_allclose(bias.energy([[-1.1], [1.5], [100.0]]), 0)


def test_kolmogorov_bias_rejects_other_models():
    X = np.random.default_rng(0).standard_normal((100, 1))
    with pytest.raises(TypeError, match="AdaptiveCommittor"):
        KolmogorovBias(wide_map(1).fit(X), 1.0)
    committor = kdmaps.AdaptiveCommittor(random_state=0, n_features=30).fit(X, (X[:, 0] < -1, X[:, 0] > 1))
    for arguments, name in (((0.0,), "kT"), ((1.0, -1.0), "strength"), ((1.0, 1.0, np.nan), "floor")):
        with pytest.raises(ValueError, match=name):
            KolmogorovBias(committor, *arguments)
