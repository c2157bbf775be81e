"""Fitted models on disk: one `.npz` of plain arrays and a JSON header, without pickle.

The header has the format version, class, constructor parameters, kernel, basis, feature names and library versions.
Reading a file builds objects of known classes only, executes nothing from it, and takes memory in proportion to its
size. One digest covers the whole file (`archive`): a damaged or edited file is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import scipy
import sklearn
from sklearn.utils.validation import check_is_fitted

from kdmaps.bases import Basis, FourierBasis, LandmarkBasis, RandomPhaseBasis
from kdmaps.data.distances import Support
from kdmaps.diagnostics.evidence import Evidence
from kdmaps.diagnostics.trust import Trust
from kdmaps.estimators.archive import DIGEST, read_archive, write_archive
from kdmaps.estimators.fit import Fit
from kdmaps.estimators.stored import check_shape, decode, encode, put, take
from kdmaps.forms.moments import Moments
from kdmaps.forms.tangent import TangentSpaces
from kdmaps.kernels import Kernel, Metric, Mixture, kernel_from_dict
from kdmaps.spectrum.clock import Clock
from kdmaps.spectrum.modes import Modes
from kdmaps.utils.files import as_path, replacing
from kdmaps.utils.types import PathLike

FORMAT = "kdmaps model"
#: Increase this when older versions can no longer read a file. Version 3 has kernels in a metric; a file without one
#: has version 2, which 0.1.0 reads.
FORMAT_VERSION = 3
#: The only estimator that a file may name.
ESTIMATOR = "KernelDiffusionMap"
#: Bases that a file may name, and the shapes of the arrays that they are built from, in the order of their arguments.
STORED_BASES: dict[str, tuple[Callable[..., Basis], dict[str, str]]] = {
    "FourierBasis": (FourierBasis, {"frequencies": "qd", "weights": "q", "origin": "d"}),
    "RandomPhaseBasis": (RandomPhaseBasis, {"frequencies": "qd", "weights": "q", "origin": "d", "phases": "q"}),
    "LandmarkBasis": (LandmarkBasis, {"landmarks": "pd", "origin": "d"}),
}
#: Shapes of the fields of Moments, Modes and TangentSpaces, in the order of their arguments.
MOMENTS = {"count": "", "weight": "", "weight_squared": "", "total": "p", "gram": "pp", "energy": "pp"}
MODES = {
    "coefficients": "pr",
    "offset": "r",
    "eigenvalues": "r",
    "next_eigenvalue": "",
    "rates": "r",
    "condition_number": "",
    "effective_rank": "r",
    "effective_count": "",
}
#: Further fields of Moments and Modes where the direction of time matters.
DIRECTED_MOMENTS, RIGHT_MODES = {"flow": "pp", "change": "p"}, {"coefficients": "pr", "offset": "r"}
TANGENTS = {"samples": "md", "dimension": "", "n_neighbors": "", "floor": ""}
#: What files of older versions do not have: the mode after the last one, the samples behind each mode, where they are.
FOLLOWING = {"next_quotient": "", "next_coefficients": "p", "gap_error": ""}
EVIDENCE = {
    "energy_samples": "r",
    "variance_samples": "r",
    "transition_samples": "r",
    "independent_samples": "r",
    "errors": "r",
    "heaviest": "r",
    "heaviest_shares": "r",
    "mismatch": "r",
    "gap_error": "",
}
#: Those that pairs of frames do not have, and the distance between samples whose squares overflow.
UNKNOWN = ("transition_samples", "mismatch", "gap_error", "radius")
TRUST = {"held_out": "r", "candidates": "cr", "features": "fr"}
SUPPORT = {"samples": "sd", "low": "d", "high": "d", "radius": ""}


class StoredModel(NamedTuple):
    """The content of a model file: parameters and columns of an estimator, and its fit."""

    parameters: dict[str, Any]
    n_features: int
    names: np.ndarray | None
    fit: Fit
    changed: list[str]


def save_model(estimator: Any, path: PathLike) -> None:
    """Write a fitted estimator to `path`, under exactly that name.

    The file appears whole or not at all: it is written under a temporary name in the same directory and then renamed.

    Parameters
    ----------
    estimator : ModeTransformer
        Fitted. For a search, its `best_estimator_` is written, without the other candidates.
    path : path-like
        An existing file is replaced.

    Raises
    ------
    ValueError
        If a parameter is not plain data. A callable `diffusion` is refused, because the loaded model would score with
        another energy: set it to None first and give it to `score` and `partial_fit` of the loaded model.

    Notes
    -----
    Sequences come back as arrays. A random generator, and a `cv` that is not a number, come back as None.
    """
    with replacing(as_path("path", path)) as (file,):
        write_model(estimator, file)


def write_model(estimator: Any, file: BinaryIO, unit: str | None = None) -> None:
    """Write a fitted estimator to an open binary file, as `save_model` does; `unit` is the unit of its time step."""
    check_is_fitted(estimator)
    estimator = getattr(estimator, "best_estimator_", estimator)
    name = type(estimator).__name__
    if name != ESTIMATOR:
        raise ValueError(f"{name} cannot be saved; a saved model is a {ESTIMATOR}.")
    fitted: Fit = estimator._fitted()
    kind, kernel, clock = type(fitted.basis).__name__, fitted.basis.kernel, fitted.modes.clock
    kernel_from_dict(kernel.to_dict())  # a kernel class of the user could not be read back
    # The arrays belong to these parameters, whatever was set since the fit.
    of_fit: dict[str, Any] = {"dtype": fitted.basis.dtype.name, "lag": clock.lag}
    if clock.lag is not None:
        of_fit["time_step"] = clock.time_step
    arrays: dict[str, np.ndarray] = {}
    parameters = {key: encode(key, value, arrays) for key, value in (estimator.get_params(deep=False) | of_fit).items()}
    arrays |= _arrays_of(fitted)
    names = estimator._columns.names
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION if _has_metric(kernel) else 2,
        "class": name,
        "parameters": parameters,
        "kernel": kernel.to_dict(),
        "basis": kind,
        "n_features_in": estimator.n_features_in_,
        "feature_names_in": None if names is None else list(names),
        **({} if unit is None else {"unit": unit}),
        "libraries": library_versions(),
        "sealed": True,
        "changed": [key for key in estimator._changed_parameters() if key not in of_fit],
    }
    arrays["header"] = np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8)
    write_archive(file, arrays)


def read_model(path: PathLike) -> StoredModel:
    """Read a model file.

    Raises
    ------
    ValueError
        If the file is truncated, damaged, of a newer version or not a kdmaps model. Nothing in it is ever executed.
    """
    arrays = read_archive(path)
    with _naming(path):
        return _read(_read_header(arrays), arrays)


def read_header(path: PathLike) -> dict[str, Any]:
    """Return the header of a stored model: class, parameters, kernel, feature names, versions it was made with.

    Raises
    ------
    ValueError
        As `read_model`.
    """
    arrays = read_archive(path)
    with _naming(path):
        return _read_header(arrays)


@contextmanager
def _naming(path: PathLike) -> Iterator[None]:
    """Turn the errors of unusable content into a ValueError that names the file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is not a usable kdmaps model: {error}") from error
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{os.fspath(path)} is a damaged kdmaps model: {error!r}.") from error


