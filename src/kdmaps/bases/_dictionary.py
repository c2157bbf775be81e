"""Several kernels at the same landmarks, for mixtures of them with any weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kdmaps.bases._landmarks import LandmarkBasis
from kdmaps.kernels import Kernel


class DictionaryBasis(LandmarkBasis):
    """All k_ℓ(·, z_m), kernel after kernel; the energy goes coordinate by coordinate, for kernels of any kind.

    Parameters
    ----------
    kernels : sequence of Kernel
    landmarks : ndarray of shape (p, d)
    origin : ndarray of shape (d,)
    """

    kernels: tuple[Kernel, ...]
    landmarks: np.ndarray
    origin: np.ndarray

    def __init__(self, kernels: Sequence[Kernel], landmarks: np.ndarray, origin: np.ndarray):
        self.kernel: Any = _Stack(kernels)
        self.kernels, self.landmarks, self.origin = tuple(kernels), landmarks, origin
        self.n_features: int = len(kernels) * len(landmarks)
        self.centred_landmarks: np.ndarray = landmarks - origin
        self.radial = False

    @property
    def ridges(self) -> np.ndarray:
        """W_ℓ of every kernel, with its jitter (eq:W-stab); (L, p, p)."""
        return np.stack([LandmarkBasis(kernel, self.landmarks, self.origin).ridge for kernel in self.kernels])


class _Stack:
    """The kernel matrices of several kernels side by side."""

    def __init__(self, kernels: Sequence[Kernel]):
        self.kernels = kernels

    def __call__(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return np.hstack([kernel(X, Z) for kernel in self.kernels])

    def partials(self, X: np.ndarray, Z: np.ndarray) -> Iterator[np.ndarray]:
        for parts in zip(*(kernel.partials(X, Z) for kernel in self.kernels), strict=True):
            yield np.hstack(parts)


def pair_blocks(matrices: np.ndarray, n_kernels: int) -> np.ndarray:
    """Symmetric parts M_ℓm of ½(block ℓm + block mℓ) for every pair ℓ ≤ m of kernels, in the order of `triu_indices`.

    With φ = Σ_ℓ β_ℓ φ_ℓ, the matrix of a mixture is Σ_ℓm β_ℓβ_m M_ℓm, up to its part that is not symmetric.

    Parameters
    ----------
    matrices : ndarray of shape (C, L·p, L·p)
        Matrices of products of the features of a `DictionaryBasis`.
    n_kernels : int
        L.

    Returns
    -------
    blocks : ndarray of shape (L(L+1)/2, C, p, p)
    """
    c, p = matrices.shape[0], matrices.shape[1] // n_kernels
    blocks = matrices.reshape(c, n_kernels, p, n_kernels, p)
    out = np.empty((n_kernels * (n_kernels + 1) // 2, c, p, p))
    for index, (first, second) in enumerate(zip(*np.triu_indices(n_kernels), strict=True)):
        both = (blocks[:, first, :, second, :] + blocks[:, second, :, first, :]) / 2
        out[index] = (both + np.swapaxes(both, 1, 2)) / 2
    return out
