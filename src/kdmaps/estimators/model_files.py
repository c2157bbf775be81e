"""Fitted models on disk: one `.npz` of plain arrays and a JSON header, without pickle.

The header has the format version, class, constructor parameters, kernel, basis, feature names and library versions.
Reading a file builds objects of known classes only, executes nothing from it, and takes memory in proportion to its
size. One digest covers the whole file (`archive`): a damaged or edited file is refused.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from typing import Any, BinaryIO

import numpy as np
import scipy
import sklearn
from sklearn.utils.validation import check_is_fitted

from kdmaps.bases import Basis, FourierBasis, LandmarkBasis, RandomPhaseBasis
from kdmaps.checks import Check, Checks
from kdmaps.clocks.clock import BurstClock
from kdmaps.clocks.tensor import LearnedDiffusion
from kdmaps.data.detached import RareGroup
from kdmaps.data.distances import Support
from kdmaps.diagnostics.committor import CommittorTrust
from kdmaps.diagnostics.evidence import Evidence
from kdmaps.diagnostics.trust import Equilibrium, Trust
from kdmaps.estimators.archive import DIGEST, read_archive, write_archive
from kdmaps.estimators.committor_fit import CommittorFit
from kdmaps.estimators.fit import Columns, Fit
from kdmaps.estimators.graph_fit import GraphFit
from kdmaps.forms.diffusion import Factor
from kdmaps.forms.moments import Moments
from kdmaps.forms.tangent import TangentDiffusion, TangentSpaces
from kdmaps.kernels import Kernel, Metric, Mixture, kernel_from_dict
from kdmaps.propagation import files as propagators
from kdmaps.spectrum.modes import Clock, Modes
from kdmaps.utils.types import PathLike
from kdmaps.utils.validation import check_positive_integer, check_positive_number

FORMAT = "kdmaps model"
#: Increase this when older versions can no longer read a file. Version 5 has the clock of bursts, a learned tensor or
#: a graph of neighbours, version 4 a large metric as an array, version 3 kernels in a metric; other files have
#: version 2, which 0.1.0 reads.
FORMAT_VERSION = 5
LARGE_METRIC, METRIC, PLAIN = 4, 3, 2
#: A metric with more numbers is an array of the file, not text of its header.
LARGE_ROOT = 2**14
#: The estimators that a file may name.
ESTIMATOR, COMMITTOR, NEIGHBORS = "KernelDiffusionMap", "AdaptiveCommittor", "NeighborDiffusionMap"
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
#: Missing in older files: the mode after the last one, the evidence for each mode, the range of the samples.
FOLLOWING = {"next_quotient": "", "next_coefficients": "p", "gap_error": ""}
EVIDENCE = {field.name: "" if field.name == "gap_error" else "r" for field in fields(Evidence)}
#: Missing for pairs of frames.
UNKNOWN = ("transition_samples", "mismatch", "gap_error")
TRUST = {
    "held_out": "r",
    "candidates": "cr",
    "features": "fr",
    "corrected": "r",
    "training": "r",
    "unseparated": "",
    "parts": "l",
    "eigenfunctions": "e",
    "overfit": "e",
}
EQUILIBRIUM = dict.fromkeys(Equilibrium._fields, "r")
SUPPORT = {"samples": "sd", "low": "d", "high": "d"}
#: All rows of detached groups, the group of each, and for each group the fields of `RareGroup`.
GROUPS = {"points": "nd", "rows": "n", "group": "n", "share": "g", "gap": "g", "typical": "g", "is_state": "g"}
#: Arrays of a graph of neighbours: rows and neighbour means with their widths, and the modes.
GRAPH = {
    "rows": "nd",
    "row_widths": "n",
    "means": "nd",
    "mean_widths": "n",
    "shares": "g",
    "values": "nr",
    "eigenvalues": "r",
    "components": "n",
    "next_eigenvalue": "",
    "agreement": "",
}
#: The function of a committor, its flux and its rates.
FUNCTION = {"coefficients": "pk", "offset": "k", "quantities": "t", "intervals": "te"}
#: The clock of u estimators for v columns; estimators that show no decay have infinite errors.
CLOCK = {"factors": "uv", "factor_errors": "uv", "choice": "v", "memory": "v", "energies": "v", "errors": "v"}
ENDLESS = ("factor_errors", "errors")
#: A learned diffusion tensor with l landmarks; its width may be infinite.
LEARNED = {
    "whitening": "dd",
    "width": "",
    "landmarks": "ld",
    "counts": "l",
    "shifts": "ld",
    "squares": "ldd",
    "overlaps": "ll",
    "mean": "dd",
    "duration": "",
}


def write_model(
    estimator: Any,
    file: BinaryIO,
    unit: str | None = None,
    inputs: Sequence[str] | None = None,
    stride: int | None = None,
) -> None:
    """Write a fitted committor or map (the `best_estimator_` of a search) to an open binary file.

    `unit` is the unit of its time step, `inputs` the definition of its columns by atoms ("torsion:4-6-8-14"), `stride`
    the number of rows of a file for each row of the fit.
    Parameters must be plain data: a callable `diffusion` is refused, because the loaded model would score with another
    energy. Sequences are read back as arrays; a random generator, and a `cv` that is not a number, as None.
    """
    check_is_fitted(estimator)
    estimator = getattr(estimator, "best_estimator_", estimator)
    if (name := type(estimator).__name__) == COMMITTOR:
        return _write_committor(estimator, file, inputs)
    if name == NEIGHBORS:
        return _write_neighbors(estimator, file, inputs)
    if name != ESTIMATOR:
        raise ValueError(f"{name} cannot be saved; a saved model is a {ESTIMATOR}.")
    fitted: Fit = estimator._fitted()
    clock = fitted.modes.clock
    # The arrays belong to these parameters, whatever was set since the fit.
    of_fit: dict[str, Any] = {"dtype": fitted.basis.dtype.name, "lag": clock.lag}
    if fitted.clock is not None and fitted.clock.diffusion is not None:
        of_fit["diffusion"] = None  # it is in the clock
    if clock.lag is not None:
        of_fit["time_step"] = clock.time_step
    changed = [key for key in estimator._changed_parameters() if key not in of_fit]
    arrays = _arrays_of(fitted) | _clock_arrays(fitted.clock)
    checks = [check.to_dict() for check in estimator.checks_]
    more: dict[str, Any] = {"unit": unit, "inputs": inputs, "changed": changed, "checks": checks, "stride": stride}
    if fitted.propagator is not None:
        more["propagator"] = propagators.to_data(fitted.propagator)
    more["clock"] = _clock_header(fitted.clock)
    _write(file, estimator, fitted.basis, arrays, of_fit, **more)


def _write_committor(estimator: Any, file: BinaryIO, inputs: Sequence[str] | None) -> None:
    fitted: CommittorFit = estimator._fit
    arrays = _arrays_in("function", fitted, FUNCTION) | _arrays_in("support", fitted.support, SUPPORT)
    arrays |= _arrays_in("tangents", fitted.tangents, TANGENTS) | _clock_arrays(fitted.clock)
    numbers = {"score": fitted.score, "regularization": fitted.regularization}
    checks = [check.to_dict() for check in estimator.checks_]
    more: dict[str, Any] = {"inputs": inputs, "trust": asdict(fitted.trust), "numbers": numbers, "checks": checks}
    _write(file, estimator, fitted.basis, arrays, least=LARGE_METRIC, **more, clock=_clock_header(fitted.clock))


def _write_neighbors(estimator: Any, file: BinaryIO, inputs: Sequence[str] | None) -> None:
    basis = estimator.basis_
    rows, means = basis.form.rows, basis.form.means
    arrays = {
        "rows": rows.points,
        "row_widths": rows.widths,
        "means": means.points,
        "mean_widths": means.widths,
        "shares": basis.form.shares,
        "values": basis.values,
        "eigenvalues": basis.eigenvalues,
        "components": estimator.components_of_rows_.astype(np.float64),
        "next_eigenvalue": np.asarray(estimator.modes_.next_eigenvalue),
        "agreement": np.asarray(estimator.fold_agreement_),
    }
    stored = {f"graph.{name}": array for name, array in arrays.items()}
    stored |= _arrays_in("support", estimator.support_, SUPPORT)
    checks = [check.to_dict() for check in estimator.checks_]
    more: dict[str, Any] = {"inputs": inputs, "stable": estimator.suggested_n_components_, "checks": checks}
    _write(file, estimator, basis, stored, least=FORMAT_VERSION, **more)


def _write(
    file: BinaryIO,
    estimator: Any,
    basis: Basis,
    arrays: dict[str, np.ndarray],
    of_fit: dict[str, Any] | None = None,
    least: int = PLAIN,
    **more: Any,
) -> None:
    """Write a basis, the other arrays of a fit and a header, which has `more` entries; `of_fit` replaces parameters."""
    stored: dict[str, np.ndarray] = {}
    kernel = None
    if basis.kernel is not None:
        kernel = _kernel_data("basis.kernel", basis.kernel, stored)
        _read_kernel(kernel, stored)  # a kernel class of the user could not be read back
        if any(isinstance(part, Metric) for _, part in basis.kernel.components()):
            least = max(least, LARGE_METRIC if stored else METRIC)
    parameters = estimator.get_params(deep=False) | (of_fit or {})
    if parameters.get("isolated") == "separate":  # the default, which older versions do not have
        del parameters["isolated"]
    names = estimator._columns.names
    if more.get("clock") is not None or isinstance(parameters.get("diffusion"), LearnedDiffusion):
        least = FORMAT_VERSION
    header = {
        "format": FORMAT,
        "version": least,
        "class": type(estimator).__name__,
        "parameters": {key: _encode(key, value, stored) for key, value in parameters.items()},
        "kernel": kernel,
        "basis": type(basis).__name__,
        "n_features_in": estimator.n_features_in_,
        "feature_names_in": None if names is None else list(names),
        "libraries": library_versions(),
        "sealed": True,
        **{key: value for key, value in more.items() if value is not None},
    }
    if kernel is not None:
        stored |= _arrays_in("basis", basis, STORED_BASES[type(basis).__name__][1])
    stored |= arrays
    stored["header"] = np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8)
    write_archive(file, stored)


def read_header(path: PathLike) -> dict[str, Any]:
    """Return the header of a stored model: class, parameters, kernel, feature names, versions of libraries."""
    with opened(path) as (header, _):
        return header


@contextmanager
def opened(path: PathLike) -> Iterator[tuple[dict[str, Any], dict[str, np.ndarray]]]:
    """Read header and arrays; unusable content, also if it is found in this context, raises a ValueError."""
    arrays = read_archive(path)
    try:
        yield _read_header(arrays), arrays
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is not a usable kdmaps model: {error}") from error
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{os.fspath(path)} is a damaged kdmaps model: {error!r}.") from error


# --- writing ----------------------------------------------------------------------------------------------------------
def _arrays_of(fitted: Fit) -> dict[str, np.ndarray]:
    """Return the arrays of a fit, without the arrays of its basis."""
    modes, trust = fitted.modes, fitted.trust
    arrays = _arrays_in("modes", modes, MODES) | _arrays_in("moments", fitted.moments, MOMENTS)
    arrays |= _arrays_in("tangents", fitted.tangents, TANGENTS) | _arrays_in("support", fitted.support, SUPPORT)
    if modes.next_coefficients is not None:
        arrays |= _arrays_in("following", modes, FOLLOWING)
    if trust is not None:
        known = {name: "" for name in TRUST if getattr(trust, name) is not None and np.size(getattr(trust, name))}
        arrays |= _arrays_in("evidence", trust.evidence, EVIDENCE) | _arrays_in("trust", trust, known)
        arrays |= _arrays_in("equilibrium", trust.equilibrium, EQUILIBRIUM)
    if fitted.right_modes is not None:
        arrays |= _arrays_in("directed", fitted.moments, DIRECTED_MOMENTS)
        arrays |= _arrays_in("right", fitted.right_modes, RIGHT_MODES)
    if fitted.propagator is not None:
        arrays |= propagators.to_arrays(fitted.propagator)
    return arrays | _arrays_of_groups(fitted.rare_groups)


def _arrays_of_groups(groups: Sequence[RareGroup]) -> dict[str, np.ndarray]:
    """Return detached groups as arrays; none if there are none."""
    if not groups:
        return {}
    sizes = [len(group.rows) for group in groups]
    arrays = {
        "points": np.concatenate([group.points for group in groups]),
        "rows": np.concatenate([group.rows for group in groups]),
        "group": np.repeat(np.arange(len(groups)), sizes),
        "share": np.array([group.share for group in groups]),
        "gap": np.array([group.gap for group in groups]),
        "typical": np.array([group.typical for group in groups]),
        "is_state": np.array([int(group.is_state) for group in groups]),
    }
    return {f"groups.{name}": array for name, array in arrays.items()}


def _arrays_in(prefix: str, source: object, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return attributes of an object as arrays with the names "prefix.name"; nothing for None."""
    return {} if source is None else {f"{prefix}.{name}": np.asarray(getattr(source, name)) for name in names}


