"""The diffusion tensor in the linear coordinates of a metric."""

from __future__ import annotations

import numpy as np

from kdmaps.bases import TensorRows
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.utils.types import Index


class TensorInCoordinates(DiffusionTensor):
    """HᵀDH, the tensor of the coordinates y = xH: the energy of a function is the same in x and in y.

    Parameters
    ----------
    tensor : DiffusionTensor
        D(x) = C ± FFᵀ, whose parts become HᵀCH and HᵀF; a scalar s(x) becomes the factor √s Hᵀ.
    X : ndarray of shape (n, d)
        The samples, at which D is given.
    root : ndarray of shape (d, d)
        H.
    """

    def __init__(self, tensor: DiffusionTensor, X: np.ndarray, root: np.ndarray):
        self.dim, self.sign = tensor.dim, tensor.sign
        self.constant = None if tensor.constant is None else root.T @ tensor.constant @ root
        self._tensor, self._X, self._root = tensor, X, root

    @property
    def per_sample(self) -> bool:
        """Whether the tensor is known at the samples only."""
        return True

    def check_rows(self, n_samples: int) -> None:
        """Raise unless the tensor is that of `n_samples` samples."""
        self._tensor.check_rows(n_samples)

    def part(self, index: slice) -> TensorInCoordinates:
        """Return the tensor of these samples alone."""
        return TensorInCoordinates(self._tensor.part(index), self._X[index], self._root)

    def rows(self, X: np.ndarray, index: Index) -> TensorRows:
        """Return the tensor at the samples of these numbers."""
        scalar, factor = self._tensor.rows(self._X[index], index)
        if scalar is not None:
            return TensorRows(factor=np.sqrt(scalar)[:, None, None] * self._root.T)
        return TensorRows(factor=None if factor is None else self._root.T @ factor)
