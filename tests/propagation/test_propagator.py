"""Spectra and forecasts of systems without noise against closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oscillators import STEP, VAN_DER_POL, rotating_noise, tones, van_der_pol

from kdmaps.propagation.choice import Law
from kdmaps.propagation.frames import Frames, new_columns
from kdmaps.propagation.pair_tests import products
from kdmaps.propagation.propagator import learn_propagator


def rates_of(propagator, step=STEP):
    return np.log(propagator.pairs.spectrum.values[: propagator.n_pairs]) / step


def test_tones_are_exact_and_come_by_share():
    X = tones()
    p = learn_propagator(X[:500], None, 1, 4)
    assert p.law is Law.DETERMINISTIC
    assert p.method == "affine"
    assert_allclose(rates_of(p), [2j, -2j, 5j, -5j], atol=1e-10)
    # Variances ½ and ⅛, in the limit of a long trajectory.
    assert_allclose(p.pairs.shares[[0, 2]], [0.8, 0.2], atol=0.03)
    assert_allclose(p.forecast(X[500:520], np.array([1.0, 50.0])), [X[501:521], X[550:570]], atol=1e-9)


def test_times_between_lags_follow_the_spectrum():
    X = tones(decays=(0.1, 0.2))
    p = learn_propagator(X, None, 1, 4)
    assert_allclose(rates_of(p), [-0.1 + 2j, -0.1 - 2j, -0.2 + 5j, -0.2 - 5j], atol=1e-9)
    t = STEP * (np.arange(3, 23) + 7.5)  # the newest column of row i is x at time 3 + i
    exact = np.exp(-0.1 * t) * np.cos(2 * t) + 0.5 * np.exp(-0.2 * t) * np.cos(5 * t + 1)
    assert_allclose(p.forecast(X[:20], np.array([7.5]))[0][:, 0], exact, atol=1e-8)
    assert_allclose(p.reconstruct(X[:20], [7.5])[0][:, 0], exact, atol=1e-7)


@pytest.mark.parametrize("noise", [1e-3, 0.2])
def test_tones_in_noise(noise):
    """With variance s² of the noise, the error of a frequency is √(24 s²/(a² n³))/step; the decay is half as certain.

    (Cramér–Rao bound for an amplitude a in n frames: 7e-5 and .014 for the second tone, times 4.)
    """
    p = learn_propagator(tones(1000, 20, noise, seed=3), None, 1, 4)
    assert p.law is not Law.STOCHASTIC
    found = rates_of(p)
    bound = 4 * np.sqrt(24 * noise**2 / (0.25 * 1000**3)) / STEP
    for exact in (2j, 5j):
        assert np.abs(found - exact).min() < max(bound, 1e-4)


def test_growing_oscillation():
    """A real instability is found, and is no error."""
    z = np.exp((0.1 + 1j) * 0.1 * np.arange(200))
    X = np.column_stack([z.real, z.imag]) * 1e-3
    p = learn_propagator(X, None, 1, 2)
    assert_allclose(rates_of(p, 0.1), [0.1 + 1j, 0.1 - 1j], atol=1e-9)
    assert p.tests.growth.max() < 1.1


def test_short_runs():
    """Ten runs of eleven frames of a damped rotation."""
    rng = np.random.default_rng(0)
    runs = [(rng.normal() + 1j * rng.normal()) * np.exp((-0.1 + 1j) * 0.1 * np.arange(11)) for _ in range(10)]
    z = np.concatenate(runs)
    p = learn_propagator(np.column_stack([z.real, z.imag]), np.repeat(np.arange(10), 11), 1, 2)
    assert_allclose(rates_of(p, 0.1), [-0.1 + 1j, -0.1 - 1j], atol=1e-10)


@pytest.mark.parametrize("n_frames", [10, 20, 60])
def test_few_frames_of_many_columns(n_frames):
    rng = np.random.default_rng(1)
    t = np.arange(n_frames)
    X = np.column_stack([np.cos(0.5 * t), np.sin(0.5 * t)]) @ rng.normal(size=(2, 500)) + rng.normal(size=500)
    p = learn_propagator(X, None, 1, 2)
    assert_allclose(rates_of(p, 1.0), [0.5j, -0.5j], atol=1e-9)
    assert_allclose(p.forecast(X[:1], np.array([n_frames - 1]))[0], X[-1:], atol=1e-8)


class TestVanDerPol:
    frames = van_der_pol(1800)

    @pytest.fixture(scope="class")
    @staticmethod
    def found():
        return learn_propagator(TestVanDerPol.frames[:1500], None, 1, 4)

    def test_fundamental_and_its_third_harmonic(self, found):
        assert_allclose(rates_of(found, 0.1)[::2], [1j * VAN_DER_POL, 3j * VAN_DER_POL], atol=1e-5)
        assert products(found.pairs.spectrum.values[:4], found.pairs.shares[:4])[2:] == ["1·1·1", "2·2·2"]
        assert np.abs(rates_of(found, 0.1)[0] - 1j * VAN_DER_POL) < 1e-6

    def test_forecasts_lift_again(self, found):
        assert found.forecaster.lifted
        X = self.frames
        assert_allclose(found.forecast(X[1500:1700], np.array([50.0]))[0], X[1550:1750], atol=1e-5)

    def test_standard_errors_are_those_of_forecasts(self, found):
        steps = np.array([1.0, 50.0])
        errors = found.forecast(self.frames[1500:1700], steps) - [self.frames[1501:1701], self.frames[1550:1750]]
        measured = np.sqrt(np.mean(errors**2, axis=1))
        assert np.all(found.standard_errors(steps) < 10 * measured + 1e-9)
        assert np.all(found.standard_errors(steps) > measured / 10)


def test_noise_of_the_dynamics_is_stochastic():
    p = learn_propagator(rotating_noise(3000), None, 1, 2)
    assert p.law is Law.STOCHASTIC
    assert p.unpredictable > 0.4
    # After one lag, an error of √(1 - e^{-0.04}) = 0.198 in each coordinate, of variance 1.
    assert_allclose(p.standard_errors(np.array([1.0]))[0], 0.198, rtol=0.1)


def test_white_noise_is_stochastic():
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(500, 3))
        assert learn_propagator(X, None, 1, 2).law is Law.STOCHASTIC


def test_sums_do_not_depend_on_chunks(monkeypatch):
    X = van_der_pol(800)
    expected = learn_propagator(X, None, 1, 2)
    monkeypatch.setattr("kdmaps.propagation.regression.CHUNK", 97)
    found = learn_propagator(X, None, 1, 2)
    assert_allclose(found.pairs.spectrum.values[:2], expected.pairs.spectrum.values[:2], atol=1e-7)


def test_a_lag_of_several_frames():
    X = tones(800, 4)
    p = learn_propagator(X, None, 3, 4)
    assert_allclose(rates_of(p, 3 * STEP), [2j, -2j, 5j, -5j], atol=1e-9)
    assert_allclose(p.forecast(X[:20], np.array([5.0]))[0], X[15:35], atol=1e-8)


def test_delays_are_no_targets():
    X = tones(100, 4)
    assert new_columns(X, np.zeros(len(X))).tolist() == [0]
    frames = Frames.of(X, None, 1)
    assert frames.targets.shape[1] == 1
    assert frames.n_delays == 4


@pytest.mark.parametrize("X", [np.ones((50, 2)), np.arange(8.0).reshape(4, 2)])
def test_nothing_is_learned_from_too_little(X):
    assert learn_propagator(X, None, 1, 1) is None
