"""Base class of bases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kdmaps.forms.diffusion import DiffusionTensor, TensorRows
from kdmaps.kernels import Kernel

#: Target size in bytes of the features of one chunk; determines the number of samples in a chunk.
CHUNK_BYTES = 4 * 2**20
#: Smallest number of rows in a chunk; below it, the overhead of a call dominates.
MIN_ROWS = 64


class Basis(ABC):
    """p functions φ_1, …, φ_p of x in R^d whose span is searched for modes.

    A basis is immutable. `kdmaps.forms.energy` calls `start`, `step` and `finish` to sum over the samples in chunks
    and threads.

    Attributes
    ----------
    kernel : Kernel
    origin : ndarray of shape (d,)
        Subtracted from X first, to reduce rounding errors; the kernels are translation invariant.
    n_features : int
        p.
    dtype : dtype
        Floating type of the features in the sum over samples; the sums of chunks are always added in float64.
    """

    kernel: Kernel
    origin: np.ndarray
    n_features: int
    dtype: np.dtype[Any] = np.dtype(np.float64)

    @property
    def dim(self) -> int:
        """Number of coordinates d."""
        return self.origin.shape[0]

    @property
    def chunk_rows(self) -> int:
        """Number of samples per chunk."""
        return max(MIN_ROWS, CHUNK_BYTES // (self.dtype.itemsize * self.n_features))

    @property
    def row_bytes(self) -> int:
        """Approximate working memory of `step` in bytes per sample of a chunk."""
        return 8 * (6 * self.n_features + 4 * self.dim)

    def astype(self, dtype: DTypeLike) -> Basis:
        """Return the same basis with features in another floating type."""
        if np.dtype(dtype) != self.dtype:
            raise ValueError(
                f"dtype='{np.dtype(dtype)}' needs Fourier features: kernel functions at landmarks are nearly linearly "
                "dependent, and single precision cannot distinguish them. Use basis='fourier'."
            )
        return self

    @property
    @abstractmethod
    def ridge(self) -> np.ndarray | None:
        """R of the penalty aᵀRa = ‖Σ_m a_m φ_m‖² in the kernel's Hilbert space; None means the identity."""

    @abstractmethod
    def features(self, X: np.ndarray, n_rows: float | None = None) -> np.ndarray:
        """Return φ_m(x_i), shape (n, p); X may be a block of `n_rows` rows, by which compiled code is chosen."""

    def combine(self, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Return Σ_m a_mk φ_m(x_i), shape (n, r), for coefficients a of shape (p, r)."""
        return self.features(X) @ coefficients

    @abstractmethod
    def gradient(self, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Return ∇ Σ_m a_mk φ_m(x_i), shape (n, r, d), for coefficients a of shape (p, r)."""

    @abstractmethod
    def start(self, rows: int, n_samples: int | None = None) -> Any:
        """Return an empty accumulator for chunks of at most `rows` of `n_samples` samples, if their number is known."""

    @abstractmethod
    def step(
        self, state: Any, X: np.ndarray, root_weight: np.ndarray, tensor: TensorRows, constant: np.ndarray | None
    ) -> None:
        """Add a chunk of samples, with the square roots of their weights, to an accumulator.

        `constant` is the constant diffusion matrix, or None if `tensor` holds one per sample.
        """

    @abstractmethod
    def finish(self, states: list[Any], diffusion: DiffusionTensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Σ w φ (p,), Σ w φφᵀ (p, p) and Σ w ∇φ a ∇φᵀ (p, p) over all accumulators."""
