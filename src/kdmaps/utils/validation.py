"""Checks of arguments that all estimators share."""

from collections.abc import Sequence
from numbers import Integral, Real
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from kdmaps.exceptions import ArgumentError
from kdmaps.language import Either, Name
from kdmaps.utils.frames import column_names, refuse_masked
from kdmaps.utils.types import RandomStateLike

#: Largest number of rows or columns that a message names.
NAMED = 5


def as_numbers(name: str, values: Any, what: str) -> np.ndarray:
    """Return `values` as floats; `name` is the argument, which must be `what`."""
    refuse_masked(name, values)
    try:
        array = np.asarray(values)
        # Objects may be numbers; text, dates and complex numbers are rejected.
        return array.astype(np.float64, casting="unsafe" if array.dtype.kind == "O" else "same_kind", copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be {what}, got {short(values)}.") from None


def checked_samples(estimator: Any, X: Any, reset: bool, **options: Any) -> np.ndarray:
    """Return X as an array of floats, by scikit-learn's `validate_data`, with errors that name X.

    Without an estimator, X may have any columns.
    """
    refuse_masked("X", X)
    refuse_objects_of_cells(X)
    if getattr(getattr(X, "dtype", None), "kind", None) in ("m", "M"):
        raise ArgumentError("X holds dates or durations; divide differences by a unit, e.g. np.timedelta64(1, 's').")
    fields = getattr(getattr(X, "dtype", None), "names", None)
    if fields is not None:
        raise ArgumentError(
            "X is a structured array with the fields {fields}; give one column for each, as in pandas.DataFrame(X).",
            fields=_listed(fields),
        )
    if X is None or isinstance(X, dict):
        raise ArgumentError(
            "X must be a table of real numbers, one row per sample, got {what}{remedy}.",
            what=type(X).__name__,
            remedy="" if X is None else "; give pandas.DataFrame(X)",
        )
    if isinstance(X, list | tuple) and not X:
        raise ArgumentError("X is empty, but must be a table of real numbers: 0 sample(s).")
    dimensions = np.ndim(X[0]) + 1 if isinstance(X, list | tuple) else getattr(X, "ndim", None)
    if dimensions == 1:
        raise ArgumentError(
            "X must be a table of real numbers, one row per sample, but has one dimension. Reshape your data: "
            "X.reshape(-1, 1) for one column, X.reshape(1, -1) for one sample."
        )
    if getattr(getattr(X, "dtype", None), "kind", None) == "c":
        raise ArgumentError("Complex data not supported: X must be a table of real numbers, one row per sample.")
    settings = {"dtype": (np.float64, np.float32), "ensure_all_finite": False, "input_name": "X", **options}
    try:
        values = check_array(X, **settings)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ArgumentError
        text = f"X must be a table of real numbers, one row per sample: {error}{_text_columns(X)}"
        raise (kind(text) if kind is TypeError else ArgumentError("{text}", text=text)) from error
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()  # finite if all values are, unless it overflows
    if not np.isfinite(total) and not np.isfinite(values).all():
        raise not_finite(floats_of(X), np.arange(len(values)), column_names(X))
    if estimator is not None:
        validate_data(estimator, X, reset=reset, skip_check_array=True)  # names and number of the columns
    return values


def refuse_objects_of_cells(X: Any) -> None:
    """Raise for AnnData objects and for sparse matrices, which hold counts, with the call to use."""
    if hasattr(X, "obsm") and hasattr(X, "n_obs"):
        raise ArgumentError(
            "X is an AnnData object. For cells call kdmaps.scanpy.diffmap(adata), or give an array: "
            "adata.obsm['X_pca'], the principal components of scanpy.pp.pca."
        )
    if hasattr(X, "tocsr"):
        raise TypeError(
            "X is a sparse matrix, but dense data is required; distances between counts are noise. Give principal "
            "components, of scanpy.pp.pca or sklearn.decomposition.TruncatedSVD, or a small matrix as X.toarray()."
        )


def floats_of(X: Any) -> np.ndarray:
    """Return a table of numbers as floats, with NaN for the missing entries of a data frame."""
    missing = {"na_value": np.nan} if hasattr(X, "isna") else {}
    return X.to_numpy(dtype=np.float64, **missing) if missing else np.asarray(X, dtype=np.float64)


def not_finite(values: np.ndarray, rows: np.ndarray, names: Sequence[str] | None) -> ArgumentError:
    """Return an error that names the rows, of these numbers, and the columns with NaN or infinity."""
    wrong = ~np.isfinite(values)
    bad_rows = [str(row) for row in rows[wrong.any(axis=1)][: NAMED + 1]]
    bad_columns = [str(j) if names is None else names[j] for j in np.flatnonzero(wrong.any(axis=0)).tolist()]
    return ArgumentError(
        "X contains {what} in row(s) {rows} (counted from 0), column(s) {columns}; leave out or repair these "
        "samples{example}. In a trajectory (with a lag) this would join frames across the gap: {parts}, or mark them "
        "with {groups} that change there.",
        what="NaN" if np.isnan(values).any() else "infinity",
        rows=_listed(bad_rows),
        columns=_listed(bad_columns),
        example=Either(": X[np.isfinite(X).all(axis=1)]", ""),
        parts=Either("give the list kdmaps.data.split_at_gaps(X) instead", "give the parts as files"),
    )


def _listed(items: Sequence[str]) -> str:
    return ", ".join(items[:NAMED]) + (", ..." if len(items) > NAMED else "")


def _text_columns(X: Any) -> str:
    """Name the columns of a data frame that hold text, or the rows where only a few entries of a column do."""
    found = {name: rows for name in column_names(X) or [] if (rows := _text_rows(X[name]))}
    few = [f"row(s) {_listed(rows)} of {name}" for name, rows in found.items() if 2 * len(rows) < len(X)]
    if len(few) == len(found) > 0:
        return f". Repair or leave out {_listed(few)} (counted from 0)."
    if dates := [name for name in column_names(X) or [] if np.asarray(X[name][:1]).dtype.kind in "mM"]:
        return f". Column {dates[0]} holds dates: make it the index, X.set_index({dates[0]!r}), or leave it out."
    return f". Leave out column(s) {_listed(list(found))}." if found else ""


def _text_rows(column: Any) -> list[str]:
    """Return the rows of a column that hold something other than a number."""

    def is_text(value: Any) -> bool:
        try:
            np.float64(value)
        except (TypeError, ValueError):
            return True
        return False

    values = np.asarray(column)
    return [str(row) for row, value in enumerate(values) if is_text(value)] if values.dtype.kind in "OUS" else []


def check_positive_integer(name: str, value: Any) -> int:
    """Return a positive integer; raise for anything else."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ArgumentError("{name} must be a positive integer, got {value!r}.", name=Name(name), value=value)
    return int(value)


def check_positive_number(name: str, value: Any) -> float:
    """Return a positive finite number; raise for anything else."""
    if not isinstance(value, Real) or isinstance(value, bool | np.timedelta64) or not 0 < float(value) < np.inf:
        raise ArgumentError("{name} must be a positive number, got {value!r}.", name=Name(name), value=value)
    return float(value)


def check_count(name: str, value: Any) -> None:
    """Raise unless an argument is an integer of at least 0."""
    if not isinstance(value, Integral) or value < 0:
        raise ArgumentError("{name} must be an integer, 0 or more, got {value!r}.", name=Name(name), value=value)


def seed_of(random_state: RandomStateLike) -> int:
    """Return an integer seed: `random_state` if it is an integer, else a number drawn from it."""
    rng = checked_random_state(random_state)
    return int(random_state) if isinstance(random_state, Integral) else int(rng.randint(2**31))


def checked_random_state(random_state: RandomStateLike) -> np.random.RandomState:
    """Call scikit-learn's `check_random_state`, with an error that names the argument."""
    try:
        return check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state must be None, an integer from 0 to 2**32 - 1 or a numpy RandomState, got {random_state!r}."
        ) from None


