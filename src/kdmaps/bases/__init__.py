"""Bases turn points into features and know how to get the energy Gram from few products."""

from kdmaps.bases._base import Basis
from kdmaps.bases._dictionary import DictionaryBasis, pair_blocks
from kdmaps.bases._fourier import FourierBasis, RandomPhaseBasis
from kdmaps.bases._landmarks import LandmarkBasis, select_landmarks
from kdmaps.bases._make import BASES, make_basis
from kdmaps.bases._modes import ModeBasis

__all__ = [
    "BASES",
    "Basis",
    "DictionaryBasis",
    "FourierBasis",
    "LandmarkBasis",
    "ModeBasis",
    "RandomPhaseBasis",
    "make_basis",
    "pair_blocks",
    "select_landmarks",
]