# --- writing ----------------------------------------------------------------------------------------------------------
def _arrays_of(fitted: Fit) -> dict[str, np.ndarray]:
    """Return the arrays of a fit."""
    arrays: dict[str, np.ndarray] = {}
    put(arrays, "basis", fitted.basis, STORED_BASES[type(fitted.basis).__name__][1])
    put(arrays, "modes", fitted.modes, MODES)
    put(arrays, "moments", fitted.moments, MOMENTS)
    if fitted.tangents is not None:
        put(arrays, "tangents", fitted.tangents, TANGENTS)
    if fitted.modes.next_coefficients is not None:
        put(arrays, "following", fitted.modes, FOLLOWING)
    if fitted.support is not None:
        put(arrays, "support", fitted.support, SUPPORT)
    if fitted.trust is not None:
        put(arrays, "evidence", fitted.trust.evidence, EVIDENCE)
        values = ((name, getattr(fitted.trust, name)) for name in TRUST)
        known = {name: "" for name, value in values if value is not None and np.size(value)}
        put(arrays, "trust", fitted.trust, known)
    if fitted.right_modes is not None:
        put(arrays, "directed", fitted.moments, DIRECTED_MOMENTS)
        put(arrays, "right", fitted.right_modes, RIGHT_MODES)
    return arrays


def _has_metric(kernel: Kernel) -> bool:
    return any(isinstance(part, Metric) for _, part in kernel.components())


def library_versions() -> dict[str, str]:
    """Versions of kdmaps and of the libraries that decide its numbers."""
    from kdmaps import __version__

    return {"kdmaps": __version__, **{library.__name__: library.__version__ for library in (np, scipy, sklearn)}}


# --- reading ----------------------------------------------------------------------------------------------------------
def _read_header(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if "header" not in arrays:
        raise ValueError("it has no header.")
    try:
        header = json.loads(arrays["header"].tobytes())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"its header is not JSON ({error}).") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"its header does not say {FORMAT!r}.")
    version = header["version"]
    if not isinstance(version, int) or version < 1:
        raise ValueError(f"its format version {version!r} does not exist.")
    if header.get("sealed") and DIGEST not in arrays:  # files of 0.1.0 have none
        raise ValueError("its digest is missing: it was edited.")
    if version > FORMAT_VERSION:
        raise ValueError(f"it has format version {version}, newer than {FORMAT_VERSION}; upgrade kdmaps to read it.")
    return header


