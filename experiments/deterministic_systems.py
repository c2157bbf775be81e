"""Systems without noise in their dynamics whose rates are known, and frames of them with noise of the measurement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from kdmaps.data import delays

#: Standard deviations of noise, relative to the standard deviation of all values.
NOISES = (0.0, 1e-3, 0.2)


@dataclass(frozen=True)
class System:
    """Training trajectories with noise, and a test trajectory (or several) without."""

    train: list[np.ndarray]
    test: list[np.ndarray]
    time_step: float
    rank: int  #: Number of eigenvalues, conjugates included: what peers are told.
    rates: tuple[complex, ...]  #: Exact rates that must be among the first, one of each pair; none if they are unknown.


def _orbit(flow: Callable[..., list[float]], start: np.ndarray, n: int, step: float, skipped: int = 0) -> np.ndarray:
    times = step * np.arange(n + skipped)
    options = {"rtol": 1e-10, "atol": 1e-10}
    return solve_ivp(flow, (0, times[-1]), start, t_eval=times, **options).y.T[skipped:]


def _series(x: np.ndarray, n_delays: int, share: float = 0.7) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return a function that adds noise to a series and splits its delays into training and test frames."""
    x = x[:, None] if x.ndim == 1 else x

    def noisy(noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = int(share * len(x))
        return delays((x + noise.reshape(x.shape))[:n], n_delays), delays(x[n:], n_delays)

    noisy.shape = x.shape  # type: ignore[attr-defined]
    noisy.scale = float(x.std())  # type: ignore[attr-defined]
    return noisy


def _tone() -> tuple[np.ndarray, int, float, int, tuple[complex, ...]]:
    t = np.arange(1000) * np.pi / 100
    return np.cos(3 * t), 20, np.pi / 100, 2, (3j,)


def _two_tones() -> tuple[np.ndarray, int, float, int, tuple[complex, ...]]:
    t = np.arange(1000) * 0.05
    return np.cos(2 * t) + 0.5 * np.cos(5 * t + 1), 20, 0.05, 4, (2j, 5j)


def _damped() -> tuple[np.ndarray, int, float, int, tuple[complex, ...]]:
    t = np.arange(600) * 0.05
    x = np.exp(-0.1 * t) * np.cos(2 * t) + 0.5 * np.exp(-0.2 * t) * np.cos(5 * t + 1)
    return x, 20, 0.05, 4, (-0.1 + 2j, -0.2 + 5j)


def _growing() -> tuple[np.ndarray, int, float, int, tuple[complex, ...]]:
    t = np.arange(500) * 0.05
    x = np.exp(0.05 * t) * np.cos(2 * t) + 2 * np.exp(-0.1 * t) * np.cos(5 * t)
    return x, 10, 0.05, 4, (0.05 + 2j, -0.1 + 5j)


def _tutorial() -> tuple[np.ndarray, int, float, int, tuple[complex, ...]]:
    x, t = np.meshgrid(np.linspace(-5, 5, 65), np.linspace(0, 6 * np.pi, 193))
    X = np.cos(2.3 * t) / np.cosh(x + 3) + 2 * np.sin(2.8 * t) * np.tanh(x) / np.cosh(x)
    return X, 2, 6 * np.pi / 192, 4, (2.3j, 2.8j)


def _torus() -> tuple[np.ndarray, int, float, int, tuple[complex, ...]]:
    t = np.arange(1500) * 0.1
    a, b = t, np.sqrt(2) * t + 0.5
    X = np.column_stack([np.cos(a), np.sin(a), np.cos(b), np.sin(b)])
    X[:, 0] += 0.3 * np.cos(a + b)
    return X, 1, 0.1, 4, (1j, np.sqrt(2) * 1j)


def _wave() -> tuple[np.ndarray, int, float, int, tuple[complex, ...]]:
    x, t = np.linspace(0, 1, 10_000), np.arange(300) * 0.2
    w = 1.2566371
    terms = ((1, 1.0), (2, 0.3), (3, 0.1))
    X = sum(a * np.cos(j * (6 * x - w * t[:, None])) for j, a in terms) * np.exp(-(((x - 0.5) / 0.3) ** 2))
    return np.asarray(X), 1, 0.2, 6, (1j * w, 2j * w, 3j * w)


def _forced() -> tuple[np.ndarray, int, float, int, tuple[complex, ...]]:
    """X'' = -x - 0.05x' + cos 1.7t: the free oscillation decays, the forced one stays."""
    X = _orbit(lambda t, y: [y[1], -y[0] - 0.05 * y[1] + np.cos(1.7 * t)], np.array([2.0, 0.0]), 1000, 0.1)
    return X, 3, 0.1, 4, (-0.025 + 1j * np.sqrt(1 - 0.025**2), 1.7j)


def _van_der_pol() -> tuple[np.ndarray, int, float, int, tuple[complex, ...]]:
    X = _orbit(lambda _, y: [y[1], (1 - y[0] ** 2) * y[1] - y[0]], np.array([2.0, 0.0]), 4000, 0.1, 200)
    return X, 1, 0.1, 2, (2j * np.pi / 6.6632868593,)


def _pendulum() -> tuple[np.ndarray, int, float, int, tuple[complex, ...]]:
    """Amplitude 2: the period is 4K(sin² 1), K the complete elliptic integral of the first kind."""
    from scipy.special import ellipk

    X = _orbit(lambda _, y: [y[1], -np.sin(y[0])], np.array([2.0, 0.0]), 2500, 0.1)
    return X, 1, 0.1, 2, (2j * np.pi / (4 * ellipk(np.sin(1.0) ** 2)),)


def _rossler() -> tuple[np.ndarray, int, float, int, tuple[complex, ...]]:
    def flow(_: float, y: np.ndarray) -> list[float]:
        return [-y[1] - y[2], y[0] + 0.2 * y[1], 0.2 + y[2] * (y[0] - 5.7)]

    return _orbit(flow, np.array([1.0, 1.0, 0.0]), 4000, 0.1, 500), 1, 0.1, 4, ()


def _lorenz() -> tuple[np.ndarray, int, float, int, tuple[complex, ...]]:
    def flow(_: float, y: np.ndarray) -> list[float]:
        return [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]]

    return _orbit(flow, np.array([1.0, 1.0, 1.0]), 5000, 0.01, 1000), 1, 0.01, 4, ()


