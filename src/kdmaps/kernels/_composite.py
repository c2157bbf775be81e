"""Kernels made of other kernels: in other linear coordinates, or convex mixtures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from kdmaps.kernels._base import Kernel
from kdmaps.kernels._families import CLASSES
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


class Mixture(Kernel):
    """Convex mixture k_β = Σ_ℓ β_ℓ k_ℓ (eq:kernel-mixture).

    Parameters
    ----------
    kernels : sequence of Kernel
        k_ℓ.
    weights : array-like of shape (n_kernels,), optional
        β, non-negative with sum 1; equal by default.

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.kernels import Gaussian, Mixture
    >>> both = Mixture([Gaussian(1.0), Gaussian(2.0)], weights=[0.25, 0.75])
    >>> x, z = np.array([[0.0]]), np.array([[2.0]])
    >>> bool(np.isclose(both(x, z), 0.25 * Gaussian(1.0)(x, z) + 0.75 * Gaussian(2.0)(x, z)))
    True
    """

    def __init__(self, kernels: Sequence[Kernel], weights: ArrayLike | None = None):
        if len(kernels) == 0:
            raise ValueError("kernels must hold at least one kernel.")
        beta = np.full(len(kernels), 1 / len(kernels)) if weights is None else np.asarray(weights, dtype=np.float64)
        if beta.shape != (len(kernels),):
            raise ValueError(f"weights must hold one number per kernel ({len(kernels)}), got shape {beta.shape}.")
        if not np.all(np.isfinite(beta)) or np.any(beta < 0) or not np.isclose(beta.sum(), 1, rtol=0, atol=1e-8):
            raise ValueError("weights must be non-negative and sum to 1, as from scipy.special.softmax.")
        # Weights that sum to 1 within rounding are unchanged, so that a mixture read from a file equals the original.
        self.weights: np.ndarray = beta if abs(beta.sum() - 1) < 1e-12 else beta / beta.sum()
        self.kernels: tuple[Kernel, ...] = tuple(kernels)

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        return min(kernel.smoothness for _, kernel in self.components())

    def components(self) -> list[tuple[float, Kernel]]:
        return [
            (beta * inner, part)
            for beta, kernel in zip(self.weights, self.kernels, strict=True)
            for inner, part in kernel.components()
        ]

    def __call__(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        return np.asarray(sum(beta * kernel(X, Z) for beta, kernel in self.components()))

    def partials(self, X: np.ndarray, Z: np.ndarray) -> Iterator[np.ndarray]:
        betas, kernels = zip(*self.components(), strict=True)
        for terms in zip(*(kernel.partials(X, Z) for kernel in kernels), strict=True):
            yield sum(beta * term for beta, term in zip(betas, terms, strict=True))

    @property
    def linear_map(self) -> np.ndarray | None:
        """T of the first component; a mixture of radial kernels is radial if all their T are proportional."""
        first = self.components()[0][1].linear_map
        if first is None or any(_ratio(kernel.linear_map, first) is None for _, kernel in self.components()):
            return None
        return first

    def profile(self, s: Any, order: int = 0) -> Any:
        first = self.linear_map
        if first is None:
            raise NotImplementedError(f"{self!r} is not radial")
        total: Any = 0
        for beta, kernel in self.components():
            square = cast(float, _ratio(kernel.linear_map, first)) ** 2  # s of the component = square · s
            total = total + beta * (square**order * kernel.profile(square * s, order))
        return total

    def to_dict(self) -> dict[str, Any]:
        return {
            "family": "Mixture",
            "weights": self.weights.tolist(),
            "kernels": [kernel.to_dict() for kernel in self.kernels],
        }

    def __repr__(self) -> str:
        return f"Mixture({list(self.kernels)!r}, weights={np.round(self.weights, 6).tolist()})"


def _ratio(T: np.ndarray | None, first: np.ndarray) -> float | None:
    """Return c if T = c·first, None if these linear maps are not proportional or T is None."""
    if T is None or len({*T.shape, *first.shape}) > 1:
        return None
    if max(T.ndim, first.ndim) == 2:  # a number, or one per coordinate, is a diagonal matrix
        T, first = (a if a.ndim == 2 else a * np.eye(max(T.shape + first.shape)) for a in (T, first))
    T, first = np.broadcast_arrays(T, first)
    largest = np.argmax(np.abs(first))
    if first.flat[largest] == 0:
        return None
    c = float(T.flat[largest] / first.flat[largest])
    return c if np.allclose(T, c * first, rtol=0, atol=1e-12 * np.max(np.abs(T))) else None


def kernel_from_dict(data: dict[str, Any]) -> Kernel:
    """Build a kernel from its plain data, the inverse of `Kernel.to_dict`."""
    fields = dict(data)
    family = fields.pop("family", None)
    if family == "Mixture":
        return Mixture([kernel_from_dict(part) for part in fields["kernels"]], fields["weights"])
    if family == "Metric":
        return Metric(kernel_from_dict(fields["kernel"]), fields["root"])
    if family not in CLASSES:
        raise ValueError(f"Unknown kernel family {family!r} in stored kernel.")
    return CLASSES[family](**fields)
