"""Eigenpairs of generators by finite volumes, and exact samples of e^{-V} in a box.

With masses e^{-V} at cell centres and fluxes e^{-V} at cell faces, -G φ = -e^V ∇·(e^{-V} ∇φ) becomes a matrix that is
reversible with respect to the masses. Only differences of V between neighbours are exponentiated, which avoids
underflow. The error is even in the cell width h; Richardson extrapolation over doubled grids removes the leading h².
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.interpolate import CubicSpline, RectBivariateSpline
from scipy.linalg import eigh_tridiagonal, polar
from scipy.ndimage import distance_transform_edt
from scipy.sparse import csc_array, diags_array
from scipy.sparse.linalg import eigsh, spsolve

from kdmaps.problems.base import Array

Field: TypeAlias = Callable[[Array], Array]
Mask: TypeAlias = Callable[[Array], np.ndarray]
Box: TypeAlias = tuple[tuple[float, float], tuple[float, float]]
# Cells with V this far above its minimum are left out: they contain no samples (e^{-50} = 2e-22) and contribute nothing
# to modes of moderate order, while e^{V/2} would amplify the rounding errors of the eigenvectors.
CUTOFF = 50.0
# Relative change of the rates at which the refinement of an interval stops, and its largest number of cells.
TOLERANCE, MAX_CELLS = 1e-7, 2**16


class ExactCommittor(NamedTuple):
    """Flux, rates and committor of two sets."""

    flux: float
    rate: float
    reverse_rate: float
    function: Field


class _Grid(NamedTuple):
    """Cells of a rectangle, and the faces between those that are not left out."""

    axes: tuple[Array, Array]
    values: Array  # V at the centres
    number: np.ndarray  # of the cells that are not left out, -1 for the others
    sides: tuple[np.ndarray, np.ndarray]  # numbers of the cells at each face
    faces: Array  # V at the faces
    squared_widths: Array

    def filled(self, function: Array) -> Array:
        """Return a function on all cells: cells left out take the value of the nearest remaining cell."""
        nearest = distance_transform_edt(self.number < 0, return_distances=False, return_indices=True)
        return function[self.number[tuple(nearest)]]


class Interval:
    """Eigenpairs of -(w φ')'/w + q φ = rate φ with w = e^{-V}, killing q >= 0 and no flux at the ends, counted from 0.

    The domain is trimmed to V - min V < 50, and the grid is doubled until the extrapolated rates agree to 1e-7.
    """

    potential: Field
    killing: Field | None

    def __init__(self, potential: Field, domain: tuple[float, float], killing: Field | None = None) -> None:
        self.potential, self.killing = potential, killing
        x = np.linspace(*domain, 4097)[1:-1]
        v = potential(x)
        if not np.isfinite(v).all():
            raise ValueError("potential must be finite inside domain; pass a smaller domain.")
        low, high = np.flatnonzero(v - v.min() < CUTOFF)[[0, -1]]
        spacing = x[1] - x[0]
        self.domain: tuple[float, float] = (float(x[low] - spacing), float(x[high] + spacing))
        self._rates = np.empty(0)
        self._functions: CubicSpline | None = None

    def rates(self, k: int) -> Array:
        """Return the `k` smallest rates, including mode 0."""
        self._refine(k)
        return self._rates[:k].copy()

    def functions(self, x: Array, k: int) -> Array:
        """Evaluate the first `k` modes, of norm 1 under π, positive at the right end, constant outside the domain."""
        self._refine(k)
        assert self._functions is not None
        return self._functions(np.clip(np.ravel(x), *self.domain))[:, :k]

    def _refine(self, k: int) -> None:
        if k <= len(self._rates):
            return
        # More modes than requested, so that increasing k step by step does not solve again each time.
        k = max(8, 2 * k)
        cells = max(512, 16 * k)
        coarse = self._solve(cells, k)
        previous = np.full(k, np.inf)
        while (cells := 2 * cells) <= MAX_CELLS:
            fine = self._solve(cells, k)
            rates = fine[1] + (fine[1] - coarse[1]) / 3
            # The tolerance of rate 0 is relative to the next rate.
            if np.all(np.abs(rates - previous) <= TOLERANCE * np.maximum(np.abs(rates), rates[1])):
                x, _, values = fine
                values = values + (values - CubicSpline(*coarse[::2])(x)) / 3
                self._functions = CubicSpline(x, values)
                self._rates = rates  # assigned last: other threads test its length
                return
            coarse, previous = fine, rates
        raise ValueError(f"{k} modes are not resolved by {MAX_CELLS} cells; pass a smaller k or a smoother potential.")

    def _solve(self, cells: int, k: int) -> tuple[Array, Array, Array]:
        edges = np.linspace(*self.domain, cells + 1)
        x = (edges[:-1] + edges[1:]) / 2
        h = edges[1] - edges[0]
        v, face = self.potential(x), self.potential(edges[1:-1])
        diagonal = np.zeros(cells) if self.killing is None else self.killing(x)
        diagonal[:-1] += np.exp(v[:-1] - face) / h**2
        diagonal[1:] += np.exp(v[1:] - face) / h**2
        off_diagonal = -np.exp((v[:-1] + v[1:]) / 2 - face) / h**2
        rates, vectors = eigh_tridiagonal(diagonal, off_diagonal, select="i", select_range=(0, k - 1))
        root_mass = np.exp((v.min() - v) / 2)
        values = vectors * np.linalg.norm(root_mass) / root_mass[:, None]
        # The sign is taken beyond the last zero, but before rounding errors matter.
        right = np.flatnonzero(v - v.min() < 30)[-1]
        return x, rates, values * np.sign(values[right])


class Rectangle:
    """Eigenpairs of -e^V ∇·(e^{-V} ∇φ) = rate φ on a rectangle with no flux through its sides, counted from rate 0.

    Rates are extrapolated over three doubled grids (Romberg), of which the coarsest has `cells` cells along each side;
    modes are extrapolated over the two finest.
    """

    potential: Field
    domain: Box
    cells: int

    def __init__(self, potential: Field, domain: Box, cells: int) -> None:
        self.potential, self.domain, self.cells = potential, domain, cells
        self._rates = np.empty(0)
        self._functions: list[RectBivariateSpline] = []

    def rates(self, k: int) -> Array:
        """Return the `k` smallest rates, including rate 0 of the constant."""
        self._refine(k)
        return self._rates[:k].copy()

    def functions(self, X: Array, k: int) -> Array:
        """Evaluate the first `k` modes, of norm 1 under π, constant outside the domain; shape (n, k)."""
        self._refine(k)
        x, y = (np.clip(column, *side) for column, side in zip(X.T, self.domain, strict=True))
        return np.column_stack([function(x, y, grid=False) for function in self._functions[:k]])

    def _refine(self, k: int) -> None:
        if k <= len(self._rates):
            return
        # With a few modes beyond the k-th, the Procrustes step below can rotate a degenerate pair split by k.
        k = max(10, k + 4)
        (_, r1, _), (axes2, r2, f2), (axes4, r4, f4) = (self._solve(m * self.cells, k) for m in (1, 2, 4))
        first, second = r2 + (r2 - r1) / 3, r4 + (r4 - r2) / 3
        rates = second + (second - first) / 15
        # The h⁶ remainder is far below the last correction.
        if np.any(np.abs(rates - second) > 1e-4 * np.maximum(np.abs(rates), rates[1])):
            raise ValueError(
                f"{k} modes are not resolved by {4 * self.cells} cells per side; pass more cells or a smaller k."
            )
        coarse = np.stack([RectBivariateSpline(*axes2, f)(*axes4) for f in f2])
        # Eigenvectors of two grids agree up to signs and rotations of degenerate modes: the polar factor of their
        # overlap, restricted to such modes. A full rotation would also remove the h² term to be extrapolated.
        mass = np.exp(-self._values(axes4))
        overlap = np.einsum("iab,jab,ab->ij", f4, coarse, mass / mass.sum())
        overlap[np.abs(r4[:, None] - r4) > 1e-4 * r4[1]] = 0
        aligned = np.tensordot(polar(overlap)[0], coarse, axes=1)
        self._functions = [RectBivariateSpline(*axes4, f) for f in f4 + (f4 - aligned) / 3]
        self._rates = rates  # assigned last: other threads test its length

    def _values(self, axes: tuple[Array, Array]) -> Array:
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        return self.potential(grid.reshape(-1, 2)).reshape(grid.shape[:2])

    def _solve(self, cells: int, k: int) -> tuple[tuple[Array, Array], Array, Array]:
        grid = self._grid(cells)
        v, inside = grid.values, grid.number >= 0
        diagonal = np.zeros(inside.sum())
        i, j = grid.sides
        np.add.at(diagonal, i, np.exp(v[inside][i] - grid.faces) / grid.squared_widths)
        np.add.at(diagonal, j, np.exp(v[inside][j] - grid.faces) / grid.squared_widths)
        entries = -np.exp((v[inside][i] + v[inside][j]) / 2 - grid.faces) / grid.squared_widths
        upper = csc_array((entries, (i, j)), shape=2 * diagonal.shape)
        matrix = (diags_array(diagonal) + upper + upper.T).tocsc()
        # A shift below 0 keeps the factorized matrix positive definite; a random start overlaps with every mode.
        start = np.random.default_rng(0).standard_normal(len(diagonal))
        rates, vectors = eigsh(matrix, k, sigma=-0.1, v0=start)
        order = np.argsort(rates)
        root_mass = np.exp((v.min() - v[inside]) / 2)
        modes = vectors[:, order] * np.linalg.norm(root_mass) / root_mass[:, None]
        # The sign of the inner product with a function without symmetries, which does not vanish by symmetry.
        lopsided = np.exp(np.add.outer(np.linspace(0, 2, cells), np.linspace(0, 1, cells)))[inside]
        modes *= np.sign((root_mass**2 * lopsided) @ modes)
        return grid.axes, rates[order], np.stack([grid.filled(mode) for mode in modes.T])

    def committor(self, source: Mask, target: Mask, diffusion: float = 1.0) -> ExactCommittor:
        """Solve ∇·(e^{-V} ∇q) = 0 with q = 0 in the cells of `source` and 1 in the cells of `target`.

        Cells belong to a set if their centres do, so the result has an error of the order of a cell at sets whose
        borders are not borders of cells; it hardly matters for sets in wells.
        """
        grid = self._grid(4 * self.cells)
        points = np.stack(np.meshgrid(*grid.axes, indexing="ij"), axis=-1)[grid.number >= 0]
        low, high = source(points), target(points)
        v = grid.values[grid.number >= 0]
        (i, j), mass = grid.sides, np.exp(v.min() - v)
        conductance = np.exp(v.min() - grid.faces) / grid.squared_widths
        upper = csc_array((conductance, (i, j)), shape=(len(v), len(v)))
        both = upper + upper.T
        matrix = (diags_array(both.sum(axis=0)) - both).tocsr()
        q, free = high.astype(np.float64), ~(low | high)
        scale = diags_array(1 / np.sqrt(matrix.diagonal()[free]))  # e^{-V} ranges over many orders of magnitude
        scaled = (scale @ matrix[free][:, np.flatnonzero(free)] @ scale).tocsc()
        q[free] = scale @ spsolve(scaled, -(scale @ (matrix[free] @ q)))
        flux = diffusion * float(q @ (matrix @ q)) / mass.sum()
        inside = float(mass @ q) / mass.sum()
        spline = RectBivariateSpline(*grid.axes, grid.filled(q), kx=1, ky=1)
        return ExactCommittor(flux, flux / (1 - inside), flux / inside, lambda X: spline(X[:, 0], X[:, 1], grid=False))

    def _grid(self, cells: int) -> _Grid:
        edges = tuple(np.linspace(*side, cells + 1) for side in self.domain)
        x, y = ((e[:-1] + e[1:]) / 2 for e in edges)
        v = self._values((x, y))
        inside = v - v.min() < CUTOFF
        number = np.where(inside, np.cumsum(inside).reshape(inside.shape) - 1, -1)
        parts = []
        for axis, faces in enumerate(((edges[0][1:-1], y), (x, edges[1][1:-1]))):
            low, high = np.delete(number, -1, axis), np.delete(number, 0, axis)
            both = (low >= 0) & (high >= 0)
            squared = np.full(np.count_nonzero(both), (edges[axis][1] - edges[axis][0]) ** 2)
            parts.append((low[both], high[both], self._values(faces)[both], squared))
        i, j, values, squared = (np.concatenate(column) for column in zip(*parts, strict=True))
        return _Grid((x, y), v, number, (i, j), values, squared)


def sample_box(
    potential: Field, domain: tuple[tuple[float, float], ...], cells: int, n: int, rng: np.random.Generator
) -> Array:
    """Draw `n` independent points with density ∝ e^{-V} in a box, by rejection.

    The envelope is constant on each cell of a grid: e^{-V} at the corner where V is lowest, times e^{0.05} because V
    may be lower inside the cell.
    """
    edges = [np.linspace(*side, cells + 1) for side in domain]
    corners = np.stack(np.meshgrid(*edges, indexing="ij"), axis=-1)
    bound = potential(corners.reshape(-1, len(domain))).reshape(corners.shape[:-1]) - 0.05
    for axis in range(len(domain)):
        bound = np.minimum(bound.take(range(cells), axis), bound.take(range(1, cells + 1), axis))
    cumulative = np.cumsum(np.exp(bound.min() - bound))
    low, width = np.array([e[0] for e in edges]), np.array([e[1] - e[0] for e in edges])
    accepted: list[Array] = []
    missing = n
    while missing > 0:
        draws = missing + missing // 8 + 16
        cell = np.searchsorted(cumulative, rng.uniform(0, cumulative[-1], draws), side="right")
        points = low + width * (np.column_stack(np.unravel_index(cell, bound.shape)) + rng.random((draws, len(domain))))
        excess = potential(points) - bound.ravel()[cell]
        if (excess < 0).any():
            raise ValueError("potential varies too much inside a cell of the sampling grid; pass a smaller domain.")
        accepted.append(points[rng.random(draws) < np.exp(-excess)])
        missing -= len(accepted[-1])
    return np.concatenate(accepted)[:n]
