"""Driven and oscillating systems whose Koopman spectrum is known, for `experiments.koopman` and the tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.integrate import solve_ivp
from scipy.sparse.linalg import eigs

from kdmaps.problems import bickley_jet

#: Frames of spectra, and modes and compared rates of each case.
FRAMES = 2_000
SPECTRA = {
    "rotating 0.5": (5, 2),
    "rotating 2": (5, 3),
    "rotating 5": (5, 3),
    "limit cycle": (6, 3),
    "jumps": (3, 2),
    "logistic": (8, 1),
}
#: Steps of forecasts.
FORECASTS = {
    "Lorenz-63": (1, 10, 20, 50),
    "van der Pol": (1, 10, 20, 50),
    "El Niño": (1, 3, 6, 12),
    "digits 0 to 4": (1, 2, 5, 15),
    "digits 0 to 9": (1, 2, 5),
}


def n_series(name: str, n_seeds: int) -> int:
    """Return the number of different series of a case: there is only one record of El Niño."""
    return 1 if name == "El Niño" else n_seeds


@dataclass(frozen=True)
class Driven:
    """Frames of a trajectory, the time between them, and the leading rates ln λ/time, without conjugates.

    `functions` are the exact leading eigenfunctions at the frames.
    """

    X: np.ndarray
    time_step: float
    rates: np.ndarray
    functions: np.ndarray


def rotating_ou(n: int, seed: int, speed: float = 2.0, time_step: float = 0.1) -> Driven:
    """Ornstein–Uhlenbeck process in the plane with rotation, z' = -(1 - i·speed)z + noise, sampled exactly.

    Its rates are -(j + k) + i·speed·(j - k) for j, k = 0, 1, …, and the first eigenfunctions z, z² and |z|².
    """
    noise = np.random.default_rng(seed).normal(size=(n, 2)) @ [1, 1j]
    factor = np.exp((-1 + 1j * speed) * time_step)
    path = _recursion(factor, noise[0], np.sqrt(1 - abs(factor) ** 2) * noise[1:])
    j, k = (a.ravel() for a in np.meshgrid(np.arange(4), np.arange(4)))
    functions = np.column_stack([path, path**2, np.abs(path) ** 2])
    return Driven(_plane(path), time_step, leading(-(j + k) + 1j * speed * (j - k)), functions)


def jump_cycle(n: int, seed: int, n_states: int = 4, ahead: float = 0.15, back: float = 0.03) -> Driven:
    """Markov chain on a ring of states, which moves ahead more often than back, seen with noise in the plane."""
    rng = np.random.default_rng(seed)
    steps = rng.choice([1, -1, 0], size=n - 1, p=[ahead, back, 1 - ahead - back])
    states = np.concatenate([[0], np.cumsum(steps)]) % n_states
    X = _plane(np.exp(2j * np.pi * states / n_states)) + 0.2 * rng.normal(size=(n, 2))
    angles = 2 * np.pi * np.arange(n_states) / n_states
    values = ahead * np.exp(1j * angles) + back * np.exp(-1j * angles) + 1 - ahead - back
    functions = np.exp(1j * np.outer(angles[states], np.arange(1, n_states // 2 + 1)))  # noise hides no state
    return Driven(X, 1.0, leading(np.log(values)), functions)


def noisy_logistic(n: int, seed: int, order: int = 20) -> Driven:
    """Logistic map 4x(1 - x) with noise ξ of density ∝ cos^order(πξ), modulo 1, on the circle (cos 2πx, sin 2πx).

    The transition density c cos^order(π(y - F(x))) is a sum of order + 1 products (Ostruszka et al. 2000), and its
    eigenvalues are those of a matrix of that size, here by the trapezoidal rule, which converges exponentially.
    """
    rng = np.random.default_rng(seed)
    grid = np.linspace(-0.5, 0.5, 20_001)
    law = np.cumsum(np.cos(np.pi * grid) ** order)
    noise = np.interp(rng.random(n), law / law[-1], grid)
    x = np.empty(n)
    x[0] = rng.random()
    for t in range(1, n):
        x[t] = (4 * x[t - 1] * (1 - x[t - 1]) + noise[t]) % 1
    points = (np.arange(2000) + 0.5) / 2000
    density = np.cos(np.pi * (points[None, :] - (4 * points * (1 - points))[:, None])) ** order
    values, functions = np.linalg.eig(density / density.sum(axis=1, keepdims=True))
    kept = np.argsort(-np.abs(values))[1:9]
    functions = np.column_stack([np.interp(x, points, f, period=1) for f in functions[:, kept].T])
    values = values[np.abs(values) > 1e-6].astype(complex)
    return Driven(_plane(np.exp(2j * np.pi * x)), 1.0, leading(np.log(values)), functions)


def stuart_landau(
    n: int, seed: int, frequency: float = 2.0, noise: float = 0.05, shear: float = 0.3, time_step: float = 0.1
) -> Driven:
    """Noisy limit cycle dz = (i·frequency - (1 + i·shear)(|z|² - 1))z dt + √(2 noise) dW.

    In polar coordinates, r' = r(1 - r²) and θ' = frequency - shear(r² - 1): a cycle at r = 1. The rates come from the
    radial operators of each angular momentum on a fine grid.
    """
    rng, inner = np.random.default_rng(seed), 20
    dt = time_step / inner
    kicks = np.sqrt(2 * noise * dt) * (rng.normal(size=(n * inner, 2)) @ [1, 1j])
    path, z = np.empty(n, dtype=complex), 1.0 + 0j
    for t in range(n):
        for kick in kicks[t * inner : (t + 1) * inner]:
            excess = z.real * z.real + z.imag * z.imag - 1
            z += z * (1j * frequency - (1 + 1j * shear) * excess) * dt + kick
        path[t] = z
    found, r, functions = _cycle_rates(frequency, noise, shear)
    turns = path / np.abs(path)
    at = [turns**m * np.interp(np.abs(path), r, functions[m]) for m in (1, 2, 3)]
    return Driven(_plane(path), time_step, leading(found), np.column_stack(at))


def _cycle_rates(
    frequency: float, noise: float, shear: float, cells: int = 1500, most: int = 5
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return rates of the limit cycle by finite volumes in r, for functions e^{imθ}u(r), m = 0, …, `most`.

    Also returns r and the slowest u of each m.
    """
    edges = np.linspace(0, 2.2, cells + 1)
    r, h = (edges[1:] + edges[:-1]) / 2, edges[1]
    potential = r**4 / 4 - r**2 / 2
    density = r * np.exp(-(potential - potential.min()) / noise)
    flux = np.sqrt(density[1:] * density[:-1]) * noise / h**2
    found, functions = [], []
    for m in range(most + 1):
        ahead, back = flux / density[:-1], flux / density[1:]
        diagonal = 1j * m * (frequency - shear * (r**2 - 1)) - noise * m**2 / r**2
        diagonal[:-1] -= ahead
        diagonal[1:] -= back
        operator = sparse.diags([back, diagonal, ahead], [-1, 0, 1], format="csc")
        rates, u = eigs(operator, 3, sigma=1e-3 + 1j * m * frequency)
        found.append(rates)
        functions.append(u[:, np.argmax(rates.real)])
    return np.concatenate(found), r, functions


