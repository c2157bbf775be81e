"""Public names of kdmaps.problems, imported when they are first used."""

from .base import Diffusion as Diffusion
from .base import Problem as Problem
from .flows import bickley_jet as bickley_jet
from .langevin import Langevin1D as Langevin1D
from .langevin import Langevin2D as Langevin2D
from .langevin import MullerBrown as MullerBrown
from .manifolds import NoisyCircle as NoisyCircle
from .manifolds import Sphere as Sphere
from .product import MDLike as MDLike
from .product import OrnsteinUhlenbeck as OrnsteinUhlenbeck
from .product import Product as Product
from .product import nuisance as nuisance
from .registry import load as load
from .registry import names as names