#: Systems observed in one long trajectory.
SERIES = {
    "one tone": _tone,
    "two tones": _two_tones,
    "damped tones": _damped,
    "growing and decaying": _growing,
    "standing waves": _tutorial,
    "quasi-periodic": _torus,
    "travelling wave, 10,000 values": _wave,
    "forced oscillator": _forced,
    "van der Pol": _van_der_pol,
    "pendulum": _pendulum,
    "Rössler": _rossler,
    "Lorenz": _lorenz,
}
#: Systems observed in many runs: number of runs for training and testing, and rates.
RUNS = ("spiral", "slow manifold", "damped Duffing")
SYSTEMS = (*SERIES, *RUNS)


def load(name: str, noise: float, seed: int) -> System:
    """Return a system with Gaussian noise of this size, relative to the standard deviation of all values."""
    rng = np.random.default_rng(seed)
    if name in SERIES:
        x, n_delays, step, rank, rates = SERIES[name]()
        series = _series(x, n_delays)
        train, test = series(noise * float(x.std()) * rng.normal(size=x.shape))
        return System([train], [test], step, rank, rates)
    runs, step, rank, rates = _runs(name, rng)
    n = int(0.7 * len(runs))
    scale = noise * float(np.vstack(runs).std())
    return System([X + scale * rng.normal(size=X.shape) for X in runs[:n]], runs[n:], step, rank, rates)


def _runs(name: str, rng: np.random.Generator) -> tuple[list[np.ndarray], float, int, tuple[complex, ...]]:
    if name == "spiral":
        turns = np.exp((-0.1 + 1j) * 0.1 * np.arange(100))
        runs = [(rng.normal() + 1j * rng.normal()) * turns for _ in range(12)]
        return [np.column_stack([z.real, z.imag]) for z in runs], 0.1, 2, (-0.1 + 1j,)
    if name == "slow manifold":

        def slow(_: float, y: np.ndarray) -> list[float]:
            return [-0.05 * y[0], -(y[1] - y[0] ** 2)]

        return [_orbit(slow, rng.uniform(-2, 2, 2), 100, 0.1) for _ in range(40)], 0.1, 3, (-0.05, -0.1, -1)

    def duffing(_: float, y: np.ndarray) -> list[float]:
        return [y[1], -0.5 * y[1] + y[0] - y[0] ** 3]

    runs = [_orbit(duffing, rng.uniform(-2, 2, 2), 11, 0.25) for _ in range(300)]
    return runs, 0.25, 3, (-0.25 + 1j * np.sqrt(2 - 0.0625),)


def rate_error(rates: np.ndarray, system: System) -> float:
    """Return the largest distance of an exact rate to those found; NaN if none is known."""
    found = np.asarray(rates, dtype=complex)
    found = found[np.isfinite(found)]
    distances = [min(np.abs(found - exact), default=np.inf) for exact in system.rates]
    return float(max(distances, default=np.nan))


def forecast_error(predict: Callable[[np.ndarray, int], np.ndarray], system: System, steps: int) -> float:
    """Return the root mean square error of forecasts of test frames, in standard deviations of these."""
    spread = np.vstack(system.test).std(axis=0)
    total, count = 0.0, 0
    for frames in system.test:
        h = min(steps, len(frames) - 1)
        rows = np.arange(len(frames) - h)[:: max(1, (len(frames) - h) // 300)]
        with np.errstate(over="ignore", invalid="ignore"):
            errors = predict(frames[rows], h) - frames[rows + h]
            total += float(np.sum(np.abs(errors) ** 2))
        count += len(rows)
    return float(np.sqrt(total / count / np.sum(spread**2)))