def leading(rates: np.ndarray, most: int = 8) -> np.ndarray:
    """Return the slowest rates but 0, with imaginary parts that are not negative."""
    rates = np.asarray(rates, dtype=complex)
    kept = rates[(rates.imag >= -1e-9) & (np.abs(rates) > 1e-7)]
    return kept[np.argsort(-kept.real, kind="stable")[:most]]


def _recursion(factor: complex, start: complex, noise: np.ndarray) -> np.ndarray:
    path = np.empty(len(noise) + 1, dtype=complex)
    path[0] = start
    for t, kick in enumerate(noise):
        path[t + 1] = factor * path[t] + kick
    return path


def _plane(path: np.ndarray) -> np.ndarray:
    return np.column_stack([path.real, path.imag])


def case(name: str, n: int, seed: int) -> Driven:
    """Return a system by the name that `experiments.koopman` gives it."""
    if name.startswith("rotating"):
        return rotating_ou(n, seed, speed=float(name.split()[1]))
    if name == "limit cycle":
        return stuart_landau(n, seed)
    return jump_cycle(n, seed) if name == "jumps" else noisy_logistic(n, seed)


def errors(rates: np.ndarray, system: Driven, n_rates: int) -> list[float]:
    """Return the distance of each leading exact rate to the nearest estimate, each estimate used once."""
    left, found = np.asarray(rates, dtype=complex), []
    left = left[np.isfinite(left)]
    for exact in system.rates[:n_rates]:
        distances = np.abs(left - exact)
        found.append(float(distances.min()) if len(left) else np.inf)
        left = np.delete(left, distances.argmin()) if len(left) else left
    return found


