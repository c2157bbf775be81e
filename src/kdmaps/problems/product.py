"""Independent components: the modes of a product are products of modes, and their rates add."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import fsum

import numpy as np

from kdmaps.problems.base import Array, Diffusion, Problem


def slowest_products(
    level_rate: Callable[[int, int], float], n_factors: int, k: int
) -> tuple[Array, list[tuple[int, ...]]]:
    """List the `k` slowest products of modes as multi-indices, without the constant.

    Best-first search: the only parent of a multi-index is the one with its last non-zero entry lowered by one, so every
    index enters the heap once, and never before a slower one.

    Parameters
    ----------
    level_rate : callable
        ``level_rate(j, m)`` is the rate of mode m of factor j, for m >= 1, ascending in m.
    n_factors : int
        Number of factors.
    k : int
        Number of products.

    Returns
    -------
    rates : ndarray of shape (k,)
        Total rates, ascending.
    indices : list of tuple of int
        Multi-indices in that order; ties are ordered by degree, then earlier factors first.
    """

    def entry(index: tuple[int, ...]) -> tuple[float, int, tuple[int, ...], tuple[int, ...]]:
        # fsum rounds once, so equal sums stay equal in any order.
        rate = fsum(level_rate(j, m) for j, m in enumerate(index) if m)
        return rate, sum(index), tuple(-m for m in index), index

    def search() -> Iterator[tuple[float, tuple[int, ...]]]:
        heap = [entry((0,) * n_factors)]
        while True:
            rate, *_, index = heapq.heappop(heap)
            yield rate, index
            last = max((j for j, m in enumerate(index) if m), default=0)
            for j in range(last, n_factors):
                heapq.heappush(heap, entry((*index[:j], index[j] + 1, *index[j + 1 :])))

    rates, indices = zip(*islice(search(), 1, k + 1), strict=True)
    return np.array(rates), list(indices)


def multiply(tables: Sequence[Array], indices: Sequence[tuple[int, ...]]) -> Array:
    """Multiply one column of each table: column i is Π_j tables[j][:, indices[i][j] - 1]; index 0 means a factor 1."""
    values = np.ones((len(tables[0]), len(indices)))
    for column, index in enumerate(indices):
        for table, m in zip(tables, index, strict=True):
            if m:
                values[:, column] *= table[:, m - 1]
    return values


class Independent(Problem):
    """Independent problems side by side: φ = Π_j φ_{m_j}(x_j) with rate Σ_j rate_{m_j}; each simulates its own part.

    Parameters
    ----------
    factors : sequence of Problem
        The components; all have the same diffusion constant.
    rotation : ndarray of shape (dim, dim), optional
        Orthogonal matrix Q: points are Q x instead of x = (x_1, x_2, …). Rates are the same.
    """

    name = "independent"

    def __init__(self, factors: Sequence[Problem], rotation: Array | None = None) -> None:
        if not factors:
            raise ValueError("factors is empty; pass at least one problem.")
        constants = {factor.diffusion for factor in factors}
        if len(constants) > 1:
            raise ValueError(f"factors must have the same diffusion constant, got {sorted(constants)}.")
        self.factors: tuple[Problem, ...] = tuple(factors)
        self.diffusion: float = constants.pop()
        self.dim: int = sum(factor.dim for factor in self.factors)
        self.rotation = rotation
        self._cuts = np.cumsum([factor.dim for factor in self.factors])[:-1]

    def _split(self, X: Array) -> list[Array]:
        return np.split(X if self.rotation is None else X @ self.rotation, self._cuts, axis=1)

    def _join(self, parts: Sequence[Array]) -> Array:
        X = np.concatenate(parts, axis=-1)
        return X if self.rotation is None else X @ self.rotation.T

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return self._join([factor._sample(n, rng) for factor in self.factors])

    def _trajectories(self, start: Array, n_steps: int, dt: float, rng: np.random.Generator) -> Array:
        parts = zip(self.factors, self._split(start), strict=True)
        paths = self._join([factor._trajectories(part, n_steps, dt, rng) for factor, part in parts])
        # Rotating back and forth would change the start by rounding.
        paths[:, 0] = start
        return paths

    def _level_rate(self, j: int, m: int) -> float:
        return float(self.factors[j]._rates(m)[-1])

    def _rates(self, k: int) -> Array:
        return slowest_products(self._level_rate, len(self.factors), k)[0]

    def _eigenfunctions(self, X: Array, k: int) -> Array:
        modes = slowest_products(self._level_rate, len(self.factors), k)[1]
        highest = np.max(modes, axis=0)
        tables = [
            factor._eigenfunctions(x, max(int(m), 1))
            for factor, x, m in zip(self.factors, self._split(X), highest, strict=True)
        ]
        return multiply(tables, modes)


class Product(Diffusion, Independent):
    """Independent diffusions side by side: φ = Π_j φ_{m_j}(x_j) with rate Σ_j rate_{m_j}.

    Parameters
    ----------
    factors : sequence of Diffusion
        The components, with the same diffusion constant; each uses its own sampler and simulation scheme.
    rotation : ndarray of shape (dim, dim), optional
        Orthogonal matrix Q: points are Q x instead of x = (x_1, x_2, …). Rates are the same.
    """

    name = "product"
    factors: tuple[Diffusion, ...]

    def __init__(self, factors: Sequence[Diffusion], rotation: Array | None = None) -> None:
        Independent.__init__(self, factors, rotation)

    def _drift(self, X: Array) -> Array:
        return self._join([factor._drift(x) for factor, x in zip(self.factors, self._split(X), strict=True)])

    def _step(self, x: Array, dt: float, rng: np.random.Generator) -> Array:
        parts = zip(self.factors, self._split(x), strict=True)
        return self._join([factor._step(part, dt, rng) for factor, part in parts])
