"""Counts of the samples behind a mode, against closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.signal import lfilter

import kdmaps
from kdmaps.data.sources import Sample
from kdmaps.diagnostics.evidence import energies_at, evidence_of, misplaced_energy, transition_parts
from kdmaps.forms.diffusion import DiffusionTensor, Factor
from shared import known_warning


def sample_of(values, weight=None):
    return Sample(np.arange(len(values)), values, weight)


@pytest.fixture
def gauss():
    return np.random.default_rng(0).standard_normal((4000, 1))


def test_parts_between_values_add_up_to_the_variance():
    """Summation by parts: Σ F(s)(s' - s) = Σ w s² for centred values, whatever the weights."""
    rng = np.random.default_rng(1)
    values, weight = rng.standard_normal(50) ** 3, rng.random(50)
    weight /= weight.sum()
    centred = values - weight @ values
    assert_allclose(transition_parts(values, weight).sum(), weight @ centred**2, rtol=1e-12)


def test_an_equal_load_is_carried_by_all_and_a_single_one_by_one(gauss):
    energies = np.column_stack([np.ones(4000), np.zeros(4000)])
    energies[7, 1] = 2.0
    found = evidence_of(np.tile(gauss, (1, 2)), energies, sample_of(gauss), 4000)
    assert_allclose(found.energy_samples, [4000, 1], rtol=1e-12)
    # (Σx²)²/Σx⁴ = n/3 for Gaussian values, of which Σx⁴ knows √(96/9n) = 5 %.
    assert_allclose(found.variance_samples, 4000 / 3, rtol=0.1)


def test_weights_count_as_copies(gauss):
    """A sample of weight 2 is worth less than two samples: counts with weights follow (Σw)²/Σw²."""
    weight = np.tile([1.0, 3.0], 2000)
    found = evidence_of(gauss, np.ones((4000, 1)), sample_of(gauss, weight), 4000)
    assert_allclose(found.energy_samples, weight.sum() ** 2 / (weight @ weight), rtol=1e-12)


def test_a_subsample_stands_for_all(gauss):
    found = evidence_of(gauss[:1000], np.ones((1000, 1)), sample_of(gauss[:1000]), 4000)
    assert_allclose(found.energy_samples, 4000)


def test_the_standard_error_of_a_rate(gauss):
    """For φ = x the rate is 1/Var x, and log of it has the standard error √(2/n)."""
    found = evidence_of(gauss, np.ones((4000, 1)), sample_of(gauss), 4000)
    assert_allclose(found.errors, np.sqrt(2 / 4000), rtol=0.1)  # of which Σx⁴ knows 5 %


def test_frames_of_a_trajectory_are_worth_fewer():
    a, n = 0.9, 40_000
    x = lfilter([1.0], [1.0, -a], np.random.default_rng(0).standard_normal(n))[:, None]
    found = evidence_of(x, np.ones((n, 1)), sample_of(x), n)
    assert_allclose(found.independent_samples, n * (1 - a) / (1 + a), rtol=0.15)
    # φ² has the correlation a^{2t}, and so has the error of the rate.
    assert_allclose(found.errors, np.sqrt(2 / n * (1 + a**2) / (1 - a**2)), rtol=0.15)
    walkers = [np.arange(start, n, 100) for start in range(100)]  # in which the series is not correlated
    assert evidence_of(x, np.ones((n, 1)), sample_of(x), n, walkers).independent_samples[0] > 0.9 * n


def test_an_exact_mode_has_its_energy_where_its_values_say(gauss):
    """For Gaussian x, φ = x and φ = x² - 1 are modes, sign(x)√|x| and x³ are not."""
    x, weight = gauss[:, 0], np.full(4000, 1 / 4000)
    modes = {"x": (x, np.ones(4000)), "x² - 1": (x**2 - 1, 4 * x**2)}
    others = {"√": (np.sign(x) * np.sqrt(np.abs(x)), 0.25 / np.abs(x)), "x³": (x**3, 9 * x**4)}
    exact = {name: misplaced_energy(v, weight, e) for name, (v, e) in modes.items()}
    wrong = {name: misplaced_energy(v, weight, e) for name, (v, e) in others.items()}
    # Kuiper's distance of n samples is about 1.75/√n; the energies x² of the second mode are worth n/3.
    assert max(exact.values()) < 2 * 1.75 * np.sqrt(3 / 4000)
    assert min(wrong.values()) > 0.12


def test_a_gap_without_samples_takes_the_transition():
    """Two clusters at ±1: the part between them is 1 - O(width)."""
    x = np.r_[-1 + 0.01 * np.linspace(-1, 1, 100), 1 + 0.01 * np.linspace(-1, 1, 100)][:, None]
    found = evidence_of(x, np.ones((200, 1)), sample_of(x), 200)
    assert found.energy_samples[0] == pytest.approx(200)
    assert found.transition_samples[0] == pytest.approx(1, abs=0.05)


@known_warning()  # a random factor is no energy that a mode could have
@pytest.mark.parametrize("kind", ["identity", "matrix", "callable scalar", "factor"])
def test_energies_add_up_to_the_rate(kind):
    """E ∇φᵀa∇φ over all samples is what the moments say, for every kind of tensor."""
    X = kdmaps.problems.load("ou2d-4").sample(300, random_state=0)
    factor = np.random.default_rng(0).standard_normal((300, 2, 1))
    tensor = {
        "identity": None,
        "matrix": np.array([[2.0, 0.5], [0.5, 1.0]]),
        "callable scalar": lambda points: 1 + points[:, 0] ** 2,
        "factor": Factor(factor),
    }[kind]
    model = kdmaps.KernelDiffusionMap(1, diffusion=tensor, random_state=0).fit(X)
    energies = energies_at(model._mode_basis(), X, DiffusionTensor(tensor, 2), np.arange(300))
    assert_allclose(energies.mean(axis=0), model.rates_, rtol=1e-9)


@known_warning("regularization weighs")
def test_the_constant_of_a_fit_that_is_not_centred_needs_no_samples():
    X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    model = kdmaps.KernelDiffusionMap(2, center=False, random_state=0).fit(X)
    assert model.energy_samples_[0] == 500
    assert model.trust_.ok.all()
