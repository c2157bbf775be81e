"""Clock factors against closed forms of Gaussian processes."""

import numpy as np
import pytest
from scipy.linalg import expm

from kdmaps.clocks.factors import DELAYS, Factors, burst_sums, harmonic_mean
from kdmaps.clocks.runs import Runs

RATE, STEP, FRAMES = 0.1, 0.02, 51


def ornstein_uhlenbeck(n, seed, spread=1.0):
    """Bursts of dX = -κX dt + √(2κ) dW from N(0, spread²), and the weights N(0, 1)/N(0, spread²) of frames."""
    rng = np.random.default_rng(seed)
    decay = np.exp(-RATE * STEP)
    X = np.empty((FRAMES, n))
    X[0] = spread * rng.standard_normal(n)
    for t in range(1, FRAMES):
        X[t] = decay * X[t - 1] + np.sqrt(1 - decay**2) * rng.standard_normal(n)
    weights = spread * np.exp(-0.5 * X**2 * (1 - 1 / spread**2))
    return X, weights


def inertial(n, seed, friction=10.0):
    """Stationary bursts of the harmonic oscillator x'' = -x - friction x' + √(2 friction) noise, and ρ(t) of x."""
    rng = np.random.default_rng(seed)
    step = expm(STEP * np.array([[0.0, 1.0], [-1.0, -friction]]))
    root = np.linalg.cholesky(np.eye(2) - step @ step.T)  # the stationary covariance is the identity
    state = rng.standard_normal((n, 2))
    X = np.empty((FRAMES, n))
    for t in range(FRAMES):
        X[t] = state[:, 0]
        state = state @ step.T + rng.standard_normal((n, 2)) @ root.T
    correlation = np.array([np.linalg.matrix_power(step, t)[0, 0] for t in range(FRAMES)])
    return X, correlation


def factors_of(X, weights, energy=RATE):
    runs = Runs.read(list(X.T[:, :, None]), STEP)
    columns = runs.frames
    return Factors.of(burst_sums(runs, columns, np.full_like(columns, energy), weights.T.ravel()))


def exact(correlation):
    """Return the decay of the mode x, of variance 1, with the correlation ρ, by all estimators."""
    short = [(1 - correlation[lag]) / (lag * STEP) for lag in (1, 5)]
    delayed = [(correlation[t] - correlation[d + t]) / (d * STEP) for d, t in DELAYS]
    return np.array(short + delayed)


def test_factors_of_stationary_bursts_agree_with_the_closed_form():
    factors = factors_of(*ornstein_uhlenbeck(4000, 0))
    reference = exact(np.exp(-RATE * STEP * np.arange(FRAMES))) / RATE
    assert factors.names == ("R1", "R5", "G5,5", "G5,10", "G10,10", "G10,30")
    assert np.all(np.abs(np.log(factors.values[:, 0] / reference)) < 3.5 * factors.errors[:, 0])
    assert np.all(factors.errors[:2] < 0.05)


def test_factors_of_a_process_with_memory_agree_with_the_closed_form():
    X, correlation = inertial(4000, 1)
    factors = factors_of(X, np.ones_like(X), energy=1 / 10)  # a = 1/friction
    reference = 10 * exact(correlation)
    assert np.all(np.abs(np.log(factors.values[:, 0] / reference)) < 3.5 * factors.errors[:, 0])
    # The rate -ln ρ(t)' for long times is 0.101; the shortest lag has a sixth of it less.
    assert factors.memory[0] > 3
    assert factors.names[factors.choice()[0]].startswith("G")
    chosen = factors.values[factors.choice()[0], 0]
    assert chosen / 10 == pytest.approx((10 - np.sqrt(96)) / 2, rel=0.25)


@pytest.mark.parametrize("spread", [0.5, 1.5])
def test_path_weights_correct_starts_from_another_law(spread):
    # R_L is symmetric in time, so that the harmonic mean of both ends is exact; bursts from a narrow law are short of
    # climbers, from a wide law they come down.
    reference = exact(np.exp(-RATE * STEP * np.arange(FRAMES)))[:2] / RATE
    factors = factors_of(*ornstein_uhlenbeck(4000, 2, spread))
    assert np.all(np.abs(np.log(factors.values[:2, 0] / reference)) < 3.5 * factors.errors[:2, 0])


