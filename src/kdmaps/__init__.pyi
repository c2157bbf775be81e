"""Public names of kdmaps, imported when they are first used."""

from . import baselines as baselines
from . import certificates as certificates
from . import checks as checks
from . import data as data
from . import dynamics as dynamics
from . import exceptions as exceptions
from . import generators as generators
from . import kernels as kernels
from . import learn as learn
from . import metrics as metrics
from . import plotting as plotting
from . import problems as problems
from . import report as report
from . import scanpy as scanpy
from . import simulation as simulation
from . import uncertainty as uncertainty
from .analysis import Analysis as Analysis
from .diagnostics.independence import independent_modes as independent_modes
from .diagnostics.relevance import relevance as relevance
from .estimators.adaptive import AdaptiveDiffusionMap as AdaptiveDiffusionMap
from .estimators.committor import AdaptiveCommittor as AdaptiveCommittor
from .estimators.kernel_map import KernelDiffusionMap as KernelDiffusionMap
from .estimators.kernel_map import load as load
from .estimators.neighbors import NeighborDiffusionMap as NeighborDiffusionMap
from .estimators.search import KernelSearchCV as KernelSearchCV
from .estimators.variational import VariationalKernelMap as VariationalKernelMap
from .forms.diffusion import Factor as Factor
from .forms.tangent import TangentDiffusion as TangentDiffusion
from .selection.folds import BlockedKFold as BlockedKFold

__version__: str
