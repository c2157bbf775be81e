"""Files and objects of other libraries as streams of chunks, and streams to files.

The libraries are imported when they are met.
"""

from __future__ import annotations

import sys
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from kdmaps._files import replacing

#: Bytes that are read from a file at once.
BLOCK_BYTES = 4 * 2**20


def block_rows(n_columns: int) -> int:
    """Rows of a block."""
    return max(1, BLOCK_BYTES // (8 * max(n_columns, 1)))


def of_path(path: Path) -> dict[str, Any]:
    """Arguments of a `StreamSource` for a file, by its suffix."""
    known: dict[str, Callable[[Path], dict[str, Any]]] = {
        ".npz": _npz,
        ".csv": _csv,
        ".parquet": _parquet,
        ".zarr": _zarr,
    }
    if path.suffix not in known:
        raise ValueError(
            f"X: no way to read {path.name!r}: the suffix must be one of .npy, {', '.join(known)}. For other formats "
            "pass a callable that returns an iterator of chunks."
        )
    return known[path.suffix](path)


def knows(X) -> bool:
    """Whether `of_object` can read X."""
    return _of_library(X, "zarr", "Array") or _of_library(X, "h5py", "Dataset") or _is_trajectory(X)


def is_dask(X) -> bool:
    """Whether X is a Dask array or data frame."""
    return _of_library(X, "dask.array", "Array") or _of_library(X, "dask.dataframe", "DataFrame")


def of_object(X) -> dict[str, Any]:
    """Arguments of a `StreamSource` for a Zarr or HDF5 array or a trajectory."""
    if not _is_trajectory(X):
        return _stored_array(X)
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
        raise ImportError(f"X: reading {what} needs {package}; install it (pip install {package}).") from error


def _npz(path: Path) -> dict[str, Any]:
    """The one array of an archive, or the one called X, decompressed as it is read."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
    member = "X.npy" if "X.npy" in names else names[0] if len(names) == 1 else None
    if member is None:
        found = ", ".join(name.removesuffix(".npy") for name in names) or "none"
        raise ValueError(f"X: {path.name} must hold one array, or one called X; it holds {found}.")

    def start() -> Iterator[np.ndarray]:
        with zipfile.ZipFile(path) as archive, archive.open(member) as file:
            version = np.lib.format.read_magic(file)
            reader = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
            shape, fortran, dtype = reader(file)
            if len(shape) != 2 or fortran or dtype.hasobject:
                raise ValueError(
                    f"X: {member} in {path.name} must be an array of numbers with two dimensions in C order, got "
                    f"{dtype} of shape {shape}; store it with np.savez(path, X=np.ascontiguousarray(X))."
                )
            rows = block_rows(shape[1])
            for begin in range(0, shape[0], rows):
                block = file.read(min(rows, shape[0] - begin) * shape[1] * dtype.itemsize)
                yield np.frombuffer(block, dtype).reshape(-1, shape[1])

    return {"start": start}


def _csv(path: Path) -> dict[str, Any]:
    """Numbers separated by commas; a first line without any number has the names of the columns."""
    with open(path, encoding="utf-8-sig") as file:
        first = file.readline().strip().split(",")
    # A line of numbers with a gap or a word in it is a sample that cannot be read, not a line of names.
    named = not any(map(is_number, first))
    rows = block_rows(len(first))

    def start() -> Iterator[np.ndarray]:
        with open(path, encoding="utf-8-sig") as file:
            begin = int(named)
            if named:
                file.readline()
            while True:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "loadtxt: input contained no data")
                    try:
                        block = np.loadtxt(file, delimiter=",", max_rows=rows, ndmin=2)
                    except ValueError as error:
                        raise ValueError(f"X: {path.name}, counting from line {begin + 1}: {error}") from error
                if block.size == 0:
                    return
                yield block
                begin += block.shape[0]

    return {"start": start, "feature_names": [name.strip().strip('"') for name in first] if named else None}


def is_number(text: str) -> bool:
    """Whether a field of a text file is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parquet(path: Path) -> dict[str, Any]:
    parquet = library("pyarrow.parquet", "Parquet files")
    with parquet.ParquetFile(path) as file:
        names, n_samples = list(file.schema_arrow.names), file.metadata.num_rows

    def start() -> Iterator[np.ndarray]:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=block_rows(len(names))):
                yield np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])

    return {"start": start, "n_samples": n_samples, "feature_names": names}


def _zarr(path: Path) -> dict[str, Any]:
    array = library("zarr", "Zarr directories").open(str(path), mode="r")
    if not hasattr(array, "dtype"):
        raise ValueError(f"X: {path.name} is a Zarr group; pass one of its arrays.")
    return _stored_array(array)


def _stored_array(array) -> dict[str, Any]:
    """Whole chunks of the store at a time: each is decompressed once."""
    if len(array.shape) != 2:
        raise ValueError(f"X must have two dimensions, got a stored array of shape {array.shape}.")
    chunk = (array.chunks or (1,))[0]
    rows = max(1, block_rows(array.shape[1]) // chunk) * chunk

    def start() -> Iterator[np.ndarray]:
        return (np.asarray(array[begin : begin + rows]) for begin in range(0, array.shape[0], rows))

    return {"start": start, "n_samples": array.shape[0]}


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
    if Path(path).suffix != ".npy":
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
