"""Systems with exact rates for the study of real clocks: samples of a biased law with weights, and bursts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.sparse import bmat, coo_array, csc_array, diags_array, eye_array
from scipy.sparse.linalg import eigs, eigsh, spsolve

from kdmaps.problems.langevin import Langevin1D, Langevin2D, MullerBrown, triple_well_2d

#: Frames of a burst after its start.
FRAMES = 50
#: The bias leaves this part of the potential.
LEFT = 0.25


class Exact(NamedTuple):
    """Rates 1 and 2, and the reactive flux between two sets, if there are any."""

    rates: np.ndarray
    flux: float | None = None


@dataclass(frozen=True)
class System:
    """What a simulation program and an experiment would give."""

    exact: Callable[[], Exact]
    samples: Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]  #: Samples and weights.
    bursts: Callable[[np.random.Generator, np.ndarray], np.ndarray]  #: From starts: (n_frames, n_bursts, d).
    time_step: float  #: Between frames.
    noise: float = 0.0  #: Standard deviation of errors of measurement.
    sets: Callable[[np.ndarray], np.ndarray] | None = None  #: Labels of two sets, 0 and 1, and -1 elsewhere.
    metric_rounds: int = 0  #: Of the estimator.


# --- Müller–Brown with a diffusion constant that changes in space ---------------------------------------------------
CENTRES = np.array([[-0.558, 1.442], [0.623, 0.028]])
RADIUS, MB_STEP, SUBSTEPS = 0.15, 0.005, 10
CELLS, CUTOFF = 220, 25.0
MB = MullerBrown()


def sides(X: np.ndarray) -> np.ndarray:
    """Return 0 in a disc around the deepest minimum, 1 in a disc around the second, -1 elsewhere."""
    labels = np.full(len(X), -1)
    for label, centre in enumerate(CENTRES):
        labels[np.hypot(*(X[:, :2] - centre).T) < RADIUS] = label
    return labels


def along_both(X: np.ndarray) -> np.ndarray:
    """Return a diffusion constant that is the same for both coordinates, and nine times as large above as below."""
    constant = 0.1 * (1 + 0.8 * np.tanh(3 * (X[:, 1] - 0.7)))
    return np.column_stack([constant, constant])


def along_one(X: np.ndarray) -> np.ndarray:
    """Return diffusion constants of which the first changes along the second coordinate."""
    return np.column_stack([along_both(X)[:, 0], np.full(len(X), 0.025)])


@cache
def muller_brown(diffusion: Callable[[np.ndarray], np.ndarray]) -> tuple[Exact, np.ndarray, np.ndarray, np.ndarray]:
    """Return exact rates and flux by finite volumes, the centres of cells, V at them, and their widths."""
    axes = [np.linspace(-1.9, 1.4, CELLS), np.linspace(-0.7, 2.4, CELLS)]
    widths = np.array([axis[1] - axis[0] for axis in axes])
    centres = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    energy = MB.potential(centres.reshape(-1, 2)).reshape(CELLS, CELLS)
    energy -= energy.min()
    number = np.arange(CELLS**2).reshape(CELLS, CELLS)
    first, second, conductance = [], [], []
    for axis in (0, 1):
        low, high = (np.take(number, range(*span), axis=axis).ravel() for span in ((CELLS - 1,), (1, CELLS)))
        both = (energy.ravel()[low] < CUTOFF) & (energy.ravel()[high] < CUTOFF)
        low, high = low[both], high[both]
        points = centres.reshape(-1, 2)
        between = diffusion((points[low] + points[high]) / 2)[:, axis]
        mass = np.exp(-(energy.ravel()[low] + energy.ravel()[high]) / 2)
        first.append(low)
        second.append(high)
        conductance.append(mass * between / widths[axis] ** 2)
    i, j, g = np.concatenate(first), np.concatenate(second), np.concatenate(conductance)
    entries = (np.concatenate([g, g, -g, -g]), (np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i])))
    kept = np.flatnonzero(energy.ravel() < CUTOFF)
    matrix = csc_array(coo_array(entries, shape=(CELLS**2, CELLS**2)).tocsr()[kept][:, kept])
    points, energy = centres.reshape(-1, 2)[kept], energy.ravel()[kept]
    mass = np.exp(-energy)
    values = eigsh(matrix, k=3, M=csc_array(diags_array(mass)), sigma=-1e-6, return_eigenvectors=False)
    labels = sides(points)
    committor = (labels == 1).astype(float)
    free = np.flatnonzero(labels < 0)
    committor[free] = spsolve(matrix[free][:, free], -(matrix @ committor)[free])
    flux = float(committor @ (matrix @ committor) / mass.sum())
    return Exact(np.sort(values)[1:], flux), points, energy, widths


def biased_cells(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw points of the density e^{-V/4} on the cells, and their weights."""
    _, points, energy, widths = muller_brown(along_one)
    density = np.exp(-LEFT * energy)
    chosen = rng.choice(len(points), n, p=density / density.sum())
    X = points[chosen] + rng.uniform(-0.5, 0.5, (n, 2)) * widths
    energies = MB.potential(X)
    weight = np.exp(-(1 - LEFT) * (energies - energies.min()))
    return X, weight / weight.mean()


