"""The neighbour form: variance against differences between neighbours, for data without a clock or physics.

The energy of a function φ is ½ Σ_ij w_ij |φ(x_i) - φ(x_j)|² over pairs of neighbours. Rows are neighbours if one is
among the k nearest of the other; w_ij = exp(-|x_i - x_j|²/(s_i s_j)) with the local width s_i, the distance from x_i to
its neighbour k/3. Half of the weight is among the rows and half among their neighbour means
(x_i + Σ_j w_ij x_j)/(1 + Σ_j w_ij), in which the noise of single rows is averaged out. With the degrees D_i = Σ_j w_ij
for the variance Σ_i D_i φ_i², the quotient energy over variance of a mode is 1 - λ, with the eigenvalue λ of the random
walk D⁻¹W. Its values at other points are the average that an eigenvector obeys, φ(x) = Σ_j p(x, j) φ_j/λ.
"""

from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from scipy import sparse

from kdmaps.bases import Basis, Sums, TensorRows
from kdmaps.data import distances as exact
from kdmaps.exceptions import ArgumentError, NotApplicable
from kdmaps.utils.threads import slices

#: Local widths are distances to neighbour k/3: with the nearest alone, weights would follow the noise of distances.
WIDTH_RANK = 3
#: Largest exponent of a weight. A weight e^-50 is negligible, but all weights of a far row keep their ratios.
MOST = 50.0
#: Widths are at least this share of their mean: copies of a row have a distance of 0.
NARROWEST = 1e-6
#: With more rows, neighbours are found approximately if pynndescent is installed.
EXACT_ROWS = 25_000
#: Rows whose neighbours are processed at once; their differences fit into the cache.
BLOCK = 512


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest points of some rows, nearest first."""

    distances: np.ndarray  # (m, k)
    index: np.ndarray  # (m, k)

    def widths(self) -> np.ndarray:
        """Return the local width of each row, shape (m,)."""
        return self.distances[:, max(self.index.shape[1] // WIDTH_RANK, 1) - 1]


@dataclass(frozen=True, eq=False)
class Neighbors:
    """Points with local widths, among which the neighbours of rows are found."""

    points: np.ndarray  #: (n, d).
    widths: np.ndarray  #: (n,).
    n_neighbors: int

    @classmethod
    def of(cls, points: np.ndarray, n_neighbors: int, seed: int) -> tuple[Self, Nearest]:
        """Return the points with their widths, and the nearest other points of each."""
        nearest = _nearest_others(points, n_neighbors, seed)
        widths = nearest.widths()
        typical = widths.mean()
        if not 0 < typical < np.inf:
            raise ArgumentError(
                "Distances between neighbours are 0 or overflow: rows of X are copies of one another, or its numbers "
                "are too large. Give each row once, in units in which typical distances are about 1."
            )
        return cls(points, np.maximum(widths, NARROWEST * typical), n_neighbors), nearest

    @cached_property
    def origin(self) -> np.ndarray:
        """Mean of the points, relative to which rounding errors of distances are small."""
        return np.asarray(self.points.mean(axis=0))

    @cached_property
    def _index(self) -> Any:
        return exact.neighbors(self.points - self.origin, self.n_neighbors)

    def nearest(self, X: np.ndarray) -> Nearest:
        """Return the nearest points of rows that need not be among them."""
        index = self._index.kneighbors(X - self.origin, return_distance=False)
        return _sorted(self.points, X, index)

    def weights(self, nearest: Nearest, widths: np.ndarray) -> np.ndarray:
        """Return the weights of rows, which have these widths, with their nearest points; shape (m, k)."""
        exponent = nearest.distances**2 / (widths[:, None] * self.widths[nearest.index])
        return np.exp(-np.minimum(exponent, MOST))

    def row_widths(self, nearest: Nearest) -> np.ndarray:
        """Return the widths of rows that need not be among the points."""
        return np.maximum(nearest.widths(), NARROWEST * self.widths.mean())

    def means(self, X: np.ndarray, nearest: Nearest, weights: np.ndarray) -> np.ndarray:
        """Return the neighbour means of rows, in which a row itself has the weight 1."""
        sums = np.array(X, dtype=np.float64)
        for part in slices(len(X), BLOCK):
            sums[part] += np.einsum("mk,mkd->md", weights[part], self.points[nearest.index[part]])
        return sums / (1 + weights.sum(axis=1, keepdims=True))

    def graph(self, nearest: Nearest) -> sparse.csr_array:
        """Return the symmetric matrix of weights, shape (n, n)."""
        n, k = nearest.index.shape
        weights = self.weights(nearest, self.widths)
        starts = np.arange(0, n * k + 1, k)
        directed = sparse.csr_array((weights.ravel(), nearest.index.ravel(), starts), shape=(n, n))
        return sparse.csr_array(directed.maximum(directed.T))


def _nearest_others(points: np.ndarray, k: int, seed: int) -> Nearest:
    """Return the k nearest other points of each point."""
    if len(points) > EXACT_ROWS and find_spec("pynndescent") is not None:
        index = _approximate_others(points, k, seed)
    else:
        index = exact.neighbors(points - points.mean(axis=0), k).kneighbors(return_distance=False)
    return _sorted(points, points, index)


def _approximate_others(points: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Return about the k nearest other points of each point, by pynndescent in one thread."""
    from pynndescent import NNDescent

    centred = (points - points.mean(axis=0)).astype(np.float32)
    index = NNDescent(centred, n_neighbors=k + 1, random_state=seed, n_jobs=1).neighbor_graph[0]
    # The first neighbour is the point itself, unless it has copies.
    itself = index == np.arange(len(points))[:, None]
    itself[~itself.any(axis=1), -1] = True
    found = index[~itself].reshape(len(points), k)
    missing = np.flatnonzero((found < 0).any(axis=1))
    if missing.size:
        others = exact.neighbors(points - points.mean(axis=0), k + 1).kneighbors(
            points[missing] - points.mean(axis=0), return_distance=False
        )
        found[missing] = [row[row != i][:k] for i, row in zip(missing, others, strict=True)]
    return found


