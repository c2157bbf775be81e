"""Slow modes of stochastic systems from samples, with the kernel chosen automatically."""

from kdmaps import kernels, metrics, problems
from kdmaps.adaptive import AdaptiveDiffusionMap
from kdmaps.diffusion import Factor
from kdmaps.estimator import KernelDiffusionMap
from kdmaps.search import KernelSearchCV

__version__ = "0.1.0"

__all__ = [
    "AdaptiveDiffusionMap",
    "Factor",
    "KernelDiffusionMap",
    "KernelSearchCV",
    "kernels",
    "metrics",
    "problems",
]
