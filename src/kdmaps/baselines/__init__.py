"""Methods that users know from elsewhere, behind the same interface: what to compare with."""

from kdmaps.baselines._diffusion_map import DiffusionMap
from kdmaps.baselines._uniform import UniformMixtureMap

__all__ = ["DiffusionMap", "UniformMixtureMap"]
