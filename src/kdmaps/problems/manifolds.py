"""A circle with Gaussian noise, and Brownian motion on spheres of any dimension."""

from functools import lru_cache
from math import comb

import numpy as np
from scipy.linalg import eigh
from scipy.special import eval_chebyt, eval_gegenbauer, i0e

from kdmaps.problems.base import Array, Markov, Problem
from kdmaps.problems.finite_volume import Interval
from kdmaps.utils.validation import check_positive_integer, check_positive_number

#: Largest number of harmonics of one degree, which are found by a dense eigenproblem.
MAX_HARMONICS = 2_000


class NoisyCircle(Problem):
    """Points (cos θ, sin θ) + noise·ξ with θ uniform and ξ standard normal in the plane.

    The points have radial density ρ(r) ∝ r exp(-(r² + 1)/(2s²)) I₀(r/s²), where s is the noise. Modes of the diffusion
    with this stationary law are R(r) cos(kθ) and R(r) sin(kθ), where -(ρR')'/ρ + (k²/r²) R = rate R, solved by finite
    volumes. The slowest rates are close to 1, 1, 4, 4, 9, 9, …; purely radial modes have rates from about 1/s² on.

    Trajectories follow another process with the same law: θ is an exact Brownian motion √2 dW for any dt, so that
    cos(kθ) decays at rate k², and the noise is drawn independently for each frame.

    Parameters
    ----------
    noise : float
        Standard deviation of each coordinate of the noise.
    """

    name = "noisy-circle"
    dim = 2

    def __init__(self, noise: float = 0.05) -> None:
        self.noise: float = check_positive_number("noise", noise)
        self._branches: dict[int, Interval] = {}

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return self._observe(rng.uniform(-np.pi, np.pi, n), rng)

    def _observe(self, angle: Array, rng: np.random.Generator) -> Array:
        clean = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        return clean + self.noise * rng.standard_normal(clean.shape)

    def _radial_potential(self, r: Array) -> Array:
        # i0e includes the factor e^{-r/s²}, which completes the square.
        return (r - 1) ** 2 / (2 * self.noise**2) - np.log(r * i0e(r / self.noise**2))

    def _branch(self, wave: int) -> Interval:
        if wave not in self._branches:
            domain = (max(0.0, 1 - 9 * self.noise), 1 + 9 * self.noise)
            self._branches[wave] = Interval(self._radial_potential, domain, killing=lambda r: (wave / r) ** 2)
        return self._branches[wave]

    def _modes(self, k: int) -> list[tuple[float, int, int, bool]]:
        """Return rate, wave number, number of the radial function, and whether it is a sine, of the first modes."""
        modes = []
        # The first rate increases with the wave number, and occurs twice (cosine and sine) for wave > 0.
        for wave in range(k // 2 + 2):
            for radial, rate in enumerate(self._branch(wave).rates(k + 1)):
                if wave or radial:
                    modes += [(rate, wave, radial, sine) for sine in (False, True) if wave or not sine]
        return sorted(modes)[:k]

    def _rates(self, k: int) -> Array:
        return np.array([rate for rate, *_ in self._modes(k)])

    def _eigenfunctions(self, X: Array, k: int) -> Array:
        r, angle = np.hypot(*X.T), np.arctan2(X[:, 1], X[:, 0])
        values = np.empty((len(X), k))
        for column, (_, wave, radial, sine) in enumerate(self._modes(k)):
            values[:, column] = self._branch(wave).functions(r, radial + 1)[:, radial]
            # cos² and sin² average to 1/2, the constant angular part of radial modes to 1.
            values[:, column] *= (np.sin if sine else np.cos)(wave * angle) * (np.sqrt(2) if wave else 1)
        return values

    def _trajectories(self, start: Array, n_steps: int, dt: float, rng: np.random.Generator) -> Array:
        turns = np.sqrt(2 * dt) * rng.standard_normal((len(start), n_steps))
        turns[:, 0] = np.arctan2(start[:, 1], start[:, 0])
        frames = self._observe(np.cumsum(turns, axis=1), rng)
        frames[:, 0] = start
        return frames


def multiplicity(dim: int, degree: int) -> int:
    """Count the spherical harmonics of a degree >= 1 on S^{d-1}: C(ℓ+d-1, ℓ) - C(ℓ+d-3, ℓ-2)."""
    return comb(degree + dim - 1, degree) - (comb(degree + dim - 3, degree - 2) if degree > 1 else 0)


def zonal(dim: int, degree: int, cosine: Array) -> Array:
    """Evaluate the zonal harmonic of a degree on S^{d-1}, scaled to 1 at cosine 1."""
    if dim == 2:
        return eval_chebyt(degree, cosine)
    order = dim / 2 - 1
    return eval_gegenbauer(degree, order, cosine) / eval_gegenbauer(degree, order, 1.0)


@lru_cache(maxsize=32)
def harmonics(dim: int, degree: int) -> tuple[Array, Array]:
    """Return points Y and coefficients A: the N columns of zonal(XYᵀ)A are orthonormal harmonics of one degree.

    By the addition theorem, Z(x, y) = N zonal(xᵀy) is the reproducing kernel of these harmonics for the uniform law:
    E[Z(x, y)Z(x, y')] = Z(y, y'). Twice as many random points as harmonics determine all of them.
    """
    n = multiplicity(dim, degree)
    if n > MAX_HARMONICS:
        raise ValueError(
            f"The sphere in R^{dim} has {n} harmonics of degree {degree}, more than {MAX_HARMONICS}; pass a smaller k."
        )
    Y = np.eye(dim)
    if degree > 1:
        Y = np.random.default_rng(0).standard_normal((2 * n, dim))
        Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    values, vectors = eigh(n * zonal(dim, degree, Y @ Y.T), subset_by_index=(len(Y) - n, len(Y) - 1))
    return Y, n * vectors / np.sqrt(values)


class Sphere(Markov):
    """Brownian motion √2 dW on the unit sphere S^{d-1} of R^d, with the uniform law.

    Modes are the real spherical harmonics of degree ℓ = 1, 2, …, with rate ℓ(ℓ + d - 2) and multiplicity
    (2ℓ + d - 2)/(ℓ + d - 2) · C(ℓ + d - 2, ℓ); degree 1 is √d x_j.

    Trajectories are geodesic random walks, x ← x cos|v| + (v/|v|) sin|v| with a tangent v = √(2 dt) (I - xxᵀ) ξ. They
    preserve the uniform law for any dt and are of weak order dt (exact on the circle).

    Parameters
    ----------
    dim : int
        Number of coordinates d >= 2.
    """

    name = "sphere"

    def __init__(self, dim: int) -> None:
        if check_positive_integer("dim", dim) < 2:
            raise ValueError("dim must be at least 2: the sphere in R^1 has two points; pass dim=2 for the circle.")
        self.dim: int = int(dim)
        # The first complete cluster: all coordinates.
        self.n_modes: int = self.dim

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        x = rng.standard_normal((n, self.dim))
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    def _step(self, x: Array, dt: float, rng: np.random.Generator) -> Array:
        v = np.sqrt(2 * dt) * rng.standard_normal(x.shape)
        v -= x * np.sum(x * v, axis=1, keepdims=True)
        length = np.linalg.norm(v, axis=1, keepdims=True)
        # np.sinc(t) is sin(πt)/(πt), finite at 0.
        step = x * np.cos(length) + v * np.sinc(length / np.pi)
        # Rounding errors of the norm would accumulate over a long trajectory.
        return step / np.linalg.norm(step, axis=1, keepdims=True)

    def _rates(self, k: int) -> Array:
        rates, degree = np.empty(0), 0
        while len(rates) < k:
            degree += 1
            number = min(multiplicity(self.dim, degree), k - len(rates))
            rates = np.append(rates, np.full(number, degree * (degree + self.dim - 2.0)))
        return rates

    def _eigenfunctions(self, X: Array, k: int) -> Array:
        values, degree = np.empty((len(X), 0)), 0
        while values.shape[1] < k:
            degree += 1
            Y, coefficients = harmonics(self.dim, degree)
            values = np.hstack([values, zonal(self.dim, degree, X @ Y.T) @ coefficients])
        return values[:, :k]