def _clock_arrays(clock: BurstClock | None) -> dict[str, np.ndarray]:
    """Return the arrays of a clock and of its diffusion tensor."""
    if clock is None:
        return {}
    return _arrays_in("clock", clock, CLOCK) | _arrays_in("clock.diffusion", clock.diffusion, LEARNED)


def _clock_header(clock: BurstClock | None) -> dict[str, Any] | None:
    """Return everything else about a clock."""
    if clock is None:
        return None
    checks = [check.to_dict() for check in clock.checks]
    return {"names": clock.names, "n_bursts": clock.n_bursts, "time_step": clock.time_step, "checks": checks}


def library_versions() -> dict[str, str]:
    """Versions of kdmaps and of the libraries that decide its numbers."""
    from kdmaps import __version__

    return {"kdmaps": __version__, **{library.__name__: library.__version__ for library in (np, scipy, sklearn)}}


# --- reading ----------------------------------------------------------------------------------------------------------
def _read_header(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if "header" not in arrays:
        raise ValueError("its header is missing.")
    try:
        header = json.loads(arrays["header"].tobytes())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"its header is not JSON ({error}).") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"its header is not the header of a {FORMAT}.")
    version = header["version"]
    if not isinstance(version, int) or version < 1:
        raise ValueError(f"its format version {version!r} does not exist.")
    if header.get("sealed") and DIGEST not in arrays:  # files of 0.1.0 have none
        raise ValueError("its digest is missing: it was edited.")
    if version > FORMAT_VERSION:
        raise ValueError(f"it has format version {version}, newer than {FORMAT_VERSION}; upgrade kdmaps to read it.")
    return header


