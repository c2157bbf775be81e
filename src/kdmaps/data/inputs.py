"""Conversion of anything that an estimator accepts as X to a `Source`; trajectories, delays and angles."""

import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.checks import warn
from kdmaps.data.correlation import trajectories_of
from kdmaps.data.files import is_dask, object_reader, open_table
from kdmaps.data.findings import angle_units
from kdmaps.data.formats.base import block_rows
from kdmaps.data.given_pairs import Pairs
from kdmaps.data.pairs import unequal_steps
from kdmaps.data.sources import ArraySource, Source
from kdmaps.data.streams import StreamSource
from kdmaps.data.table import join
from kdmaps.exceptions import ArgumentError
from kdmaps.language import Either
from kdmaps.utils import frames
from kdmaps.utils.frames import column_names, like
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.validation import (
    as_numbers,
    check_positive_integer,
    checked_samples,
    floats_of,
    refuse_objects_of_cells,
)


def as_source(X: SamplesLike) -> Source:
    """Return a source of the samples X.

    Parameters
    ----------
    X : Source, array-like, memmap, path, Dask array or frame, Zarr or HDF5 array, trajectory, callable or iterator
        A path to a `.npy`, `.npz`, `.csv`, `.tsv`, `.txt`, `.dat` or `.parquet` file or a `.zarr` directory
        (`kdmaps.data.open_table`); an mdtraj trajectory or an MDAnalysis universe or atom group (its Cartesian
        coordinates); an iterator of chunks (arrays, data frames, mdtraj trajectories), or, to be read more than once,
        a callable that returns one.

    Raises
    ------
    ValueError
        If X is none of these.
    FileNotFoundError
        If a path does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.data import as_source
    >>> source = as_source(lambda: (np.full((2, 3), i) for i in range(4)))
    >>> [chunk.shape for _, chunk in map(source.read, source.parts(5))]
    [(5, 3), (3, 3)]
    """
    if isinstance(X, Source):
        return X
    if isinstance(X, str | os.PathLike):
        return _open_path(Path(X))
    if isinstance(X, np.memmap):
        return ArraySource(X)
    if is_dask(X):
        from kdmaps.data.dask import DaskSource

        return DaskSource(X)
    if is_array_like(X):
        return ArraySource(checked_samples(None, X, reset=True, input_name="X"), checked=True)
    if hasattr(X, "__next__"):
        return StreamSource(lambda: X, once=True)
    reader = object_reader(X)
    return StreamSource(X) if reader is None else reader(X).select()


