"""Zarr directories, and stored arrays of Zarr and HDF5 that are already open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kdmaps.data.formats.arrays import NamedArray, choose_samples
from kdmaps.data.formats.base import reading, row_blocks
from kdmaps.data.table import Blocks, Table


def open_zarr(path: Path, array: str | None) -> Table:
    """Inspect a Zarr array or group and return its columns."""
    import zarr

    with reading(path, "Zarr"):
        node = zarr.open(str(path), mode="r")
        arrays = {"X": node} if hasattr(node, "shape") else dict(node.arrays())

    def named(stored: Any) -> NamedArray:
        def blocks() -> Blocks:
            with reading(path, "Zarr"):
                yield from _blocks(stored)

        return NamedArray(tuple(stored.shape), stored.dtype, blocks)

    return choose_samples(path, {name: named(stored) for name, stored in arrays.items()}, array)


def from_stored(array: Any) -> Table:
    """Return the columns of an open Zarr array or HDF5 data set."""
    if len(array.shape) != 2:
        raise ValueError(f"X must have two dimensions, got a stored array of shape {array.shape}; reshape it.")
    return Table.from_blocks(array.shape[1], lambda: _blocks(array), n_samples=array.shape[0])


def _blocks(array: Any) -> Blocks:
    return row_blocks(array, chunk=(array.chunks or (1,))[0])
