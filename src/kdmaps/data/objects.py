"""Objects of other libraries as streams of chunks, and streams to files.

The libraries are imported when they are met.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from kdmaps.utils.files import as_path, replacing

#: Bytes that are read from a file at once.
BLOCK_BYTES = 4 * 2**20


def block_rows(n_columns: int) -> int:
    """Rows of a block."""
    return max(1, BLOCK_BYTES // (8 * max(n_columns, 1)))


def knows(X) -> bool:
    """Whether `of_object` can read X."""
    return _of_library(X, "zarr", "Array") or _of_library(X, "h5py", "Dataset") or _is_trajectory(X)


def is_dask(X) -> bool:
    """Whether X is a Dask array or data frame."""
    return _of_library(X, "dask.array", "Array") or _of_library(X, "dask.dataframe", "DataFrame")


def of_object(X) -> dict[str, Any]:
    """Arguments of a `StreamSource` for a Zarr or HDF5 array or a trajectory."""
    if not _is_trajectory(X):
        if len(X.shape) != 2:
            raise ValueError(f"X must have two dimensions, got a stored array of shape {X.shape}.")
        return {"start": lambda: stored_blocks(X), "n_samples": X.shape[0]}
    return _mdtraj(X) if hasattr(X, "xyz") else _mdanalysis(X)


def _of_library(X, module: str, name: str) -> bool:
    # What is not imported cannot have made X.
    return module in sys.modules and isinstance(X, getattr(sys.modules[module], name, ()))


def _is_trajectory(X) -> bool:
    return _of_library(X, "mdtraj", "Trajectory") or any(
        _of_library(X, "MDAnalysis", name) for name in ("Universe", "AtomGroup")
    )


def library(name: str, what: str) -> ModuleType:
    """An optional package, or an error that says what needs it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"{what} need {package}; install it (pip install {package}).") from error


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Whatever a damaged file makes a library raise becomes an error that names the file."""
    try:
        yield
    except Exception as error:
        raise ValueError(f"{path} cannot be read as {what}: {error}") from error


def stored_blocks(array) -> Iterator[np.ndarray]:
    """Rows of a stored array, axes after the first flattened; whole chunks at a time, each decompressed once."""
    chunk = (array.chunks or (1,))[0]
    rows = max(1, block_rows(math.prod(array.shape[1:])) // chunk) * chunk
    blocks = (np.asarray(array[begin : begin + rows]) for begin in range(0, array.shape[0], rows))
    return (block.reshape(len(block), -1) for block in blocks)


def _mdtraj(trajectory) -> dict[str, Any]:
    rows = block_rows(3 * trajectory.n_atoms)

    def start() -> Iterator[np.ndarray]:
        blocks = (trajectory.xyz[begin : begin + rows] for begin in range(0, trajectory.n_frames, rows))
        return (block.reshape(len(block), -1) for block in blocks)

    return {"start": start, "n_samples": trajectory.n_frames}


def _mdanalysis(group) -> dict[str, Any]:
    atoms = group.atoms
    frames = atoms.universe.trajectory
    rows = block_rows(3 * atoms.n_atoms)

    def start() -> Iterator[np.ndarray]:
        for begin in range(0, len(frames), rows):
            yield np.array([atoms.positions.ravel() for _ in frames[begin : begin + rows]])

    return {"start": start, "n_samples": len(frames)}


def write_rows(path, chunks: Iterable[np.ndarray]) -> np.memmap:
    """Write chunks of rows to a `.npy` file and map it; the file appears when it is complete."""
    if as_path("out", path).suffix != ".npy":
        raise ValueError(f"out must be the name of a .npy file, got {str(path)!r}.")
    with replacing(path) as (file,):
        header: dict[str, Any] = {}
        count = 0
        for chunk in chunks:
            if not header:
                header = {**np.lib.format.header_data_from_array_1_0(chunk), "fortran_order": False}
                np.lib.format.write_array_header_1_0(file, header)
            file.write(np.ascontiguousarray(chunk).data)
            count += chunk.shape[0]
        # numpy leaves room for a number of rows that grows, so the final header is as long as the first.
        file.seek(0)
        np.lib.format.write_array_header_1_0(file, {**header, "shape": (count, *header["shape"][1:])})
    return np.load(path, mmap_mode="r")
