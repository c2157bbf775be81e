"""Tables to files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import BinaryIO

import numpy as np

from kdmaps._readers import library


def make_writer(ending: str) -> Callable[[BinaryIO, np.ndarray, Sequence[str]], None]:
    """The function (file, values, names) that writes a table in the format of an ending such as ".csv".

    Text has ten significant digits; the other formats hold the values as they are.
    """
    if ending == ".parquet":
        library("pyarrow", "Parquet files")
    if ending not in _WRITERS:
        raise ValueError(f"Cannot write a table with the ending {ending!r}; known are {', '.join(_WRITERS)}.")
    return _WRITERS[ending]


def _write_csv(file: BinaryIO, values: np.ndarray, names: Sequence[str]) -> None:
    np.savetxt(file, values, fmt="%.10g", delimiter=",", header=",".join(names), comments="")


def _write_parquet(file: BinaryIO, values: np.ndarray, names: Sequence[str]) -> None:
    arrow = import_module("pyarrow")
    import_module("pyarrow.parquet").write_table(arrow.table(list(values.T), names=list(names)), file)


_WRITERS: dict[str, Callable[[BinaryIO, np.ndarray, Sequence[str]], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".npy": lambda file, values, names: np.save(file, values),
    ".npz": lambda file, values, names: np.savez(file, modes=values),
}
TABLE_FORMATS = tuple(ending.removeprefix(".") for ending in _WRITERS)