def test_delayed_factors_of_starts_from_another_law_agree_with_closed_forms():
    X, weights = ornstein_uhlenbeck(20_000, 2, 1.5)
    right = factors_of(X, weights)
    wrong = factors_of(X, np.ones_like(X))
    place = right.names.index("G10,30")
    reference = exact(np.exp(-RATE * STEP * np.arange(FRAMES)))[place] / RATE
    # Bursts that start far out come back. With ρ the correlation, and the variance 1.5² of the starts, the closed form
    # of E (x_d - x_0)(x_{d+t} - (x_0 + x_d)/2) without weights is
    first, later = np.exp(-RATE * STEP * np.array([10, 30]))
    variance = 1 + 1.25 * first**2
    closed = later * variance - 2.25 * first * later - (variance - 2.25) / 2
    closed /= 10 * STEP * RATE
    assert abs(wrong.values[place, 0] - closed) < 3.5 * np.linalg.norm(wrong.influence[place])
    assert abs(right.values[place, 0] - reference) < 3.5 * np.linalg.norm(right.influence[place])


def test_errors_are_the_spread_over_repeated_bursts():
    logs, errors = [], []
    for seed in range(40):
        factors = factors_of(*ornstein_uhlenbeck(200, 100 + seed, 0.7))
        logs.append(np.log(factors.values[:2, 0]))
        errors.append(factors.errors[:2, 0])
    assert np.std(logs, axis=0) == pytest.approx(np.mean(errors, axis=0), rel=0.35)  # 1/√80 = 0.11, three times


def test_overdamped_bursts_keep_the_shortest_lag():
    chosen = [factors_of(*ornstein_uhlenbeck(200, seed)) for seed in range(30)]
    overdamped = [factors.names[factors.choice()[0]] == "R1" for factors in chosen]
    assert np.mean(overdamped) >= 0.9


def test_noise_of_measurement_shows_as_memory():
    X, weights = ornstein_uhlenbeck(1000, 3)
    noisy = X + 0.1 * np.random.default_rng(0).standard_normal(X.shape)
    clean, spoiled = factors_of(X, weights), factors_of(noisy, weights)
    assert spoiled.memory[0] > 10 > clean.memory[0]
    # The shortest lag is too large by the factor 1 + 0.1²/(κ·step) = 6, the chosen one is right.
    assert spoiled.values[0, 0] == pytest.approx(6, rel=0.05)
    chosen = spoiled.choice()[0]
    assert abs(spoiled.values[chosen, 0] - 1) < 3.5 * spoiled.errors[chosen, 0]
    assert spoiled.errors[chosen, 0] < 0.3


def test_sums_of_bursts_add_up_and_do_not_depend_on_their_order():
    X, weights = ornstein_uhlenbeck(20, 4)
    runs = Runs.read(list(X.T[:, :, None]), STEP)
    sums = burst_sums(runs, runs.frames, np.ones_like(runs.frames), weights.T.ravel())
    order = np.random.default_rng(0).permutation(20)
    some = Runs.read([X.T[run][:, None] for run in order], STEP)
    others = burst_sums(some, some.frames, np.ones_like(some.frames), weights.T[order].ravel())
    np.testing.assert_array_equal(sums.take(order).decays, others.decays)
    np.testing.assert_array_equal(sums.take(order).energies, others.energies)


def test_bursts_of_different_lengths_count_as_they_are():
    X, weights = ornstein_uhlenbeck(20, 5)
    whole = [X[:, run, None] for run in range(20)]
    mixed = [run[:45] if number % 2 else run for number, run in enumerate(whole)]
    lengths = [len(run) for run in mixed]
    flat = np.concatenate([weights[:length, number] for number, length in enumerate(lengths)])
    runs = Runs.read(mixed, STEP)
    sums = burst_sums(runs, runs.frames, np.ones_like(runs.frames), flat)
    for parity, length in ((0, FRAMES), (1, 45)):
        same = Runs.read([run[:length] for run in whole[parity::2]], STEP)
        weight = np.concatenate([weights[:length, number] for number in range(parity, 20, 2)])
        alone = burst_sums(same, same.frames, np.ones_like(same.frames), weight)
        np.testing.assert_allclose(sums.decays[:, parity::2], alone.decays)


def test_harmonic_mean_of_zero_is_zero():
    np.testing.assert_array_equal(harmonic_mean(np.array([0.0, 0.0, 1.0]), np.array([0.0, 2.0, 3.0])), [0, 0, 1.5])