def _sorted(points: np.ndarray, X: np.ndarray, index: np.ndarray) -> Nearest:
    """Return exact distances of rows to the points found for them, in ascending order.

    A search by matrix products has rounding errors of the size of the coordinates.
    """
    distances = np.empty(index.shape)
    for part in slices(len(X), BLOCK):
        differences = points[index[part]] - X[part, None, :]
        distances[part] = np.sqrt(np.einsum("mkd,mkd->mk", differences, differences))
    order = np.argsort(distances, axis=1, kind="stable")
    return Nearest(np.take_along_axis(distances, order, axis=1), np.take_along_axis(index, order, axis=1))


@dataclass(frozen=True, eq=False)
class NeighborForm:
    """Rows and their neighbour means, whose graphs have half of the weight each."""

    rows: Neighbors
    means: Neighbors
    shares: np.ndarray  #: (2,): factors with which both graphs have the same total weight.

    @classmethod
    def of(cls, X: np.ndarray, n_neighbors: int, seed: int) -> tuple[Self, sparse.csr_array]:
        """Return the form of the rows X, and the matrix W of the weights, whose mean degree is 1."""
        rows, nearest = Neighbors.of(X, n_neighbors, seed)
        averaged = rows.means(X, nearest, rows.weights(nearest, rows.widths))
        means, nearest_means = Neighbors.of(averaged, n_neighbors, seed)
        graphs = [rows.graph(nearest), means.graph(nearest_means)]
        shares = np.array([len(X) / (2 * graph.sum()) for graph in graphs])
        return cls(rows, means, shares), sparse.csr_array(shares[0] * graphs[0] + shares[1] * graphs[1])

    def neighbors_of(self, X: np.ndarray) -> list[tuple[Neighbors, np.ndarray, Nearest, np.ndarray]]:
        """Return for both graphs the points, the coordinates of the rows, their nearest points and the weights."""
        found = []
        coordinates = X
        for points, share in zip((self.rows, self.means), self.shares, strict=True):
            nearest = points.nearest(coordinates)
            weights = points.weights(nearest, points.row_widths(nearest))
            found.append((points, coordinates, nearest, share * weights))
            coordinates = points.means(coordinates, nearest, weights)
        return found


