"""Text files: columns of numbers and of words, with or without a line of names."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from kdmaps.data.formats.base import Beside, block_rows, column_blocks, reading
from kdmaps.data.table import Blocks, Table
from kdmaps.exceptions import DataWarning
from kdmaps.utils.warn import warn

#: Formats of columns of these kinds of numbers; other columns hold labels.
_NUMBER_FORMATS = {"f": "%.10g", **dict.fromkeys("iub", "%d")}
#: Lines that decide whether the first one holds names.
LOOKED_AT = 20
#: Characters of a line; a longer one is no table.
MAX_LINE = 2**26
#: What a formula begins with in a spreadsheet.
FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")


def open_text(path: Path, header: bool | None = None) -> Table:
    """Inspect a text file and return its columns.

    `header` says whether the first line holds names; None decides by what it holds.
    """
    comment, lines = _first_lines(path)
    first = lines[0].text if lines else ""
    # In this order, since a comma may also be that of a decimal number.
    delimiter = next((mark for mark in ("\t", ";", ",") if mark in first), None)
    with reading(path, "text"):
        fields, *rows = (_split(line.text, delimiter) for line in lines or [_Line(0, "")])
    named = bool(lines) and _are_names(path, fields, rows) if header is None else header
    if len(lines) < 1 + named:
        raise ValueError(f"{path} holds no samples.")
    layout = _Layout(path, delimiter, begin=lines[0].before + named, width=len(fields))
    names = fields if named else layout.names_in_comment(comment)
    if names is not None and len(set(names)) < layout.width:
        raise ValueError(f"{path} names a column twice; give every column a name of its own.")
    layout, row = layout._replace(names=names), rows[0] if named else fields
    text = layout.text_columns(row, lines[named].before)
    left_out = _index_column(path, names) | set(text)
    numeric = [j for j in range(layout.width) if j not in left_out]
    if names is None and text:  # columns are numbered with those of text
        names = [str(j) for j in range(layout.width)]
    shown = [names[j] for j in numeric] if names else None
    if not text and shown == [str(j) for j in range(len(numeric))]:  # the numbers that columns without names have
        shown = None
    hint = f"Line {lines[named].before + 1} of {path} holds no number, but {', '.join(map(repr, row[:3]))}."
    words: dict[str, Callable[[], Blocks]] = {}
    if names:
        words = {names[j]: partial(layout.blocks, [j], str) for j in text if names[j]}
    return Table(
        len(numeric),
        lambda columns: layout.blocks([numeric[j] for j in columns]),
        shown,
        words,
        hint="" if numeric else hint,
        words=tuple(words),
        gap=layout.gap,
    )


def write_csv(file: BinaryIO, values: np.ndarray, names: Sequence[str], beside: Beside) -> None:
    """Write a table as comma-separated text with a line of names."""
    header = ",".join(_quote(str(name)) for name in [*beside, *names])
    for block in column_blocks(values, names, beside):
        formats = [_NUMBER_FORMATS.get(column.dtype.kind, "%s") for column in block.values()]
        columns = [
            column if form != "%s" else np.array([_quote(str(label)) for label in column], dtype=object)
            for form, column in zip(formats, block.values(), strict=True)
        ]
        rows = np.column_stack(columns)  # of objects if one holds labels
        np.savetxt(file, rows, fmt=formats, delimiter=",", header=header, comments="")
        header = ""


class _Line(NamedTuple):
    """A line that is neither empty nor a comment, and how many lines come before it."""

    before: int
    text: str


def _first_lines(path: Path) -> tuple[str, list[_Line]]:
    """Return the comment right before the first line that is neither empty nor a comment, and the first such lines."""
    before, comment, found = "", "", list[_Line]()
    with reading(path, "text"), open(path, encoding="utf-8-sig") as file:
        for index in count():
            line = file.readline(MAX_LINE)
            if len(line) == MAX_LINE:
                raise ValueError(f"line {index + 1} is longer than {MAX_LINE} characters.")
            if not line or len(found) == LOOKED_AT:
                break
            line = line.strip()
            if line and not line.startswith("#"):
                comment = comment if found else before
                found.append(_Line(index, line))
            before = line
    return comment, found


def _are_names(path: Path, fields: list[str], rows: list[list[str]]) -> bool:
    """Whether the first line holds names of columns, not a sample.

    Words are names. A line of numbers with a gap or a word in it is a sample that cannot be read. But the numbers of
    the columns, 0, 1, … or 1, 2, …, are what a data frame without names writes, beside the names that it has: no sample
    of three coordinates is just that, and none of one or two where the samples below are not written as integers.
    """
    numbers = [part for part in fields if _is_number(part.replace(",", "."))]
    if not numbers:
        return True
    if numbers not in ([str(j + start) for j in range(len(numbers))] for start in (0, 1)):
        return False
    whole = all(_is_integer(part) for row in rows for part in row if _is_number(part))
    if not rows or (whole and len(numbers) < 3):
        return False
    shown = ", ".join(fields[:4]) + (", …" if len(fields) > 4 else "")
    warn(
        f"The first line of {path} ({shown}) is taken for the numbers of the columns, not for a sample. If it is a "
        "sample, say header=False (--no-header).",
        DataWarning,
    )
    return True


def _index_column(path: Path, names: list[str] | None) -> set[int]:
    """Return the first column if it has no name among columns that have: it is the index of a data frame."""
    if not names or names[0] or len(names) == 1:
        return set()
    warn(
        f"The first column of {path} has no name: it is taken for the index of a data frame and left out. If it is a "
        "coordinate, give it a name.",
        DataWarning,
    )
    return {0}


class _Layout(NamedTuple):
    """Where the samples of a text file begin, and how a line becomes fields."""

    path: Path
    delimiter: str | None  # None is any white space
    begin: int  # lines before the samples
    width: int
    names: list[str] | None = None

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
        # Empty lines and comments are left out here, since numpy warns of them, and a filter of warnings would be one
        # of the whole process.
        numbered = islice(self._lines(), self.begin, None)
        lines = (line for line in numbered if (start := line.lstrip()) and start[0] != "#")
        for first in lines:
            try:
                block: np.ndarray = load(chain([first], lines), dtype)
            except ValueError as error:
                raise self._first_error(columns, dtype) or ValueError(f"{self.path}: {error}") from error
            if block.shape[1] != len(columns):  # all rows of this block are too wide, or too narrow
                raise self._first_error(columns, dtype) or ValueError(f"{self.path} is ragged.")
            yield block

    def gap(self) -> str | None:
        """Say where an empty line lies between two rows, as between trajectories; None if it does nowhere."""
        empty, rows = 0, False
        for number, line in enumerate(islice(self._lines(), self.begin, None), self.begin + 1):
            if not line.strip():
                empty = empty or number
            elif not line.lstrip().startswith("#"):
                if rows and empty:
                    return f"Line {empty} of {self.path} is empty"
                rows, empty = True, 0
        return None

    def _lines(self) -> Iterator[str]:
        """Yield all lines of the file."""
        with open(self.path, encoding="utf-8-sig") as file:
            try:
                yield from file
            except UnicodeDecodeError as error:
                raise ValueError(f"{self.path} cannot be read as text: {error}") from error

    def _first_error(self, columns: list[int], dtype: type) -> ValueError | None:
        """Find the first line that is not a row, as `numpy.loadtxt` cannot tell its number in the file."""
        for index, line in enumerate(self._lines()):
            if index < self.begin or not (line := line.partition("#")[0].strip()):
                continue
            row = _split(line, self.delimiter)
            if len(row) != self.width:
                return self._error(index, f"{len(row)} columns where the rows before have {self.width}")
            for j in columns if dtype is np.float64 else ():
                if not _is_number(row[j]):
                    what = f"holds {row[j]!r}, which is no number" if row[j] else "is empty"
                    return self._error(index, f"column {self._label(j)} {what}")
        return None

    def _label(self, j: int) -> str:
        """Name a column, or count it from 0."""
        return f"{j} (from 0)" if self.names is None else self.names[j]

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


def _is_integer(text: str) -> bool:
    return text.lstrip("+-").isdecimal()


def _quote(label: str) -> str:
    """Return a label as a field: without effect in a spreadsheet, which would execute it, and in quotes if needed."""
    if label.lstrip(" ")[:1] in FORMULA_MARKS and not _is_number(label):
        label = f"'{label}"
    return '"' + label.replace('"', '""') + '"' if set(label) & set(',"\r\n') else label
