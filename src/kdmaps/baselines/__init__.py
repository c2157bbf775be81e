"""Established methods with the same interface, for comparison."""

from kdmaps.baselines._diffusion_map import DiffusionMap

__all__ = ["DiffusionMap"]
