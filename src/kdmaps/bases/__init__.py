"""Bases turn points into features and compute the energy Gram matrix with few matrix products."""

from kdmaps.bases._base import MIN_ROWS, Basis
from kdmaps.bases._dictionary import DictionaryBasis, pair_blocks
from kdmaps.bases._fourier import FourierBasis, RandomPhaseBasis
from kdmaps.bases._landmarks import LandmarkBasis, select_landmarks
from kdmaps.bases._make import BASES, check_basis, make_basis
from kdmaps.bases._modes import ModeBasis
from kdmaps.bases._spec import BasisSpec

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
    "check_basis",
    "make_basis",
    "pair_blocks",
    "select_landmarks",
]
