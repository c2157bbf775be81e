"""Test problems with exact samples and known slow modes."""

from kdmaps.problems.base import Diffusion, Problem
from kdmaps.problems.flows import bickley_jet
from kdmaps.problems.langevin import Langevin1D, Langevin2D, MullerBrown
from kdmaps.problems.manifolds import NoisyCircle, Sphere
from kdmaps.problems.product import MDLike, OrnsteinUhlenbeck, Product, nuisance
from kdmaps.problems.registry import load, names

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
    "bickley_jet",
    "load",
    "names",
    "nuisance",
]
