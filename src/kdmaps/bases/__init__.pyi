"""Public names of kdmaps.bases, imported when they are first used."""

from ._base import MIN_ROWS as MIN_ROWS
from ._base import Basis as Basis
from ._base import ModeBasis as ModeBasis
from ._base import Sums as Sums
from ._base import TensorRows as TensorRows
from ._base import square_root as square_root
from ._base import times as times
from ._fourier import FourierBasis as FourierBasis
from ._fourier import RandomPhaseBasis as RandomPhaseBasis
from ._fourier import cos_sin as cos_sin
from ._landmarks import DictionaryBasis as DictionaryBasis
from ._landmarks import LandmarkBasis as LandmarkBasis
from ._landmarks import pair_blocks as pair_blocks
from ._landmarks import select_landmarks as select_landmarks
from ._spec import BASES as BASES
from ._spec import BasisSpec as BasisSpec
from ._spec import check_basis as check_basis
from ._spec import make_basis as make_basis