def exact_rates(system: Driven) -> np.ndarray:
    """Return the rates by least squares on the exact leading eigenfunctions: their error is sampling error alone."""
    z = np.column_stack([np.ones(len(system.X)), system.functions.real, system.functions.imag])
    z = z[:, [0, *1 + np.flatnonzero(z[:, 1:].std(axis=0) > 1e-12)]]
    values = np.linalg.eigvals(np.linalg.lstsq(z[:-1], z[1:])[0]).astype(complex)
    return np.log(values[np.abs(values - 1) > 1e-9]) / system.time_step


def lorenz(n: int, seed: int = 0, time_step: float = 0.01) -> np.ndarray:
    """Return frames of Lorenz's system of 1963 on its attractor; seeds start near (1, 1, 1)."""

    def force(_: float, x: np.ndarray) -> list[float]:
        return [10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]]

    times = 10 + time_step * np.arange(n)
    return solve_ivp(
        force, (0, times[-1]), 1 + 0.1 * np.random.default_rng(seed).normal(size=3), t_eval=times, rtol=1e-9, atol=1e-9
    ).y.T


def van_der_pol(n: int, seed: int, noise: float = 0.1, time_step: float = 0.1) -> np.ndarray:
    """Return frames of van der Pol's oscillator with noise in the velocity."""
    rng, inner, x, v = np.random.default_rng(seed), 20, 1.0, 0.0
    dt, frames = time_step / inner, np.empty((n, 2))
    for t, kicks in enumerate(np.sqrt(2 * noise * dt) * rng.normal(size=(n, inner))):
        for kick in kicks:
            x, v = x + v * dt, v + ((1 - x * x) * v - x) * dt + kick
        frames[t] = x, v
    return frames


def jet(seed: int, n_particles: int = 1_000) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of particles in the Bickley jet, as many as in deeptime's example, at two times."""
    return bickley_jet(n_particles, random_state=seed)


def elnino(window: int = 6) -> np.ndarray:
    """Return windows of monthly anomalies of the sea surface temperature off Peru, 1950 to 2010."""
    from statsmodels.datasets import elnino as stored

    temperature = stored.load_pandas().data.iloc[:, 1:].to_numpy()
    anomaly = ((temperature - temperature.mean(axis=0)) / temperature.std(axis=0)).ravel()
    return np.lib.stride_tricks.sliding_window_view(anomaly, window)[:, ::-1]


def digit_cycle(seed: int, n_digits: int) -> np.ndarray:
    """Return images of the handwritten digits 0, 1, …, n_digits - 1, 0, … in turn, each used once."""
    from sklearn.datasets import load_digits

    data, rng = load_digits(), np.random.default_rng(seed)
    of_each = [rng.permutation(np.flatnonzero(data.target == digit)) for digit in range(n_digits)]
    n = min(map(len, of_each))
    rows = np.column_stack([rows[:n] for rows in of_each]).ravel()
    return data.data[rows] / 16


def digits_of(name: str) -> int:
    """Return the number of different digits in a cycle."""
    return int(name.split()[-1]) + 1


def series(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Return training frames, later frames to be forecast, and the observables as a function of frames."""
    if name.startswith("digits"):
        n = digits_of(name)
        X = digit_cycle(seed, n)
        rounds = len(X) // n
        return X[: 3 * rounds // 5 * n], X[4 * rounds // 5 * n :], lambda frames: frames  # as in kooplearn's notebook
    if name == "El Niño":
        X = np.ascontiguousarray(elnino())
        return X[:500], X[500:], lambda frames: frames[:, :1]
    X = lorenz(10_000, seed) if name == "Lorenz-63" else van_der_pol(6_000, seed)
    return X[:5_000], X[5_000:], lambda frames: frames


def forecast_errors(
    name: str, forecasts: np.ndarray, train: np.ndarray, test: np.ndarray, steps: Sequence[int]
) -> list[float]:
    """Return root mean square errors in standard deviations of the observables; for digits, shares of right ones.

    `forecasts` (n_steps, n_test, m) are made from every test frame.
    """
    if name.startswith("digits"):
        from sklearn.svm import SVC

        n = digits_of(name)
        classifier, digits = SVC().fit(train, np.arange(len(train)) % n), np.arange(len(test))
        return [
            float(np.mean(classifier.predict(f) == (digits + k) % n)) for f, k in zip(forecasts, steps, strict=True)
        ]
    m = forecasts.shape[2]
    spread = train[:, :m].std(axis=0)
    return [
        float(np.sqrt(np.mean(((f[:-k] - test[k:, :m]) / spread) ** 2))) for f, k in zip(forecasts, steps, strict=True)
    ]
