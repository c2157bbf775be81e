"""A kernel in linear coordinates of its own: directions that matter are stretched, the others shrunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.kernels._base import Kernel
from kdmaps.utils.validation import as_numbers


class Metric(Kernel):
    """k(x, z) = k₀(xH, zH): a kernel k₀ in the coordinates y = xH, so that distances are |x - z|² = (x-z)ᵀHHᵀ(x-z).

    Only the kernel sees the metric: the energy of its functions is that of x, so that the generator stays the same.

    Parameters
    ----------
    kernel : Kernel
        k₀.
    root : array-like of shape (d, d)
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
        H = as_numbers("root", root, "a finite square matrix")
        if H.ndim != 2 or H.shape[0] != H.shape[1] or H.size == 0 or not np.all(np.isfinite(H)):
            raise ValueError(f"root must be a finite square matrix, got shape {H.shape}.")
        self.kernel, self.root = kernel, H

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
    def matrix(self) -> np.ndarray:
        """HHᵀ."""
        return self.root @ self.root.T

    def _y(self, X: np.ndarray) -> np.ndarray:
        if X.shape[1] != self.root.shape[0]:
            raise ValueError(f"The metric has {self.root.shape[0]} coordinates but X has {X.shape[1]} columns.")
        return X @ self.root

    def __call__(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        return self.kernel(self._y(X), None if Z is None else self._y(Z))

    def partials(self, X: np.ndarray, Z: np.ndarray) -> Iterator[np.ndarray]:
        yield from np.einsum("jk,nmk->jnm", self.root, self.kernel.gradient(self._y(X), self._y(Z)), optimize=True)

    def laplacian(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def components(self) -> list[tuple[float, Kernel]]:
        return [(beta, Metric(part, self.root)) for beta, part in self.kernel.components()]

    def with_bandwidth(self, bandwidth: ArrayLike) -> Metric:
        """Return the same metric with another bandwidth."""
        return Metric(self.kernel.with_bandwidth(bandwidth), self.root)  # type: ignore[attr-defined]

    def frequencies(self, normals: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        return self.kernel.frequencies(normals, uniforms) @ self.root.T

    def to_dict(self) -> dict[str, Any]:
        return {"family": "Metric", "kernel": self.kernel.to_dict(), "root": self.root.tolist()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))

    def __repr__(self) -> str:
        return f"Metric({self.kernel!r}, {self.root.shape[0]}×{self.root.shape[1]})"