def diffuse(
    diffusion: Callable[[np.ndarray], np.ndarray], drift: Callable[[np.ndarray], np.ndarray]
) -> Callable[[np.random.Generator, np.ndarray], np.ndarray]:
    """Return bursts of dX = (divergence - a∇V) dt + √(2a) dW with a diagonal tensor a; `drift` is the divergence."""

    def run(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        step = MB_STEP / SUBSTEPS
        frames = [X]
        for _ in range(FRAMES):
            for _ in range(SUBSTEPS):
                a = diffusion(X)
                X = X + step * (drift(X) - a * MB.gradient(X)) + np.sqrt(2 * a * step) * rng.standard_normal(X.shape)
            frames.append(X)
        return np.array(frames)

    return run


def no_drift(X: np.ndarray) -> np.ndarray:
    """Return the divergence of `along_one`: constants do not change along their own coordinates."""
    return np.zeros_like(X)


def upward(X: np.ndarray) -> np.ndarray:
    """Return the divergence of `along_both`."""
    return np.column_stack([np.zeros(len(X)), 0.24 / np.cosh(3 * (X[:, 1] - 0.7)) ** 2])


ANISOTROPIC = System(
    lambda: muller_brown(along_one)[0], biased_cells, diffuse(along_one, no_drift), MB_STEP, sets=sides
)
ISOTROPIC = System(lambda: muller_brown(along_both)[0], biased_cells, diffuse(along_both, upward), MB_STEP, sets=sides)
NOISY = System(ANISOTROPIC.exact, biased_cells, ANISOTROPIC.bursts, MB_STEP, noise=0.03)

# --- the same with eight columns of variance 1 that relax with the rate 3 -------------------------------------------
FAST, FAST_RATE = 8, 3.0


def with_fast_columns(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw points of `biased_cells` with fast columns."""
    X, weight = biased_cells(rng, n)
    return np.column_stack([X, rng.standard_normal((n, FAST))]), weight


def bursts_with_fast_columns(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Return bursts of the anisotropic system with independent Ornstein–Uhlenbeck columns."""
    slow = ANISOTROPIC.bursts(rng, X[:, :2])
    decay = np.exp(-FAST_RATE * MB_STEP)
    fast = [X[:, 2:]]
    for _ in range(FRAMES):
        noise = rng.standard_normal(fast[-1].shape)
        fast.append(decay * fast[-1] + np.sqrt(1 - decay**2) * noise)
    return np.concatenate([slow, fast], axis=2)


TEN = System(ANISOTROPIC.exact, with_fast_columns, bursts_with_fast_columns, MB_STEP, metric_rounds=5)

# --- Langevin dynamics with inertia: three wells along x, barriers of 5 kT, a harmonic y; only positions are seen ----
FRICTION, INERTIAL_STEP, INERTIAL_SUBSTEPS, HERMITE = 10.0, 0.02, 4, 24
GRID = np.linspace(-1.8, 1.8, 401)


def wells(x: np.ndarray) -> np.ndarray:
    """Return the potential along x."""
    return -2.5 * np.cos(2 * np.pi * x) + 0.5 * x + (x / 1.35) ** 10


def force(X: np.ndarray) -> np.ndarray:
    """Return the force along both coordinates."""
    x, y = X.T
    along = -2.5 * 2 * np.pi * np.sin(2 * np.pi * x) - 0.5 - 10 * (x / 1.35) ** 9 / 1.35
    return np.column_stack([along, -4 * y])


@cache
def inertial_rates() -> Exact:
    """Return exact rates of the Kramers equation, by Hermite functions of the velocity and cells of x."""
    width = GRID[1] - GRID[0]
    n = len(GRID)
    edges = (GRID[1:] + GRID[:-1]) / 2
    at_cells, at_edges = np.exp(-wells(GRID) / 2), np.exp(-wells(edges) / 2)
    difference = diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n)) / width
    up = diags_array(at_edges) @ difference @ diags_array(1 / at_cells)
    down = diags_array(at_cells) @ -difference.T @ diags_array(1 / at_edges)
    blocks: list[list[object]] = [[None] * HERMITE for _ in range(HERMITE)]
    for k in range(HERMITE):
        blocks[k][k] = -FRICTION * k * eye_array(n if k % 2 == 0 else n - 1)
        if k + 1 < HERMITE:
            coupling = np.sqrt(k + 1) * (up if k % 2 == 0 else down)
            blocks[k + 1][k] = coupling
            blocks[k][k + 1] = -coupling.T
    values = eigs(csc_array(bmat(blocks)), k=6, sigma=0.001, return_eigenvectors=False)
    real = -values.real[np.abs(values.imag) < 1e-6]
    return Exact(np.sort(real)[1:3])


