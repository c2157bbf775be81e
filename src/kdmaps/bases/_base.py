"""What a basis is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from kdmaps.forms.diffusion import DiffusionTensor, TensorRows
from kdmaps.kernels import Kernel

#: Bytes that the features of a chunk take, if all are made at once: it sets the samples of a chunk.
CHUNK_BYTES = 4 * 2**20
#: Fewer rows than this are not worth a call.
MIN_ROWS = 64


class Basis(ABC):
    """p functions φ_1..φ_p of x in R^d whose span is searched for modes.

    A basis is immutable. `start`, `step` and `finish` are the three parts of the sum over samples that
    `kdmaps.forms.moments` runs over chunks and threads.

    Attributes
    ----------
    kernel : Kernel
    origin : ndarray of shape (d,)
        Subtracted from X before anything else: kernels are translation invariant, rounding is not.
    n_features : int
        p.
    dtype : dtype
        Of the features in the sum over samples; sums of chunks are added in float64 always.
    """

    kernel: Kernel
    origin: np.ndarray
    n_features: int
    dtype = np.dtype(np.float64)

    @property
    def dim(self) -> int:
        """Number of coordinates d."""
        return self.origin.shape[0]

    @property
    def chunk_rows(self) -> int:
        """Samples per chunk."""
        return max(MIN_ROWS, CHUNK_BYTES // (self.dtype.itemsize * self.n_features))

    @property
    def row_bytes(self) -> int:
        """About how many bytes `step` works on for each sample of a chunk."""
        return 8 * (6 * self.n_features + 4 * self.dim)

    def astype(self, dtype) -> Basis:
        """The same basis with features in another floating type."""
        if np.dtype(dtype) != self.dtype:
            raise ValueError(
                f"dtype='{np.dtype(dtype)}' needs Fourier features: kernel functions at landmarks are nearly "
                "dependent, and what tells them apart is lost in single precision. Use basis='fourier'."
            )
        return self

    @property
    @abstractmethod
    def ridge(self) -> np.ndarray | None:
        """R of the penalty aᵀRa = ‖Σ_m a_m φ_m‖² in the kernel's Hilbert space; None is the identity."""

    @abstractmethod
    def features(self, X: np.ndarray) -> np.ndarray:
        """(n, p): φ_m(x_i)."""

    def combine(self, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """(n, r): Σ_m a_mk φ_m(x_i) for coefficients a of shape (p, r)."""
        return self.features(X) @ coefficients

    @abstractmethod
    def gradient(self, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """(n, r, d): ∇ Σ_m a_mk φ_m(x_i) for coefficients a of shape (p, r)."""

    @abstractmethod
    def start(self, rows: int) -> Any:
        """An empty accumulator for chunks of at most `rows` samples."""

    @abstractmethod
    def step(self, state: Any, X: np.ndarray, root_weight: np.ndarray, tensor: TensorRows, constant) -> None:
        """Add a chunk of samples, with the square roots of their weights, to an accumulator.

        `constant` is the constant diffusion matrix, or None when `tensor` holds it per sample.
        """

    @abstractmethod
    def finish(self, states: list[Any], diffusion: DiffusionTensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Σ w φ (p,), Σ w φφᵀ (p, p) and Σ w ∇φ a ∇φᵀ (p, p) over all accumulators."""
