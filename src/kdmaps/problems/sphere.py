"""Brownian motion on the sphere, with spherical harmonics in any dimension."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import lru_cache
from itertools import combinations_with_replacement, count
from math import comb, factorial, prod, sqrt

import numpy as np
from scipy.linalg import null_space

from kdmaps.problems.base import Array, Markov, check_count

MAX_MONOMIALS = 20_000


def multiplicity(dim: int, degree: int) -> int:
    """Count the spherical harmonics of a degree >= 1 on S^{d-1}: C(ℓ+d-1, ℓ) - C(ℓ+d-3, ℓ-2)."""
    return comb(degree + dim - 1, degree) - (comb(degree + dim - 3, degree - 2) if degree > 1 else 0)


@lru_cache(maxsize=32)
def harmonics(dim: int, degree: int) -> list[tuple[Array, Array]]:
    """Build the harmonic homogeneous polynomials of one degree, orthonormal under the uniform law on the sphere.

    In the basis e_a = x^a/√a! the Laplacian is Δe_a = Σ_j √(a_j (a_j - 1)) e_{a - 2δ_j}. The e_a are orthonormal for
    the Fischer product ⟨p, q⟩ = p(∂)q. On harmonic polynomials this product is E[pq] · d(d+2)…(d+2ℓ-2), so orthonormal
    null vectors of Δ are orthonormal harmonics up to a common factor. Δ preserves the parity of each exponent, which
    splits the null space into small blocks.

    Parameters
    ----------
    dim : int
        Number of coordinates d.
    degree : int
        Degree ℓ >= 1.

    Returns
    -------
    list of (factors, coefficients)
        One block per parity: the coordinates of the factors of each monomial, shape (m, degree), and the coefficients
        of q harmonics, shape (m, q).
    """
    n_monomials = comb(degree + dim - 1, degree)
    if n_monomials > MAX_MONOMIALS:
        raise ValueError(
            f"Degree {degree} on the sphere in R^{dim} has {n_monomials} monomials, more than {MAX_MONOMIALS}; pass a "
            f"smaller k."
        )
    blocks = defaultdict(list)
    for factors in combinations_with_replacement(range(dim), degree):
        blocks[tuple(j for j, power in Counter(factors).items() if power % 2)].append(factors)

    scale = sqrt(prod(range(dim, dim + 2 * degree, 2)))
    basis = []
    for monomials in blocks.values():
        powers = [Counter(factors) for factors in monomials]
        rows: dict[tuple[tuple[int, int], ...], int] = {}
        entries = []
        for column, power in enumerate(powers):
            for j, a in power.items():
                if a > 1:
                    image = tuple(sorted((+(power - Counter({j: 2}))).items()))
                    entries.append((rows.setdefault(image, len(rows)), column, sqrt(a * (a - 1))))
        laplacian = np.zeros((len(rows), len(monomials)))
        for row, column, value in entries:
            laplacian[row, column] = value
        kernel = null_space(laplacian) if rows else np.eye(len(monomials))
        norms = np.array([sqrt(prod(factorial(a) for a in power.values())) for power in powers])
        if kernel.size:
            basis.append((np.array(monomials), scale * kernel / norms[:, None]))
    return basis


class Sphere(Markov):
    """Brownian motion √2 dW on the unit sphere S^{d-1} of R^d, with the uniform law.

    Modes are the real spherical harmonics of degree ℓ = 1, 2, …, with rate ℓ(ℓ + d - 2) and multiplicity
    (2ℓ + d - 2)/(ℓ + d - 2) · C(ℓ + d - 2, ℓ), evaluated as polynomials; degree 1 is √d x_j.

    Trajectories are geodesic random walks, x ← x cos|v| + (v/|v|) sin|v| with a tangent v = √(2 dt) (I - xxᵀ) ξ. They
    preserve the uniform law for any dt and are of weak order dt (exact on the circle).

    Parameters
    ----------
    dim : int
        Number of coordinates d >= 2.
    """

    name = "sphere"

    def __init__(self, dim: int) -> None:
        if check_count(dim, "dim") < 2:
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
        rates: list[int] = []
        for degree in count(1):
            if len(rates) >= k:
                break
            rates += [degree * (degree + self.dim - 2)] * min(multiplicity(self.dim, degree), k - len(rates))
        return np.array(rates, dtype=np.float64)

    def _eigenfunctions(self, X: Array, k: int) -> Array:
        columns: list[Array] = []
        found = 0
        for degree in count(1):
            for factors, coefficients in harmonics(self.dim, degree):
                columns.append(np.prod(X[:, factors], axis=2) @ coefficients)
                found += coefficients.shape[1]
                if found >= k:
                    return np.hstack(columns)[:, :k]
        raise AssertionError("unreachable")
