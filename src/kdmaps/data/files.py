"""Open files of samples as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kdmaps.data.formats.registry import FORMATS
from kdmaps.data.formats.trajectories import DESCRIPTORS, open_trajectory
from kdmaps.data.table import Table, join
from kdmaps.utils.types import PathLike


def open_table(
    path: PathLike,
    *,
    array: str | None = None,
    header: bool | None = None,
    stride: int = 1,
    topology: PathLike | None = None,
    descriptor: str = "heavy-atoms",
    reference: PathLike | None = None,
) -> Table:
    """Inspect a file and return its columns.

    Parameters
    ----------
    path : path-like
        `.npy` (mapped), `.npz`, `.csv`, `.tsv`, `.txt`, `.dat` (with or without a line of names; PLUMED's `#! FIELDS`
        too), `.parquet` (pyarrow), `.zarr` (zarr), or, with a topology, any trajectory that mdtraj reads.
    array : str, optional
        Name of the array of samples in an `.npz` file or a Zarr group; by default "X", or the only array with two or
        more dimensions. Axes after the first are flattened.
    header : bool, optional
        Set if the first line of text contains the names of the columns. By default it does if none of its fields is a
        number, or if they are the numbers of the columns (0, 1, 2, …), as written by data frames without names. The
        latter, and an index that is left out, cause a DataWarning.
    stride : int, default=1
        Read every stride-th row.
    topology : path-like, optional
        Topology of a trajectory.
    descriptor : {"heavy-atoms", "dihedrals"}, default="heavy-atoms"
        Columns computed from a trajectory: coordinates of all atoms except hydrogen, superposed on the first frame of
        `reference`; or cosine and sine of the backbone dihedrals φ and ψ.
    reference : path-like, optional
        Trajectory with the frame of reference; by default `path`.
    """
    path = Path(path)
    if stride < 1:
        raise ValueError(f"stride must be 1 or more, got {stride}.")
    if not path.exists():
        remedy = " Remove the quotes, so that the shell expands the *." if "*" in str(path) else ""
        raise FileNotFoundError(f"{path} does not exist.{remedy}")
    if descriptor not in DESCRIPTORS:
        raise ValueError(f"descriptor must be one of {', '.join(DESCRIPTORS)}, got {descriptor!r}.")
    known = FORMATS.get(path.suffix.lower()) if topology is None else None
    if array is not None and not (known and known.named_arrays):
        archives = " and ".join(suffix for suffix, known in FORMATS.items() if known.named_arrays)
        raise ValueError(f"array={array!r}: only {archives} contain named arrays; leave it out for {path}.")
    if header is not None and not (known and known.text):
        raise ValueError(f"header={header!r}: only text files can have a header; leave it out for {path}.")
    if topology is not None:
        table = open_trajectory(path, Path(topology), descriptor, Path(reference or path))
    elif known is not None:
        known.check_installed()
        table = known.open(path, *([array] if known.named_arrays else [header] if known.text else []))
    elif path.is_dir():
        raise ValueError(f"{path} is a directory; give a file in it.")
    else:
        raise ValueError(
            f"{path}: unknown format {path.suffix!r}; known are {', '.join(FORMATS)}. For a trajectory, give its "
            "topology (--topology); for other data, pass a callable that returns an iterator of chunks."
        )
    if table.n_samples == 0:
        raise ValueError(f"{path} contains no samples.")
    return table.every(stride)


def open_tables(
    paths: Sequence[PathLike], *, stride: int = 1, reference: PathLike | None = None, **options: Any
) -> Table:
    """Inspect files with the same columns and join their rows.

    Parameters
    ----------
    paths : sequence of path-like
    stride : int, default=1
        Read every stride-th of the joined rows.
    reference : path-like, optional
        Trajectory with the frame of reference; by default the first path.
    **options
        As in `open_table`.
    """
    if len(paths) == 1:
        return open_table(paths[0], stride=stride, reference=reference, **options)
    reference = paths[0] if reference is None else reference
    return join([open_table(path, reference=reference, **options) for path in paths], paths).every(stride)


def read_column(where: str, table: Table, what: str, stride: int = 1) -> np.ndarray:
    """Return one number or label per sample: the column `where` of a table, or the only column of the file `where`.

    Parameters
    ----------
    where : str
        Name of a column or path of a file.
    table : Table
    what : str
        The option that asks for the column, for messages.
    stride : int, default=1
        Read every stride-th row of the file.
    """
    column = table.column(where)
    if column is not None:
        return column
    if not Path(where).exists():
        raise ValueError(f"{what}: {where!r} is neither a column nor a file. {table.describe_columns()}")
    other = open_table(where, stride=stride)
    names = [*other.labels, *other.extras]
    if len(names) != 1:
        raise ValueError(f"{what}: {where} has {len(names)} columns instead of one.")
    return np.asarray(other.column(names[0]))
