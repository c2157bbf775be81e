"""Distances of wide samples: from one matrix product, and in metrics of a few directions above a floor."""

from typing import NamedTuple, Self

import numpy as np
from scipy.spatial.distance import cdist

#: Relative rounding error of a metric, and of its columns.
ROUNDING = 1e-12
#: The metric is worth splitting if it has at most this part of all directions above the floor.
WORTHWHILE = 0.25
#: With fewer columns, products with T take less time than the sum of two distances, and differences of rows little.
FEWEST_COLUMNS = 100
#: Random vectors by which the split is verified.
PROBES = 2


class Floor(NamedTuple):
    """A metric TTᵀ = c·1 + VVᵀ with few columns V: distances need no product with the matrix T.

    |(x - z)T|² = c|x - z|² + |(x - z)V|², and with Vᵀ V = diag(v), |(x - z)TTᵀ|² = c²|x - z|² + |(x - z)V√(2c + v)|².
    """

    level: float  # c
    directions: np.ndarray  # V, (d, k), with orthogonal columns

    @classmethod
    def of(cls, T: np.ndarray | None) -> Self | None:
        """Return the split of a linear map (d, d) that `metric_root` made, or None if it has another form."""
        if T is None or T.ndim < 2 or T.shape[0] != T.shape[1] or len(T) < FEWEST_COLUMNS:
            return None
        squares = np.einsum("ij,ij->j", T, T)
        level = float(squares.min())
        above = np.flatnonzero(squares > level * (1 + 1e3 * ROUNDING))
        if not level > 0 or len(above) > WORTHWHILE * len(T):
            return None
        directions = T[:, above] * np.sqrt(1 - level / squares[above])
        probes = np.random.default_rng(0).standard_normal((len(T), PROBES))
        exact = T @ (T.T @ probes)
        error = exact - level * probes - directions @ (directions.T @ probes)
        # Also relative to the floor: small distances may be along it alone.
        if np.abs(error).max() > 1e3 * ROUNDING * max(np.abs(exact).max(), level):
            return None
        return cls(level, directions)

    @property
    def stretched(self) -> np.ndarray:
        """V√(2c + v), the directions of the metric (TTᵀ)² above its floor c²."""
        return self.directions * np.sqrt(2 * self.level + np.einsum("ij,ij->j", self.directions, self.directions))

    def times(self, rows: np.ndarray) -> np.ndarray:
        """Return rows times TTᵀ."""
        return self.level * rows + (rows @ self.directions) @ self.directions.T

    def squared_distances(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return |(z_m - z_n)T|² and |(z_m - z_n)TTᵀ|² between rows, 0 for equal rows."""
        plain = squares_between(Z)
        near = squares_between(Z @ self.directions)
        far = squares_between(Z @ self.stretched)
        return self.level * plain + near, self.level**2 * plain + far


def squares_between(Y: np.ndarray) -> np.ndarray:
    """Return the squared distances between rows; of wide rows by one product, 0 below its rounding."""
    n, d = Y.shape
    if d == 0:
        return np.zeros((n, n))
    if d < FEWEST_COLUMNS:
        return cdist(Y, Y, "sqeuclidean")
    centred = Y - Y.mean(axis=0)
    products = centred @ centred.T
    norms = np.diagonal(products)
    both = norms[:, None] + norms
    squares = both - 2 * products
    squares[squares <= ROUNDING * both] = 0
    return squares
