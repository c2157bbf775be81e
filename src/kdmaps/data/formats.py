"""One function for each format, which looks what a file holds. Optional packages are imported when they are met."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kdmaps.data.objects import block_rows, library, reading, stored_blocks
from kdmaps.data.table import Blocks, Table, join
from kdmaps.data.text import open_text

#: What a trajectory can be turned into.
DESCRIPTORS = ("heavy-atoms", "dihedrals")


def open_table(
    path: str | os.PathLike,
    *,
    array: str | None = None,
    stride: int = 1,
    topology: str | os.PathLike | None = None,
    descriptor: str = "heavy-atoms",
    reference: str | os.PathLike | None = None,
) -> Table:
    """Look what a file holds.

    Parameters
    ----------
    path : path-like
        `.npy` (mapped), `.npz`, `.csv`, `.tsv`, `.txt`, `.dat` (with or without a line of names; PLUMED's `#! FIELDS`
        too), `.parquet` (pyarrow), `.zarr` (zarr), or any trajectory that mdtraj reads, with a topology.
    array : str, optional
        Which array of an `.npz` or a Zarr group; by default "X" or the only one of two or more dimensions. Axes after
        the first are flattened.
    stride : int, default=1
        Take every stride-th row.
    topology : path-like, optional
        Of a trajectory.
    descriptor : {"heavy-atoms", "dihedrals"}, default="heavy-atoms"
        Of a trajectory: coordinates of all atoms but hydrogen, superposed on the first frame; or cosine and sine of
        the backbone dihedrals φ and ψ.
    reference : path-like, optional
        The trajectory on whose first frame atoms are superposed; by default the same one.

    Returns
    -------
    table : Table
    """
    path = Path(path)
    if stride < 1:
        raise ValueError(f"stride must be 1 or more, got {stride}.")
    if not path.exists():
        remedy = " Leave the quotes out: it is the shell that turns a * into names." if "*" in str(path) else ""
        raise FileNotFoundError(f"{path} does not exist.{remedy}")
    if descriptor not in DESCRIPTORS:
        raise ValueError(f"descriptor must be one of {', '.join(DESCRIPTORS)}, got {descriptor!r}.")
    if array is not None and (topology is not None or path.suffix.lower() not in _ARCHIVES):
        raise ValueError(f"array={array!r}: only .npz and .zarr hold arrays with names; leave it out for {path}.")
    if topology is not None:
        table = _open_trajectory(path, Path(topology), descriptor, Path(reference or path))
    else:
        ending = path.suffix.lower()
        if path.is_dir() and ending != ".zarr":
            raise ValueError(f"{path} is a directory; give a file in it.")
        if ending not in _OPENERS and ending not in _ARCHIVES:
            known = ", ".join([*_OPENERS, *_ARCHIVES])
            raise ValueError(
                f"{path}: cannot tell the format from the ending {path.suffix!r}; known are {known}. A trajectory "
                "needs its topology (--topology); other data come from a callable that returns an iterator of chunks."
            )
        table = _ARCHIVES[ending](path, array) if ending in _ARCHIVES else _OPENERS[ending](path)
    if table.n_samples == 0:
        raise ValueError(f"{path} holds no samples.")
    return table.every(stride)


def open_tables(paths: Sequence[str | os.PathLike], *, stride: int = 1, reference=None, **options: Any) -> Table:
    """Look what files of the same columns hold, one below the other; of the joined rows, every stride-th is taken.

    The reference of trajectories is the first path by default. Of one path, and for the other options, `open_table`.
    """
    if len(paths) == 1:
        return open_table(paths[0], stride=stride, reference=reference, **options)
    reference = paths[0] if reference is None else reference
    return join([open_table(path, reference=reference, **options) for path in paths], paths).every(stride)


def read_column(where: str, table: Table, what: str, stride: int = 1) -> np.ndarray:
    """One number or label per sample: the column `where` of the table, or the only column of the file `where`."""
    column = table.column(where)
    if column is not None:
        return column
    if not Path(where).exists():
        raise ValueError(f"{what}: {where!r} is neither a column nor a file. {table._offer()}")
    other = open_table(where, stride=stride)
    names = [*other._labels(range(other.width)), *other.extras]
    if len(names) != 1:
        raise ValueError(f"{what}: {where} holds {len(names)} columns, not one.")
    return np.asarray(other.column(names[0]))


def _check_numbers(shape: tuple[int, ...], dtype: np.dtype, where: str) -> None:
    if len(shape) == 0 or dtype.kind not in "fiub":
        raise ValueError(f"{where} holds {dtype} of shape {shape}; samples are rows of numbers.")


def _of_array(array: np.ndarray, names: list[str] | None = None) -> Table:
    def blocks(columns: list[int]) -> Blocks:
        rows = block_rows(len(columns))
        return (array[begin : begin + rows, columns] for begin in range(0, len(array), rows))

    return Table(array.shape[1], blocks, names, array=array, n_samples=len(array))


def _open_npy(path: Path) -> Table:
    with reading(path, "an array of numbers"):
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        _check_numbers(mapped.shape, mapped.dtype, "it")
    if mapped.ndim > 2:  # nobody can tell frames of atoms from trajectories of frames
        raise ValueError(
            f"{path} holds an array of shape {mapped.shape}; samples are rows of a table. Of (trajectory, frame, "
            "coordinate), save X.reshape(-1, X.shape[-1]) and give groups = np.repeat(np.arange(X.shape[0]), "
            "X.shape[1]); of (frame, atom, xyz), save X.reshape(len(X), -1)."
        )
    return _of_array(mapped.reshape(len(mapped), math.prod(mapped.shape[1:])))


class _Stored(NamedTuple):
    """An array of an archive; `blocks` gives its rows with the axes after the first flattened."""

    shape: tuple[int, ...]
    dtype: np.dtype
    blocks: Callable[[], Blocks]


def _open_npz(path: Path, array: str | None) -> Table:
    with reading(path, "an archive of arrays, or is truncated"), zipfile.ZipFile(path) as archive:
        members = [name for name in archive.namelist() if name.endswith(".npy")]
        stored = {name.removesuffix(".npy"): _open_member(path, archive, name) for name in members}
    return _of_archive(path, stored, array)


def _open_member(path: Path, archive: zipfile.ZipFile, name: str) -> _Stored:
    """Decompressed as it is read."""

    def header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
        version = np.lib.format.read_magic(file)
        return getattr(np.lib.format, f"read_array_header_{version[0]}_0")(file)

    with archive.open(name) as file:
        shape, fortran, dtype = header(file)
    if dtype.hasobject:
        raise ValueError(f"{name} holds Python objects.")

    def blocks() -> Blocks:
        width = math.prod(shape[1:])
        with reading(path, "an archive of arrays"), zipfile.ZipFile(path) as archive, archive.open(name) as file:
            header(file)
            if fortran:  # columns one after the other: whole or not at all
                yield np.frombuffer(file.read(), dtype).reshape(shape[::-1]).T.reshape(shape[0], width)
                return
            while data := file.read(block_rows(width) * width * dtype.itemsize):
                yield np.frombuffer(data, dtype).reshape(-1, width)

    return _Stored(shape, dtype, blocks)


def _of_archive(path: Path, stored: dict[str, _Stored], array: str | None) -> Table:
    """The samples among named arrays, with one-dimensional arrays of the same length beside them."""
    known = ", ".join(f"{name} {item.shape}" for name, item in stored.items())
    wide = [name for name, item in stored.items() if len(item.shape) > 1]
    if array is None:
        array = "X" if "X" in stored else wide[0] if len(wide) == 1 else None
    if array is not None and array not in stored:
        raise ValueError(f"{path} holds no array {array!r}; it holds {known}.")
    flat = {name: item for name, item in stored.items() if len(item.shape) == 1 and name != array}
    if array is None and not flat:
        raise ValueError(
            f"{path} holds {known or 'no array'}; say which one is the samples (array, --array), or call it X."
        )
    length = max(item.shape[0] for item in flat.values()) if array is None else stored[array].shape[0]
    beside = {name: item.blocks for name, item in flat.items() if item.shape[0] == length}
    if array is not None:
        samples = stored[array]
        _check_numbers(samples.shape, samples.dtype, f"{path}, array {array}")
        width = math.prod(samples.shape[1:])
        return Table(width, lambda j: (block[:, j] for block in samples.blocks()), extras=beside, n_samples=length)
    if wide:
        choice = f"Say which array is the samples: {', '.join(wide)}."
        return Table(0, lambda j: iter(()), extras=beside, n_samples=length, hint=choice)
    names = [name for name in beside if stored[name].dtype.kind in "fiub"]  # nothing but columns
    values = np.hstack([np.empty((length, 0)), *(np.concatenate([*beside.pop(name)()]) for name in names)])
    return replace(_of_array(values, names), extras=beside)


def _open_parquet(path: Path) -> Table:
    parquet = library("pyarrow.parquet", "Parquet files")
    types = import_module("pyarrow.types")
    with reading(path, "Parquet"), parquet.ParquetFile(path) as file:
        fields, n_samples = list(file.schema_arrow), file.metadata.num_rows
    kinds = (types.is_floating, types.is_integer, types.is_boolean)
    numeric = [field.name for field in fields if any(is_kind(field.type) for is_kind in kinds)]

    def read(names: list[str]) -> Blocks:
        with reading(path, "Parquet"), parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=block_rows(len(names)), columns=names):
                yield np.column_stack([batch.column(name).to_numpy(zero_copy_only=False) for name in names])

    others: dict[str, Callable[[], Blocks]] = {
        field.name: partial(read, [field.name]) for field in fields if field.name not in numeric
    }
    return Table(len(numeric), lambda j: read([numeric[i] for i in j]), numeric, others, n_samples=n_samples)


def _open_zarr(path: Path, array: str | None) -> Table:
    zarr = library("zarr", "Zarr directories")
    with reading(path, "Zarr"):
        node = zarr.open(str(path), mode="r")
        arrays = {"X": node} if hasattr(node, "shape") else dict(node.arrays())

    def stored(item: Any) -> _Stored:
        return _Stored(tuple(item.shape), item.dtype, lambda: stored_blocks(item))

    return _of_archive(path, {name: stored(item) for name, item in arrays.items()}, array)


def _open_trajectory(path: Path, topology: Path, descriptor: str, reference: Path) -> Table:
    mdtraj = library("mdtraj", "trajectories")
    with reading(path, f"a trajectory with the topology {topology}"):
        atoms = mdtraj.load_topology(str(topology))
        first = next(mdtraj.iterload(str(reference), top=atoms, chunk=1))
    heavy = [atom.index for atom in atoms.atoms if atom.element is None or atom.element.symbol != "H"]
    angles = {"phi": mdtraj.compute_phi, "psi": mdtraj.compute_psi}
    names = [f"{axis} {atoms.atom(i)}" for i in heavy for axis in "xyz"]
    if descriptor == "dihedrals":
        names = []
        for number, (kind, compute) in enumerate(angles.items()):
            for quartet in compute(first)[0]:  # C N CA C for φ, N CA C N for ψ
                names += [f"{part} {kind} {atoms.atom(quartet[1 - number]).residue}" for part in ("cos", "sin")]
        if not names:
            raise ValueError(f"{topology} has no backbone dihedrals; use the heavy atoms.")

    def describe(frames: Any) -> np.ndarray:
        if descriptor == "heavy-atoms":
            return frames.superpose(first, 0, atom_indices=heavy).xyz[:, heavy].reshape(len(frames), -1)
        values = np.hstack([compute(frames)[1] for compute in angles.values()])
        return np.stack([np.cos(values), np.sin(values)], axis=2).reshape(len(frames), -1)

    def blocks(columns: list[int]) -> Blocks:
        with reading(path, f"a trajectory with the topology {topology}"):
            for frames in mdtraj.iterload(str(path), top=atoms, chunk=block_rows(3 * atoms.n_atoms)):
                yield describe(frames)[:, columns]

    return Table(len(names), blocks, names, ordered=True)


_OPENERS: dict[str, Callable[[Path], Table]] = {
    ".npy": _open_npy,
    **dict.fromkeys((".csv", ".tsv", ".txt", ".dat"), open_text),
    ".parquet": _open_parquet,
}
#: What holds arrays with names.
_ARCHIVES: dict[str, Callable[[Path, str | None], Table]] = {".npz": _open_npz, ".zarr": _open_zarr}
