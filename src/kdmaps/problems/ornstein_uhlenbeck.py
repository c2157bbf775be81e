"""The Ornstein–Uhlenbeck process, with Hermite polynomials as modes."""

from __future__ import annotations

from itertools import count, islice

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.problems.base import Array, Diffusion, check_points, check_positive
from kdmaps.problems.product import multiply, slowest_products


def hermite(z: Array, degree: int) -> Array:
    """Evaluate He_m(z)/√m! for m = 1..degree, orthonormal under the standard normal law; shape (n, degree).

    The normalised recurrence h_{m+1} = (z h_m - √m h_{m-1})/√(m+1) never forms the large factorials.
    """
    values = np.empty((len(z), degree + 1))
    values[:, 0] = 1
    values[:, 1] = z
    for m in range(1, degree):
        values[:, m + 1] = (z * values[:, m] - np.sqrt(m) * values[:, m - 1]) / np.sqrt(m + 1)
    return values[:, 1:]


class OrnsteinUhlenbeck(Diffusion):
    """dX_j = -α_j X_j dt + √(2D) dW_j: V = Σ x_j²/(2 v_j) with stationary variances v_j = D/α_j.

    Modes are Π_j He_{m_j}(x_j/√v_j)/√m_j! with rate Σ_j m_j α_j. Trajectories use the exact transition
    X_j ← e^{-α_j dt} X_j + √(v_j (1 - e^{-2 α_j dt})) ξ for any dt.

    Parameters
    ----------
    rates : sequence of float
        The rates α_j > 0.
    diffusion : float
        The diffusion constant D.
    """

    name = "ornstein-uhlenbeck"

    def __init__(self, rates: ArrayLike, diffusion: float = 1.0) -> None:
        alpha = np.asarray(rates, dtype=np.float64)
        if alpha.ndim != 1 or alpha.size == 0 or not (np.isfinite(alpha) & (alpha > 0)).all():
            raise ValueError(f"rates must be a non-empty sequence of positive numbers, got {rates!r}.")
        self.alpha = alpha
        self.diffusion: float = check_positive(diffusion, "diffusion")
        self._stiffness = alpha / self.diffusion
        self.dim: int = alpha.size

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return rng.standard_normal((n, self.dim)) / np.sqrt(self._stiffness)

    def _drift(self, X: Array) -> Array:
        return -self.alpha * X

    def _step(self, x: Array, dt: float, rng: np.random.Generator) -> Array:
        noise = np.sqrt(-np.expm1(-2 * self.alpha * dt) / self._stiffness)
        return np.exp(-self.alpha * dt) * x + noise * rng.standard_normal(x.shape)

    def _level_rate(self, j: int, m: int) -> float:
        return m * float(self.alpha[j])

    def _rates(self, k: int) -> Array:
        return slowest_products(self._level_rate, self.dim, k)[0]

    def _eigenfunctions(self, X: Array, k: int) -> Array:
        return self._hermite_products(X, slowest_products(self._level_rate, self.dim, k)[1])

    def _hermite_products(self, X: Array, modes: list[tuple[int, ...]]) -> Array:
        highest = np.max(modes, axis=0)
        scaled = np.sqrt(self._stiffness)[:, None] * X.T
        tables = [hermite(z, max(int(m), 1)) for z, m in zip(scaled, highest, strict=True)]
        return multiply(tables, modes)

    def paper_reference(self, X: ArrayLike) -> Array:
        """Evaluate the paper's reference: the first four of x_1, …, x_d, x_1² - 1, …, x_d² - 1, ….

        This order by degree, without mixed terms, is not the order by rate: for α = (1, 16) the four slowest modes are
        all functions of x_1. The squares are evaluated as Hermite modes, which differ from the paper's x_j² - 1 only by
        a scale and a constant.

        Parameters
        ----------
        X : array-like of shape (n, dim)
            Points.

        Returns
        -------
        ndarray of shape (n, 4)
        """
        pure = (tuple(m * (i == j) for i in range(self.dim)) for m in count(1) for j in range(self.dim))
        return self._hermite_products(check_points(X, self.dim), list(islice(pure, self.n_modes)))
