"""Fitted models on disk: one `.npz` of plain arrays and a JSON header, without pickle on either side.

The header says what the arrays are: format version, class, constructor parameters, kernel, kind of basis, feature names
and the versions of the libraries. Reading a file builds objects of known classes only and runs nothing from it, and
takes memory in proportion to its size. One digest covers the whole file (`archive`): what was damaged or
edited is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, BinaryIO, cast

import numpy as np
import scipy
import sklearn
from sklearn.utils.validation import check_is_fitted

from kdmaps.bases import Basis, FourierBasis, LandmarkBasis, RandomPhaseBasis
from kdmaps.data.distances import Support
from kdmaps.diagnostics.evidence import Evidence
from kdmaps.diagnostics.trust import Trust
from kdmaps.estimators.archive import DIGEST, read_archive, write_archive
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.estimators.stored import check_shape, decode, encode, put, take
from kdmaps.estimators.summed import changed_parameters
from kdmaps.estimators.transformer import ModeTransformer, set_modes, set_trust
from kdmaps.forms.moments import Moments
from kdmaps.forms.tangent import TangentSpaces
from kdmaps.kernels import Kernel, Metric, Mixture, kernel_from_dict
from kdmaps.spectrum.clock import Clock
from kdmaps.spectrum.modes import Modes
from kdmaps.utils.files import as_path, replacing
from kdmaps.utils.types import PathLike

FORMAT = "kdmaps model"
#: Increase this when older versions can no longer read a file. Version 3 knows kernels in a metric; a file without one
#: has version 2, which 0.1.0 reads.
FORMAT_VERSION = 3
#: Estimators that a file may name.
ESTIMATORS: dict[str, type[ModeTransformer]] = {"KernelDiffusionMap": KernelDiffusionMap}
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


def save_model(estimator: ModeTransformer, path: PathLike) -> None:
    """Write a fitted estimator to `path`, under exactly that name.

    The file appears whole or not at all: it is written under a temporary name beside `path` and then renamed.

    Parameters
    ----------
    estimator : ModeTransformer
        Fitted. Of a search, its `best_estimator_` is written: the model, without the candidates that lost.
    path : path-like
        An existing file is replaced.

    Raises
    ------
    ValueError
        If a parameter is not plain data. A callable `diffusion` is refused, because a model that silently scored with
        another energy would be worse than none: set it to None first and give it to `score` and `partial_fit` of the
        loaded model.

    Notes
    -----
    Sequences come back as arrays. A random generator comes back as None, since its state is not that of the fit; so
    does a `cv` that is no number.
    """
    with replacing(as_path("path", path)) as (file,):
        write_model(estimator, file)


def write_model(estimator: ModeTransformer, file: BinaryIO, unit: str | None = None) -> None:
    """Write a fitted estimator to an open binary file, as `save_model` does; `unit` is that of its time step."""
    check_is_fitted(estimator)
    estimator = cast(ModeTransformer, getattr(estimator, "best_estimator_", estimator))
    name = type(estimator).__name__
    if ESTIMATORS.get(name) is not type(estimator):
        raise ValueError(f"{name} cannot be saved; a saved model is one of {', '.join(ESTIMATORS)}.")
    kind = type(estimator.basis_).__name__
    kernel = estimator.kernel_.to_dict()
    kernel_from_dict(kernel)  # a kernel of the user's own would make a file that nobody can read
    arrays: dict[str, np.ndarray] = {}
    of_fit = _parameters_of_fit(estimator)
    parameters = {key: encode(key, value, arrays) for key, value in (estimator.get_params(deep=False) | of_fit).items()}
    put(arrays, "basis", estimator.basis_, STORED_BASES[kind][1])
    put(arrays, "modes", estimator.modes_, MODES)
    put(arrays, "moments", estimator.moments_, MOMENTS)
    if estimator.tangents_ is not None:
        put(arrays, "tangents", estimator.tangents_, TANGENTS)
    _put_trust(arrays, estimator)
    if estimator.right_modes_ is not None:
        put(arrays, "directed", estimator.moments_, DIRECTED_MOMENTS)
        put(arrays, "right", estimator.right_modes_, RIGHT_MODES)
    names = getattr(estimator, "feature_names_in_", None)
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION if _has_metric(estimator.kernel_) else 2,
        "class": name,
        "parameters": parameters,
        "kernel": kernel,
        "basis": kind,
        "n_features_in": estimator.n_features_in_,
        "feature_names_in": None if names is None else list(names),
        **({} if unit is None else {"unit": unit}),
        "libraries": library_versions(),
        "sealed": True,
        "changed": [key for key in changed_parameters(estimator) if key not in of_fit],
    }
    text = json.dumps(header, allow_nan=False)
    arrays["header"] = np.frombuffer(text.encode(), dtype=np.uint8)
    write_archive(file, arrays)


def load(path: PathLike) -> ModeTransformer:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    estimator : ModeTransformer
        Fitted; its modes, gradients and scores are those of the saved one, and `partial_fit` goes on from there.

    Raises
    ------
    ValueError
        If the file is truncated, damaged, of a newer version or not a kdmaps model. Nothing in it is ever executed.

    Examples
    --------
    >>> import tempfile
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    >>> m = kdmaps.KernelDiffusionMap(n_components=2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     m.save(f"{folder}/model.npz")
    ...     same = kdmaps.load(f"{folder}/model.npz")
    >>> bool((same.transform(X) == m.transform(X)).all())
    True
    """
    arrays = read_archive(path)
    try:
        return _build(_read_header(arrays), arrays)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is not a usable kdmaps model: {error}") from error
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{os.fspath(path)} is a damaged kdmaps model: {error!r}.") from error


