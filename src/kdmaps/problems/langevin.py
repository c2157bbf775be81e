"""Overdamped Langevin dynamics in one and two dimensions: any smooth confining potential, and well-known ones."""

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.problems.base import Array, Diffusion, RandomState, check_points
from kdmaps.problems.finite_volume import Box, ExactCommittor, Field, Interval, Mask, Rectangle, sample_box
from kdmaps.utils.validation import check_positive_integer, check_positive_number


def check_sides(domain: tuple[tuple[float, float], ...], n_sides: int) -> None:
    """Raise a ValueError unless `domain` holds `n_sides` finite pairs low < high."""
    valid = all(np.shape(side) == (2,) and np.isfinite(side).all() and side[0] < side[1] for side in domain)
    if len(domain) != n_sides or not valid:
        raise ValueError(f"domain must give a finite low < high for each of {n_sides} coordinate(s), got {domain!r}.")


class _Langevin(Diffusion):
    """Overdamped Langevin dynamics; `_modes` are those for D = 1."""

    gradient: Field
    _modes: Interval | Rectangle

    def _drift(self, X: Array) -> Array:
        return -self.diffusion * self.gradient(X)

    def _rates(self, k: int) -> Array:
        return self.diffusion * self._modes.rates(k + 1)[1:]

    def _eigenfunctions(self, X: Array, k: int) -> Array:
        return self._modes.functions(X, k + 1)[:, 1:]


class Langevin1D(_Langevin):
    """dX = -V'(X) dt + √2 dW on the line; trajectories by Euler–Maruyama.

    Modes solve -φ'' + V' φ' = rate φ by finite volumes, extrapolated until the rates agree to 1e-7, and are positive at
    the right end. Samples are drawn exactly, by rejection.

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
    potential: Field
    gradient: Field

    def __init__(self, potential: Field, gradient: Field, domain: tuple[float, float]) -> None:
        check_sides((domain,), 1)
        self.potential, self.gradient = potential, gradient
        self._modes = Interval(potential, domain)
        self.domain: tuple[float, float] = self._modes.domain

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return sample_box(lambda X: self.potential(X[:, 0]), (self.domain,), 1024, n, rng)


class Langevin2D(_Langevin):
    """dX = -D∇V(X) dt + √(2D) dW in the plane; trajectories by Euler–Maruyama.

    Modes solve D(-Δφ + ∇V·∇φ) = rate φ by finite volumes on three doubled grids with extrapolation. Samples are drawn
    exactly, by rejection.

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
    cluster_tolerance: float = 1e-6  # accuracy of the extrapolated rates
    sampling_cells = 256  # along each side of the sampling grid; V must be nearly constant on each cell

    potential: Field
    gradient: Field
    domain: Box
    _modes: Rectangle

    def __init__(self, potential: Field, gradient: Field, domain: Box, cells: int = 48, diffusion: float = 1.0) -> None:
        check_sides(domain, 2)
        self.diffusion: float = check_positive_number("diffusion", diffusion)
        self.potential, self.gradient, self.domain = potential, gradient, domain
        self._modes = Rectangle(potential, domain, cells)

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return sample_box(self.potential, self.domain, self.sampling_cells, n, rng)

    def committor(self, source: Mask, target: Mask) -> ExactCommittor:
        """Return flux, rates and committor of two sets by finite volumes.

        Parameters
        ----------
        source, target : callable
            Map points of shape (n, 2) to masks of the sets, of shape (n,).
        """
        return self._modes.committor(source, target, self.diffusion)


def double_well(tilt: float = 0.0) -> Langevin1D:
    """Return the double well V = (x² - 1)²/4 + tilt·x, with a barrier of 1/4 at 0 between the wells at ±1."""
    return Langevin1D(lambda x: (x**2 - 1) ** 2 / 4 + tilt * x, lambda x: x * (x**2 - 1) + tilt, (-5.0, 5.0))


def triple_well() -> Langevin1D:
    """Return the triple well V = 2.5 x² (x² - 2)² + 0.2 x, with wells near 0 and ±√2 and barriers of about 3."""
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
    centres = np.array([[0, 1 / 3], [0, 5 / 3], [1, 0], [-1, 0]])
    bumps, slopes = _gaussians(np.array([3.0, -3.0, -5.0, -5.0]), centres, np.tile(-np.eye(2), (4, 1, 1)))

    def potential(X: Array) -> Array:
        return bumps(X) + np.sum((X - centres[0]) ** 4, axis=1) / 5

    def gradient(X: Array) -> Array:
        return slopes(X) + 0.8 * (X - centres[0]) ** 3

    return Langevin2D(potential, gradient, ((-3.7, 3.7), (-3.4, 4.0)))


