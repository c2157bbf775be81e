"""Helpers of readers and writers: blocks of rows, and errors that name the file."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kdmaps.utils.threads import slices

#: Bytes read from a file at once.
BLOCK_BYTES = 4 * 2**20
#: Rows written to a file at once.
WRITTEN_ROWS = 2**16

#: Additional columns of a written table, such as row numbers: anything that can be sliced.
Extras = Mapping[str, Sequence[Any] | np.ndarray]
#: Writes (file, values, names of their columns, additional columns).
Writer = Callable[[BinaryIO, np.ndarray, Sequence[str], Extras], None]


def block_rows(n_columns: int) -> int:
    """Return the number of rows read at once."""
    return max(1, BLOCK_BYTES // (8 * max(n_columns, 1)))


def row_blocks(array: Any, chunk: int = 1) -> Iterator[np.ndarray]:
    """Yield rows with flattened axes, in blocks of complete stored chunks, which are then decompressed once."""
    width = math.prod(array.shape[1:])
    rows = max(1, block_rows(width) // chunk) * chunk
    for begin in range(0, array.shape[0], rows):
        block = np.asarray(array[begin : begin + rows])
        yield block.reshape(len(block), width)


def column_blocks(values: np.ndarray, names: Sequence[str], extras: Extras) -> Iterator[dict[str, np.ndarray]]:
    """Yield blocks of rows to write, as named columns; the extras come first."""
    for part in slices(len(values), WRITTEN_ROWS):
        columns = {name: np.asarray(column[part]) for name, column in extras.items()}
        yield {**columns, **dict(zip(names, values[part].T, strict=True))}


def made_by(X: Any, module: str, *classes: str) -> bool:
    """Return whether X is an instance of one of these classes, without importing their library."""
    return module in sys.modules and isinstance(X, tuple(getattr(sys.modules[module], name, ()) for name in classes))


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Convert any error of a library about a damaged file to a ValueError that names the file."""
    try:
        yield
    except Exception as error:
        raise ValueError(f"{path} cannot be read as {what}: {error}") from error
