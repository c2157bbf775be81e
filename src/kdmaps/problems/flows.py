"""Flows that depend on time, for coherent sets."""

import numpy as np

from kdmaps.utils.types import RandomStateLike
from kdmaps.utils.validation import checked_random_state

#: Velocity and width of the jet, radius of the earth (10⁶ m, days); amplitudes, speeds and wave numbers of the waves.
SPEED, WIDTH, RADIUS = 5.4138, 1.77, 6.371
AMPLITUDES, SPEEDS = np.array([0.075, 0.15, 0.3]), SPEED * np.array([0.1446, 0.205, 0.461])
WAVES = np.array([2, 4, 6]) / RADIUS
#: Length of the domain, which is periodic.
LENGTH = 20.0


def bickley_jet(
    n_particles: int, *, duration: float = 40.0, step: float = 0.02, random_state: RandomStateLike = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of particles in the Bickley jet at the beginning and at the end of a time.

    A jet along x with three travelling waves, which form six vortices that mix little with their surroundings
    (Hadjighasem et al. 2016, Phys. Rev. E 93). The first positions are uniform in [0, 20) × [-3, 3]; x is periodic.

    Parameters
    ----------
    n_particles : int
    duration : float, default=40
        Time between both positions, in days.
    step : float, default=0.02
        Step of the Runge–Kutta integrator, of order 4.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    first, second : ndarray of shape (n_particles, 2)

    Examples
    --------
    >>> import kdmaps
    >>> first, second = kdmaps.problems.bickley_jet(5, duration=1.0, random_state=0)
    >>> second.shape
    (5, 2)
    """
    first = checked_random_state(random_state).uniform([0, -3], [LENGTH, 3], (n_particles, 2))
    n_steps = max(1, round(duration / step))
    now, dt = first, duration / n_steps
    for t in dt * np.arange(n_steps):
        a = velocity(t, now)
        b = velocity(t + dt / 2, now + dt / 2 * a)
        c = velocity(t + dt / 2, now + dt / 2 * b)
        now = now + dt / 6 * (a + 2 * b + 2 * c + velocity(t + dt, now + dt * c))
    return first, np.column_stack([now[:, 0] % LENGTH, now[:, 1]])


def velocity(t: float, positions: np.ndarray) -> np.ndarray:
    """Return the velocity of the jet, (-∂ψ/∂y, ∂ψ/∂x) of the stream function ψ."""
    x, y = positions[:, :1], positions[:, 1]
    phase, profile = WAVES * (x - SPEEDS * t), 1 / np.cosh(y / WIDTH) ** 2
    along = SPEED * profile * (1 + 2 * np.tanh(y / WIDTH) * (np.cos(phase) @ AMPLITUDES))
    return np.column_stack([along, -SPEED * WIDTH * profile * (np.sin(phase) @ (AMPLITUDES * WAVES))])
