"""A circle with Gaussian noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import i0e

from kdmaps.problems.base import Array, Problem, check_points, check_positive
from kdmaps.problems.finite_volume import Interval


class _Mode(NamedTuple):
    rate: float
    wave: int
    radial: int
    sine: bool


class NoisyCircle(Problem):
    """Points (cos θ, sin θ) + noise·ξ with θ uniform and ξ standard normal in the plane.

    The points have radial density ρ(r) ∝ r exp(-(r² + 1)/(2s²)) I₀(r/s²), where s is the noise. Modes of the diffusion
    with this stationary law are R(r) cos(kθ) and R(r) sin(kθ), where -(ρR')'/ρ + (k²/r²) R = rate R, solved by finite
    volumes. The slowest rates are close to 1, 1, 4, 4, 9, 9, …; purely radial modes have rates from about 1/s² on.

    Trajectories are those of another process with the same law: θ is an exact Brownian motion √2 dW for any dt, so that
    cos(kθ) decays at rate k², and the noise is drawn independently for each frame.

    Parameters
    ----------
    noise : float
        Standard deviation of each coordinate of the noise.
    """

    name = "noisy-circle"
    dim = 2

    def __init__(self, noise: float = 0.05) -> None:
        self.noise: float = check_positive(noise, "noise")
        self._branches: dict[int, Interval] = {}

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return self._observe(rng.uniform(-np.pi, np.pi, n), rng)

    def _observe(self, angle: Array, rng: np.random.Generator) -> Array:
        clean = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        return clean + self.noise * rng.standard_normal(clean.shape)

    def _radial_potential(self, r: Array) -> Array:
        # i0e includes the factor e^{-r/s²}, which completes the square and keeps every term small.
        return (r - 1) ** 2 / (2 * self.noise**2) - np.log(r * i0e(r / self.noise**2))

    def _branch(self, wave: int) -> Interval:
        if wave not in self._branches:
            domain = (max(0.0, 1 - 9 * self.noise), 1 + 9 * self.noise)
            self._branches[wave] = Interval(self._radial_potential, domain, killing=lambda r: (wave / r) ** 2)
        return self._branches[wave]

    def _modes(self, k: int) -> list[_Mode]:
        modes: list[_Mode] = []
        # The first rate increases with the wave number, and occurs twice (cosine and sine) for wave > 0.
        for wave in range(k // 2 + 2):
            for radial, rate in enumerate(self._branch(wave).rates(k + 1)):
                if wave:
                    modes += [_Mode(rate, wave, radial, sine) for sine in (False, True)]
                elif radial:
                    modes.append(_Mode(rate, wave, radial, False))
        return sorted(modes)[:k]

    def _rates(self, k: int) -> Array:
        return np.array([mode.rate for mode in self._modes(k)])

    def _eigenfunctions(self, X: Array, k: int) -> Array:
        r, angle = np.hypot(*X.T), np.arctan2(X[:, 1], X[:, 0])
        values = np.empty((len(X), k))
        for column, mode in enumerate(self._modes(k)):
            radial = self._branch(mode.wave).functions(r, mode.radial + 1)[:, mode.radial]
            wave = np.sin(mode.wave * angle) if mode.sine else np.cos(mode.wave * angle)
            # cos² and sin² average to 1/2, the constant angular part of radial modes to 1.
            values[:, column] = radial * wave * (np.sqrt(2) if mode.wave else 1)
        return values

    def paper_reference(self, X: ArrayLike) -> Array:
        """Evaluate the paper's reference: cos θ, sin θ, cos 2θ, sin 2θ of the polar angle, with variance 1.

        Parameters
        ----------
        X : array-like of shape (n, 2)
            Points.

        Returns
        -------
        ndarray of shape (n, 4)
        """
        x, y = check_points(X, self.dim).T
        angle = np.arctan2(y, x)
        return np.sqrt(2) * np.column_stack([f(k * angle) for k in (1, 2) for f in (np.cos, np.sin)])

    def _trajectories(self, start: Array, n_steps: int, dt: float, rng: np.random.Generator) -> Array:
        turns = np.sqrt(2 * dt) * rng.standard_normal((len(start), n_steps))
        turns[:, 0] = np.arctan2(start[:, 1], start[:, 0])
        frames = self._observe(np.cumsum(turns, axis=1), rng)
        frames[:, 0] = start
        return frames
