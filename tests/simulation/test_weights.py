"""Weights of biased samples, compared with closed forms."""

from unittest import mock

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from kdmaps.checks import collected, muted
from kdmaps.simulation import boltzmann_weights, effective_sample_size, metadynamics_weights, umbrella_weights
from kdmaps.simulation.weights import _check_overlap
from shared import checks, expects, wide_map


def test_rates_of_reweighted_samples():
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
    with expects("effective-samples") as record:
        boltzmann_weights(np.r_[np.zeros(999), 100.0], kT=1.0)
    (check,) = checks(record)
    np.testing.assert_allclose(check.value, 1, atol=0.05)
    assert check.words["rows"] == 1000


def test_only_differences_of_energy_matter():
    # e^{1e4} overflows; the difference is accurate to the last place of 1e4, about 1e-12.
    assert_allclose(boltzmann_weights([1e4, 1e4 + np.log(3.0)], kT=1.0), [0.5, 1.5], rtol=1e-11)


@pytest.mark.parametrize(("energy", "kT", "name"), [([0.0], 0, "kT"), ([np.nan], 1, "bias"), ([[0.0]], 1, "bias")])
def test_invalid_arguments(energy, kT, name):
    with pytest.raises(ValueError, match=name):
        boltzmann_weights(energy, kT)


def tempered(s, bias_factor, height):
    """The bias of converged well-tempered metadynamics in the well F = s²/2 at kT = 1, and a growing constant."""
    return -(1 - 1 / bias_factor) * s**2 / 2 + height


def test_metadynamics_weights_of_a_harmonic_well():
    """c(t) removes the height of the bias and leaves e^{-(1-1/γ)F} √γ: ∫ e^{-F/γ} over ∫ e^{-F} is √γ."""
    factor, kT = 5.0, 2.5
    grid = np.linspace(-25, 25, 2001)  # e^{-F/γ} is 1e-27 at the ends
    s, heights = np.random.default_rng(0).normal(size=50), np.linspace(0, 40, 50)
    energies = kT * tempered(s, factor, heights)
    snapshots = kT * tempered(grid, factor, heights[:, None])
    expected = np.exp(-(1 - 1 / factor) * s**2 / 2)
    weights = metadynamics_weights(energies, snapshots, kT, factor)
    assert_allclose(weights, expected / expected.mean(), rtol=1e-10)
    # The same with a snapshot for every second frame, and on a grid of two variables.
    rows = np.arange(50) // 2
    energies = kT * tempered(s, factor, heights[2 * rows])
    plane = np.repeat(snapshots[::2, :, None], 3, axis=2)
    assert_allclose(metadynamics_weights(energies, plane, kT, factor, rows), weights, rtol=1e-10)


def test_metadynamics_without_tempering():
    """γ → ∞: c = kT log of the mean of e^{U/kT} over the grid."""
    grid, frames = np.array([[0.0, np.log(3.0)], [0.0, np.log(7.0)]]), np.array([0.0, np.log(7.0)])
    expected = np.array([1 / 2, 7 / 4])  # e^U over the means (1 + 3)/2 and (1 + 7)/2
    assert_allclose(metadynamics_weights(frames, grid, 1.0, np.inf), expected / expected.mean(), rtol=1e-12)
    assert_allclose(metadynamics_weights(frames, grid, 1.0, 1e9), expected / expected.mean(), rtol=1e-6)


def test_metadynamics_with_a_bias_of_changing_shape():
    """γ = 2: e^{c/kT} = Σ e^{2U/kT} / Σ e^{U/kT}, of U/kT = (0, log 3) 10/4, of (0, log 7) 50/8."""
    grid, frames, kT = 2.5 * np.array([[0.0, np.log(3.0)], [0.0, np.log(7.0)]]), 2.5 * np.array([0.0, np.log(7.0)]), 2.5
    expected = np.array([4 / 10, 7 * 8 / 50])
    assert_allclose(metadynamics_weights(frames, grid, kT, 2.0), expected / expected.mean(), rtol=1e-12)


def test_umbrella_windows_in_a_harmonic_well():
    """Windows k/2 (x - c)² in V = x²/2 are N(ck/(1+k), 1/(1+k)); together they give the moments of N(0, 1)."""
    rng, stiffness, centres = np.random.default_rng(0), 3.0, np.array([-3.0, -1.0, 1.0, 3.0])
    mean, deviation, n = centres * stiffness / (1 + stiffness), (1 + stiffness) ** -0.5, np.array([3, 1, 5, 3]) * 1000
    window, kT = np.repeat(np.arange(4), n), 2.5
    X = mean[window] + deviation * rng.standard_normal(len(window))
    energies = kT * stiffness / 2 * (X[:, None] - centres) ** 2
    weights = umbrella_weights(energies, window, kT)
    # The error of free-energy differences, √(2/1000)/overlap of about 0.1, shifts weight between windows.
    assert weights @ X / len(X) == pytest.approx(0, abs=0.1)
    assert weights @ X**2 / len(X) == pytest.approx(1, abs=0.1)
    # The defining equations of MBAR: under the biases, each window has the share of its frames.
    biased = weights[:, None] * np.exp(-energies / kT)
    shares = (biased / biased.sum(axis=0)) * n
    assert_allclose(shares.sum(axis=1), 1, atol=1e-5)
    # A window without frames changes nothing, nor does a constant added to a bias.
    more = np.column_stack([energies + 5.0 * kT * np.arange(4), np.zeros(len(X))])
    assert_allclose(umbrella_weights(more, window, kT), weights, rtol=1e-4)


