"""Convex mixtures of kernels."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.kernels._base import Kernel
from kdmaps.kernels._families import CLASSES
from kdmaps.kernels._metric import Metric


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
