"""Samples copied into one array."""

from __future__ import annotations

import tempfile

import numpy as np

from kdmaps.data.formats.base import block_rows
from kdmaps.data.sources import ArraySource, Source
from kdmaps.utils.files import NO_ROOM

#: Samples that take more bytes than this are copied to a temporary file, not to memory.
IN_MEMORY_BYTES = 2**26


def gather(source: Source) -> np.ndarray:
    """Return all rows as one array: in memory if it is small, otherwise mapped from an unnamed temporary file."""
    if isinstance(source, ArraySource):
        return source.array
    try:
        with tempfile.TemporaryFile() as file:
            for part in source.parts(block_rows(source.n_features)):
                rows = source.read(part)[1]
                file.write(rows.data)
            file.flush()
            mapped = np.memmap(file, rows.dtype, "r", shape=source.shape)  # type: ignore[call-overload]
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        place = tempfile.gettempdir()
        raise OSError(f"{place} has no room for a copy of the samples; set TMPDIR to a directory that has.") from error
    return np.array(mapped) if mapped.nbytes <= IN_MEMORY_BYTES else mapped
