"""Types that many signatures share."""

import os
from typing import Any, TypeAlias

import numpy as np

#: Anything that `kdmaps.data.as_source` takes: arrays, data frames, lists of arrays, paths, streams, Dask collections.
SamplesLike: TypeAlias = Any
#: Rows of samples: a slice, or an array of row numbers.
Index: TypeAlias = slice | np.ndarray
PathLike: TypeAlias = str | os.PathLike[str]
#: Arguments of scikit-learn's `check_random_state`.
RandomStateLike: TypeAlias = int | np.random.RandomState | None