def _read(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> StoredModel:
    if header["class"] != ESTIMATOR:
        raise ValueError(f"unknown estimator {header['class']!r}; this version can read {ESTIMATOR}.")
    if header["basis"] not in STORED_BASES:
        raise ValueError(f"unknown basis {header['basis']!r}; this version can read {', '.join(STORED_BASES)}.")
    make_basis, basis_arrays = STORED_BASES[header["basis"]]
    parameters = {name: decode(value, arrays) for name, value in header["parameters"].items()}
    kernel, d, names = kernel_from_dict(header["kernel"]), header["n_features_in"], header["feature_names_in"]
    if type(d) is not int:
        raise ValueError(f"its number of features {d!r} is not an integer.")
    if names is not None and (not all(isinstance(name, str) for name in names) or len(names) != d):
        raise ValueError(f"its feature names are not {d} strings.")
    sizes = {"d": d}
    _check_kernel(kernel, sizes)
    basis = make_basis(kernel, *take(arrays, "basis", basis_arrays, sizes).values()).astype(parameters["dtype"])
    sizes["p"] = basis.n_features

    def group(prefix: str, shapes: dict[str, str], may_be_nan: Sequence[str] = UNKNOWN) -> dict[str, Any]:
        present = any(key.startswith(f"{prefix}.") for key in arrays)
        return take(arrays, prefix, shapes, sizes, may_be_nan) if present else {}

    modes = _modes(Clock(parameters.get("lag"), parameters.get("time_step", 1.0)), arrays, sizes)
    moments = take(arrays, "moments", MOMENTS, sizes)
    if min(moments["count"], moments["weight"], moments["weight_squared"]) <= 0:
        raise ValueError("its moments hold no samples.")
    sums = Moments(**{**moments, "count": int(moments["count"])} | group("directed", DIRECTED_MOMENTS, ()))
    tangents, right, support = (
        group("tangents", TANGENTS, ()),
        group("right", RIGHT_MODES, ()),
        group("support", SUPPORT),
    )
    fitted = Fit(
        basis,
        # Files of 0.1.0 are in the order of μ.
        replace(modes.by_timescale(), **group("following", FOLLOWING)),
        sums,
        _tangents(tangents, sizes) if tangents else None,
        replace(modes, **right).by_timescale() if right else None,
        support=Support(**support) if support else None,
    )
    if evidence := group("evidence", EVIDENCE):
        known = {name: shape for name, shape in TRUST.items() if f"trust.{name}" in arrays}
        others = take(arrays, "trust", known, sizes, tuple(TRUST))  # a rate may be infinite
        trust = Trust(Evidence(**evidence), fitted.modes.rates, **others, weighted=sums.weighted)
        fitted = replace(fitted, trust=trust)
    names = None if names is None else np.array(names, dtype=object)
    return StoredModel(parameters, d, names, fitted, list(header.get("changed", ())))


def _modes(clock: Clock, arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> Modes:
    # A mode that has decayed within the lag has an infinite rate.
    unbounded = ("next_eigenvalue",) if clock.lag is None else ("next_eigenvalue", "rates")
    stored = take(arrays, "modes", MODES, sizes, may_be_nan=unbounded)
    if np.isnan(stored["rates"]).any():
        raise ValueError("array modes.rates holds NaN.")
    return Modes(quotients=clock.quotients(stored.pop("rates")), clock=clock, **stored)


def _check_kernel(kernel: Any, sizes: dict[str, int]) -> None:
    """Raise unless the bandwidths and the metrics of a kernel are those of d coordinates."""
    if isinstance(kernel, Mixture):
        for part in kernel.kernels:
            _check_kernel(part, sizes)
    elif isinstance(kernel, Metric):
        check_shape("root", kernel.root, "dd", sizes)
        _check_kernel(kernel.kernel, sizes)
    else:
        check_shape("bandwidth", kernel.bandwidth, "d" if kernel.bandwidth.ndim else "", sizes)


def _tangents(fields: dict[str, Any], sizes: dict[str, int]) -> TangentSpaces:
    dimension, neighbors, floor = int(fields["dimension"]), int(fields["n_neighbors"]), fields["floor"]
    if not (1 <= dimension <= sizes["d"] and 0 <= neighbors <= sizes["m"] and 0 <= floor <= 1):
        raise ValueError("its tangent spaces are impossible.")
    return TangentSpaces(fields["samples"], dimension, neighbors, floor)
