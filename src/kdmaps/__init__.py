"""Slow modes of stochastic systems from samples, with the kernel chosen automatically."""

import sys

from kdmaps import baselines, data, kernels, problems, simulation
from kdmaps.analysis import certificates, dynamics, generators, metrics, uncertainty
from kdmaps.estimators.adaptive import AdaptiveDiffusionMap
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.estimators.search import KernelSearchCV
from kdmaps.estimators.variational import VariationalKernelMap
from kdmaps.forms.diffusion import Factor
from kdmaps.forms.tangent import TangentDiffusion
from kdmaps.output import plotting, report
from kdmaps.output.model_files import load
from kdmaps.selection.folds import BlockedKFold

__version__ = "0.2.0.dev0"

# Short names of rooms that users import from: `from kdmaps.metrics import subspace_r2`.
_SHORT = (certificates, dynamics, generators, metrics, plotting, report, uncertainty)
sys.modules |= {f"kdmaps.{room.__name__.rpartition('.')[2]}": room for room in _SHORT}

__all__ = [
    "AdaptiveDiffusionMap",
    "BlockedKFold",
    "Factor",
    "KernelDiffusionMap",
    "KernelSearchCV",
    "TangentDiffusion",
    "VariationalKernelMap",
    "baselines",
    "certificates",
    "data",
    "dynamics",
    "generators",
    "kernels",
    "load",
    "metrics",
    "plotting",
    "problems",
    "report",
    "simulation",
    "uncertainty",
]
