"""The public names of kdmaps: `__init__.py` reads them here, and imports each when it is first used."""

from kdmaps import baselines as baselines
from kdmaps import data as data
from kdmaps import exceptions as exceptions
from kdmaps import kernels as kernels
from kdmaps import learn as learn
from kdmaps import problems as problems
from kdmaps import simulation as simulation
from kdmaps.analysis import certificates as certificates
from kdmaps.analysis import dynamics as dynamics
from kdmaps.analysis import generators as generators
from kdmaps.analysis import metrics as metrics
from kdmaps.analysis import uncertainty as uncertainty
from kdmaps.analysis.independence import independent_modes as independent_modes
from kdmaps.analysis.relevance import relevance as relevance
from kdmaps.estimators.adaptive import AdaptiveDiffusionMap as AdaptiveDiffusionMap
from kdmaps.estimators.kernel_map import KernelDiffusionMap as KernelDiffusionMap
from kdmaps.estimators.search import KernelSearchCV as KernelSearchCV
from kdmaps.estimators.variational import VariationalKernelMap as VariationalKernelMap
from kdmaps.forms.diffusion import Factor as Factor
from kdmaps.forms.tangent import TangentDiffusion as TangentDiffusion
from kdmaps.output import plotting as plotting
from kdmaps.output import report as report
from kdmaps.output.model_files import load as load
from kdmaps.selection.folds import BlockedKFold as BlockedKFold

__version__: str