def read_committor(
    header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[dict[str, Any], Columns, CommittorFit]:
    """Return parameters, columns and fit, without candidates, from the content of the file of a committor."""
    parameters, basis, columns, sizes = _read_basis(header, arrays)
    function = _take(arrays, "function", FUNCTION, sizes, ("intervals",))
    if function["coefficients"].shape[1] != 1 or function["intervals"].shape != (3, 2):
        raise ValueError("its arrays are not the arrays of a committor.")
    fitted = CommittorFit(
        basis=basis,
        tangents=_read_tangents(arrays, sizes),
        support=Support(**_take(arrays, "support", SUPPORT, sizes, UNKNOWN)),
        trust=CommittorTrust(**header["trust"]),
        candidates=[],
        clock=_read_clock(header, arrays, sizes),
        **function,
        **header["numbers"],
    )
    return parameters, columns, fitted


def read_neighbors(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[dict[str, Any], Columns, GraphFit]:
    """Return parameters, columns and fit from the content of the file of a graph of neighbours."""
    parameters = {name: _decode(value, arrays) for name, value in header["parameters"].items()}
    columns = _read_columns(header)
    sizes = {"d": columns.n_features, "g": 2}
    graph = _take(arrays, "graph", GRAPH, sizes, may_be_nan=("next_eigenvalue",))
    number = check_positive_integer("its n_neighbors", parameters["n_neighbors"])
    if not number < sizes["n"]:
        raise ValueError(f"its {number} neighbours are not fewer than its {sizes['n']} rows.")
    if not (graph["eigenvalues"] > 0).all() or not min(graph["row_widths"].min(), graph["mean_widths"].min()) > 0:
        raise ValueError("its eigenvalues and widths must be positive.")
    support = Support(**_take(arrays, "support", SUPPORT, sizes))
    return parameters, columns, GraphFit.stored(graph, number, support, header["stable"])


def read_model(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[dict[str, Any], Columns, Fit, list[str]]:
    """Return parameters, columns, fit and changed parameters from the content of a model file."""
    if header["class"] != ESTIMATOR:
        raise ValueError(f"unknown estimator {header['class']!r}; this version can read {ESTIMATOR}.")
    parameters, basis, columns, sizes = _read_basis(header, arrays)

    def group(prefix: str, shapes: dict[str, str], may_be_nan: Sequence[str] = UNKNOWN) -> dict[str, Any]:
        return _take_group(arrays, prefix, shapes, sizes, may_be_nan)

    modes = _modes(parameters, arrays, sizes)
    moments = _take(arrays, "moments", MOMENTS, sizes)
    if min(moments["count"], moments["weight"], moments["weight_squared"]) <= 0:
        raise ValueError("its moments hold no samples.")
    sums = Moments(**{**moments, "count": int(moments["count"])} | group("directed", DIRECTED_MOMENTS, ()))
    right, support = group("right", RIGHT_MODES, ()), group("support", SUPPORT)
    fitted = Fit(
        basis,
        # Files of 0.1.0 are in the order of μ.
        replace(modes.by_timescale(), **group("following", FOLLOWING)),
        sums,
        _read_tangents(arrays, sizes),
        replace(modes, **right).by_timescale() if right else None,
        support=Support(**support) if support else None,
        rare_groups=_read_groups(group("groups", GROUPS, ())),
        clock=_read_clock(header, arrays, sizes),
    )
    if "propagator" in header:  # not in files of 0.2.0
        fitted = replace(fitted, propagator=propagators.from_stored(header["propagator"], arrays))
    if evidence := group("evidence", EVIDENCE):
        known = {name: shape for name, shape in TRUST.items() if f"trust.{name}" in arrays}
        others = _take(arrays, "trust", known, sizes, tuple(TRUST))  # a rate may be infinite
        tests = group("equilibrium", EQUILIBRIUM, tuple(EQUILIBRIUM))
        others["equilibrium"] = Equilibrium(**tests) if tests else None
        trust = Trust(Evidence(**evidence), fitted.modes.rates, **others, weighted=sums.weighted)
        fitted = replace(fitted, trust=trust)
    of_modes = {check.code for check in fitted.of_modes}
    raised = tuple(check for check in stored_checks(header) if check.code not in of_modes)
    fitted = replace(fitted, raised=raised)
    return parameters, columns, fitted, list(header.get("changed", ()))


def stored_checks(header: dict[str, Any]) -> Checks:
    """Return the checks in a header; files of 0.2.0 and before have none."""
    checks = (Check.from_dict(stored) for stored in header.get("checks", ()))
    return Checks(check for check in checks if check is not None)


def _read_groups(stored: dict[str, Any]) -> tuple[RareGroup, ...]:
    """Return the detached groups of a file."""
    groups = []
    for number in range(len(stored.get("gap", ()))):
        members = stored["group"] == number
        if not members.any() or not stored["gap"][number] > 0:
            raise ValueError("its groups of rows are impossible.")
        group = RareGroup(
            rows=stored["rows"][members].astype(np.intp),
            points=stored["points"][members],
            share=float(stored["share"][number]),
            gap=float(stored["gap"][number]),
            typical=float(stored["typical"][number]),
            is_state=bool(stored["is_state"][number]),
            is_fitted=False,
        )
        groups.append(group)
    return tuple(groups)


def _read_basis(
    header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[dict[str, Any], Basis, Columns, dict[str, int]]:
    """Return the parameters, the basis, the columns, and the sizes d and p."""
    if header["basis"] not in STORED_BASES:
        raise ValueError(f"unknown basis {header['basis']!r}; this version can read {', '.join(STORED_BASES)}.")
    make_basis, basis_arrays = STORED_BASES[header["basis"]]
    parameters = {name: _decode(value, arrays) for name, value in header["parameters"].items()}
    parameters.pop("engine", None)  # in files of 0.1.0
    kernel = _read_kernel(header["kernel"], arrays)
    columns = _read_columns(header)
    sizes = {"d": columns.n_features}
    _check_kernel(kernel, sizes)
    basis = make_basis(kernel, *_take(arrays, "basis", basis_arrays, sizes).values())
    dtype = parameters.get("dtype", "float64")
    if dtype not in ("float32", "float64"):  # text or objects of any size could take all memory
        raise ValueError(f"its dtype {str(dtype)[:20]!r} is neither float32 nor float64.")
    basis = basis.astype(dtype)
    sizes["p"] = basis.n_features
    return parameters, basis, columns, sizes


def _read_columns(header: dict[str, Any]) -> Columns:
    """Return the number and the names of the columns."""
    d, names = header["n_features_in"], header["feature_names_in"]
    if type(d) is not int:
        raise ValueError(f"its number of features {d!r} is not an integer.")
    if names is not None and (not all(isinstance(name, str) for name in names) or len(names) != d):
        raise ValueError(f"its feature names are not {d} strings.")
    return Columns(d, None if names is None else np.array(names, dtype=object))


def _modes(parameters: dict[str, Any], arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> Modes:
    lag, step = parameters.get("lag"), parameters.get("time_step")
    if lag is not None:
        check_positive_integer("its lag", lag)
    clock = Clock(lag, 1.0 if step is None else check_positive_number("its time_step", step))
    # A mode that has decayed within the lag has an infinite rate.
    unbounded = ("next_eigenvalue",) if clock.lag is None else ("next_eigenvalue", "rates")
    stored = _take(arrays, "modes", MODES, sizes, may_be_nan=unbounded)
    if not (stored["rates"] >= 0).all():
        raise ValueError("array modes.rates holds NaN or negative rates.")
    return Modes(quotients=clock.quotients(stored.pop("rates")), clock=clock, **stored)


def _check_kernel(kernel: Any, sizes: dict[str, int]) -> None:
    """Raise a ValueError unless the bandwidths and the metrics of a kernel suit d coordinates."""
    if isinstance(kernel, Mixture):
        for part in kernel.kernels:
            _check_kernel(part, sizes)
    elif isinstance(kernel, Metric):
        _check_shape("root", kernel.root, "dk", own := {"d": sizes["d"]})
        _check_kernel(kernel.kernel, {"d": own["k"]})
    else:
        _check_shape("bandwidth", kernel.bandwidth, "d" if kernel.bandwidth.ndim else "", sizes)


def _read_tangents(arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> TangentSpaces | None:
    """Return the checked tangent spaces, if a file has any."""
    if not (fields := _take_group(arrays, "tangents", TANGENTS, sizes)):
        return None
    dimension, neighbors, floor = int(fields["dimension"]), int(fields["n_neighbors"]), fields["floor"]
    if not (1 <= dimension <= sizes["d"] and 0 <= neighbors <= sizes["m"] and 0 <= floor <= 1):
        raise ValueError("its tangent spaces are impossible.")
    return TangentSpaces(fields["samples"], dimension, neighbors, floor)


def _read_clock(header: dict[str, Any], arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> BurstClock | None:
    """Return the checked clock, if a file has one."""
    stored = header.get("clock")
    if stored is None:
        return None
    fields = _take(arrays, "clock", CLOCK, sizes, ENDLESS)
    names = tuple(stored["names"])
    choice = fields.pop("choice").astype(int)
    if len(names) != len(fields["factors"]) or not np.isin(choice, np.arange(len(names))).all():
        raise ValueError("its clock is impossible.")
    checks = (Check.from_dict(check) for check in stored["checks"])
    return BurstClock(
        **fields,
        names=names,
        choice=choice,
        n_bursts=check_positive_integer("its number of bursts", stored["n_bursts"]),
        time_step=check_positive_number("its time_step", stored["time_step"]),
        diffusion=_read_learned(arrays, "clock.diffusion", sizes),
        checks=tuple(check for check in checks if check is not None),
    )


def _read_learned(arrays: dict[str, np.ndarray], prefix: str, sizes: dict[str, int]) -> LearnedDiffusion | None:
    """Return a learned diffusion tensor, if a file has one of this name."""
    fields = _take_group(arrays, prefix, LEARNED, sizes, ("width",))
    return LearnedDiffusion(**fields) if fields else None


# --- parameters and arrays --------------------------------------------------------------------------------------------
def _encode(name: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return a parameter as JSON; anything but a scalar becomes a dict with its kind."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"{name}={value!r} cannot be stored; set it to its value in the fit before saving.")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.random.RandomState | np.random.Generator) or name == "cv":
        return None
    if isinstance(value, type | np.dtype):
        return np.dtype(value).name
    if isinstance(value, Kernel):
        return {"kernel": _kernel_data(f"parameters.{name}", value, arrays)}
    if isinstance(value, TangentDiffusion):
        return {"tangent": {field: _encode(field, entry, arrays) for field, entry in vars(value).items()}}
    if isinstance(value, LearnedDiffusion):
        arrays |= _arrays_in(f"parameters.{name}", value, LEARNED)
        return {"learned": f"parameters.{name}"}
    if callable(value):
        raise ValueError(
            f"{name}={value!r} is a function and cannot be stored. Call set_params({name}=None) before saving, and "
            f"pass {name} to score and partial_fit of the loaded model."
        )
    factor = isinstance(value, Factor)
    try:
        array = np.asarray(value.array if factor else value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r} cannot be stored: it is neither a number, a string nor an array.") from None
    arrays[f"parameters.{name}"] = array
    return {"factor" if factor else "array": f"parameters.{name}"}


def _kernel_data(name: str, kernel: Kernel, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the plain data of a kernel; the root of a large metric becomes an array."""
    if not isinstance(kernel, Metric) or kernel.root.size <= LARGE_ROOT:
        return kernel.to_dict()
    key = next((key for key, array in arrays.items() if array is kernel.root), f"{name}.root")
    arrays[key] = kernel.root
    return {"family": "Metric", "kernel": kernel.kernel.to_dict(), "root": {"array": key}}


def _read_kernel(data: dict[str, Any], arrays: dict[str, np.ndarray]) -> Kernel:
    """Invert `_kernel_data`."""
    if isinstance(data.get("root"), dict):
        key = data["root"]["array"]
        data = {**data, "root": _numbers(key, arrays[key])}
    return kernel_from_dict(data)


def _decode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return the parameter that `_encode` was given."""
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    if tag == "kernel":
        return _read_kernel(content, arrays)
    if tag == "tangent":
        return TangentDiffusion(**content)
    if tag == "learned":
        return _read_learned(arrays, content, {})
    if tag not in ("array", "factor"):
        raise ValueError(f"unknown kind of parameter {tag!r}.")
    array = _numbers(content, arrays[content])
    return Factor(array) if tag == "factor" else array


def _take(
    arrays: dict[str, np.ndarray],
    prefix: str,
    shapes: dict[str, str],
    sizes: dict[str, int],
    may_be_nan: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the arrays of one object, checked; new letters of a shape are added to `sizes`. A 0-d array is a float."""
    taken: dict[str, Any] = {}
    for name, shape in shapes.items():
        key = f"{prefix}.{name}"
        if key not in arrays:
            raise ValueError(f"array {key} is missing.")
        array = _numbers(key, arrays[key], finite=name not in may_be_nan)
        _check_shape(key, array, shape, sizes)
        taken[name] = array if shape else float(array)
    return taken


def _take_group(arrays: dict[str, np.ndarray], prefix: str, *given: Any) -> dict[str, Any]:
    """Return the arrays of one object as `_take` does; none if the file has none of them."""
    return _take(arrays, prefix, *given) if any(key.startswith(f"{prefix}.") for key in arrays) else {}


def _numbers(name: str, array: np.ndarray, finite: bool = True) -> np.ndarray:
    if array.dtype.kind not in "fiu":
        raise ValueError(f"array {name} holds {array.dtype}, not numbers.")
    if finite and not np.isfinite(array).all():
        raise ValueError(f"array {name} holds NaN or infinity.")
    return array.astype(np.float64, copy=False)


def _check_shape(name: str, array: np.ndarray, shape: str, sizes: dict[str, int]) -> None:
    """Raise a ValueError unless an array has the shape given by `sizes`; new letters are added to it."""
    if array.ndim == len(shape):
        for letter, size in zip(shape, array.shape, strict=True):
            sizes.setdefault(letter, size)
    expected = tuple(sizes.get(letter, 1) for letter in shape)
    if array.shape != expected or 0 in expected:
        raise ValueError(f"array {name} has shape {array.shape}, expected {expected}.")
