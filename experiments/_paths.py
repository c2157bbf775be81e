"""Shared code of the experiments: compiled simulations of wells and rings, and their exact states."""

from __future__ import annotations

import numba
import numpy as np
from scipy.integrate import cumulative_trapezoid

#: Steps of the Euler–Maruyama scheme between two frames.
SUBSTEPS = 10


@numba.njit(cache=True)
def _wells(x: np.ndarray, barrier: np.ndarray, tilt: np.ndarray, step: float, noise: np.ndarray) -> np.ndarray:
    frames = np.empty((noise.shape[0], len(x)))
    for t in range(noise.shape[0]):
        for s in range(noise.shape[1]):
            for k in range(len(x)):
                x[k] += -(4 * barrier[k] * x[k] * (x[k] ** 2 - 1) + tilt[k]) * step + noise[t, s, k]
        frames[t] = x
    return frames


@numba.njit(cache=True)
def _ring(n_wells: int, height: float, force: float, step: float, noise: np.ndarray) -> np.ndarray:
    angles, angle = np.empty(noise.shape[0]), 0.0
    for t in range(noise.shape[0]):
        for s in range(noise.shape[1]):
            angle += (-height * n_wells * np.sin(n_wells * angle) + force) * step + noise[t, s]
        angles[t] = angle
    return angles


def wells(
    n: int,
    barriers: list[float],
    seed: int | np.random.Generator,
    time_step: float = 0.1,
    tilts: list[float] | None = None,
    start: list[float] | None = None,
) -> np.ndarray:
    """Simulate independent coordinates with V = barrier (x² - 1)² + tilt·x and D = 1; (n, d)."""
    rng, d, step = np.random.default_rng(seed), len(barriers), time_step / SUBSTEPS
    tilt = np.zeros(d) if tilts is None else np.array(tilts)
    x = np.array(start, dtype=float) if start is not None else stationary(barriers, tilt, rng)
    return _wells(x, np.array(barriers), tilt, step, np.sqrt(2 * step) * rng.normal(size=(n, SUBSTEPS, d)))


def changing_well(n: int, barrier: float, tilts: tuple[float, float], seed: int, time_step: float = 0.1) -> np.ndarray:
    """Simulate one coordinate of `wells` whose tilt changes in a hundred steps; (n, 1)."""
    rng = np.random.default_rng(seed)
    parts = [stationary([barrier], np.array(tilts[:1]), rng)[None]]
    for tilt in np.linspace(*tilts, 100):
        parts.append(wells(n // 100, [barrier], rng, time_step, [float(tilt)], parts[-1][-1].tolist()))
    return np.concatenate(parts[1:])


def stationary(barriers: list[float], tilts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw one stationary point of `wells`."""
    x = np.linspace(-2.5, 2.5, 5001)
    laws = [np.exp(-b * (x**2 - 1) ** 2 - t * x) for b, t in zip(barriers, tilts, strict=True)]
    return np.array([rng.choice(x, p=law / law.sum()) for law in laws])


def well_border(barrier: float, tilt: float) -> float:
    """Return the top of the barrier of a coordinate of `wells`."""
    x = np.linspace(-0.9, 0.9, 100_001)
    return float(x[np.argmax(barrier * (x**2 - 1) ** 2 + tilt * x)])


def well_population(barrier: float, tilt: float) -> float:
    """Return the population of the right well of a coordinate of `wells`."""
    x = np.linspace(-3, 3, 100_001)
    law = np.exp(-barrier * (x**2 - 1) ** 2 - tilt * x)
    return float(law[x > well_border(barrier, tilt)].sum() / law.sum())


def passage_time(barrier: float, tilt: float, x: np.ndarray, to: float) -> np.ndarray:
    """Return the exact mean first passage time of a coordinate of `wells` from points x to a level."""
    sign = 1.0 if to > np.max(x) else -1.0  # reflected, the level is on the right
    grid = np.linspace(-3, sign * to, 20_001)
    potential = barrier * (grid**2 - 1) ** 2 + sign * tilt * grid
    inner = cumulative_trapezoid(np.exp(-potential), grid, initial=0)
    outer = cumulative_trapezoid(np.exp(potential) * inner, grid, initial=0)
    return outer[-1] - np.interp(sign * x, grid, outer)


def ring(
    n: int, n_wells: int, seed: int, time_step: float = 0.05, height: float = 2.0, force: float = 0.0
) -> np.ndarray:
    """Simulate the angle of a particle on a circle with V = -height cos(n_wells θ) and a constant force; (n,)."""
    rng, step = np.random.default_rng(seed), time_step / SUBSTEPS
    return _ring(n_wells, height, force, step, np.sqrt(2 * step) * rng.normal(size=(n, SUBSTEPS)))


def on_circle(angles: np.ndarray) -> np.ndarray:
    """Return points of the plane."""
    return np.column_stack([np.cos(angles), np.sin(angles)])