def test_many_windows_converge_in_a_few_steps():
    """Sixty windows of 200 frames: the equations of MBAR hold, and the iteration is counted in tens, not thousands."""
    rng, centres, stiffness = np.random.default_rng(0), np.linspace(-5, 5, 60), 20.0
    window = np.repeat(np.arange(60), 200)
    X = centres[window] * stiffness / (1 + stiffness) + (1 + stiffness) ** -0.5 * rng.standard_normal(len(window))
    energies = stiffness / 2 * (X[:, None] - centres) ** 2
    with mock.patch("kdmaps.simulation.weights.logsumexp", wraps=logsumexp) as calls:
        weights = umbrella_weights(energies, window, 1.0)
    assert calls.call_count <= 40  # BFGS took thousands
    biased = weights[:, None] * np.exp(-energies)
    assert_allclose((200 * biased / biased.sum(axis=0)).sum(axis=1), 1, atol=1e-6)
    with mock.patch("kdmaps.simulation.weights.MAX_STEPS", 2), expects("windows-converge"):
        umbrella_weights(energies, window, 1.0)


def test_large_energies():
    """Differences that overflow are weights of 0; energies in the wrong unit are named."""
    assert_allclose(boltzmann_weights([0, 1e308], 1e-5), [0, 2])
    assert_allclose(boltzmann_weights([-1e308, 1e308], 1.0), [0, 2])
    with pytest.raises(ValueError, match=r"bias_on_grid reaches .* kT"):
        metadynamics_weights([0, 1.0], [[0, 1.0], [0, 1e308]], 1e-5, 10)
    with pytest.raises(ValueError, match=r"bias_energies reaches .* kT"):
        umbrella_weights([[0, 1e308], [1.0, 0]], [0, 1], 1e-5)


@pytest.mark.filterwarnings("ignore:The weights leave")
def test_windows_without_overlap():
    """The standard error for two windows of N(±c, 1), compared with repeated draws."""
    rng, found = np.random.default_rng(0), []
    window, n = np.repeat([0, 1], 200), 400

    def draw(c):
        x = np.where(window, c, -c) + rng.standard_normal(n)
        return (x[:, None] - [-c, c]) ** 2 / 2, x  # V = 0: both windows have the same free energy

    for _ in range(200):
        energies, _ = draw(1.2)
        weights = umbrella_weights(energies, window, 1.0)
        found.append(np.log((weights[:, None] * np.exp(-energies)).sum(axis=0)))
    spread = np.diff(found, axis=1).std()
    shares = np.exp(-energies) / np.exp(-energies).sum(axis=1, keepdims=True)
    with muted(), collected() as made:
        _check_overlap(shares, np.arange(2))
    assert 0.8 * spread < made[0].value < 1.25 * spread  # 5 % of the spread of 200, as much of H
    for c, shift in ((5.0, 0.0), (30.0, 7.0)):
        with expects("overlap") as record:
            umbrella_weights(draw(c)[0] + [0.0, shift], window, 1.0)
        assert (checks(record)[0].words["first"], checks(record)[0].words["second"]) == (0, 1)


def test_one_window_is_a_static_bias():
    energy = np.array([0.3, 1.0, -0.4])
    assert_allclose(umbrella_weights(energy[:, None], np.zeros(3, int), 0.7), boltzmann_weights(energy, 0.7))


def test_warns_if_a_few_frames_dominate():
    energy = np.r_[np.zeros(999), 100.0]
    with expects("effective-samples") as record:
        metadynamics_weights(energy, np.zeros((1000, 4)), 1.0, 10.0)
    np.testing.assert_allclose(checks(record)[0].value, 1, atol=0.05)
    with expects("effective-samples") as record:
        umbrella_weights(energy[:, None], np.zeros(1000, int), 1.0)
    np.testing.assert_allclose(checks(record)[0].value, 1, atol=0.05)


def test_invalid_arguments_of_other_weights():
    frames, grid = np.zeros(3), np.zeros((3, 5))
    for arguments, name in [
        ((frames[:2], grid, 1.0, 5.0), "3 snapshots for 2 frames"),
        ((frames, grid, 1.0, 1.0), "bias_factor"),
        ((frames, grid[0], 1.0, 5.0), "bias_on_grid"),
        ((frames, grid, 1.0, 5.0, [0, 1]), "snapshot must be one integer for each of 3"),
        ((frames, grid, 1.0, 5.0, [0, 1, 3]), "3 snapshots for 3 frames"),
    ]:
        with pytest.raises(ValueError, match=name):
            metadynamics_weights(*arguments)
    for arguments, name in [
        ((frames, [0, 0, 0], 1.0), "bias_energies"),
        ((grid, [0, 0], 1.0), "window must be one integer for each of 3"),
        ((grid, [0, 0, 5], 1.0), "window must be from 0 to 4"),
        ((grid, [0, 0, 1], 0.0), "kT"),
    ]:
        with pytest.raises(ValueError, match=name):
            umbrella_weights(*arguments)