def join_trajectories(
    X: SamplesLike, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> tuple[Any, Any, list[int] | None]:
    """Join a list of trajectories; return X, the trajectory of each row, and the lengths of the trajectories.

    X and groups are returned unchanged, without lengths, if X is not such a list. Raises a ValueError if labels are
    missing, or if rows of data frames are in a different order.
    """
    if isinstance(X, Pairs):
        return X.joined(groups, sample_weight)
    parts = X if isinstance(X, list | tuple) else ()
    for part in (X, *parts[:1]):
        refuse_objects_of_cells(part)
    _refuse_ambiguous(X)
    if parts and all(isinstance(part, str | os.PathLike) for part in parts):
        raise ValueError("X is a list of files; read them with kdmaps.data.open_tables(paths).select().")
    frames.check_rows(X, groups=groups, sample_weight=sample_weight)
    if (missing := _missing(groups)).any():
        raise ArgumentError(
            "{groups}: the label of row {row} is missing; label every row, or leave the row out of X.",
            row=int(missing.argmax()),
        )
    stored = all(object_reader(part) is not None for part in parts)  # trajectories of other libraries, stored arrays
    if not parts or not (stored or all(len(getattr(part, "shape", ())) == 2 for part in parts)):
        return X, groups, None
    if groups is not None:
        raise ValueError("groups cannot be combined with a list of arrays, each of which is a group; leave it out.")
    if stored:
        tables = [object_reader(part)(part) for part in parts]  # type: ignore[misc]
        lengths = [int(table.n_samples or 0) for table in tables]
        joined = join(tables, [f"X[{i}]" for i in range(len(tables))]).select()
    else:
        joined, lengths = _joined(parts), [part.shape[0] for part in parts]
    # A single trajectory is treated as an array: there is no other group to hold out.
    return joined, np.repeat(np.arange(len(lengths)), lengths) if len(lengths) > 1 else None, lengths


def _refuse_ambiguous(X: Any) -> None:
    """Raise for a tuple of two tables of one shape, which are pairs in other libraries and trajectories here."""
    shapes = [np.shape(part) for part in X] if isinstance(X, tuple) and len(X) == 2 else []
    if shapes and len(shapes[0]) == 2 and shapes[0] == shapes[1]:
        raise ArgumentError(
            "X is a tuple of two tables of the same shape. For pairs (x, y), give kdmaps.data.as_pairs(x, y) and "
            "{lag:1}; for two trajectories, give the list [x, y]."
        )


def _joined(parts: Sequence[Any]) -> Any:
    """Concatenate arrays or data frames with the same columns."""
    for part in parts:
        refuse_objects_of_cells(part)
    widths = {part.shape[1] for part in parts}
    if len(widths) > 1:
        raise ValueError(f"The arrays of X have {', '.join(map(str, sorted(widths)))} columns; all must have the same.")
    names = [column_names(part) for part in parts]
    if any(each != names[0] for each in names):
        raise ValueError("The data frames of X have different columns; all must have the same, in the same order.")
    return np.concatenate(parts) if names[0] is None else frames.joined(parts)


def split_at_gaps(X: Any, times: Any = None) -> list[Any]:
    """Cut trajectories at missing rows, so that no pair of frames crosses a gap; give the result to `fit`.

    Parameters
    ----------
    X : array-like of shape (n_frames, d), data frame, or list of these
        Rows with NaN, infinity or masked values are left out. Data frames are also cut where their index (dates,
        durations, row numbers) shows that rows are missing.
    times : array-like of shape (n_frames,), or list of these, optional
        Times of the rows; trajectories are cut where a step differs from the median step.

    Returns
    -------
    list
        Consecutive rows at equal time steps, one entry for each piece, as arrays or data frames.

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.data import split_at_gaps
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> X[2, 0] = np.nan
    >>> [len(piece) for piece in split_at_gaps(X)]
    [2, 3]
    """
    listed = isinstance(X, list | tuple) and bool(X) and all(len(getattr(part, "shape", ())) == 2 for part in X)
    parts = list(X) if listed else [X if column_names(X) is not None else np.ma.atleast_2d(np.ma.asarray(X))]
    clocks = [None] * len(parts) if times is None else list(times) if listed else [times]
    if len(clocks) != len(parts):
        raise ValueError(f"times must have one array for each of {len(parts)} trajectories, got {len(clocks)}.")
    return [piece for part, clock in zip(parts, clocks, strict=True) for piece in _pieces(part, clock)]


def _pieces(rows: Any, times: Any) -> list[Any]:
    """Cut one trajectory."""
    clock = frames.row_times(rows) if times is None else np.asarray(times)
    values: np.ndarray = floats_of(np.ma.filled(np.ma.asarray(rows, np.float64), np.nan) if np.ma.isMA(rows) else rows)
    n = len(values)
    if clock is not None and clock.shape != (n,):
        raise ValueError(f"times must have one entry for each of {n} frames, got shape {clock.shape}.")
    good: np.ndarray = np.isfinite(values).all(axis=1)
    cut = np.ones(n + 1, dtype=bool)  # before each row, and after the last
    cut[1:n] = good[1:] != good[:-1]
    if clock is not None and n > 1:
        cut[1 + unequal_steps(clock, slice(0, -1), slice(1, None))[2]] = True
    ends = np.flatnonzero(cut)
    table = getattr(rows, "iloc", values if column_names(rows) is None else rows)
    return [table[begin:end] for begin, end in itertools.pairwise(ends) if good[begin]]


def delays(X: Any, n: int, *, step: int = 1, groups: ArrayLike | None = None) -> Any:
    """Join every frame with the frames before it, (x_t, x_{t-step}, …, x_{t-(n-1)step}): a Takens embedding.

    By Takens' theorem, enough delayed values of one observable of a deterministic system determine its state.

    Parameters
    ----------
    X : array-like of shape (n_frames,) or (n_frames, d), or list of NumPy arrays
        Frames at equal time steps. Rows with NaN or infinity are gaps, across which nothing is joined.
    n : int
        Number of frames in a point.
    step : int, default=1
        Frames between them.
    groups : array-like of shape (n_frames,), optional
        Trajectory of each frame.

    Returns
    -------
    points : ndarray of shape (n_frames - (n - 1)·step, n·d)
        Row i belongs to frame i + (n - 1)·step. If X is a list, has gaps, or is given with groups, a list of such
        arrays, one for each stretch of frames without a gap; stretches that are too short are left out. Estimators
        take such a list as several trajectories.

    Examples
    --------
    >>> import kdmaps
    >>> kdmaps.data.delays([1.0, 2.0, 3.0, 4.0], 3)
    array([[3., 2., 1.],
           [4., 3., 2.]])
    >>> [part.tolist() for part in kdmaps.data.delays([1.0, 2.0, float("nan"), 4.0, 5.0], 2)]
    [[[2.0, 1.0]], [[5.0, 4.0]]]
    """
    check_positive_integer("n", n)
    check_positive_integer("step", step)
    several = isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], np.ndarray)
    if several and groups is not None:
        raise ValueError("X is a list of trajectories, which needs no groups; leave out groups.")
    arrays = [as_numbers("X", part, "a table of numbers, one row per frame") for part in (X if several else [X])]
    arrays = [part[:, None] if part.ndim == 1 else part for part in arrays]
    if groups is not None:
        arrays = [arrays[0][rows] for rows in trajectories_of(groups, len(arrays[0]))]
    reach = (n - 1) * step
    stretches = split_at_gaps(arrays)
    long = [piece for piece in stretches if len(piece) > reach]
    if not long:
        longest = max(map(len, stretches), default=0)
        raise ValueError(f"n={n} frames {step} apart need {reach + 1} frames without a gap, but X has {longest}.")
    joined = [np.hstack([piece[reach - k * step : len(piece) - k * step] for k in range(n)]) for piece in long]
    return joined if several or groups is not None or len(stretches) > 1 else joined[0]


