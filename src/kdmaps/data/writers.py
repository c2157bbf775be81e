"""Tables to files."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np

from kdmaps.data.objects import library
from kdmaps.utils.threads import slices

#: Columns beside the values, such as numbers of rows: whatever has slices.
Beside = Mapping[str, Sequence[Any] | np.ndarray]
Writer = Callable[[BinaryIO, np.ndarray, Sequence[str], Beside], None]
#: Rows that are turned into text, or into columns, at once.
WRITTEN_ROWS = 2**16
#: Of columns of these kinds; others hold labels.
_TEXT_FORMATS = {"f": "%.10g", **dict.fromkeys("iub", "%d")}


def make_writer(ending: str) -> Writer:
    """The function (file, values, names, beside) that writes a table in the format of an ending such as ".csv".

    Columns `beside` come first. Text has ten significant digits; the other formats hold the values as they are. A
    `.npy` file holds nothing but the values.
    """
    if ending == ".parquet":
        library("pyarrow", "Parquet files")
    if ending not in _WRITERS:
        raise ValueError(f"Cannot write a table with the ending {ending!r}; known are {', '.join(_WRITERS)}.")
    return _WRITERS[ending]


def _blocks(values: np.ndarray, names: Sequence[str], beside: Beside) -> Iterator[dict[str, np.ndarray]]:
    for part in slices(len(values), WRITTEN_ROWS):
        columns = {name: np.asarray(column[part]) for name, column in beside.items()}
        yield {**columns, **dict(zip(names, values[part].T, strict=True))}


def _write_csv(file: BinaryIO, values: np.ndarray, names: Sequence[str], beside: Beside) -> None:
    header = ",".join([*beside, *names])
    for block in _blocks(values, names, beside):
        formats = [_TEXT_FORMATS.get(column.dtype.kind, "%s") for column in block.values()]
        columns = [
            column if form != "%s" else np.array([_quoted(str(label)) for label in column], dtype=object)
            for form, column in zip(formats, block.values(), strict=True)
        ]
        rows = np.column_stack(columns)  # of objects if one holds labels
        np.savetxt(file, rows, fmt=formats, delimiter=",", header=header, comments="")
        header = ""


def _quoted(label: str) -> str:
    return '"' + label.replace('"', '""') + '"' if set(label) & set(',"\n') else label


def _write_parquet(file: BinaryIO, values: np.ndarray, names: Sequence[str], beside: Beside) -> None:
    arrow = import_module("pyarrow")
    writer = None
    for block in _blocks(values, names, beside):
        table = arrow.table({name: np.ascontiguousarray(column) for name, column in block.items()})
        writer = writer or import_module("pyarrow.parquet").ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _write_npz(file: BinaryIO, values: np.ndarray, names: Sequence[str], beside: Beside) -> None:
    with zipfile.ZipFile(file, "w") as archive:  # numpy.savez takes no array called "file"
        for name, array in {**beside, "modes": values}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


_WRITERS: dict[str, Writer] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".npy": lambda file, values, names, beside: np.save(file, values),
    ".npz": _write_npz,
}
TABLE_FORMATS = tuple(ending.removeprefix(".") for ending in _WRITERS)
