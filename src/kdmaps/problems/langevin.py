"""Overdamped Langevin dynamics in one and two dimensions, for any smooth confining potential."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kdmaps.problems.base import Array, Diffusion, check_positive
from kdmaps.problems.finite_volume import Interval, Rectangle, sample_box


def check_sides(domain: tuple[tuple[float, float], ...], n_sides: int) -> None:
    """Raise a ValueError unless `domain` holds `n_sides` finite pairs low < high."""
    valid = all(np.shape(side) == (2,) and np.isfinite(side).all() and side[0] < side[1] for side in domain)
    if len(domain) != n_sides or not valid:
        raise ValueError(f"domain must give a finite low < high for each of {n_sides} coordinate(s), got {domain!r}.")


class Langevin1D(Diffusion):
    """dX = -V'(X) dt + √2 dW on the line; trajectories by Euler–Maruyama.

    Modes solve -φ'' + V' φ' = rate φ by finite volumes, extrapolated until the rates agree to 1e-7, and are positive at
    the right end. Samples are exact, by rejection.

    Parameters
    ----------
    potential : callable
        V, elementwise on arrays.
    gradient : callable
        V', elementwise on arrays.
    domain : (float, float)
        An interval outside which e^{-V} is negligible.
    """

    name = "langevin1d"
    dim = 1

    def __init__(
        self,
        potential: Callable[[Array], Array],
        gradient: Callable[[Array], Array],
        domain: tuple[float, float],
    ) -> None:
        check_sides((domain,), 1)
        self.potential = potential
        self.gradient = gradient
        self._modes = Interval(potential, domain)
        self.domain: tuple[float, float] = self._modes.domain

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return sample_box(lambda X: self.potential(X[:, 0]), (self.domain,), 1024, n, rng)

    def _drift(self, X: Array) -> Array:
        return -self.gradient(X)

    def _rates(self, k: int) -> Array:
        return self._modes.rates(k + 1)[1:]

    def _eigenfunctions(self, X: Array, k: int) -> Array:
        return self._modes.functions(X[:, 0], k + 1)[:, 1:]


class Langevin2D(Diffusion):
    """dX = -D∇V(X) dt + √(2D) dW in the plane; trajectories by Euler–Maruyama.

    Modes solve D(-Δφ + ∇V·∇φ) = rate φ by finite volumes on three doubled grids with extrapolation. Samples are exact,
    by rejection.

    Parameters
    ----------
    potential : callable
        V of points of shape (n, 2), to shape (n,).
    gradient : callable
        ∇V of points of shape (n, 2), to shape (n, 2).
    domain : ((float, float), (float, float))
        A rectangle outside which e^{-V} is negligible.
    cells : int
        Number of cells along each side of the coarsest of the three grids.
    diffusion : float
        The diffusion constant D.
    """

    name = "langevin2d"
    dim = 2
    # Accuracy of the extrapolated rates.
    cluster_tolerance: float = 1e-6
    # Cells along each side of the grid of the sampler, on each of which V must be nearly constant.
    sampling_cells = 256

    def __init__(
        self,
        potential: Callable[[Array], Array],
        gradient: Callable[[Array], Array],
        domain: tuple[tuple[float, float], tuple[float, float]],
        cells: int = 48,
        diffusion: float = 1.0,
    ) -> None:
        check_sides(domain, 2)
        self.diffusion: float = check_positive(diffusion, "diffusion")
        self.potential = potential
        self.gradient = gradient
        self.domain = domain
        self._modes = Rectangle(potential, domain, cells)

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return sample_box(self.potential, self.domain, self.sampling_cells, n, rng)

    def _drift(self, X: Array) -> Array:
        return -self.diffusion * self.gradient(X)

    def _rates(self, k: int) -> Array:
        return self.diffusion * self._modes.rates(k + 1)[1:]

    def _eigenfunctions(self, X: Array, k: int) -> Array:
        return self._modes.functions(X, k + 1)[:, 1:]


def double_well(tilt: float = 0.0) -> Langevin1D:
    """Return the double well V = (x² - 1)²/4 + tilt·x, with a barrier of 1/4 at 0 between the wells at ±1."""
    return Langevin1D(lambda x: (x**2 - 1) ** 2 / 4 + tilt * x, lambda x: x * (x**2 - 1) + tilt, (-5.0, 5.0))


def triple_well() -> Langevin1D:
    """Return the triple well V = 2.5 x² (x² - 2)² + 0.2 x: wells near 0 and ±√2, barriers of about 3."""
    return Langevin1D(
        lambda x: 2.5 * x**2 * (x**2 - 2) ** 2 + 0.2 * x,
        lambda x: 5 * x * (x**2 - 2) * (3 * x**2 - 2) + 0.2,
        (-3.0, 3.0),
    )


def prinz() -> Langevin1D:
    """Return the four wells of Prinz et al., J. Chem. Phys. 134, 174105 (2011), at temperature 1.

    V = 4 (x⁸ + 0.8 e^{-80x²} + 0.2 e^{-80(x-1/2)²} + 0.5 e^{-40(x+1/2)²}).
    """
    heights, widths, centres = np.array([0.8, 0.2, 0.5]), np.array([80.0, 80.0, 40.0]), np.array([0.0, 0.5, -0.5])

    def bumps(x: Array) -> tuple[Array, Array]:
        offset = np.asarray(x)[..., None] - centres
        return offset, heights * np.exp(-widths * offset**2)

    def potential(x: Array) -> Array:
        return 4 * (x**8 + bumps(x)[1].sum(axis=-1))

    def gradient(x: Array) -> Array:
        offset, bump = bumps(x)
        return 4 * (8 * x**7 - 2 * np.sum(widths * offset * bump, axis=-1))

    return Langevin1D(potential, gradient, (-1.6, 1.6))


def triple_well_2d() -> Langevin2D:
    """Return a non-separable two-dimensional triple well: two deep wells near (±1, 0), joined by two paths.

    V = 3 e^{-x²-(y-1/3)²} - 3 e^{-x²-(y-5/3)²} - 5 e^{-(x-1)²-y²} - 5 e^{-(x+1)²-y²} + (x⁴ + (y-1/3)⁴)/5: a direct path
    over a barrier, and a detour through a shallow well near (0, 1.5). Potential of Metzner, Schütte and Vanden-Eijnden,
    J. Chem. Phys. 125, 084110 (2006), at temperature 1.
    """
    heights = np.array([3.0, -3.0, -5.0, -5.0])
    centres = np.array([[0, 1 / 3], [0, 5 / 3], [1, 0], [-1, 0]])
    quartic_centre = centres[0]

    def bumps(X: Array) -> tuple[Array, Array]:
        offset = X[:, None, :] - centres
        return offset, heights * np.exp(-np.sum(offset**2, axis=2))

    def potential(X: Array) -> Array:
        return bumps(X)[1].sum(axis=1) + np.sum((X - quartic_centre) ** 4, axis=1) / 5

    def gradient(X: Array) -> Array:
        offset, bump = bumps(X)
        return -2 * np.einsum("nb,nbd->nd", bump, offset) + 0.8 * (X - quartic_centre) ** 3

    return Langevin2D(potential, gradient, ((-3.7, 3.7), (-3.4, 4.0)))
