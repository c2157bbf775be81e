"""Text: columns of numbers and of words, with or without a line of names."""

from __future__ import annotations

import csv
import warnings
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kdmaps.data.objects import block_rows, reading
from kdmaps.data.table import Blocks, Table


def open_text(path: Path) -> Table:
    """Look what columns a text file has."""
    lines: list[str] = []
    found: list[int] = []  # the first two lines that are no comments: names and numbers, or numbers and numbers
    with reading(path, "text"), open(path, encoding="utf-8-sig") as file:
        while len(found) < 2 and (line := file.readline()):
            lines.append(line.strip())
            if lines[-1] and not lines[-1].startswith("#"):
                found.append(len(lines) - 1)
    first = lines[found[0]] if found else ""
    # In this order, since a comma may also be that of a decimal number.
    delimiter = next((mark for mark in ("\t", ";", ",") if mark in first), None)
    layout = _Layout(path, delimiter)
    # A line of numbers with a gap or a word in it is a sample that cannot be read, not a line of names.
    named = bool(found) and not any(_is_number(part.replace(",", ".")) for part in layout.fields(first))
    if len(found) < 1 + named:
        raise ValueError(f"{path} holds no samples.")
    width, begin = len(layout.fields(first)), found[0] + named
    header = layout.fields(first) if named else None
    if not named and found[0]:
        above = layout.fields(lines[found[0] - 1].lstrip("#! ").removeprefix("FIELDS").strip())
        header = above if len(above) == width else None
    if header is not None and len(set(header)) < width:
        raise ValueError(f"{path} names a column twice; give every column a name of its own.")
    row = layout.fields(lines[found[named]])
    if len(row) != width:
        raise layout.error(found[named], f"{len(row)} columns under {width} names")
    text = [j for j, part in enumerate(row) if not _is_number(part) and part]
    for j in text:
        if _is_number(row[j].replace(",", ".")):
            raise layout.error(found[named], f"{row[j]!r} has a decimal comma; write it with a point")
    numeric = [j for j in range(width) if j not in text]
    if header is None and text:  # numbers of columns count the text too
        header = [str(j) for j in range(width)]
    hint = f"Line {found[named] + 1} of {path} holds no number, but {', '.join(map(repr, row[:3]))}."
    read = partial(layout.blocks, begin, width)
    return Table(
        len(numeric),
        lambda columns: read([numeric[j] for j in columns]),
        [header[j] for j in numeric] if header else None,
        {header[j]: partial(read, [j], str) for j in text} if header else {},
        hint="" if numeric else hint,
    )


class _Layout(NamedTuple):
    """How the lines of a text file become fields."""

    path: Path
    delimiter: str | None  # None is any white space

    def fields(self, line: str) -> list[str]:
        parts = next(csv.reader([line], delimiter=self.delimiter)) if self.delimiter else line.split()
        return [part.strip() for part in parts]

    def error(self, index: int, what: str) -> ValueError:
        return ValueError(
            f"{self.path}, line {index + 1}: {what}. Every row needs the same columns, with a number in each."
        )

    def blocks(self, begin: int, width: int, columns: list[int], dtype: type = np.float64) -> Blocks:
        """Blocks of rows from line `begin` on, counted from 0."""
        used = None if columns == list(range(width)) else columns
        load = partial(
            np.loadtxt,
            delimiter=self.delimiter,
            usecols=used,
            max_rows=block_rows(len(columns)),
            ndmin=2,
            quotechar='"',
        )
        with open(self.path, encoding="utf-8-sig") as file:
            next(islice(file, begin, begin), None)
            while True:
                try:
                    with warnings.catch_warnings():  # not around a yield: what others filter is theirs
                        warnings.filterwarnings("ignore", "loadtxt: input contained no data|Input line")
                        block: np.ndarray = load(file, dtype)
                except ValueError as error:
                    raise self._first_error(begin, width, columns, dtype) or ValueError(
                        f"{self.path}: {error}"
                    ) from error
                if block.size == 0:
                    return
                if block.shape[1] != len(columns):  # a block of its own width
                    raise self._first_error(begin, width, columns, dtype) or ValueError(f"{self.path} is ragged.")
                yield block

    def _first_error(self, begin: int, width: int, columns: list[int], dtype: type) -> ValueError | None:
        """The first line that is no row: what reads blocks knows no line numbers."""
        with open(self.path, encoding="utf-8-sig") as file:
            for index, line in enumerate(file):
                if index < begin or not (line := line.partition("#")[0].strip()):
                    continue
                row = self.fields(line)
                if len(row) != width:
                    return self.error(index, f"{len(row)} columns where the rows before have {width}")
                for j in columns if dtype is np.float64 else ():
                    if not _is_number(row[j]):
                        what = f"holds {row[j]!r}, which is no number" if row[j] else "is empty"
                        return self.error(index, f"column {j} (from 0) {what}")
        return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
