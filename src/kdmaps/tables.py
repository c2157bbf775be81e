"""Tables of samples on disk: the end of a file's name tells its format. Optional packages are imported when needed."""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kdmaps._readers import is_number, library

#: What a trajectory can be turned into.
DESCRIPTORS = ("heavy-atoms", "dihedrals")
_SHOWN_NAMES = 12


@dataclass(frozen=True)
class Table:
    """Samples, one per row.

    Attributes
    ----------
    values : ndarray of shape (n_samples, d)
        Numbers.
    names : list of str or None
        Of the columns, if the file names them.
    extras : dict of str to ndarray of shape (n_samples,)
        Columns beside the values: text, or further arrays of an archive.
    ordered : bool
        Whether the rows are known to be in the order of time.
    arrays : str
        The arrays among which the user has yet to choose, if the file leaves it open.
    """

    values: np.ndarray
    names: list[str] | None = None
    extras: dict[str, np.ndarray] = field(default_factory=dict)
    ordered: bool = False
    arrays: str = ""

    def __len__(self) -> int:
        return len(self.values)

    def column(self, name: str) -> np.ndarray | None:
        """A column by its name, or by its number where columns have none; None if there is no such column."""
        if name in self.extras:
            return self.extras[name]
        if self.names is not None:
            return self.values[:, self.names.index(name)] if name in self.names else None
        return self.values[:, int(name)] if name.isdecimal() and int(name) < self.values.shape[1] else None

    def select(self, columns: str | None = None, leave_out: Iterable[str] = ()) -> Table:
        """The table of some columns only.

        Parameters
        ----------
        columns : str, optional
            Names, numbers and slices of numbers, separated by commas: "phi,psi", "0:3", "0,2:". By default all.
        leave_out : iterable of str
            Columns with another role, not among the samples unless `columns` asks for them.
        """
        if columns is None:
            taken = set(leave_out)
            names = self.names if self.names is not None else [str(j) for j in range(self.values.shape[1])]
            kept = [j for j, name in enumerate(names) if name not in taken]
            if not kept:
                raise ValueError(f"No column is left for the samples. {self._offer()}")
            if len(kept) == len(names):
                return self
            return Table(self.values[:, kept], self.names and [self.names[j] for j in kept], self.extras, self.ordered)
        parts: list[np.ndarray] = []
        names = []
        for item in (part.strip() for part in columns.split(",")):
            found, labels = self._pick(item)
            parts.append(found)
            names += labels
        if len(set(names)) < len(names):
            raise ValueError(f"columns={columns!r} takes a column twice.")
        by_number = self.names is None and not any(name in self.extras for name in names)
        return Table(np.hstack(parts), None if by_number else names, self.extras, self.ordered)

    def _pick(self, item: str) -> tuple[np.ndarray, list[str]]:
        column = self.column(item)
        if column is not None:
            if column.dtype.kind not in "fiub":
                raise ValueError(f"Column {item!r} holds text, not numbers; leave it out.")
            return column.reshape(-1, 1), [item]
        d = self.values.shape[1]
        ends = item.split(":")
        if len(ends) in (1, 2) and all(end == "" or end.lstrip("-").isdecimal() for end in ends) and item != "":
            where = range(d)[slice(*(int(end) if end else None for end in ends))] if ":" in item else [int(item)]
            if where and all(0 <= j < d for j in where):
                return self.values[:, list(where)], [self.names[j] if self.names else str(j) for j in where]
        raise ValueError(f"There is no column {item!r}. {self._offer()}")

    def _offer(self) -> str:
        d = self.values.shape[1]
        known = [*(self.names or []), *self.extras]
        named = f", named {', '.join(known[:_SHOWN_NAMES])}{' …' if len(known) > _SHOWN_NAMES else ''}" if known else ""
        if d:
            return f"Columns are numbered 0 to {d - 1}{named}."
        choice = f" Say which array is the samples: {self.arrays}." if self.arrays else ""
        return f"Columns are{named.removeprefix(', named')}.{choice}"


# --- reading ----------------------------------------------------------------------------------------------------------
def read_table(
    path: str | os.PathLike,
    *,
    array: str | None = None,
    stride: int = 1,
    topology: str | os.PathLike | None = None,
    descriptor: str = "heavy-atoms",
) -> Table:
    """Read samples.

    Parameters
    ----------
    path : path-like
        `.npy` (not copied into memory), `.npz`, `.csv`, `.tsv`, `.txt`, `.dat` (with or without a line of names;
        PLUMED's `#! FIELDS` too), `.parquet` (pyarrow), `.zarr` (zarr), or any trajectory that
        mdtraj reads, with a topology.
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

    Returns
    -------
    table : Table
    """
    path = Path(path)
    if stride < 1:
        raise ValueError(f"stride must be 1 or more, got {stride}.")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if topology is not None:
        table = _read_trajectory(path, Path(topology), stride, descriptor)
    else:
        reader = _READERS.get(path.suffix.lower())
        if reader is None:
            raise ValueError(
                f"{path}: cannot tell the format from the ending {path.suffix!r}; known are {', '.join(_READERS)}. For "
                "a trajectory, give its topology too."
            )
        table = _every(reader(path, array), stride)
    if len(table) == 0:
        raise ValueError(f"{path} holds no samples.")
    return table


