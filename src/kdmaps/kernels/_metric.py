"""A kernel in other linear coordinates, which stretch directions that matter and shrink the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from kdmaps.kernels._base import Kernel
from kdmaps.utils.validation import as_numbers


class Metric(Kernel):
    """k(x, z) = k₀(xH, zH): a kernel k₀ in the coordinates y = xH, so that distances are |x - z|² = (x-z)ᵀHHᵀ(x-z).

    The metric is part of the kernel alone: the energy of functions is still computed in x, with the same generator.

    Parameters
    ----------
    kernel : Kernel
        k₀.
    root : array-like of shape (d, m), m ≤ d
        H; its columns are the directions in which the kernel measures lengths.

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.kernels import Gaussian, Metric
    >>> turned = Metric(Gaussian(1.0), [[0.0, 0.5], [1.0, 0.0]])  # lengths along the first axis count half
    >>> turned(np.zeros((1, 2)), np.array([[2.0, 0.0], [0.0, 1.0]])).round(4)
    array([[0.6065, 0.6065]])
    """

    def __init__(self, kernel: Kernel, root: ArrayLike):
        H = as_numbers("root", root, "a finite matrix")
        if H.ndim != 2 or H.shape[0] < H.shape[1] or H.size == 0 or not np.all(np.isfinite(H)):
            damage = "" if np.all(np.isfinite(H)) else " with NaN or infinity"
            raise ValueError(
                f"root must be a finite matrix with at most as many columns as rows, got shape {H.shape}{damage}."
            )
        self.kernel: Kernel = kernel
        self.root: np.ndarray = H

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        return self.kernel.smoothness

    @property
    def log_slope(self) -> float | None:  # type: ignore[override]
        return self.kernel.log_slope

    @property
    def bandwidth(self) -> np.ndarray:
        """σ of k₀, a length in the coordinates y."""
        return self.kernel.bandwidth  # type: ignore[attr-defined]

    @property
    def linear_map(self) -> np.ndarray | None:
        """H T₀ for the T₀ of k₀."""
        return None if self.kernel.linear_map is None else self.kernel.coordinates(self.root)

    def profile(self, s: Any, order: int = 0) -> Any:
        return self.kernel.profile(s, order)

    def value_and_slope(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.kernel.value_and_slope(s)

    def _y(self, X: np.ndarray) -> np.ndarray:
        if X.shape[1] != self.root.shape[0]:
            raise ValueError(f"The metric has {self.root.shape[0]} coordinates but X has {X.shape[1]} columns.")
        if self.smoothness < 1:
            # At a kink, coincident points must stay coincident; in BLAS, rounding depends on the position of a row.
            return np.einsum("nd,dk->nk", X, self.root)
        return X @ self.root

    def __call__(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        return self.kernel(self._y(X), None if Z is None else self._y(Z))

    def partials(self, X: np.ndarray, Z: np.ndarray) -> Iterator[np.ndarray]:
        y, zeta, T = self._y(X), self._y(Z), self.linear_map
        if T is not None and self.smoothness >= 1:  # ∇k = 2κ' TTᵀ(x - z)
            slope = 2 * self.profile(cdist(self.coordinates(X), self.coordinates(Z), "sqeuclidean"), 1)
            X, Z = X @ T @ T.T, Z @ T @ T.T
            for x, z in zip(X.T, Z.T, strict=True):
                yield slope * (x[:, None] - z)
            return
        inner = np.empty((y.shape[1], y.shape[0] * zeta.shape[0]))
        for k, partial in enumerate(self.kernel.partials(y, zeta)):
            inner[k] = partial.ravel()
        for row in self.root:  # ∂_j k = Σ_k H_jk ∂_k k₀
            yield (row @ inner).reshape(len(y), len(zeta))

    def components(self) -> list[tuple[float, Kernel]]:
        return [(beta, Metric(part, self.root)) for beta, part in self.kernel.components()]

    def with_bandwidth(self, bandwidth: ArrayLike) -> Metric:
        """Return the same metric with another bandwidth."""
        return Metric(self.kernel.with_bandwidth(bandwidth), self.root)  # type: ignore[attr-defined]

    def spectral_dim(self, dim: int) -> int:
        return self.root.shape[1]

    def frequencies(self, normals: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        return self.kernel.frequencies(normals, uniforms) @ self.root.T

    def to_dict(self) -> dict[str, Any]:
        return {"family": "Metric", "kernel": self.kernel.to_dict(), "root": self.root.tolist()}

    # Without lists of d² numbers.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Metric) and self.kernel == other.kernel and np.array_equal(self.root, other.root)

    def __hash__(self) -> int:
        return hash((self.kernel, self.root.shape, float(self.root.sum())))

    def __repr__(self) -> str:
        return f"Metric({self.kernel!r}, {self.root.shape[0]}×{self.root.shape[1]})"
