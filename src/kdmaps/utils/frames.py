"""Data frames of pandas, polars and pyarrow, without importing them; arrays of trajectories; printed tables."""

import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame or table; None for anything else."""
    names = getattr(X, "column_names", None)  # of pyarrow, whose `columns` are the columns themselves
    names = getattr(X, "columns", None) if names is None else names
    return None if names is None or callable(names) else [str(name) for name in names]


def check_rows(X: Any, **columns: Any) -> None:
    """Raise if X or a column has masked values, or a column the row labels of a data frame X in another order.

    Rows are matched by position. X and columns may be lists with one entry for each trajectory.
    """
    if isinstance(X, list | tuple):
        refuse_masked("X", *X)
        for i, part in enumerate(X if hasattr(next(iter(X), None), "index") else ()):
            listed = {name: given for name, given in columns.items() if isinstance(given, list | tuple)}
            check_rows(part, **{name: g[i] for name, g in listed.items() if len(g) == len(X) and all(map(np.ndim, g))})
    refuse_masked("X", X)
    labels: Any = getattr(X, "index", None)
    for name, column in columns.items():
        refuse_masked(name, column)
        own: Any = getattr(column, "index", None)
        if not hasattr(labels, "isin") or not hasattr(own, "isin") or len(own) != len(labels) or own.equals(labels):
            continue
        if own.is_unique and own.isin(labels).all():
            raise ValueError(
                f"{name} has the row labels of X in another order; give {name}.loc[X.index], or, if its rows are those "
                f"of X as they stand, {name}.to_numpy()."
            )


def refuse_masked(name: str, *values: Any) -> None:
    """Raise if one of the arrays has masked values, which numpy would use as data."""
    if any(isinstance(one, np.ma.MaskedArray) and np.ma.is_masked(one) for one in values):
        raise ValueError(
            f"{name} has masked values; leave out their rows, X[~X.mask.any(axis=1)], or, for a trajectory, give the "
            "list kdmaps.data.split_at_gaps(X)."
        )


def row_times(X: Any) -> np.ndarray | None:
    """Return times of the rows of a pandas data frame: durations of its dates, or integers of periods or row numbers.

    None without such an index. An index of integers counts rows if most of its steps are equal.
    """
    index: Any = getattr(X, "index", None)
    if not hasattr(index, "is_monotonic_increasing"):
        return None
    if index.dtype.kind in "Mm":
        return durations(index.values)
    if hasattr(index, "asi8"):  # periods
        return index.asi8
    if index.dtype.kind not in "iu" or len(index) < 2:
        return None
    steps = np.diff(index.to_numpy())
    usual = np.median(steps)
    return np.asarray(index) if usual > 0 and np.mean(steps == usual) > 0.5 else None


def durations(times: np.ndarray) -> np.ndarray:
    """Return dates or durations minus the first; months and working days, most of which follow at once, are equal."""
    since = times - times[:1]
    days = times.astype("M8[D]") if times.dtype.kind == "M" and len(times) > 1 else np.empty(0, "M8[D]")
    steps_of = (np.diff(days.astype("M8[M]").astype(int)), np.diff(np.busday_count(days[:1], days)))
    for steps in steps_of:
        if steps.size and steps.min() > 0 and np.mean(steps == (usual := np.median(steps))) > 0.5:
            count = np.append(0, steps.cumsum()) / usual
            return count * (since[-1] / count[-1])
    return since


def joined(frames: Sequence[Any]) -> Any:
    """Concatenate the rows of data frames of one library."""
    kind = _library(frames[0])
    concatenate = kind.concat_tables if hasattr(kind, "concat_tables") else kind.concat
    return concatenate(list(frames))


def like(frame: Any, values: np.ndarray, names: Sequence[str]) -> Any:
    """Return a data frame of the same library as `frame`, with its index if it has one."""
    kind = _library(frame)
    if hasattr(kind, "concat_tables"):
        return kind.table(dict(zip(names, values.T, strict=True)))
    if hasattr(frame, "index"):
        return kind.DataFrame(values, index=frame.index, columns=list(names))
    return kind.DataFrame(values, schema=list(names))


def split_rows(values: Any, lengths: Sequence[int]) -> list[Any]:
    """Cut an array or a data frame into parts of these numbers of rows."""
    rows = getattr(values, "iloc", values)
    ends = np.cumsum(lengths).tolist()
    return [rows[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def join_rows(name: str, given: Any, lengths: Sequence[int] | None = None) -> Any:
    """Join a list of arrays, one for each trajectory, that hold one entry per frame: labels, masks, weights.

    Anything else, such as a list of single numbers, is returned unchanged. `lengths` are the numbers of frames of the
    trajectories, where known.
    """
    if not isinstance(given, list | tuple) or not given or any(np.ndim(part) != 1 for part in given):
        return given
    found = [len(part) for part in given]
    if lengths is not None and found != list(lengths):
        raise ValueError(
            f"{name} holds arrays of {_listed(found)} entries, but X has trajectories of {_listed(lengths)} "
            "frames; give one array for each, in the same order."
        )
    return np.concatenate(given)


def torsions(names: Sequence[str]) -> dict[str, list[int]]:
    """Return the angles whose sine and cosine are columns, as in "cos phi ALA2" or "cos(phi)", with both columns."""
    place = {re.sub(r"^(cos|sin)[ (](.*?)\)?$", r"\1 \2", name): j for j, name in enumerate(names)}
    angles = [name.removeprefix("cos ") for name in place if name.startswith("cos ")]
    return {name: [place[f"sin {name}"], place[f"cos {name}"]] for name in angles if f"sin {name}" in place}


def records(**columns: Any) -> list[dict[str, Any]]:
    """Return one dict of plain data per entry of arrays that are broadcast to one shape."""
    entries = zip(*(array.ravel().tolist() for array in np.broadcast_arrays(*columns.values())), strict=True)
    return [dict(zip(columns, entry, strict=True)) for entry in entries]


def with_ends(name: str, values: np.ndarray, intervals: np.ndarray) -> dict[str, np.ndarray]:
    """Return columns of values and of the lower and upper ends of their intervals."""
    return {name: values, f"{name}_low": intervals[..., 0], f"{name}_high": intervals[..., 1]}


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines of text with columns aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _library(frame: Any) -> Any:
    return sys.modules[type(frame).__module__.partition(".")[0]]
