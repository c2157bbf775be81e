"""Bases turn points into features and compute the energy Gram matrix with few matrix products."""

from kdmaps.bases._base import Basis
from kdmaps.bases._fourier import FourierBasis, RandomPhaseBasis
from kdmaps.bases._landmarks import LandmarkBasis, select_landmarks
from kdmaps.bases._make import BASES, make_basis
from kdmaps.bases._modes import ModeBasis

__all__ = [
    "BASES",
    "Basis",
    "FourierBasis",
    "LandmarkBasis",
    "ModeBasis",
    "RandomPhaseBasis",
    "make_basis",
    "select_landmarks",
]
