"""Fixed linear combinations of the features of a basis, as a basis of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kdmaps.bases._base import MIN_ROWS, Basis
from kdmaps.forms.diffusion import DiffusionTensor, TensorRows
from kdmaps.kernels import Kernel


@dataclass
class _State:
    total: np.ndarray
    gram: np.ndarray
    energy: np.ndarray
    directed: np.ndarray  # the part of the energy from a diffusion factor per sample


class ModeBasis(Basis):
    """Functions f_k = Σ_m a_mk φ_m - offset_k for coefficients a of shape (p, r).

    Their Moments are r×r and cost O(N p r); they give the held-out score of given modes.
    """

    basis: Basis
    coefficients: np.ndarray
    offset: np.ndarray
    kernel: Kernel
    origin: np.ndarray

    def __init__(self, basis: Basis, coefficients: np.ndarray, offset: np.ndarray):
        self.basis, self.coefficients, self.offset = basis, coefficients, offset
        self.kernel, self.origin = basis.kernel, basis.origin
        self.n_features: int = coefficients.shape[1]

    @property
    def chunk_rows(self) -> int:
        # The work arrays are (rows, p) features and, in a gradient, (rows, p, r) slopes.
        return max(MIN_ROWS, self.basis.chunk_rows // (1 + self.n_features))

    @property
    def row_bytes(self) -> int:
        return self.basis.row_bytes + 8 * self.basis.n_features * (1 + self.n_features)

    @property
    def ridge(self) -> np.ndarray | None:
        ridge = self.basis.ridge
        return self.coefficients.T @ (self.coefficients if ridge is None else ridge @ self.coefficients)

    def features(self, X: np.ndarray, n_rows: float | None = None) -> np.ndarray:
        return self.basis.combine(X, self.coefficients) - self.offset

    def gradient(self, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        return self.basis.gradient(X, self.coefficients @ coefficients)

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
            flux = gradients @ constant if constant is not None else gradients * tensor.scalar[:, None, None]  # type: ignore[index]
            state.energy += np.einsum("nrd,nsd->rs", flux, gradients, optimize=True)
        state.gram += values.T @ values
        state.total += root_weight @ values

    def finish(self, states: list[Any], diffusion: DiffusionTensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        energy = sum(s.energy + diffusion.sign * s.directed for s in states)
        return sum(s.total for s in states), sum(s.gram for s in states), energy
