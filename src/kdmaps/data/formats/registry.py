"""Registry of file formats and of objects of other libraries that can be read and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kdmaps.data.formats import arrays, parquet, text, trajectories, zarr
from kdmaps.data.formats.base import Writer, made_by
from kdmaps.data.table import Table
from kdmaps.utils.optional import optional


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
    ".zarr": Format(zarr.open_zarr, needs=("zarr", "tables", "Zarr directories"), named_arrays=True),
}
#: Objects by library and classes, with the function that converts one to a Table.
OBJECTS: list[tuple[str, tuple[str, ...], Callable[[Any], Table]]] = [
    ("zarr", ("Array",), zarr.from_stored),
    ("h5py", ("Dataset",), zarr.from_stored),
    ("mdtraj", ("Trajectory",), trajectories.from_mdtraj),
    ("MDAnalysis", ("Universe", "AtomGroup"), trajectories.from_mdanalysis),
]
#: Suffixes, without the dot, of formats that can be written.
TABLE_FORMATS = tuple(suffix.removeprefix(".") for suffix, known in FORMATS.items() if known.write)


def object_reader(X: Any) -> Callable[[Any], Table] | None:
    """Return the function that reads X, if it is an object of a known library."""
    return next((read for module, classes, read in OBJECTS if made_by(X, module, *classes)), None)


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask array or data frame."""
    return made_by(X, "dask.array", "Array") or made_by(X, "dask.dataframe", "DataFrame")


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
