"""Text files: columns of numbers and of text, with or without a header."""

import csv
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from kdmaps.checks import Check, rules, warn
from kdmaps.data.formats.base import Extras, block_rows, column_blocks, reading
from kdmaps.data.table import Blocks, Table
from kdmaps.exceptions import UnreadableFile

#: Formats of numbers by kind; other columns are labels.
_NUMBER_FORMATS = {"f": "%.10g", **dict.fromkeys("iub", "%d")}
#: Number of lines used to decide whether the first one is a header.
FIRST_LINES = 20
#: Maximum number of characters in a line.
MAX_LINE = 2**26
#: Beginning of the line in which PLUMED names the columns.
FIELDS = "#! FIELDS"
#: First characters of a formula in a spreadsheet.
FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")


def open_text(path: Path, header: bool | None = None) -> Table:
    """Inspect a text file and return its columns; without `header`, the first lines decide whether there is one."""
    comment, lines = _first_lines(path)
    first = lines[0].text if lines else ""
    # In this order, since a comma may also be a decimal comma.
    delimiter = next((mark for mark in ("\t", ";", ",") if mark in first), None)
    with reading(path, "text"):
        fields, *rows = (_split(line.text, delimiter) for line in lines or [_Line(0, "")])
    plumed = comment.startswith(FIELDS)  # which has the names
    named = bool(lines) and not plumed and _are_names(path, fields, rows) if header is None else header
    if len(lines) < 1 + named:
        raise ValueError(f"{path} contains no samples.")
    layout = _Layout(path, delimiter, begin=lines[0].before + named, width=len(fields))
    names = fields if named else layout.names_in_comment(comment)
    if names is not None and len(set(names)) < layout.width:
        raise ValueError(f"{path} has two columns of the same name; rename one.")
    layout, row = layout._replace(names=names), rows[0] if named else fields
    text = layout.text_columns(row, lines[named].before)
    left_out = _index_column(path, names) | set(text)
    numeric = [j for j in range(layout.width) if j not in left_out]
    if names is None and text:  # numbers of columns include columns of text
        names = [str(j) for j in range(layout.width)]
    shown = [names[j] for j in numeric] if names else None
    if not text and shown == [str(j) for j in range(len(numeric))]:  # the default names
        shown = None
    hint = f"Line {lines[named].before + 1} of {path} is {', '.join(map(repr, row[:3]))}, without a number."
    words: dict[str, Callable[[], Blocks]] = {
        names[j]: partial(layout.blocks, [j], str) for j in text if names and names[j]
    }
    more: dict[str, Any] = {"hint": "" if numeric else hint, "words": tuple(words), "gap": layout.gap}
    more["time_unit"] = "ps" if plumed else ""
    return Table(len(numeric), lambda chosen: layout.blocks([numeric[j] for j in chosen]), shown, words, **more)


def write_csv(file: BinaryIO, values: np.ndarray, names: Sequence[str], extras: Extras) -> None:
    """Write a table as comma-separated text with a header."""
    header = ",".join(_quote(str(name)) for name in [*extras, *names])
    for block in column_blocks(values, names, extras):
        formats = [_NUMBER_FORMATS.get(column.dtype.kind, "%s") for column in block.values()]
        columns = [
            column if form != "%s" else np.array([_quote(str(label)) for label in column], dtype=object)
            for form, column in zip(formats, block.values(), strict=True)
        ]
        rows = np.column_stack(columns)  # of objects if one holds labels
        np.savetxt(file, rows, fmt=formats, delimiter=",", header=header, comments="", encoding="utf-8")
        header = ""


class _Line(NamedTuple):
    """A line that is neither empty nor a comment, and the number of lines before it."""

    before: int
    text: str


def _first_lines(path: Path) -> tuple[str, list[_Line]]:
    """Return the first lines that are neither empty nor comments, and the comment directly before them."""
    before, comment, found = "", "", list[_Line]()
    with reading(path, "text"), open(path, encoding="utf-8-sig") as file:
        for index in count():
            line = file.readline(MAX_LINE)
            if len(line) == MAX_LINE:
                raise ValueError(f"line {index + 1} is longer than {MAX_LINE} characters.")
            if not line or len(found) == FIRST_LINES:
                break
            line = line.strip()
            if line and not line.startswith("#"):
                comment = comment if found else before
                found.append(_Line(index, line))
            before = before if line.startswith("#! SET") else line  # PLUMED sets constants below the names
    return comment, found


