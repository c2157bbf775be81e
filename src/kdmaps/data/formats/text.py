"""Text files: columns of numbers and of words, with or without a line of names."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from kdmaps.data.formats.base import Beside, block_rows, column_blocks, reading
from kdmaps.data.table import Blocks, Table

#: Formats of columns of these kinds of numbers; other columns hold labels.
_NUMBER_FORMATS = {"f": "%.10g", **dict.fromkeys("iub", "%d")}


def open_text(path: Path) -> Table:
    """Inspect a text file and return its columns."""
    lines, found = _first_lines(path)
    first = lines[found[0]] if found else ""
    # In this order, since a comma may also be that of a decimal number.
    delimiter = next((mark for mark in ("\t", ";", ",") if mark in first), None)
    fields = _split(first, delimiter)
    # A line of numbers with a gap or a word in it is a sample that cannot be read, not a line of names.
    named = bool(found) and not any(_is_number(part.replace(",", ".")) for part in fields)
    if len(found) < 1 + named:
        raise ValueError(f"{path} holds no samples.")
    layout = _Layout(path, delimiter, begin=found[0] + named, width=len(fields))
    header = fields if named else layout.names_in_comment(lines[found[0] - 1]) if found[0] else None
    if header is not None and len(set(header)) < layout.width:
        raise ValueError(f"{path} names a column twice; give every column a name of its own.")
    row = _split(lines[found[named]], delimiter)
    text = layout.text_columns(row, found[named])
    numeric = [j for j in range(layout.width) if j not in text]
    if header is None and text:  # columns are numbered with those of text
        header = [str(j) for j in range(layout.width)]
    hint = f"Line {found[named] + 1} of {path} holds no number, but {', '.join(map(repr, row[:3]))}."
    return Table(
        len(numeric),
        lambda columns: layout.blocks([numeric[j] for j in columns]),
        [header[j] for j in numeric] if header else None,
        {header[j]: partial(layout.blocks, [j], str) for j in text} if header else {},
        hint="" if numeric else hint,
    )


def write_csv(file: BinaryIO, values: np.ndarray, names: Sequence[str], beside: Beside) -> None:
    """Write a table as comma-separated text with a line of names."""
    header = ",".join([*beside, *names])
    for block in column_blocks(values, names, beside):
        formats = [_NUMBER_FORMATS.get(column.dtype.kind, "%s") for column in block.values()]
        columns = [
            column if form != "%s" else np.array([_quote(str(label)) for label in column], dtype=object)
            for form, column in zip(formats, block.values(), strict=True)
        ]
        rows = np.column_stack(columns)  # of objects if one holds labels
        np.savetxt(file, rows, fmt=formats, delimiter=",", header=header, comments="")
        header = ""


def _first_lines(path: Path) -> tuple[list[str], list[int]]:
    """Return the first lines, and the indices of the first two that are neither empty nor comments."""
    lines: list[str] = []
    found: list[int] = []
    with reading(path, "text"), open(path, encoding="utf-8-sig") as file:
        while len(found) < 2 and (line := file.readline()):
            lines.append(line.strip())
            if lines[-1] and not lines[-1].startswith("#"):
                found.append(len(lines) - 1)
    return lines, found


class _Layout(NamedTuple):
    """Where the samples of a text file begin, and how a line becomes fields."""

    path: Path
    delimiter: str | None  # None is any white space
    begin: int  # lines before the samples
    width: int

    def names_in_comment(self, line: str) -> list[str] | None:
        """Return the names of the columns if a comment holds one for each."""
        names = _split(line.lstrip("#! ").removeprefix("FIELDS").strip(), self.delimiter)
        return names if len(names) == self.width else None

    def text_columns(self, row: list[str], index: int) -> list[int]:
        """Return the columns that hold words, judged by the first sample, which is line `index`."""
        if len(row) != self.width:
            raise self._error(index, f"{len(row)} columns under {self.width} names")
        text = [j for j, part in enumerate(row) if not _is_number(part) and part]
        for j in text:
            if _is_number(row[j].replace(",", ".")):
                raise self._error(index, f"{row[j]!r} has a decimal comma; write it with a point")
        return text

    def blocks(self, columns: list[int], dtype: type = np.float64) -> Blocks:
        """Yield blocks of rows of some columns."""
        load = partial(
            np.loadtxt,
            delimiter=self.delimiter,
            usecols=None if columns == list(range(self.width)) else columns,
            max_rows=block_rows(len(columns)),
            ndmin=2,
            quotechar='"',
        )
        with open(self.path, encoding="utf-8-sig") as file:
            next(islice(file, self.begin, self.begin), None)
            while True:
                try:
                    with warnings.catch_warnings():  # not around the yield, where the caller's filters apply
                        warnings.filterwarnings("ignore", "loadtxt: input contained no data|Input line")
                        block: np.ndarray = load(file, dtype)
                except ValueError as error:
                    raise self._first_error(columns, dtype) or ValueError(f"{self.path}: {error}") from error
                if block.size == 0:
                    return
                if block.shape[1] != len(columns):  # all rows of this block are too wide, or too narrow
                    raise self._first_error(columns, dtype) or ValueError(f"{self.path} is ragged.")
                yield block

    def _first_error(self, columns: list[int], dtype: type) -> ValueError | None:
        """Find the first line that is not a row, as `numpy.loadtxt` cannot tell its number in the file."""
        with open(self.path, encoding="utf-8-sig") as file:
            for index, line in enumerate(file):
                if index < self.begin or not (line := line.partition("#")[0].strip()):
                    continue
                row = _split(line, self.delimiter)
                if len(row) != self.width:
                    return self._error(index, f"{len(row)} columns where the rows before have {self.width}")
                for j in columns if dtype is np.float64 else ():
                    if not _is_number(row[j]):
                        what = f"holds {row[j]!r}, which is no number" if row[j] else "is empty"
                        return self._error(index, f"column {j} (from 0) {what}")
        return None

    def _error(self, index: int, what: str) -> ValueError:
        return ValueError(
            f"{self.path}, line {index + 1}: {what}. Every row needs the same columns, with a number in each."
        )


def _split(line: str, delimiter: str | None) -> list[str]:
    parts = next(csv.reader([line], delimiter=delimiter)) if delimiter else line.split()
    return [part.strip() for part in parts]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _quote(label: str) -> str:
    return '"' + label.replace('"', '""') + '"' if set(label) & set(',"\n') else label
