"""Committors on disk: archives as for modes (`model_files`), with a class and arrays of their own."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, BinaryIO

import numpy as np

from kdmaps.data.distances import Support
from kdmaps.diagnostics.committor import CommittorTrust
from kdmaps.estimators import model_files as files
from kdmaps.estimators.committor_fit import CommittorFit
from kdmaps.estimators.transformer import Columns

#: The class that a file names.
COMMITTOR = "AdaptiveCommittor"
#: Shapes of the arrays of a function and of its flux and rates.
FUNCTION = {"coefficients": "pk", "offset": "k", "quantities": "t", "intervals": "te"}


def write_committor(estimator: Any, fitted: CommittorFit, file: BinaryIO, inputs: Sequence[str] | None = None) -> None:
    """Write a fitted committor to an open binary file; `inputs` as in `write_model`."""
    arrays = files.arrays_in("function", fitted, FUNCTION) | files.arrays_in("support", fitted.support, files.SUPPORT)
    arrays |= files.arrays_in("tangents", fitted.tangents, files.TANGENTS)
    numbers = {"score": fitted.score, "regularization": fitted.regularization}
    more: dict[str, Any] = {"inputs": inputs, "trust": asdict(fitted.trust), "numbers": numbers}
    files.write_file(file, estimator, fitted.basis, arrays, version=files.FORMAT_VERSION, **more)


def read_committor(
    header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[dict[str, Any], Columns, CommittorFit]:
    """Return parameters, columns and fit from the content of a file of `write_committor`, without candidates."""
    parameters, basis, names, sizes = files.read_basis(header, arrays)
    function = files.take(arrays, "function", FUNCTION, sizes, ("intervals",))
    if function["coefficients"].shape[1] != 1 or function["intervals"].shape != (3, 2):
        raise ValueError("its arrays are not the arrays of a committor.")
    fitted = CommittorFit(
        basis=basis,
        tangents=files.read_tangents(arrays, sizes),
        support=Support(**files.take(arrays, "support", files.SUPPORT, sizes, files.UNKNOWN)),
        trust=CommittorTrust(**header["trust"]),
        candidates=[],
        **function,
        **header["numbers"],
    )
    return parameters, Columns(sizes["d"], names), fitted