def _are_names(path: Path, fields: list[str], rows: list[list[str]]) -> bool:
    """Return whether the first line is a header.

    Fields that are not numbers are names. A line with some numbers is a sample, unless its numbers are 0, 1, … or
    1, 2, …, as written by a data frame without names: three or more of them are not a sample by chance, nor are one or
    two above samples that are not integers.
    """
    numbers = [part for part in fields if _is_number(part.replace(",", "."))]
    if not numbers:
        return True
    if numbers not in ([str(j + start) for j in range(len(numbers))] for start in (0, 1)):
        return False
    whole = all(part.lstrip("+-").isdecimal() for row in rows for part in row if _is_number(part))
    if not rows or (whole and len(numbers) < 3):
        return False
    shown = ", ".join(fields[:4]) + (", …" if len(fields) > 4 else "")
    warn(Check(rules.NUMBERED_COLUMNS, 1, words={"path": str(path), "shown": shown}))
    return True


def _index_column(path: Path, names: list[str] | None) -> set[int]:
    """Return the first column if only its name is empty: it is the index of a data frame."""
    if not names or names[0] or len(names) == 1:
        return set()
    warn(Check(rules.INDEX_COLUMN, 1, words={"path": str(path)}))
    return {0}


class _Layout(NamedTuple):
    """Position of the samples in a text file, and separator of fields."""

    path: Path
    delimiter: str | None  # None is any white space
    begin: int  # lines before the samples
    width: int
    names: list[str] | None = None

    def names_in_comment(self, line: str) -> list[str] | None:
        """Return the names of the columns if a comment has one for each."""
        names = _split(line.lstrip("#! ").removeprefix("FIELDS").strip(), self.delimiter)
        return names if len(names) == self.width else None

    def text_columns(self, row: list[str], index: int) -> list[int]:
        """Return the columns of text in the first sample, which is line `index`."""
        if len(row) != self.width:
            raise self._error(index, f"{len(row)} columns below {self.width} names")
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
        # numpy would warn of empty lines and comments, and a warning filter would affect the whole process.
        numbered = islice(self._lines(), self.begin, None)
        lines = (line for line in numbered if (start := line.lstrip()) and not self._is_comment(start))
        for first in lines:
            try:
                block: np.ndarray = load(chain([first], lines), dtype)
            except UnreadableFile:  # of `_is_comment` or `_lines`
                raise
            except ValueError as error:
                raise self._first_error(columns, dtype) or ValueError(f"{self.path}: {error}") from error
            if block.shape[1] != len(columns):  # all rows of this block have the wrong width
                raise self._first_error(columns, dtype) or ValueError(f"{self.path} is ragged.")
            yield block

    def _is_comment(self, line: str) -> bool:
        """Return whether a line is a comment; raise for PLUMED's names of other columns, as after a restart."""
        if line[0] != "#":
            return False
        if line.startswith(FIELDS) and self.names_in_comment(line.strip()) != self.names:
            raise UnreadableFile(
                "{path} has a second line {line} with other columns, or in another order: {columns}. Write the rows "
                "below it to a file of their own.",
                path=self.path,
                line=FIELDS,
                columns=line.removeprefix(FIELDS).strip(),
            )
        return True

    def gap(self) -> str | None:
        """Describe the first empty line between two rows, as between trajectories; None if there is none."""
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
                raise UnreadableFile("{path} cannot be read as text: {error}", path=self.path, error=error) from error

    def _first_error(self, columns: list[int], dtype: type) -> ValueError | None:
        """Find the first line that is not a row, because errors of `numpy.loadtxt` lack its number in the file."""
        for index, line in enumerate(self._lines()):
            if index < self.begin or not (line := line.partition("#")[0].strip()):
                continue
            row = _split(line, self.delimiter)
            if len(row) != self.width:
                return self._error(index, f"{len(row)} columns instead of {self.width}")
            for j in columns if dtype is np.float64 else ():
                if not _is_number(row[j]):
                    name = f"{j} (from 0)" if self.names is None else self.names[j]
                    what = f"contains {row[j]!r}, not a number" if row[j] else "is empty"
                    return self._error(index, f"column {name} {what}")
        return None

    def _error(self, index: int, what: str) -> ValueError:
        return ValueError(
            f"{self.path}, line {index + 1}: {what}. Every row must have a number in every "
            "column: correct or delete the line, or leave the column out by naming the others (--columns)."
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
    """Return a label as a field that a spreadsheet does not execute as a formula, in quotes if needed."""
    if label.lstrip(" ")[:1] in FORMULA_MARKS and not _is_number(label):
        label = f"'{label}"
    return '"' + label.replace('"', '""') + '"' if set(label) & set(',"\r\n') else label
