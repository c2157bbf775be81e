"""Slow modes of stochastic systems from samples, with the kernel chosen automatically."""

from kdmaps import baselines, data, dynamics, kernels, metrics, plotting, problems, report, uncertainty
from kdmaps.adaptive import AdaptiveDiffusionMap
from kdmaps.diffusion import Factor
from kdmaps.estimator import KernelDiffusionMap
from kdmaps.folds import BlockedKFold
from kdmaps.io import load
from kdmaps.learn import VariationalKernelMap
from kdmaps.search import KernelSearchCV
from kdmaps.tangent import TangentDiffusion

__version__ = "0.1.0"

__all__ = [
    "AdaptiveDiffusionMap",
    "BlockedKFold",
    "Factor",
    "KernelDiffusionMap",
    "KernelSearchCV",
    "TangentDiffusion",
    "VariationalKernelMap",
    "baselines",
    "data",
    "dynamics",
    "kernels",
    "load",
    "metrics",
    "plotting",
    "problems",
    "report",
    "uncertainty",
]
