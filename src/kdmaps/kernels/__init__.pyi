"""Public names of kdmaps.kernels, imported when they are first used."""

from ._base import Kernel as Kernel
from ._composite import Metric as Metric
from ._composite import Mixture as Mixture
from ._composite import kernel_from_dict as kernel_from_dict
from ._families import FAMILIES as FAMILIES
from ._families import Gaussian as Gaussian
from ._families import Laplacian as Laplacian
from ._families import Matern as Matern
from ._families import RationalQuadratic as RationalQuadratic
from ._families import make_kernel as make_kernel
