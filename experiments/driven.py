"""Driven and oscillating systems whose Koopman spectrum is known, for `experiments.koopman` and the tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigs


@dataclass(frozen=True)
class Driven:
    """Frames of a trajectory, the time between them, and the leading rates ln λ/time, without conjugates."""

    X: np.ndarray
    time_step: float
    rates: np.ndarray


def rotating_ou(n: int, seed: int, speed: float = 2.0, time_step: float = 0.1) -> Driven:
    """Ornstein–Uhlenbeck process in the plane with rotation, z' = -(1 - i·speed)z + noise, sampled exactly.

    Its rates are -(j + k) + i·speed·(j - k) for j, k = 0, 1, ….
    """
    noise = np.random.default_rng(seed).normal(size=(n, 2)) @ [1, 1j]
    factor = np.exp((-1 + 1j * speed) * time_step)
    path = _recursion(factor, noise[0], np.sqrt(1 - abs(factor) ** 2) * noise[1:])
    j, k = (a.ravel() for a in np.meshgrid(np.arange(4), np.arange(4)))
    return Driven(_plane(path), time_step, leading(-(j + k) + 1j * speed * (j - k)))


def jump_cycle(n: int, seed: int, n_states: int = 4, ahead: float = 0.15, back: float = 0.03) -> Driven:
    """Markov chain on a ring of states, which moves ahead more often than back, seen with noise in the plane."""
    rng = np.random.default_rng(seed)
    steps = rng.choice([1, -1, 0], size=n - 1, p=[ahead, back, 1 - ahead - back])
    states = np.concatenate([[0], np.cumsum(steps)]) % n_states
    X = _plane(np.exp(2j * np.pi * states / n_states)) + 0.2 * rng.normal(size=(n, 2))
    angles = 2 * np.pi * np.arange(n_states) / n_states
    values = ahead * np.exp(1j * angles) + back * np.exp(-1j * angles) + 1 - ahead - back
    return Driven(X, 1.0, leading(np.log(values)))


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
    values = np.linalg.eigvals(density / density.sum(axis=1, keepdims=True))
    values = values[np.abs(values) > 1e-6].astype(complex)
    return Driven(_plane(np.exp(2j * np.pi * x)), 1.0, leading(np.log(values)))


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
    return Driven(_plane(path), time_step, leading(_cycle_rates(frequency, noise, shear)))


def _cycle_rates(frequency: float, noise: float, shear: float, cells: int = 1500, most: int = 5) -> np.ndarray:
    """Return rates of the limit cycle by finite volumes in r, for functions e^{imθ}u(r), m = 0, …, `most`."""
    edges = np.linspace(0, 2.2, cells + 1)
    r, h = (edges[1:] + edges[:-1]) / 2, edges[1]
    potential = r**4 / 4 - r**2 / 2
    density = r * np.exp(-(potential - potential.min()) / noise)
    flux = np.sqrt(density[1:] * density[:-1]) * noise / h**2
    found = []
    for m in range(most + 1):
        ahead, back = flux / density[:-1], flux / density[1:]
        diagonal = 1j * m * (frequency - shear * (r**2 - 1)) - noise * m**2 / r**2
        diagonal[:-1] -= ahead
        diagonal[1:] -= back
        operator = sparse.diags([back, diagonal, ahead], [-1, 0, 1], format="csc")
        found.append(eigs(operator, 3, sigma=1e-3 + 1j * m * frequency, return_eigenvectors=False))
    return np.concatenate(found)


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
