"""Counts of the samples behind a mode, against closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.signal import lfilter

import kdmaps
from kdmaps.bases import LandmarkBasis, ModeBasis
from kdmaps.data.sources import Sample
from kdmaps.diagnostics.evidence import (
    effective_count,
    evaluated_at,
    evidence_of,
    misplaced_energy,
    rests_on_few_rows,
    transition_parts,
)
from kdmaps.forms.diffusion import DiffusionTensor, Factor
from kdmaps.kernels import Gaussian
from shared import known


def sample_of(values, weight=None):
    return Sample(np.arange(len(values)), values, weight)


@pytest.fixture
def gauss():
    return np.random.default_rng(0).standard_normal((4000, 1))


def test_transition_parts_sum_to_the_variance():
    """Summation by parts: Σ F(s)(s' - s) = Σ w s² for centred values, whatever the weights."""
    rng = np.random.default_rng(1)
    values, weight = np.sort(rng.standard_normal((50, 2)) ** 3, axis=0), rng.random((50, 2))
    weight /= weight.sum(axis=0)
    variance = np.sum(weight * (values - np.sum(weight * values, axis=0)) ** 2, axis=0)
    assert_allclose(transition_parts(values, weight).sum(axis=0), variance, rtol=1e-12)


def test_energy_samples_of_equal_and_single_loads(gauss):
    energies = np.column_stack([np.ones(4000), np.zeros(4000)])
    energies[7, 1] = 2.0
    found = evidence_of(np.tile(gauss, (1, 2)), energies, sample_of(gauss), 4000)
    assert_allclose(found.energy_samples, [4000, 1], rtol=1e-12)
    # (Σx²)²/Σx⁴ = n/3 for Gaussian values, with a relative error of √(96/9n) = 5 %.
    assert_allclose(found.variance_samples, 4000 / 3, rtol=0.1)


def test_weights_reduce_counts(gauss):
    """Equal energies with weights count as (Σw)²/Σw² samples."""
    weight = np.tile([1.0, 3.0], 2000)
    found = evidence_of(gauss, np.ones((4000, 1)), sample_of(gauss, weight), 4000)
    assert_allclose(found.energy_samples, weight.sum() ** 2 / (weight @ weight), rtol=1e-12)


def test_counts_of_a_subsample_are_scaled(gauss):
    found = evidence_of(gauss[:1000], np.ones((1000, 1)), sample_of(gauss[:1000]), 4000)
    assert_allclose(found.energy_samples, 4000)


def test_standard_error_of_a_rate(gauss):
    """For φ = x the rate is 1/Var x, and log of it has the standard error √(2/n)."""
    found = evidence_of(gauss, np.ones((4000, 1)), sample_of(gauss), 4000)
    assert_allclose(found.errors, np.sqrt(2 / 4000), rtol=0.1)  # Σx⁴ is accurate to 5 %


def test_independent_samples_of_a_trajectory():
    a, n = 0.9, 40_000
    x = lfilter([1.0], [1.0, -a], np.random.default_rng(0).standard_normal(n))[:, None]
    found = evidence_of(x, np.ones((n, 1)), sample_of(x), n)
    assert_allclose(found.independent_samples, n * (1 - a) / (1 + a), rtol=0.15)
    # φ² has the correlation a^{2t}, and so has the error of the rate.
    assert_allclose(found.errors, np.sqrt(2 / n * (1 + a**2) / (1 - a**2)), rtol=0.15)
    walkers = [np.arange(start, n, 100) for start in range(100)]  # in which the series is not correlated
    assert evidence_of(x, np.ones((n, 1)), sample_of(x), n, walkers).independent_samples[0] > 0.9 * n


def test_misplaced_energy_of_exact_and_other_functions(gauss):
    """For Gaussian x, φ = x and φ = x² - 1 are modes, sign(x)√|x| and x³ are not."""
    x = gauss[:, 0]
    values = np.stack([x, x**2 - 1, np.sign(x) * np.sqrt(np.abs(x)), x**3], axis=1)
    energies = np.stack([np.ones(4000), 4 * x**2, 0.25 / np.abs(x), 9 * x**4], axis=1)
    order = np.argsort(values, axis=0)
    values, energies = (np.take_along_axis(part, order, axis=0) for part in (values, energies))
    found = misplaced_energy(transition_parts(values, np.full((4000, 1), 1 / 4000)), energies)
    # Kuiper's distance of n samples is about 1.75/√n; the energies x² of the second mode are worth n/3.
    assert found[:2].max() < 2 * 1.75 * np.sqrt(3 / 4000)
    assert found[2:].min() > 0.12


def test_gap_without_samples():
    """Two clusters at ±1: the part between them is 1 - O(width)."""
    x = np.r_[-1 + 0.01 * np.linspace(-1, 1, 100), 1 + 0.01 * np.linspace(-1, 1, 100)][:, None]
    found = evidence_of(x, np.ones((200, 1)), sample_of(x), 200)
    assert found.energy_samples[0] == pytest.approx(200)
    assert found.transition_samples[0] == pytest.approx(1, abs=0.05)


@known("mismatch")  # of a random factor
@pytest.mark.parametrize("kind", ["identity", "matrix", "callable scalar", "factor"])
def test_energies_average_to_the_rate(kind):
    """The mean of ∇φᵀa∇φ agrees with the moments for every kind of tensor."""
    X = kdmaps.problems.load("ou2d-4").sample(300, random_state=0)
    factor = np.random.default_rng(0).standard_normal((300, 2, 1))
    tensor = {
        "identity": None,
        "matrix": np.array([[2.0, 0.5], [0.5, 1.0]]),
        "callable scalar": lambda points: 1 + points[:, 0] ** 2,
        "factor": Factor(factor),
    }[kind]
    model = kdmaps.KernelDiffusionMap(1, diffusion=tensor, random_state=0).fit(X)
    _, energies = evaluated_at(model._mode_basis(), X, DiffusionTensor(tensor, 2), np.arange(300))
    assert_allclose(energies.mean(axis=0), model.rates_, rtol=1e-9)


@known("ridge")
def test_constant_mode_needs_no_samples():
    X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    model = kdmaps.KernelDiffusionMap(2, center=False, random_state=0).fit(X)
    assert model.energy_samples_[0] == 500
    assert model.trust_.ok.all()


def test_independent_samples_of_oscillations():
    """For x = Re z of a turning AR(1) process z, x² has the correlation (aᵗ cos ωt)²; a cycle repeats itself."""
    a, turn, n = 0.9, 0.5, 40_000
    noise = np.random.default_rng(0).standard_normal((2, n))
    x = lfilter([1.0], [1.0, -a * np.exp(1j * turn)], noise[0] + 1j * noise[1]).real[:, None]
    time = 1 + 2 * np.sum((a ** np.arange(1, 200) * np.cos(turn * np.arange(1, 200))) ** 2)
    found = evidence_of(x, np.ones((n, 1)), sample_of(x), n, local=False, directed=True)
    assert_allclose(found.independent_samples, n / time, rtol=0.2)  # the window cuts 8 % off, 10 % are sampling error
    cycle = np.cos(0.05 * np.arange(10_000))[:, None]
    found = evidence_of(cycle, np.ones((10_000, 1)), sample_of(cycle), 10_000, local=False, directed=True)
    # Sokal's window ends at s = ωt with 5 sin s = s, and g = 2 sin(s)/ω: six samples per period.
    assert_allclose(found.independent_samples, 10_000 * 0.05 / (2 * np.sin(2.596)), rtol=0.2)


@pytest.mark.parametrize(("n_samples", "expected"), [(300, True), (6000, False)])
def test_a_row_of_a_draw_stands_for_several(n_samples, expected):
    """A wide kernel at a far row: the row carries the variance, the others the energy. One of 20 rows was drawn."""
    X = np.random.default_rng(0).standard_normal((300, 1))
    X[0] = 30
    basis = LandmarkBasis(Gaussian(10.0), X[:1], np.zeros(1))
    sample, tensor = Sample(np.arange(300), X, None), DiffusionTensor(None, X)
    values, energies = (
        found[:, 0] for found in evaluated_at(ModeBasis(basis, np.eye(1), np.zeros(1)), X, tensor, np.arange(300))
    )
    assert effective_count((values - values.mean()) ** 2) < 2
    assert effective_count(energies) > 12
    assert rests_on_few_rows(basis, [np.eye(1)], sample, tensor, n_samples) == [expected]