def _gaussians(heights: Array, centres: Array, forms: Array) -> tuple[Field, Field]:
    """Return Σ_i h_i e^{dᵀQ_i d}, d = x - x_i, and its gradient, as functions of points of shape (n, 2)."""

    def terms(X: Array) -> tuple[Array, Array]:
        offset = X[:, None, :] - centres
        image = np.einsum("ide,nie->nid", forms, offset)
        return image, heights * np.exp(np.sum(offset * image, axis=2))

    def gradient(X: Array) -> Array:
        image, values = terms(X)
        return 2 * np.einsum("ni,nid->nd", values, image)

    return lambda X: terms(X)[1].sum(axis=1), gradient


class MullerBrown(Langevin2D):
    """The Müller–Brown potential times 0.15, at temperature 1 and with D = 0.1: dX = -0.1 ∇V dt + √0.2 dW.

    V = 0.15 Σ_i A_i e^{a_i u² + b_i uv + c_i v²} with u = x - x_i, v = y - y_i and four terms (K. Müller and L. D.
    Brown, Theor. Chim. Acta 53, 75 (1979)). Its minima are -22.0 at (-0.56, 1.44), -16.2 at (0.62, 0.03) and -12.1 at
    (-0.05, 0.47), with saddles at -6.1 and -10.8 between them. The last two wells have the probability 0.0033, the last
    one 0.00013.

    For D = 0.1 the slowest rates are 1.2474e-4 (exchange with the deepest well) and 0.35596 (between the other two); an
    estimator needs ``diffusion=0.1``. The next modes, up to rate 3.4, belong to a plateau around (-1.8, 1.8), 26 above
    the minimum, which no sample reaches; hence `n_modes` is 2. The third rate is 0.6746 in the plane, and larger if the
    plateau is cut off by reflecting sides: 1.24 on (-1.7, 1.3) × (-0.5, 2.2).

    Trajectories need a `dt` of about 1e-3: the stiffest direction relaxes at rate 61.
    """

    name = "muller-brown"
    n_modes = 2
    sampling_cells = 512
    # The bias fills the wells to a level just above the highest saddle, and its height is limited, which leaves an
    # effective sample size of about 40 %.
    fill_level: float = -6.0
    bias_factor: float = 6.0
    fill_height: float = 12.0

    def __init__(self) -> None:
        surface = _gaussians(_HEIGHTS, _CENTRES, _FORMS)
        super().__init__(*surface, ((-3.1, 1.4), (-1.1, 3.1)), cells=80, diffusion=0.1)

    def bias(self, X: ArrayLike) -> Array:
        """Evaluate the static bias U that `biased_sample` adds to V; shape (n,).

        U = -log(e^{-u} + e^{-12}) with u = (1 - 1/6) max(-6 - V, 0): the bias of well-tempered metadynamics with bias
        factor 6, filled up to the highest saddle and limited to 12.

        Parameters
        ----------
        X : array-like of shape (n, 2)
        """
        return self._bias(check_points(X, self.dim))

    def biased_sample(self, n_samples: int, random_state: RandomState = None) -> tuple[Array, Array]:
        """Draw independent points with density ∝ e^{-(V+U)} and their weights for the stationary law e^{-V}.

        About 2.5 % of the points lie near the highest saddle, and the effective sample size is 0.4 `n_samples`.

        Parameters
        ----------
        n_samples : int
        random_state : int, numpy.random.Generator or None

        Returns
        -------
        X : ndarray of shape (n_samples, 2)
        weights : ndarray of shape (n_samples,)
            e^U at the points, scaled to mean 1.
        """
        n, rng = check_positive_integer("n_samples", n_samples), np.random.default_rng(random_state)
        X = sample_box(lambda Y: self.potential(Y) + self._bias(Y), self.domain, self.sampling_cells, n, rng)
        weights = np.exp(self._bias(X))
        return X, weights / weights.mean()

    def _bias(self, X: Array) -> Array:
        filling = (1 - 1 / self.bias_factor) * np.maximum(self.fill_level - self.potential(X), 0)
        return -np.logaddexp(-filling, -self.fill_height)


# Each exponent is a quadratic form dᵀ Q d with d = x - centre.
_HEIGHTS = 0.15 * np.array([-200.0, -100.0, -170.0, 15.0])
_CENTRES = np.array([[1, 0], [0, 0.5], [-0.5, 1.5], [-1, 1]])
_FORMS = np.array([[[-1, 0], [0, -10]], [[-1, 0], [0, -10]], [[-6.5, 5.5], [5.5, -6.5]], [[0.7, 0.3], [0.3, 0.7]]])
