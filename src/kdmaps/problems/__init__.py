"""Test problems with exact samples and exact slow modes."""

from kdmaps.problems.base import Diffusion, Problem
from kdmaps.problems.circle import NoisyCircle
from kdmaps.problems.langevin import Langevin1D, Langevin2D
from kdmaps.problems.mdlike import MDLike
from kdmaps.problems.muller_brown import MullerBrown
from kdmaps.problems.nuisance import nuisance
from kdmaps.problems.ornstein_uhlenbeck import OrnsteinUhlenbeck
from kdmaps.problems.product import Product
from kdmaps.problems.registry import load, names
from kdmaps.problems.sphere import Sphere

__all__ = [
    "Diffusion",
    "Langevin1D",
    "Langevin2D",
    "MDLike",
    "MullerBrown",
    "NoisyCircle",
    "OrnsteinUhlenbeck",
    "Problem",
    "Product",
    "Sphere",
    "load",
    "names",
    "nuisance",
]