def read_column(where: str, table: Table, what: str, stride: int = 1) -> np.ndarray:
    """One number or label per sample: the column `where` of the table, or the only column of the file `where`."""
    column = table.column(where)
    if column is not None:
        return column
    if not Path(where).exists():
        raise ValueError(f"{what}: {where!r} is neither a column nor a file. {table._offer()}")
    other = read_table(where, stride=stride)
    columns = [*other.values.T, *other.extras.values()]
    if len(columns) != 1 or len(columns[0]) != len(table):
        raise ValueError(
            f"{what}: {where} holds {len(columns)} column(s) of {len(other)} rows, not one of {len(table)}."
        )
    return columns[0]


def _every(table: Table, stride: int) -> Table:
    if stride == 1:
        return table
    extras = {name: column[::stride] for name, column in table.extras.items()}
    return replace(table, values=table.values[::stride], extras=extras)


def _numbers(values: np.ndarray, where: str) -> np.ndarray:
    """Samples as a matrix of floats; 32-bit floats stay what they are."""
    if values.ndim == 0 or values.dtype.kind not in "fiub":
        raise ValueError(f"{where} holds {values.dtype} of shape {values.shape}; samples are rows of numbers.")
    flat = values.reshape(len(values), -1) if values.ndim > 1 else values.reshape(-1, 1)
    return flat if flat.dtype in (np.float32, np.float64) else flat.astype(np.float64)


def _read_npy(path: Path, array: str | None) -> Table:
    try:
        return Table(_numbers(np.load(path, mmap_mode="r", allow_pickle=False), str(path)))
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path} cannot be read as an array of numbers: {error}") from error


def _read_npz(path: Path, array: str | None) -> Table:
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} cannot be read as an archive of arrays: it is no .npz file, or is truncated.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except Exception as error:  # whatever a damaged archive makes zipfile, zlib and numpy raise
        raise ValueError(f"{path} cannot be read as an archive of arrays: {error}") from error
    return _from_arrays(path, arrays, array)


def _from_arrays(path: Path, arrays: dict[str, Any], array: str | None) -> Table:
    """The samples among named arrays, with one-dimensional arrays of the same length beside them."""
    known = ", ".join(f"{name} {tuple(a.shape)}" for name, a in arrays.items())
    wide = [name for name, a in arrays.items() if a.ndim > 1]
    if array is None:
        array = "X" if "X" in arrays else wide[0] if len(wide) == 1 else None
    if array is not None and array not in arrays:
        raise ValueError(f"{path} holds no array {array!r}; it holds {known}.")
    flat = {name: np.asarray(a) for name, a in arrays.items() if a.ndim == 1 and name != array}
    if array is None:
        length = max((len(a) for a in flat.values()), default=0)
        if not flat:
            raise ValueError(f"{path} holds several arrays: {known}; say which one is the samples.")
        values = np.empty((length, 0))
        names = [name for name, a in flat.items() if len(a) == length and a.dtype.kind in "fiub"]
        if not wide:  # nothing but columns
            values = np.column_stack([_numbers(flat[name], name) for name in names]) if names else values
            return Table(values, names, {n: a for n, a in flat.items() if len(a) == length and n not in names})
    else:
        values = _numbers(np.asarray(arrays[array]), f"{path}, array {array}")
    beside = {name: a for name, a in flat.items() if len(a) == len(values)}
    return Table(values, None, beside, arrays="" if array else ", ".join(wide))


def _read_text(path: Path, array: str | None) -> Table:
    with open(path, newline="", encoding="utf-8-sig") as file:
        lines = [line.strip() for line, _ in zip(file, range(100), strict=False)]
    comments = next((i for i, line in enumerate(lines) if line and not line.startswith("#")), len(lines))
    if comments == len(lines):
        raise ValueError(f"{path} holds no samples.")
    first = lines[comments]
    delimiter = next((mark for mark in (",", ";", "\t") if mark in first), None)

    def fields(line: str) -> list[str]:
        parts = next(csv.reader([line], delimiter=delimiter)) if delimiter else line.split()
        return [part.strip() for part in parts]

    width = len(fields(first))
    header, skip = None, comments
    if not any(map(is_number, fields(first))) and len(lines) > comments + 1:
        header, skip = fields(first), comments + 1
    elif comments:
        named = fields(lines[comments - 1].lstrip("#! ").removeprefix("FIELDS").strip())
        header = named if len(named) == width else None
    if header is not None and len(set(header)) < width:
        raise ValueError(f"{path} names a column twice; give every column a name of its own.")
    data = next((line for line in lines[skip:] if line and not line.startswith("#")), "")
    text = [j for j, part in enumerate(fields(data)) if not is_number(part) and part]
    numeric = [j for j in range(width) if j not in text]

    def load(columns: Sequence[int], dtype: Any) -> np.ndarray:
        return np.loadtxt(
            path,
            dtype,
            delimiter=delimiter,
            skiprows=skip,
            usecols=columns,
            ndmin=2,
            quotechar='"',
            encoding="utf-8-sig",
        )

    try:
        values = load(numeric, np.float64) if numeric else np.empty((len(load(text, str)), 0))
        extras = {header[j] if header else str(j): load([j], str)[:, 0] for j in text}
    except ValueError as error:
        raise ValueError(f"{path}: {error} Every row needs the same columns, with a number in each.") from error
    if header is None and text:  # numbers of columns count the text too
        header = [str(j) for j in range(width)]
    return Table(values, [header[j] for j in numeric] if header else None, extras)