def read_header(path: PathLike) -> dict[str, Any]:
    """Return the header of a stored model: class, parameters, kernel, feature names, versions it was made with.

    Raises
    ------
    ValueError
        As `load`.
    """
    arrays = read_archive(path)
    try:
        return _read_header(arrays)
    except (KeyError, RecursionError) as error:
        raise ValueError(f"{os.fspath(path)} is a damaged kdmaps model: {error!r}.") from error
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is not a usable kdmaps model: {error}") from error


# --- writing ----------------------------------------------------------------------------------------------------------
def _parameters_of_fit(estimator: ModeTransformer) -> dict[str, Any]:
    """Return the parameters that the arrays are read with, as they were in the fit, whatever was set since."""
    found: dict[str, Any] = {"dtype": estimator.basis_.dtype.name, "lag": estimator.lag_}
    if estimator.lag_ is not None:
        found["time_step"] = estimator.modes_.clock.time_step
    return {name: value for name, value in found.items() if name in estimator.get_params(deep=False)}


def _put_trust(arrays: dict[str, np.ndarray], estimator: ModeTransformer) -> None:
    """Add what is known of how far to trust the modes."""
    if estimator.modes_.next_coefficients is not None:
        put(arrays, "following", estimator.modes_, FOLLOWING)
    if estimator.support_ is not None:
        put(arrays, "support", estimator.support_, SUPPORT)
    if estimator.trust_ is not None:
        put(arrays, "evidence", estimator.trust_.evidence, EVIDENCE)
        values = ((name, getattr(estimator.trust_, name)) for name in TRUST)
        known = {name: "" for name, value in values if value is not None and np.size(value)}
        put(arrays, "trust", estimator.trust_, known)


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


def _build(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> ModeTransformer:
    cls = _lookup(ESTIMATORS, header["class"], "estimator")
    make_basis, basis_arrays = _lookup(STORED_BASES, header["basis"], "basis")
    parameters = header["parameters"]
    if unknown := set(parameters) - set(cls._get_param_names()):
        raise ValueError(f"{cls.__name__} has no parameter {', '.join(sorted(unknown))}.")
    estimator = cls(**{name: decode(value, arrays) for name, value in parameters.items()})

    kernel = kernel_from_dict(header["kernel"])
    sizes = {"d": header["n_features_in"]}
    if type(sizes["d"]) is not int:
        raise ValueError(f"its number of features {sizes['d']!r} is not an integer.")
    _check_kernel(kernel, sizes)
    basis = make_basis(kernel, *take(arrays, "basis", basis_arrays, sizes).values()).astype(estimator.dtype)
    sizes["p"] = basis.n_features
    clock = Clock(getattr(estimator, "lag", None), getattr(estimator, "time_step", 1.0))
    # A mode that a lag leaves nothing of has an infinite rate.
    unbounded = ("next_eigenvalue",) if clock.lag is None else ("next_eigenvalue", "rates")
    stored = take(arrays, "modes", MODES, sizes, may_be_nan=unbounded)
    if np.isnan(stored["rates"]).any():
        raise ValueError("array modes.rates holds NaN.")
    modes = Modes(quotients=clock.quotients(stored.pop("rates")), clock=clock, **stored)
    moments = take(arrays, "moments", MOMENTS, sizes)
    if min(moments["count"], moments["weight"], moments["weight_squared"]) <= 0:
        raise ValueError("its moments hold no samples.")
    sums = Moments(**{**moments, "count": int(moments["count"])})
    estimator.n_features_in_ = sizes["d"]
    has_tangents = any(key.startswith("tangents.") for key in arrays)
    tangents = _tangents(take(arrays, "tangents", TANGENTS, sizes), sizes) if has_tangents else None
    right = None
    if any(key.startswith("directed.") for key in arrays):
        sums = replace(sums, **take(arrays, "directed", DIRECTED_MOMENTS, sizes))
        right = replace(modes, **take(arrays, "right", RIGHT_MODES, sizes)).by_timescale()
    # Files of 0.1.0 are in the order of μ.
    set_modes(estimator, basis, modes.by_timescale(), sums, tangents, right)
    estimator._summed |= dict.fromkeys(header.get("changed", ()), "that of the fit")
    _take_trust(estimator, arrays, sizes)
    if (names := header["feature_names_in"]) is not None:
        if not all(isinstance(name, str) for name in names) or len(names) != sizes["d"]:
            raise ValueError(f"its feature names are not {sizes['d']} strings.")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return estimator


def _take_trust(estimator: ModeTransformer, arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> None:
    """Set what is known of how far to trust the modes, where the file has it."""

    def group(prefix: str, shapes: dict[str, str]) -> dict[str, Any]:
        present = any(key.startswith(f"{prefix}.") for key in arrays)
        return take(arrays, prefix, shapes, sizes, UNKNOWN) if present else {}

    if following := group("following", FOLLOWING):
        estimator.modes_ = replace(estimator.modes_, **following)
    if support := group("support", SUPPORT):
        estimator.support_ = Support(**support)
    if evidence := group("evidence", EVIDENCE):
        known = {name: shape for name, shape in TRUST.items() if f"trust.{name}" in arrays}
        others = take(arrays, "trust", known, sizes, tuple(TRUST))  # a rate may be infinite
        set_trust(estimator, Trust(Evidence(**evidence), estimator.rates_, **others))


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


def _lookup(table: dict[str, Any], name: object, what: str) -> Any:
    if not isinstance(name, str) or name not in table:
        raise ValueError(f"unknown {what} {name!r}; this version knows {', '.join(table)}.")
    return table[name]
