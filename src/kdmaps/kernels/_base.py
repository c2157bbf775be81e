"""Base class of kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kdmaps.kernels._spectral import apportion, spectral_points
from kdmaps.utils.types import RandomStateLike


class Kernel(ABC):
    """A translation-invariant positive definite kernel with k(x, x) = 1.

    Attributes
    ----------
    smoothness : float
        Number of continuous derivatives of k(·, z). The energy needs one, a generator needs two.
    """

    smoothness: float = np.inf
    #: κ'/κ if it is constant (Gaussian); the energy then needs one Gram matrix less.
    log_slope: float | None = None

    # --- defined by each family ---------------------------------------------------------------------------------------
    @abstractmethod
    def __call__(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        """Return the matrix k(x_i, z_m); `Z` defaults to `X`."""

    @abstractmethod
    def partials(self, X: np.ndarray, Z: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the matrix ∂k(x_i, z_m)/∂x_ij for each coordinate j in turn."""

    @abstractmethod
    def laplacian(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the matrix Δ_x k(x_i, z_m)."""

    @abstractmethod
    def components(self) -> list[tuple[float, Kernel]]:
        """Return the weights and kernels of which this kernel is the convex combination."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which `kernel_from_dict` rebuilds the kernel."""

    @property
    def linear_map(self) -> np.ndarray | None:
        """T of the coordinates y = xT in which the kernel is radial, k = κ(|y - ζ|²); None if there are none.

        A number, one number per coordinate, or a matrix (d, d): 1/σ, and the H/σ of a metric.
        """
        return None

    def profile(self, s: Any, order: int = 0) -> Any:
        """Return κ(s), κ'(s) or κ''(s) of a radial kernel, s = |xT - zT|²."""
        raise NotImplementedError(f"{self!r} is not radial")

    def frequencies(self, normals: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        """Map standard normals (n, d) and uniforms (n,) to frequencies of the spectral distribution."""
        raise NotImplementedError

    # --- derived from these -------------------------------------------------------------------------------------------
    def coordinates(self, X: Any) -> Any:
        """Return y = xT for rows x, which may be points or directions, of numpy or JAX."""
        T = self.linear_map
        if T is None:
            raise NotImplementedError(f"{self!r} is not radial")
        return X @ T if T.ndim == 2 else X * T

    def gradient(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the array (n, m, d) of ∂k(x_i, z_m)/∂x_ij."""
        return np.stack(list(self.partials(X, Z)), axis=-1)

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
        counts = apportion(np.array([beta for beta, _ in parts]), n)
        normals, uniforms = spectral_points(n, dim, method, rng)
        # Interleave the components, so that each gets its share of every orthogonal block and of the Sobol sequence.
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
