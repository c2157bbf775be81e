"""File formats, and objects of other libraries, that can be read as tables and written."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kdmaps.data.formats import arrays, parquet, text, trajectories
from kdmaps.data.formats.base import Writer, made_by
from kdmaps.data.formats.descriptors import check_descriptor
from kdmaps.data.formats.trajectories import open_trajectory
from kdmaps.data.table import Table, join
from kdmaps.exceptions import ArgumentError
from kdmaps.language import Either
from kdmaps.utils.optional import optional
from kdmaps.utils.types import PathLike


class Format(NamedTuple):
    """How files with one suffix are read and written."""

    open: Callable[..., Table]  # takes a path, and the name of an array (`named_arrays`) or a header (`text`)
    write: Writer | None = None  # returned by `make_writer`
    needs: tuple[str, str, str] | None = None  # the package that both import, as arguments of `optional`
    named_arrays: bool = False  # for files that contain named arrays
    text: bool = False  # for files that may have a header

    def check_installed(self) -> None:
        """Raise ImportError, with the extra to install, if the package of this format is missing."""
        if self.needs:
            optional(*self.needs)


#: Formats by suffix. Trajectories of any suffix are recognised by their topology.
FORMATS = {
    ".csv": Format(text.open_text, text.write_csv, text=True),
    **dict.fromkeys((".tsv", ".txt", ".dat"), Format(text.open_text, text=True)),
    ".parquet": Format(
        parquet.open_parquet, parquet.write_parquet, needs=("pyarrow.parquet", "tables", "Parquet files")
    ),
    ".npy": Format(arrays.open_npy, arrays.write_npy),
    ".npz": Format(arrays.open_npz, arrays.write_npz, named_arrays=True),
    ".zarr": Format(arrays.open_zarr, needs=("zarr", "tables", "Zarr directories"), named_arrays=True),
}
#: Objects by library and classes, with the function that converts one to a Table.
OBJECTS: list[tuple[str, tuple[str, ...], Callable[[Any], Table]]] = [
    ("zarr", ("Array",), arrays.from_stored),
    ("h5py", ("Dataset",), arrays.from_stored),
    ("mdtraj", ("Trajectory",), trajectories.from_mdtraj),
    ("MDAnalysis", ("Universe", "AtomGroup"), trajectories.from_mdanalysis),
]
#: Suffixes of spreadsheets, which are not read.
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
#: Suffixes, without the dot, of formats that can be written.
TABLE_FORMATS = tuple(suffix.removeprefix(".") for suffix, known in FORMATS.items() if known.write)


def object_reader(X: Any) -> Callable[[Any], Table] | None:
    """Return the function that reads X, if it is an object of a known library."""
    return next((read for module, classes, read in OBJECTS if made_by(X, module, *classes)), None)


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask array or data frame."""
    return made_by(X, "dask.array", "Array") or made_by(X, "dask.dataframe", "DataFrame")


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
    descriptor : str, default="heavy-atoms"
        Columns computed from a trajectory; several are joined by "+". "heavy-atoms" are the coordinates of all atoms
        except hydrogen, superposed on the first frame of `reference`, "atoms:SELECTION" of other atoms. "dihedrals"
        are cosine and sine of φ and ψ, "dihedrals:phi,psi,omega,chi1" of these (chi: χ1 to χ5). "distances:SELECTION"
        are the distances between all pairs of atoms (by default all except hydrogen), "contacts:SELECTION" the smallest
        distances between heavy atoms of residues three or more apart. Selections are in the language of mdtraj.
    reference : path-like, optional
        Trajectory with the frame of reference; by default `path`.
    """
    path = Path(path)
    if stride < 1:
        raise ValueError(f"stride must be 1 or more, got {stride}.")
    if not path.exists():
        remedy = " Remove the quotes, so that the shell expands the *." if "*" in str(path) else ""
        raise FileNotFoundError(f"{path} does not exist.{remedy}")
    check_descriptor(descriptor)
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
        advice = Either(
            "For a trajectory, give its topology; for other data, pass a callable that returns an iterator of chunks.",
            "For a trajectory, give its --topology.",
        )
        if path.suffix.lower() in SPREADSHEETS:
            advice = Either(
                f"Read it with pandas.read_excel({str(path)!r}) and give the data frame.",
                "Save the sheet as .csv, with one line of column names, and give that file.",
            )
        raise ArgumentError(
            "{path}: unknown format {suffix!r}; known are {formats}. {remedy}",
            path=path,
            suffix=path.suffix,
            formats=", ".join(FORMATS),
            remedy=advice,
        )
    if table.n_samples == 0:
        raise ValueError(f"{path} contains no samples.")
    return table.with_times().every(stride)


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


def make_writer(suffix: str) -> Writer:
    """Return the function (file, values, names, extras) that writes a table in the format of a suffix.

    The columns of `extras` come first. Text has ten significant digits; other formats store values exactly. A `.npy`
    file contains only the values.

    Parameters
    ----------
    suffix : str
        Such as ".csv".
    """
    known = FORMATS.get(suffix)
    if known is None or known.write is None:
        endings = ", ".join(f".{name}" for name in TABLE_FORMATS)
        raise ValueError(f"Tables cannot be written with the suffix {suffix!r}; known are {endings}.")
    known.check_installed()
    return known.write
