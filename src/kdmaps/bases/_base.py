"""Base class of bases, and fixed combinations of the functions of a basis."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from kdmaps.kernels import Kernel

#: Σ w φ (p,), Σ w φφᵀ (p, p) and Σ w ∇φ D ∇φᵀ (p, p).
Sums: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
#: Size in bytes of the features of one chunk, which determines the number of samples per chunk.
CHUNK_BYTES = 4 * 2**20
#: Smallest number of rows per chunk; with fewer, the overhead of a call dominates.
MIN_ROWS = 64


class TensorRows(NamedTuple):
    """The diffusion tensor at a chunk of samples: at most one field is set, none for a constant tensor."""

    scalar: np.ndarray | None = None  # (n,)
    factor: np.ndarray | None = None  # (n, d, k)


def square_root(tensors: np.ndarray, tolerance: float = np.inf) -> np.ndarray:
    """Return F = U√max(Λ, 0) with FFᵀ = D for positive semidefinite tensors D = UΛUᵀ of shape (..., d, d).

    It exists for singular tensors too. An eigenvalue below -tolerance times the largest raises an error. The root
    of a number, for a multiple of the identity, is a number.
    """
    if np.ndim(tensors) == 0:
        return np.sqrt(tensors)
    values, vectors = np.linalg.eigh(tensors)
    if np.any(values[..., 0] < -tolerance * np.maximum(values[..., -1], 1e-300)):
        raise ValueError("diffusion must be positive semidefinite at every sample.")
    return vectors * np.sqrt(np.maximum(values, 0))[..., None, :]


def times(A: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Return A D for a constant tensor D: a matrix, or a number for a multiple of the identity."""
    return A * constant if np.ndim(constant) == 0 else A @ constant


class Basis(ABC):
    """p functions φ_1, …, φ_p of x in R^d whose span is searched for modes.

    A basis is immutable. Forms call `start`, `step` and `finish` to sum over the samples in chunks and threads.
    """

    kernel: Kernel
    #: (d,): subtracted from X first, to reduce rounding errors; the kernels are translation invariant.
    origin: np.ndarray
    n_features: int  #: p.
    #: Floating type of the features in the sum over samples; sums of chunks are added in float64.
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

    def astype(self, dtype: DTypeLike) -> Self:
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
        """R of the penalty aᵀRa = ‖Σ_m a_m φ_m‖² in the Hilbert space of the kernel; None is the identity."""

    @abstractmethod
    def features(self, X: np.ndarray, n_rows: float | None = None) -> np.ndarray:
        """Return φ_m(x_i), shape (n, p); X may be part of `n_rows` rows, whose number decides on compiled code."""

    def combine(self, X: np.ndarray, coefficients: np.ndarray, n_rows: float | None = None) -> np.ndarray:
        """Return Σ_m a_mk φ_m(x_i), shape (n, r), for coefficients a of shape (p, r); `n_rows` as in `features`."""
        return self.features(X, n_rows) @ coefficients

    @abstractmethod
    def gradient(self, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Return ∇ Σ_m a_mk φ_m(x_i), shape (n, r, d), for coefficients a of shape (p, r)."""

    def energies(
        self, X: np.ndarray, coefficients: np.ndarray, root: np.ndarray, n_rows: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return f_k(x_i) and |Fᵀ∇f_k(x_i)|², both (n, r), of f = Σ_m a_m φ_m for F = `root`, a matrix or a number."""
        slopes = times(self.gradient(X, coefficients), root)
        return self.combine(X, coefficients), np.einsum("nkd,nkd->nk", slopes, slopes)

    @abstractmethod
    def start(self, rows: int, n_samples: int | None = None) -> Any:
        """Return an empty accumulator for chunks of at most `rows` of `n_samples` samples, if their number is known."""

    @abstractmethod
    def step(
        self, state: Any, X: np.ndarray, root_weight: np.ndarray, tensor: TensorRows, constant: np.ndarray | None
    ) -> None:
        """Add samples, with the square roots of their weights; `constant` is None if `tensor` has one D per sample."""

    @abstractmethod
    def finish(self, states: list[Any], constant: np.ndarray | None, sign: float) -> Sums:
        """Return the sums over all accumulators for D = `constant` + `sign` FFᵀ, F the factors of `TensorRows`."""


@dataclass
class _State:
    total: np.ndarray
    gram: np.ndarray
    energy: np.ndarray
    directed: np.ndarray  # the part of the energy from a diffusion factor per sample


@dataclass(eq=False, repr=False)
class ModeBasis(Basis):
    """Functions f_k = Σ_m a_mk φ_m - offset_k for coefficients a of shape (p, r).

    Their Moments are r×r and cost O(N p r); the held-out score of given modes follows from them.
    """

    basis: Basis
    coefficients: np.ndarray  #: (p, r).
    offset: np.ndarray  #: (r,).

    def __post_init__(self) -> None:
        self.kernel: Kernel = self.basis.kernel
        self.origin: np.ndarray = self.basis.origin
        self.n_features: int = self.coefficients.shape[1]

    @property
    def chunk_rows(self) -> int:
        return max(MIN_ROWS, self.basis.chunk_rows // (1 + self.n_features))

    @property
    def row_bytes(self) -> int:
        return self.basis.row_bytes + 8 * self.n_features * (2 + self.dim)  # values and derivatives

    @property
    def ridge(self) -> np.ndarray | None:
        ridge = self.basis.ridge
        return self.coefficients.T @ (self.coefficients if ridge is None else ridge @ self.coefficients)

    def features(self, X: np.ndarray, n_rows: float | None = None) -> np.ndarray:
        return self.basis.combine(X, self.coefficients, n_rows) - self.offset

    def gradient(self, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        return self.basis.gradient(X, self.coefficients @ coefficients)

    def energies(
        self, X: np.ndarray, coefficients: np.ndarray, root: np.ndarray, n_rows: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        values, energies = self.basis.energies(X, self.coefficients @ coefficients, root, n_rows)
        return values - self.offset @ coefficients, energies

    def start(self, rows: int, n_samples: int | None = None) -> _State:
        r = self.n_features
        return _State(np.zeros(r), *(np.zeros((r, r)) for _ in range(3)))

    def step(
        self, state: _State, X: np.ndarray, root_weight: np.ndarray, tensor: TensorRows, constant: np.ndarray | None
    ) -> None:
        values = self.features(X) * root_weight[:, None]
        gradients = self.basis.gradient(X, self.coefficients) * root_weight[:, None, None]
        if tensor.factor is not None:
            flux = np.einsum("nrd,ndk->nrk", gradients, tensor.factor)
            flux = np.swapaxes(flux, 1, 2).reshape(-1, self.n_features)
            state.directed += flux.T @ flux
        if constant is not None or tensor.scalar is not None:
            flux = times(gradients, constant) if constant is not None else gradients * tensor.scalar[:, None, None]  # type: ignore[index]
            state.energy += np.einsum("nrd,nsd->rs", flux, gradients, optimize=True)
        state.gram += values.T @ values
        state.total += root_weight @ values

    def finish(self, states: list[Any], constant: np.ndarray | None, sign: float) -> Sums:
        energy = sum(s.energy + sign * s.directed for s in states)
        return sum(s.total for s in states), sum(s.gram for s in states), energy