@dataclass(eq=False, repr=False)
class NeighborBasis(Basis):
    """Modes of a graph of neighbours as functions of all points: the average over the neighbours of a point, over λ.

    A row of the fit has the value of the eigenvector.
    """

    form: NeighborForm
    values: np.ndarray  #: (n, r): the modes at the rows of the fit.
    eigenvalues: np.ndarray  #: (r,): λ, positive.

    kernel: Any = None

    def __post_init__(self) -> None:
        self.origin: np.ndarray = self.form.rows.origin
        self.n_features: int = self.values.shape[1]

    @property
    def chunk_rows(self) -> int:
        return 4 * BLOCK

    @property
    def ridge(self) -> None:
        return None

    def features(self, X: np.ndarray, n_rows: float | None = None) -> np.ndarray:
        X = np.asarray(X, dtype=np.float64)
        sums = np.zeros((len(X), self.n_features))
        degrees = np.zeros((len(X), 1))
        graphs = self.form.neighbors_of(X)
        for _, _, nearest, weights in graphs:
            sums += np.einsum("mk,mkr->mr", weights, self.values[nearest.index])
            degrees += weights.sum(axis=1, keepdims=True)
        extended = sums / (degrees * self.eigenvalues)
        among_rows = graphs[0][2]
        same = among_rows.distances[:, 0] == 0
        extended[same] = self.values[among_rows.index[same, 0]]
        return extended

    def gradient(self, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        X = np.asarray(X, dtype=np.float64)
        slopes = np.empty((len(X), coefficients.shape[1], X.shape[1]))
        for part in slices(len(X), BLOCK):
            slopes[part] = self._gradient(X[part], coefficients / self.eigenvalues[:, None])
        return slopes

    def _gradient(self, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Return the gradients of averages over neighbours, by the chain rule for neighbour means."""
        graphs = self.form.neighbors_of(X)
        values = self.values @ coefficients
        total = np.zeros(len(X))
        average = np.zeros((len(X), values.shape[1]))
        for _, _, nearest, weights in graphs:
            total += weights.sum(axis=1)
            average += np.einsum("mk,mkr->mr", weights, values[nearest.index])
        average /= total[:, None]
        above = [values[nearest.index] - average[:, None, :] for _, _, nearest, _ in graphs]
        rows, means = graphs
        at_means = _weighted_slopes(*means, above[1])
        # z = (x + Σ w_j x_j)/(1 + Σ w_j) changes with x directly, and through the weights.
        points, _, nearest, weights = rows
        plain = weights / self.form.shares[0]
        away = points.points[nearest.index] - means[1][:, None, :]
        through = np.einsum("mkd,mrd->mkr", away, at_means)
        at_rows = at_means + _weighted_slopes(points, X, nearest, plain, through)
        at_rows /= 1 + plain.sum(axis=1)[:, None, None]
        slopes = _weighted_slopes(*rows, above[0]) + at_rows
        return np.asarray(slopes / total[:, None, None])

    def start(self, rows: int, n_samples: int | None = None) -> Any:
        raise _no_energy_of_gradients()

    def step(
        self, state: Any, X: np.ndarray, root_weight: np.ndarray, tensor: TensorRows, constant: np.ndarray | None
    ) -> None:
        raise _no_energy_of_gradients()

    def finish(self, states: list[Any], constant: np.ndarray | None, sign: float) -> Sums:
        raise _no_energy_of_gradients()


def _no_energy_of_gradients() -> NotApplicable:
    return NotApplicable(
        "This model has the energy of differences between neighbours in its fit, and no energy of gradients at other "
        "samples; use the default energy for scores, error bars and generators."
    )


def _weighted_slopes(
    points: Neighbors, X: np.ndarray, nearest: Nearest, weights: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Return Σ_j ∇w_j(x) v_j for values v of shape (m, k, r), as an array (m, r, d).

    The weight w_j = exp(-|x - x_j|²/(s(x) s_j)) depends on x directly, and by the distance s(x) to neighbour k/3.
    """
    rank = max(nearest.index.shape[1] // WIDTH_RANK, 1) - 1
    widths = points.row_widths(nearest)
    exponent = nearest.distances**2 / (widths[:, None] * points.widths[nearest.index])
    weights = np.where(exponent < MOST, weights, 0.0)
    differences = X[:, None, :] - points.points[nearest.index]
    direct = -2 * weights / (widths[:, None] * points.widths[nearest.index])
    slopes = np.einsum("mk,mkr,mkd->mrd", direct, values, differences, optimize=True)
    width = nearest.distances[:, rank]
    moving = width == widths  # a width at its lower limit is constant
    of_width = np.einsum("mk,mkr->mr", weights * exponent, values) / widths[:, None]
    direction = np.divide(differences[:, rank], width[:, None], where=moving[:, None], out=np.zeros_like(X))
    return slopes + of_width[:, :, None] * direction[:, None, :]
