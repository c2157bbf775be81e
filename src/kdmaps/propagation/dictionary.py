"""Dictionaries of functions: the constant, principal coordinates, and random Fourier features of them."""

from dataclasses import dataclass

import numpy as np

from kdmaps.bases import BasisSpec, FourierBasis
from kdmaps.kernels import Gaussian


@dataclass(frozen=True, eq=False)
class Dictionary:
    """The functions 1, z_1, …, z_k, and features of a Gaussian kernel in these coordinates if there are `waves`."""

    n_coordinates: int
    waves: FourierBasis | None = None

    @property
    def n_functions(self) -> int:
        """Number of functions."""
        return 1 + self.n_coordinates + (0 if self.waves is None else self.waves.n_features)

    def __call__(self, Z: np.ndarray) -> np.ndarray:
        """Return the functions at points with coordinates Z; (n, n_functions)."""
        chosen = np.ascontiguousarray(Z[:, : self.n_coordinates])
        columns = [np.ones((len(Z), 1)), chosen]
        if self.waves is not None:
            columns.append(self.waves.features(chosen))
        return np.hstack(columns)

    def readout(self, R: np.ndarray) -> np.ndarray:
        """Return the coefficients of the functions ZR of the coordinates; (n_functions, m)."""
        k = min(self.n_coordinates, len(R))
        coefficients = np.zeros((self.n_functions, R.shape[1]))
        coefficients[1 : 1 + k] = R[:k]
        return coefficients


def kernel_dictionary(Z: np.ndarray, bandwidth: float, n_features: int, seed: int) -> Dictionary:
    """Return the dictionary with features of a Gaussian kernel of this bandwidth."""
    waves = BasisSpec("fourier", n_features).make(Gaussian(bandwidth), Z, None, seed)
    assert isinstance(waves, FourierBasis)
    return Dictionary(Z.shape[1], waves)