def biased_wells(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw positions of the density e^{-0.4 V}, and their weights."""
    density = np.exp(-0.4 * wells(GRID))
    width = GRID[1] - GRID[0]
    x = rng.choice(GRID, n, p=density / density.sum()) + rng.uniform(-0.5, 0.5, n) * width
    y = rng.standard_normal(n) / 2 / np.sqrt(0.4)
    weight = np.exp(-0.6 * (wells(x) + 2 * y**2))
    return np.column_stack([x, y]), weight / weight.mean()


def inertial_bursts(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Return positions of underdamped bursts, with velocities of the stationary law at the starts."""
    step = INERTIAL_STEP / INERTIAL_SUBSTEPS
    decay = np.exp(-FRICTION * step)
    velocity = rng.standard_normal(X.shape)
    frames = [X]
    for _ in range(FRAMES):
        for _ in range(INERTIAL_SUBSTEPS):
            velocity = velocity + step / 2 * force(X)
            X = X + step / 2 * velocity
            velocity = decay * velocity + np.sqrt(1 - decay**2) * rng.standard_normal(X.shape)
            X = X + step / 2 * velocity
            velocity = velocity + step / 2 * force(X)
        frames.append(X)
    return np.array(frames)


INERTIAL = System(inertial_rates, biased_wells, inertial_bursts, INERTIAL_STEP)

# --- a tensor that rotates and correlates: the plane triple well, seen in sheared coordinates ------------------------
PLANE, PLANE_STEP = triple_well_2d(), 0.01


def sheared(X: np.ndarray) -> np.ndarray:
    """Return (x + sin 2y, y), which does not change rates; the tensor is JJᵀ with the Jacobian J."""
    return np.column_stack([X[:, 0] + np.sin(2 * X[:, 1]), X[:, 1]])


def straight(X: np.ndarray) -> np.ndarray:
    """Invert `sheared`."""
    return np.column_stack([X[:, 0] - np.sin(2 * X[:, 1]), X[:, 1]])


@cache
def flattened(part: float) -> Langevin2D:
    """Return the plane triple well with a part of its potential."""
    return Langevin2D(lambda X: part * PLANE.potential(X), lambda X: part * PLANE.gradient(X), PLANE.domain)


def biased_plane(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw sheared points of the density e^{-V/2}, and their weights."""
    X = flattened(0.5).sample(n, random_state=rng)
    weight = np.exp(-0.5 * PLANE.potential(X))
    return sheared(X), weight / weight.mean()


def sheared_bursts(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Return sheared bursts of the plane triple well."""
    fine = PLANE.simulate(1 + 10 * FRAMES, PLANE_STEP / 10, n_trajectories=len(X), x0=straight(X), random_state=rng)
    return np.array([sheared(frame) for frame in np.swapaxes(fine[:, ::10], 0, 1)])


SHEARED = System(lambda: Exact(PLANE.rates(2)), biased_plane, sheared_bursts, PLANE_STEP)

# --- three wells behind barriers of 6 kT, and a harmonic coordinate -------------------------------------------------
HIGH, SIDE_RATE, HIGH_STEP = 2.0, 5.0, 0.002


@cache
def high(part: float) -> Langevin1D:
    """Return a part of the triple well V = 5 x² (x² - 2)² + 0.4 x, with barriers of about 6."""

    def potential(x: np.ndarray) -> np.ndarray:
        return part * HIGH * (2.5 * x**2 * (x**2 - 2) ** 2 + 0.2 * x)

    def gradient(x: np.ndarray) -> np.ndarray:
        return part * HIGH * (5 * x * (x**2 - 2) * (3 * x**2 - 2) + 0.2)

    return Langevin1D(potential, gradient, (-3.0, 3.0))


def biased_barriers(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw points of the density e^{-V/4} along x, with an independent y of variance 1, and their weights."""
    x = high(LEFT).sample(n, random_state=rng)
    weight = np.exp(-(1 - LEFT) * high(1.0).potential(x[:, 0]))
    return np.column_stack([x, rng.standard_normal(n)]), weight / weight.mean()


def barrier_bursts(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Return bursts over the barriers, with an Ornstein–Uhlenbeck y."""
    fine = high(1.0).simulate(1 + 10 * FRAMES, HIGH_STEP / 10, n_trajectories=len(X), x0=X[:, :1], random_state=rng)
    slow = np.swapaxes(fine[:, ::10], 0, 1)
    decay = np.exp(-SIDE_RATE * HIGH_STEP)
    side = [X[:, 1:]]
    for _ in range(FRAMES):
        side.append(decay * side[-1] + np.sqrt(1 - decay**2) * rng.standard_normal(side[-1].shape))
    return np.concatenate([slow, side], axis=2)


BARRIERS = System(lambda: Exact(high(1.0).rates(2)), biased_barriers, barrier_bursts, HIGH_STEP)

SYSTEMS = {
    "one D(x)": ISOTROPIC,
    "two D(x)": ANISOTROPIC,
    "inertia": INERTIAL,
    "noisy frames": NOISY,
    "ten columns": TEN,
    "sheared": SHEARED,
    "6 kT": BARRIERS,
}
