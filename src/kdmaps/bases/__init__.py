"""Bases map points to features and compute the energy Gram matrix with few matrix products."""

from kdmaps.bases._base import MIN_ROWS, Basis, ModeBasis, Sums, TensorRows, square_root, times
from kdmaps.bases._fourier import FourierBasis, RandomPhaseBasis, cos_sin
from kdmaps.bases._landmarks import DictionaryBasis, LandmarkBasis, pair_blocks, select_landmarks
from kdmaps.bases._spec import BASES, BasisSpec, check_basis, make_basis

__all__ = [
    "BASES",
    "MIN_ROWS",
    "Basis",
    "BasisSpec",
    "DictionaryBasis",
    "FourierBasis",
    "LandmarkBasis",
    "ModeBasis",
    "RandomPhaseBasis",
    "Sums",
    "TensorRows",
    "check_basis",
    "cos_sin",
    "make_basis",
    "pair_blocks",
    "select_landmarks",
    "square_root",
    "times",
]
