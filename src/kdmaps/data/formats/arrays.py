"""Stored arrays: NumPy's `.npy` and `.npz` files, Zarr and HDF5; selection of samples among named arrays."""

import math
import zipfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from kdmaps.data.formats.base import Extras, block_rows, reading, row_blocks
from kdmaps.data.table import Blocks, Table
from kdmaps.exceptions import ArgumentError
from kdmaps.utils.files import as_path, replacing

#: Bytes that must be in memory at once (a row, or an array in column-major order) for each byte of a file. Numbers
#: compress to a tenth at best, and zeros to a thousandth: larger ratios are malicious.
MAX_UNPACKED = 100


def open_npy(path: Path) -> Table:
    """Map a `.npy` file and return its columns."""
    with reading(path, "an array of numbers"):
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        _check_numbers(mapped.shape, mapped.dtype, "it")
        if path.stat().st_size != mapped.offset + mapped.nbytes:
            raise ValueError(f"its size does not match its shape {mapped.shape}.")
    if mapped.ndim > 2:  # ambiguous: frames of atoms, or trajectories of frames
        raise ArgumentError(
            "{path} contains an array of shape {shape}, but samples are rows of a table. For (trajectory, frame, "
            "coordinate), save X.reshape(-1, X.shape[-1]) and give np.repeat(np.arange(X.shape[0]), X.shape[1]) as "
            "{groups}; for (frame, atom, xyz), save X.reshape(len(X), -1).",
            path=path,
            shape=mapped.shape,
        )
    return from_array(mapped.reshape(len(mapped), math.prod(mapped.shape[1:])))


def write_npy(file: BinaryIO, values: np.ndarray, names: Sequence[str], extras: Extras) -> None:
    """Write the values of a table as one array, without names and extras."""
    values = np.ascontiguousarray(values)
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(values))
    file.write(values.data)  # np.save does not report a full disk


def write_rows(path: Any, chunks: Iterable[np.ndarray]) -> np.memmap:
    """Write chunks of rows to a `.npy` file atomically, and map it."""
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
        # numpy pads the header for a larger number of rows, so the final header has the length of the first.
        file.seek(0)
        np.lib.format.write_array_header_1_0(file, {**header, "shape": (count, *header["shape"][1:])})
    return np.load(path, mmap_mode="r")


class NamedArray(NamedTuple):
    """An array of an archive; `blocks` yields its rows, with the axes after the first flattened."""

    shape: tuple[int, ...]
    dtype: np.dtype
    blocks: Callable[[], Blocks]


def open_npz(path: Path, array: str | None) -> Table:
    """Inspect a `.npz` archive and return its columns."""
    with reading(path, "an archive of arrays, or is truncated"), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():  # a damaged name may no longer end in .npy
            archive.open(name).close()
        members = [name for name in archive.namelist() if name.endswith(".npy")]
        stored = {name.removesuffix(".npy"): _open_member(path, archive, name) for name in members}
    return choose_samples(path, stored, array)


def write_npz(file: BinaryIO, values: np.ndarray, names: Sequence[str], extras: Extras) -> None:
    """Write the values of a table as the array "modes", and each extra as an array of its name."""
    with zipfile.ZipFile(file, "w") as archive:  # numpy.savez does not accept an array called "file"
        for name, array in {**extras, "modes": values}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def open_zarr(path: Path, array: str | None) -> Table:
    """Inspect a Zarr array or group and return its columns."""
    import zarr

    with reading(path, "Zarr"):
        node = zarr.open(str(path), mode="r")
        arrays: dict[str, Any] = {"X": node} if hasattr(node, "shape") else dict(node.arrays())

    def blocks(stored: Any) -> Blocks:
        with reading(path, "Zarr"):
            yield from _stored_blocks(stored)

    known = {name: NamedArray(tuple(one.shape), one.dtype, partial(blocks, one)) for name, one in arrays.items()}
    return choose_samples(path, known, array)


