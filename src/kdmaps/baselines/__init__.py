"""Established methods with the same interface, for comparison."""

from kdmaps.baselines._diffusion_map import DiffusionMap
from kdmaps.baselines._uniform import UniformMixtureMap

__all__ = ["DiffusionMap", "UniformMixtureMap"]