def _read_parquet(path: Path, array: str | None) -> Table:
    arrow = library("pyarrow", "Parquet files")
    parquet = import_module("pyarrow.parquet")
    try:
        frame = parquet.read_table(path)
    except arrow.ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from error
    columns = {name: frame.column(name).to_numpy() for name in frame.column_names}
    numbers = [name for name, column in columns.items() if column.dtype.kind in "fiub"]
    types = {columns[name].dtype for name in numbers}
    dtype = np.float32 if types == {np.dtype(np.float32)} else np.float64
    values = np.empty((frame.num_rows, len(numbers)), dtype=dtype)
    for j, name in enumerate(numbers):
        values[:, j] = columns[name]
    return Table(values, numbers, {name: column for name, column in columns.items() if name not in numbers})


def _read_zarr(path: Path, array: str | None) -> Table:
    zarr = library("zarr", "Zarr directories")
    node = zarr.open(str(path), mode="r")
    if hasattr(node, "shape"):
        return Table(_numbers(np.asarray(node[...]), str(path)))
    return _from_arrays(path, {name: np.asarray(item[...]) for name, item in node.arrays()}, array)


def _read_trajectory(path: Path, topology: Path, stride: int, descriptor: str) -> Table:
    if descriptor not in DESCRIPTORS:
        raise ValueError(f"descriptor must be one of {', '.join(DESCRIPTORS)}, got {descriptor!r}.")
    mdtraj = library("mdtraj", "trajectories")
    try:
        frames = mdtraj.load(str(path), top=str(topology), stride=stride)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} with topology {topology} cannot be read by mdtraj: {error}") from error
    if descriptor == "dihedrals":
        names, columns = [], []
        for kind, compute in (("phi", mdtraj.compute_phi), ("psi", mdtraj.compute_psi)):
            atoms, angles = compute(frames)
            for quartet, angle in zip(atoms, angles.T, strict=True):
                residue = frames.topology.atom(quartet[1 if kind == "phi" else 0]).residue
                names += [f"cos {kind} {residue}", f"sin {kind} {residue}"]
                columns += [np.cos(angle), np.sin(angle)]
        if not columns:
            raise ValueError(f"{topology} has no backbone dihedrals; use the heavy atoms.")
        return Table(np.column_stack(columns), names, ordered=True)
    heavy = [atom.index for atom in frames.topology.atoms if atom.element is None or atom.element.symbol != "H"]
    frames = frames.superpose(frames, 0, atom_indices=heavy)
    names = [f"{axis} {frames.topology.atom(i)}" for i in heavy for axis in "xyz"]
    return Table(frames.xyz[:, heavy].reshape(len(frames), -1), names, ordered=True)


_READERS: dict[str, Callable[[Path, str | None], Table]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    **dict.fromkeys((".csv", ".tsv", ".txt", ".dat"), _read_text),
    ".parquet": _read_parquet,
    ".zarr": _read_zarr,
}


# --- writing ----------------------------------------------------------------------------------------------------------
def make_writer(ending: str) -> Callable[[BinaryIO, np.ndarray, Sequence[str]], None]:
    """The function (file, values, names) that writes a table in the format of an ending such as ".csv".

    Text has ten significant digits; the other formats hold the values as they are.
    """
    if ending == ".parquet":
        library("pyarrow", "Parquet files")
    if ending not in _WRITERS:
        raise ValueError(f"Cannot write a table with the ending {ending!r}; known are {', '.join(_WRITERS)}.")
    return _WRITERS[ending]


def _write_csv(file: BinaryIO, values: np.ndarray, names: Sequence[str]) -> None:
    np.savetxt(file, values, fmt="%.10g", delimiter=",", header=",".join(names), comments="")


def _write_parquet(file: BinaryIO, values: np.ndarray, names: Sequence[str]) -> None:
    arrow = import_module("pyarrow")
    import_module("pyarrow.parquet").write_table(arrow.table(list(values.T), names=list(names)), file)


_WRITERS: dict[str, Callable[[BinaryIO, np.ndarray, Sequence[str]], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".npy": lambda file, values, names: np.save(file, values),
    ".npz": lambda file, values, names: np.savez(file, modes=values),
}
