"""Committors on disk: archives as for modes (`model_files`), with a class and arrays of their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, BinaryIO

import numpy as np

from kdmaps.data.distances import Support
from kdmaps.diagnostics.committor import CommittorTrust
from kdmaps.estimators.archive import read_archive, write_archive
from kdmaps.estimators.committor_fit import CommittorFit
from kdmaps.estimators.model_files import (
    FORMAT,
    FORMAT_VERSION,
    STORED_BASES,
    SUPPORT,
    TANGENTS,
    UNKNOWN,
    _encode,
    _kernel_data,
    _naming,
    _put,
    _read_header,
    _read_kernel,
    _take,
    _tangents,
    library_versions,
    read_basis,
)
from kdmaps.estimators.transformer import Columns
from kdmaps.utils.types import PathLike

#: The class that a file names.
COMMITTOR = "AdaptiveCommittor"
#: Shapes of the arrays of a function and of its flux and rates.
FUNCTION = {"coefficients": "pk", "offset": "k", "quantities": "t", "intervals": "te"}


def write_committor(estimator: Any, fitted: CommittorFit, file: BinaryIO, inputs: Sequence[str] | None = None) -> None:
    """Write a fitted committor to an open binary file; `inputs` as in `write_model`."""
    arrays: dict[str, np.ndarray] = {}
    kernel = _kernel_data("basis.kernel", fitted.basis.kernel, arrays)
    _read_kernel(kernel, arrays)  # a kernel class of the user could not be read back
    parameters = {name: _encode(name, value, arrays) for name, value in estimator.get_params(deep=False).items()}
    _put(arrays, "basis", fitted.basis, STORED_BASES[type(fitted.basis).__name__][1])
    _put(arrays, "function", fitted, FUNCTION)
    _put(arrays, "support", fitted.support, SUPPORT)
    if fitted.tangents is not None:
        _put(arrays, "tangents", fitted.tangents, TANGENTS)
    names = estimator._columns.names
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "class": COMMITTOR,
        "parameters": parameters,
        "kernel": kernel,
        "basis": type(fitted.basis).__name__,
        "n_features_in": estimator.n_features_in_,
        "feature_names_in": None if names is None else list(names),
        **({} if inputs is None else {"inputs": list(inputs)}),
        "trust": asdict(fitted.trust),
        "numbers": {"score": fitted.score, "regularization": fitted.regularization},
        "libraries": library_versions(),
        "sealed": True,
    }
    arrays["header"] = np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8)
    write_archive(file, arrays)


def read_committor(path: PathLike) -> tuple[dict[str, Any], Columns, CommittorFit]:
    """Read parameters, columns and fit from a file of `write_committor`; a damaged or foreign file raises a ValueError.

    The fit has no candidates.
    """
    arrays = read_archive(path)
    with _naming(path):
        header = _read_header(arrays)
        parameters, basis, names, sizes = read_basis(header, arrays)
        function = _take(arrays, "function", FUNCTION, sizes, ("intervals",))
        if function["coefficients"].shape[1] != 1 or function["intervals"].shape != (3, 2):
            raise ValueError("its arrays are not the arrays of a committor.")
        given = "tangents.samples" in arrays
        fitted = CommittorFit(
            basis=basis,
            tangents=_tangents(_take(arrays, "tangents", TANGENTS, sizes), sizes) if given else None,
            support=Support(**_take(arrays, "support", SUPPORT, sizes, UNKNOWN)),
            trust=CommittorTrust(**header["trust"]),
            candidates=[],
            **function,
            **header["numbers"],
        )
        return parameters, Columns(sizes["d"], names), fitted