def from_stored(array: Any) -> Table:
    """Return the columns of an open Zarr array or HDF5 data set."""
    if len(array.shape) != 2:
        raise ValueError(f"X must have two dimensions, got a stored array of shape {array.shape}; reshape it.")
    return Table.from_blocks(array.shape[1], lambda: _stored_blocks(array), n_samples=array.shape[0])


def _stored_blocks(array: Any) -> Blocks:
    return row_blocks(array, chunk=(array.chunks or (1,))[0])


def _open_member(path: Path, archive: zipfile.ZipFile, name: str) -> NamedArray:
    """Inspect an array of an archive, which is decompressed in blocks."""

    def header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
        version = np.lib.format.read_magic(file)
        return getattr(np.lib.format, f"read_array_header_{version[0]}_0")(file)

    with archive.open(name) as file:
        shape, fortran, dtype = header(file)
        length = archive.getinfo(name).file_size - file.tell()
    if dtype.hasobject:
        raise ValueError(f"{name} contains Python objects.")
    if math.prod(shape) * dtype.itemsize != length:
        raise ValueError(f"the size of {name} does not match its shape {shape}.")
    if (row := math.prod(shape if fortran else shape[1:]) * dtype.itemsize) > MAX_UNPACKED * path.stat().st_size:
        raise ValueError(f"{name} needs {row} bytes of memory at once when unpacked; store it uncompressed.")
    if archive.getinfo(name).compress_size > path.stat().st_size:
        raise ValueError(f"{name} claims to be larger than the file.")

    def blocks() -> Blocks:
        width = math.prod(shape[1:])
        with reading(path, "an archive of arrays"), zipfile.ZipFile(path) as archive, archive.open(name) as file:
            header(file)
            if fortran:  # rows of column-major data need the whole array
                yield np.frombuffer(file.read(), dtype).reshape(shape[::-1]).T.reshape(shape[0], width)
                return
            while data := file.read(block_rows(width) * width * dtype.itemsize):
                yield np.frombuffer(data, dtype).reshape(-1, width)

    return NamedArray(shape, dtype, blocks)


def choose_samples(path: Path, stored: dict[str, NamedArray], array: str | None) -> Table:
    """Select the samples among named arrays; one-dimensional arrays of the same length become extras."""
    known = ", ".join(f"{name} {item.shape}" for name, item in stored.items())
    wide = [name for name, item in stored.items() if len(item.shape) > 1]
    if array is None:
        array = "X" if "X" in stored else wide[0] if len(wide) == 1 else None
    if array is not None and array not in stored:
        raise ValueError(f"{path} does not contain an array {array!r}, but {known}.")
    flat = {name: item for name, item in stored.items() if len(item.shape) == 1 and name != array}
    if array is None and not flat:
        raise ArgumentError(
            "{path} contains {known}; choose the array of samples with {array}, or name it X.",
            path=path,
            known=known or "no array",
        )
    length = max(item.shape[0] for item in flat.values()) if array is None else stored[array].shape[0]
    extras = {name: item.blocks for name, item in flat.items() if item.shape[0] == length}
    if array is not None:
        samples = stored[array]
        _check_numbers(samples.shape, samples.dtype, f"{path}, array {array}")
        return Table.from_blocks(math.prod(samples.shape[1:]), samples.blocks, extras=extras, n_samples=length)
    if wide:
        choice = f"Choose the array of samples: {', '.join(wide)}."
        return Table(0, lambda j: iter(()), extras=extras, n_samples=length, hint=choice)
    names = [name for name in extras if stored[name].dtype.kind in "fiub"]
    values = np.hstack([np.empty((length, 0)), *(np.concatenate([*extras.pop(name)()]) for name in names)])
    return from_array(values, names=names, extras=extras)


def _check_numbers(shape: tuple[int, ...], dtype: np.dtype, where: str) -> None:
    if len(shape) == 0 or dtype.kind not in "fiub":
        raise ValueError(f"{where} contains {dtype} of shape {shape}, but samples are rows of numbers.")


def from_array(array: np.ndarray, **fields: Any) -> Table:
    """Return the columns of an array; `fields` are further attributes of the table."""
    return Table.from_blocks(array.shape[1], lambda: row_blocks(array), array=array, n_samples=len(array), **fields)
