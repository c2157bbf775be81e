"""Independent components: Ornstein–Uhlenbeck processes, products, and fast coordinates added to other problems.

The modes of a product are products of modes, and their rates add.
"""

import heapq
from collections.abc import Callable, Sequence
from math import fsum

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import ortho_group

from kdmaps.problems.base import Array, Diffusion, Problem
from kdmaps.problems.langevin import double_well
from kdmaps.utils.validation import check_positive_integer, check_positive_number

#: Standard deviation of the coordinates added by `nuisance`.
DEFAULT_STD = 0.25


def slowest_products(
    level_rate: Callable[[int, int], float], n_factors: int, k: int
) -> tuple[Array, list[tuple[int, ...]]]:
    """List the `k` slowest products of modes as multi-indices, without the constant.

    ``level_rate(j, m)`` is the rate of mode m >= 1 of factor j, ascending in m. Best-first search: the parent of a
    multi-index has the last non-zero entry lowered by one, so every index enters the heap once, and after all slower
    ones. Ties are ordered by degree, then earlier factors first.
    """

    def entry(index: tuple[int, ...]) -> tuple[float, int, tuple[int, ...], tuple[int, ...]]:
        # fsum rounds once, so equal sums stay equal in any order.
        rate = fsum(level_rate(j, m) for j, m in enumerate(index) if m)
        return rate, sum(index), tuple(-m for m in index), index

    heap, rates, indices = [entry((0,) * n_factors)], list[float](), list[tuple[int, ...]]()
    while len(rates) <= k:
        rate, *_, index = heapq.heappop(heap)
        rates.append(rate)
        indices.append(index)
        last = max((j for j, m in enumerate(index) if m), default=0)
        for j in range(last, n_factors):
            heapq.heappush(heap, entry((*index[:j], index[j] + 1, *index[j + 1 :])))
    return np.array(rates[1:]), indices[1:]


def multiply(
    functions: Sequence[Callable[[Array, int], Array]], points: Sequence[Array], indices: Sequence[tuple[int, ...]]
) -> Array:
    """Return columns Π_j f_{j,m_j}(x_j) for multi-indices m: f_{j,0} = 1, functions[j](x, k) = [f_{j,1}, …, f_{j,k}]"""
    values = np.ones((len(points[0]), len(indices)))
    for factor, x, numbers in zip(functions, points, np.transpose(indices), strict=True):
        table = np.hstack([np.ones((len(x), 1)), factor(x, max(int(numbers.max()), 1))])
        values *= table[:, numbers]
    return values


class Independent(Problem):
    """Independent problems; as `Product`, for problems without a drift too."""

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
        return multiply([factor._eigenfunctions for factor in self.factors], self._split(X), modes)


class Product(Diffusion, Independent):
    """Independent diffusions: φ = Π_j φ_{m_j}(x_j) with rate Σ_j rate_{m_j}.

    Parameters
    ----------
    factors : sequence of Diffusion
        The components, with the same diffusion constant; each uses its own sampler and simulation scheme.
    rotation : ndarray of shape (dim, dim), optional
        Orthogonal matrix Q: points are Q x instead of x = (x_1, x_2, …). Rates are the same.
    """

    name = "product"
    factors: tuple[Diffusion, ...]

    def _drift(self, X: Array) -> Array:
        return self._join([factor._drift(x) for factor, x in zip(self.factors, self._split(X), strict=True)])

    def _step(self, x: Array, dt: float, rng: np.random.Generator) -> Array:
        parts = zip(self.factors, self._split(x), strict=True)
        return self._join([factor._step(part, dt, rng) for factor, part in parts])


def hermite(z: Array, degree: int) -> Array:
    """Evaluate He_m(z)/√m! for m = 1..degree by a recurrence without factorials; shape (n, degree)."""
    values = np.empty((len(z), degree + 1))
    values[:, 0] = 1
    values[:, 1] = z
    for m in range(1, degree):
        values[:, m + 1] = (z * values[:, m] - np.sqrt(m) * values[:, m - 1]) / np.sqrt(m + 1)
    return values[:, 1:]


def hermite_products(Z: Array, modes: list[tuple[int, ...]]) -> Array:
    """Evaluate Π_j He_{m_j}(z_j)/√m_j! for multi-indices m; shape (n, len(modes))."""
    return multiply([hermite] * Z.shape[1], list(Z.T), modes)


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
        self.diffusion: float = check_positive_number("diffusion", diffusion)
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
        return hermite_products(X * np.sqrt(self._stiffness), slowest_products(self._level_rate, self.dim, k)[1])


class MDLike(Product):
    """A toy model of molecular dynamics: slow coordinates in V = (x² - 1)²/4 and fast Gaussian ones, all independent.

    Fast coordinates have the rate 1/variance. Slow coordinates are simulated by Euler–Maruyama, fast ones exactly.

    Parameters
    ----------
    n_slow, n_fast : int
        Numbers of double-well coordinates, which come first, and of Gaussian coordinates.
    fast_variance : float
        Stationary variance of the Gaussian coordinates.
    """

    name = "mdlike"

    def __init__(self, n_slow: int = 2, n_fast: int = 8, fast_variance: float = 0.04) -> None:
        self.n_slow: int = check_positive_integer("n_slow", n_slow)
        self.n_modes: int = self.n_slow
        fast_rate = 1 / check_positive_number("fast_variance", fast_variance)
        # One object for all slow coordinates: it is solved once, and their rates are identical to the last bit.
        fast = OrnsteinUhlenbeck([fast_rate] * check_positive_integer("n_fast", n_fast))
        super().__init__([double_well()] * n_slow + [fast])


def nuisance(problem: Problem, k: int, std: float = DEFAULT_STD, rotation: int | None = None) -> Problem:
    """Add `k` independent Gaussian coordinates N(0, std²) to a problem.

    Each is an Ornstein–Uhlenbeck coordinate of rate D/std², with the diffusion constant D of the problem. Modes are
    products of modes of the problem and Hermite polynomials of the new coordinates, and their rates add; those slower
    than D/std² are the modes of the problem itself.

    Parameters
    ----------
    problem : Problem
        The problem, whose coordinates come first.
    k, std : int, float
        Number of Gaussian coordinates, and their standard deviation.
    rotation : int, optional
        If given, the seed of a random orthogonal matrix by which all coordinates are rotated.

    Returns
    -------
    Problem
        With the `n_modes` of `problem`, and with a drift if `problem` has one.

    Examples
    --------
    >>> import kdmaps
    >>> base = kdmaps.problems.load("triplewell2d")
    >>> noisy = kdmaps.problems.nuisance(base, 48, 0.25, rotation=0)
    >>> noisy.sample(100, random_state=0).shape
    (100, 50)
    >>> bool((noisy.rates(4) == base.rates(4)).all())
    True
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a problem such as kdmaps.problems.load('dw1d'), got {problem!r}.")
    rate = problem.diffusion / check_positive_number("std", std) ** 2
    noise = OrnsteinUhlenbeck(np.full(check_positive_integer("k", k), rate), problem.diffusion)
    matrix = None if rotation is None else ortho_group.rvs(problem.dim + k, random_state=rotation)
    parts = [problem, noise]
    noisy = Product(parts, matrix) if isinstance(problem, Diffusion) else Independent(parts, matrix)
    noisy.n_modes = problem.n_modes
    noisy.cluster_tolerance = problem.cluster_tolerance
    noisy.name = f"{problem.name}+{k}x{std:g}"
    return noisy