def _missing(groups: ArrayLike | None) -> np.ndarray:
    """Return which labels are missing (None, NaN, NaT, NA)."""
    labels = np.asarray(groups).ravel()
    if groups is None or labels.dtype.kind in "biuSU":
        return np.zeros(1, dtype=bool)
    if labels.dtype.kind != "O":
        return labels != labels  # NaN and NaT
    return np.array([label is None or type(label).__name__ == "NAType" or label != label for label in labels.tolist()])


def is_array_like(X: Any) -> bool:
    """Return whether X is an array, a data frame or a list in memory, which scikit-learn validates."""
    if isinstance(X, str | os.PathLike | np.memmap | Source) or hasattr(X, "__next__"):
        return False
    if object_reader(X) is not None or is_dask(X):
        return False
    return hasattr(X, "__array__") or not callable(X)


def _open_path(path: Path) -> Source:
    try:
        table = open_table(path)
        if table.names is not None and table.extras:
            raise ValueError(f"{path} has columns of text: {', '.join(table.extras)}; remove them from the file.")
        return table.select()
    except (ValueError, FileNotFoundError) as error:
        kind = FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError
        raise kind(f"X: {error}") from error


def check_columns(estimator: Any, source: Source, reset: bool) -> None:
    """Set the number and the names of the columns, or compare them with the columns of `fit`."""
    names = source.feature_names
    if reset:
        estimator.n_features_in_ = source.n_features
        vars(estimator).pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return
    if source.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {source.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    known = getattr(estimator, "feature_names_in_", None)
    if names is not None and known is not None and list(known) != names:
        raise ValueError(f"X has the columns {', '.join(names)}, but the feature names of fit were {', '.join(known)}.")


def angles(X: Any, columns: Sequence[str | int] | None = None, degrees: bool = False) -> Any:
    """Replace angles by their cosine and sine, which are continuous at the end of a turn.

    The pair (cos φ, sin φ) has the metric of φ, d(cos φ)² + d(sin φ)² = dφ², so rates in radians do not change.

    Parameters
    ----------
    X : array-like of shape (n_samples, d), data frame or Source
        Samples; a source is converted in parts.
    columns : sequence of str or int, optional
        Names or numbers of the columns with angles; by default all columns.
    degrees : bool, default=False
        Set if angles are in degrees instead of radians.

    Returns
    -------
    array, data frame or Source
        Each angle is replaced by two columns, named "cos(phi)" and "sin(phi)" if the angle is "phi".

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.data import angles
    >>> angles([[1.0, 90.0], [2.0, 180.0]], columns=[1], degrees=True).round(3)
    array([[ 1.,  0.,  1.],
           [ 2., -1.,  0.]])
    """
    source = as_source(X)
    names = X.feature_names if isinstance(X, Source) else column_names(X)
    chosen = _numbers(columns, names, source.n_features)
    named: list[str] | None = None
    if names is not None:
        pairs = ([f"cos({name})", f"sin({name})"] if j in chosen else [name] for j, name in enumerate(names))
        named = [new for pair in pairs for new in pair]

    ordered = sorted(chosen)
    labels = [j if names is None else names[j] for j in ordered]

    def blocks() -> Iterator[np.ndarray]:
        for number, part in enumerate(source.parts(block_rows(source.n_features))):
            rows = source.read(part)[1]
            if number == 0:
                warn(angle_units(rows[:, ordered], labels, degrees))
            turned = np.deg2rad(rows) if degrees else rows
            pairs = ((np.cos(a), np.sin(a)) if j in chosen else (rows[:, j],) for j, a in enumerate(turned.T))
            yield np.column_stack([column for pair in pairs for column in pair])

    if isinstance(X, Source):
        found = StreamSource(blocks, n_samples=source.n_samples, feature_names=named)
        found.times, found.time_unit, found.gap = source.times, source.time_unit, source.gap
        return found
    values = np.concatenate(list(blocks()))
    return values if named is None else like(X, values, named)


def _numbers(columns: Sequence[str | int] | None, names: list[str] | None, width: int) -> set[int]:
    """Return the numbers of the columns with angles."""
    if columns is None:
        return set(range(width))
    if isinstance(columns, str):
        columns = [columns]
    known: dict[Any, int] = {j: j for j in range(width)} | {str(j): j for j in range(width)}
    known |= {name: j for j, name in enumerate(names or [])}
    unknown = [column for column in columns if column not in known]
    if unknown:
        there = f"Columns are numbered 0 to {width - 1}" + (f", named {', '.join(names)}." if names else ".")
        raise ArgumentError(
            "{option}: X does not have a column {unknown!r}. {there}",
            option=Either("columns", "--angles"),
            unknown=unknown[0],
            there=there,
        )
    return {known[column] for column in columns}
