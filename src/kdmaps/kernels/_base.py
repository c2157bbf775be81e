"""Base class of kernels, and random points that kernels map to frequencies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special
from scipy.stats import qmc
from sklearn.utils import check_random_state

from kdmaps.utils.types import RandomStateLike


class Kernel(ABC):
    """A translation-invariant positive definite kernel with k(x, x) = 1."""

    #: Number of continuous derivatives of k(·, z). The energy needs one, a generator needs two.
    smoothness: float = np.inf
    log_slope: float | None = None  #: κ'/κ if it is constant (Gaussian); the energy then needs one Gram matrix less.

    @abstractmethod
    def __call__(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        """Return the matrix k(x_i, z_m); `Z` defaults to `X`."""

    @abstractmethod
    def partials(self, X: np.ndarray, Z: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the matrix ∂k(x_i, z_m)/∂x_ij for each coordinate j in turn."""

    @abstractmethod
    def components(self) -> list[tuple[float, Kernel]]:
        """Return the weights and kernels of which this kernel is the convex combination."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which `kernel_from_dict` makes an equal kernel."""

    @property
    def linear_map(self) -> np.ndarray | None:
        """T of the coordinates y = xT in which the kernel is radial, k = κ(|y - ζ|²); None for a kernel that is not.

        A number, one number per coordinate, or a matrix (d, d): 1/σ, or H/σ for a metric.
        """
        return None

    def profile(self, s: Any, order: int = 0) -> Any:
        """Return κ(s), κ'(s) or κ''(s) of a radial kernel, s = |xT - zT|²."""
        raise NotImplementedError(f"{self!r} is not radial")

    def value_and_slope(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return κ(s) and κ'(s) of a radial kernel."""
        return self.profile(s), self.profile(s, 1)

    def frequencies(self, normals: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        """Map standard normals (n, d) and uniforms (n,) to frequencies of the spectral distribution."""
        raise NotImplementedError

    def coordinates(self, X: Any) -> Any:
        """Return y = xT for rows x, which may be points or directions, of numpy or JAX."""
        T = self.linear_map
        if T is None:
            raise NotImplementedError(f"{self!r} is not radial")
        return X @ T if T.ndim == 2 else X * T

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))

    def gradient(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the array (n, m, d) of ∂k(x_i, z_m)/∂x_ij."""
        return np.stack(list(self.partials(X, Z)), axis=-1)

    def spectral_dim(self, dim: int) -> int:
        """Return the number of normals that a frequency in `dim` coordinates is made of."""
        return dim

    def sample_frequencies(
        self, n: int, dim: int, method: str = "sobol", random_state: RandomStateLike = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sample frequencies of the spectral distribution, with weights: k(x, z) ≈ Σ_i weight_i cos(w_iᵀ(x - z)).

        Parameters
        ----------
        n, dim : int
            Number and dimension of the frequencies.
        method : {"iid", "orthogonal", "sobol"}
            Independent draws; draws with orthogonal directions in blocks of `dim` (Yu et al. 2016); or a scrambled
            Sobol sequence mapped by the inverse of the spectral distribution.
        random_state : int, RandomState instance or None

        Returns
        -------
        frequencies : ndarray of shape (n, dim)
        weights : ndarray of shape (n,), sum 1
        """
        rng = check_random_state(random_state)
        parts = self.components()
        counts = _apportion(np.array([beta for beta, _ in parts]), n)
        normals, uniforms = _spectral_points(n, self.spectral_dim(dim), method, rng)
        # Interleave the components: each has its share of every orthogonal block and of the Sobol sequence.
        owner = rng.permutation(np.repeat(np.arange(len(parts)), counts))
        frequencies, weights = np.empty((n, dim)), np.empty(n)
        for component, ((beta, kernel), count) in enumerate(zip(parts, counts, strict=True)):
            mine = owner == component
            frequencies[mine] = kernel.frequencies(normals[mine], uniforms[mine])
            weights[mine] = beta / max(count, 1)
        return frequencies, weights / weights.sum()


def namespace(a: Any) -> Any:
    """Return the array namespace (numpy, jax.numpy) of `a`."""
    return a.__array_namespace__() if hasattr(a, "__array_namespace__") else np


def _apportion(weights: np.ndarray, n: int) -> np.ndarray:
    """Return integers in proportion to `weights` with sum `n` (largest remainders), positive wherever possible."""
    counts = np.floor(weights * n).astype(int)
    counts = np.maximum(counts, (weights > 0).astype(int) if n >= np.count_nonzero(weights) else 0)
    while counts.sum() != n:
        excess = counts - weights * n
        if counts.sum() > n:
            counts[np.argmax(np.where(counts > 1, excess, -np.inf))] -= 1
        else:
            counts[np.argmin(excess)] += 1
    return counts


def _spectral_points(n: int, dim: int, method: str, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Draw standard normals (n, dim) and uniforms (n,) by the given method."""
    if method == "iid":
        return rng.standard_normal((n, dim)), rng.uniform(size=n)
    if method == "orthogonal":
        blocks = rng.standard_normal((-(-n // dim), dim, dim))
        q, r = np.linalg.qr(blocks)
        q *= np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]  # Haar measure
        directions = np.swapaxes(q, 1, 2).reshape(-1, dim)[:n]
        # Radii and the scale mixture are stratified too: one stratum of the uniform distribution per frequency.
        radii = np.sqrt(2 * special.gammaincinv(dim / 2, _strata(n, rng)))
        return directions * radii[:, None], _strata(n, rng)
    if method == "sobol":
        points = _scrambled(n, dim + 1, rng.randint(2**31))
        return special.ndtri(points[:, :-1]), points[:, -1]
    raise ValueError(f"sampling must be 'iid', 'orthogonal' or 'sobol', got {method!r}.")


@lru_cache(maxsize=4)  # all kernels of a search start from the same points
def _scrambled(n: int, dim: int, seed: int) -> np.ndarray:
    """Return the first points of a scrambled Sobol sequence in the open unit cube, read-only."""
    sequence = qmc.Sobol(dim, rng=np.random.default_rng(seed))
    points = np.clip(sequence.random_base2((n - 1).bit_length())[:n], 1e-12, 1 - 1e-12)
    points.flags.writeable = False
    return points


def _strata(n: int, rng: np.random.RandomState) -> np.ndarray:
    return (rng.permutation(n) + rng.uniform(size=n)) / n
