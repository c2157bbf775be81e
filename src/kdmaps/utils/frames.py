"""Data frames of pandas and polars and tables of pyarrow, known by what they have; none of them is imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame or table; None for anything else."""
    names = getattr(X, "column_names", None)  # of pyarrow, whose `columns` are the columns themselves
    names = getattr(X, "columns", None) if names is None else names
    return None if names is None or callable(names) else [str(name) for name in names]


def joined(frames: Sequence[Any]) -> Any:
    """Return the rows of data frames of one library below one another."""
    kind = _library(frames[0])
    concatenate = kind.concat_tables if hasattr(kind, "concat_tables") else kind.concat
    return concatenate(list(frames))


def like(frame: Any, values: np.ndarray, names: Sequence[str]) -> Any:
    """Return a data frame of the library of another one, with its index if it has one."""
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


def _library(frame: Any) -> Any:
    return sys.modules[type(frame).__module__.partition(".")[0]]