def check_nonnegative_number(name: str, value: Any) -> float:
    """Return a finite number of at least 0; raise for anything else."""
    if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise ArgumentError("{name} must be a non-negative number, got {value!r}.", name=Name(name), value=value)
    return float(value)


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise unless an argument is one of these names."""
    if value not in choices:
        raise ArgumentError(
            "{name} must be one of {choices}, got {value!r}.",
            name=Name(name),
            choices=", ".join(map(repr, choices)),
            value=value,
        )


def checked_weight(sample_weight: ArrayLike | None, X: Any) -> np.ndarray | None:
    """Return `sample_weight` as floats, one per sample of an array or Source, not negative, not all zero; or None."""
    if sample_weight is None:
        return None
    sample_weight = as_numbers("sample_weight", sample_weight, "one number per sample")
    n = np.size(sample_weight) if X.shape[0] is None else X.shape[0]
    if np.shape(sample_weight) != (n,):
        raise ArgumentError(
            "{sample_weight} has shape {shape}, but X has {count} samples; pass one weight for each.",
            shape=np.shape(sample_weight),
            count=n,
        )
    what = "contains NaN" if np.isnan(sample_weight).any() else "contains infinity"
    _refuse_weights(~np.isfinite(sample_weight), what, "Weights are finite numbers, 0 or more.")
    remedy = "Weights are 0 or more; of logarithms of weights, give np.exp(logarithms - logarithms.max())."
    _refuse_weights(sample_weight < 0, "contains negative numbers", remedy)
    largest = sample_weight.max(initial=0.0)
    if not largest > 0:
        raise ArgumentError("{sample_weight} must hold at least one positive weight, but all are zero.")
    if not 1e-150 <= largest <= 1e150:  # its square is added up
        raise ArgumentError(
            "{sample_weight} has a largest entry of {largest:.1e}, whose square is out of range; divide all weights by "
            "it.",
            largest=largest,
        )
    return sample_weight


def _refuse_weights(wrong: np.ndarray, what: str, remedy: str) -> None:
    """Raise an error that names the rows with wrong weights, if there are any."""
    if wrong.any():
        rows = [str(row) for row in np.flatnonzero(wrong)[: NAMED + 1]]
        raise ArgumentError(
            "{sample_weight} {what} in row(s) {rows} (counted from 0). {remedy}",
            what=what,
            rows=_listed(rows),
            remedy=remedy,
        )


def unit_weight(weight: np.ndarray | None, n_samples: int) -> np.ndarray:
    """Return weights of sum 1, equal if there are none."""
    weight = np.ones(n_samples) if weight is None else np.asarray(weight, dtype=np.float64)
    return weight / weight.sum()


def checked_values(values: ArrayLike, n_samples: int) -> np.ndarray:
    """Return `values` as finite floats of shape (n_samples,) or (n_samples, m)."""
    what = f"one number, or one row of numbers, for each of the {n_samples} samples of X"
    array = as_numbers("values", values, what)
    if array.ndim not in (1, 2) or len(array) != n_samples:
        raise ValueError(f"values must be {what}, got shape {array.shape}.")
    if not np.all(np.isfinite(array)):
        raise ValueError("values holds NaN or infinity; leave these samples out of X and of values.")
    return array
