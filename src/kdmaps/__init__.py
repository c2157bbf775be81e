"""Slow modes of stochastic systems from samples, with the kernel chosen automatically."""

from kdmaps import kernels, metrics, problems
from kdmaps.diffusion import Factor
from kdmaps.estimator import KernelDiffusionMap

__version__ = "0.1.0"

__all__ = ["Factor", "KernelDiffusionMap", "kernels", "metrics", "problems"]
