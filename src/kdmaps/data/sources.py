"""The protocol of sources, and the source of arrays in memory or mapped from a file.

A source is rows of numbers that are read in parts; nothing here ever holds more than a few parts, so data may be larger
than memory. `kdmaps.data.inputs.as_source` turns whatever an estimator accepts into one.
"""

from __future__ import annotations

import mmap
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from kdmaps.data.formats.arrays import write_rows
from kdmaps.data.formats.base import block_rows, made_by
from kdmaps.data.formats.trajectories import coordinates
from kdmaps.utils.files import DISK_FULL
from kdmaps.utils.threads import map_ordered, n_threads, slices
from kdmaps.utils.types import PathLike
from kdmaps.utils.validation import not_finite

#: Pages of a memory-mapped file are given back after this many bytes.
MAPPED_BYTES = 16 * 2**20
#: The system maps this much around a single row that is read.
FAULT_BYTES = 2**16
#: Samples that decide the median bandwidth, the landmarks and the origin of larger data.
PREVIEW_SAMPLES = 10_000
#: Samples that take more bytes than this are copied to a temporary file, not to memory.
IN_MEMORY_BYTES = 2**26

Part = tuple[Any, np.ndarray]


class Source(ABC):
    """Samples in rows: read in parts, summed, drawn and mapped to modes wherever they are.

    Attributes
    ----------
    n_features : int
        Number of columns d.
    n_samples : int or None
        Number of rows; None for a stream that has not been read to its end yet.
    feature_names : list of str or None
        Names of the columns, where the data have them.
    times : callable or None
        Returns the times of the rows, where the data have them.
    gap : callable or None
        Says where rows of a file are apart, as between trajectories, or returns None if they are nowhere.
    many_passes : bool
        Whether hundreds of passes over all rows, as a search makes, are reasonable.
    has_rows : bool
        Whether rows can be picked by their numbers, as folds and blocks need.
    """

    n_features: int
    n_samples: int | None = None
    feature_names: list[str] | None = None
    times: Callable[[], np.ndarray] | None = None
    gap: Callable[[], str | None] | None = None
    many_passes = False
    has_rows = False

    @property
    def shape(self) -> tuple[int | None, int]:
        """(n_samples, n_features)."""
        return self.n_samples, self.n_features

    @abstractmethod
    def parts(self, size: int) -> Iterable[Any]:
        """Return what `read` turns into consecutive parts of `size` rows, the last one shorter."""

    @abstractmethod
    def read(self, part: Any) -> Part:
        """Return the index of a part (a slice, or an array of row numbers) and its rows, finite, of the right width."""

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows of these numbers, in ascending order, of a source that has row numbers."""
        return self.read(rows)[1]

    @abstractmethod
    def sample(
        self,
        size: int | None,
        random_state: np.random.RandomState,
        weight: np.ndarray | None = None,
        typical: bool = True,
        run: int = 1,
    ) -> Sample:
        """Draw `size` rows of positive weight, all subsets equally likely, or all subsets of runs.

        If there are no more rows, or for None, these are all rows, those of weight 0 too. A run is so many rows one
        after the other, which are drawn together; the last one drawn may be shorter.

        The draw depends on the rows and the random state alone, not on how the rows are stored or cut into chunks.
        If they need not be typical, a stream that can be read only once gives its first rows.
        """

    # --- work on the rows where they are ------------------------------------------------------------------------------
    @property
    def n_callers(self) -> int:
        """Number of callers of `moments` that keep all cores, or all workers, busy."""
        return n_threads()

    def moments(
        self,
        form: Form,
        basis: Any,
        sample_weight: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        sets: Sequence[tuple[int, int] | None] = (None,),
        *,
        engine: str | None = "numba",
        memory_limit: float | None = None,
        kept: int = 0,
    ) -> list[Any]:
        """Sum over the rows of several sets.

        Parameters
        ----------
        form : Form
            What is summed.
        basis : Basis
        sample_weight : ndarray of shape (n_samples,), optional
        labels : ndarray of shape (n_samples, m), optional
        sets : sequence
            A pair (j, c) is the rows with `labels[:, j] == c`; None is all rows.
        engine, memory_limit, kept :
            As in `EnergyForm.moments`.

        Returns
        -------
        list of Moments, one for each set
        """
        rows = (None if chosen is None else np.flatnonzero(labels[:, chosen[0]] == chosen[1]) for chosen in sets)  # type: ignore[index]
        options: dict[str, Any] = {"engine": engine, "memory_limit": memory_limit, "kept": kept}
        return [form.moments(basis, self, sample_weight, part, **options) for part in rows]

    def project(self, basis: Any, factors: np.ndarray, size: int, out: PathLike | None = None) -> Any:
        """Evaluate the features of a basis at all rows, its columns multiplied by `factors`.

        Parameters
        ----------
        basis : Basis
        factors : ndarray of shape (p,)
        size : int
            Rows per chunk.
        out : path, optional
            A `.npy` file to write.

        Returns
        -------
        features : array of shape (n_samples, p)
            In the floating type of the rows; with `out`, mapped from that file.
        """

        def work(part: Any) -> np.ndarray:
            _, chunk = self.read(part)
            values = basis.features(np.asarray(chunk, dtype=np.float64)) * factors
            return values.astype(chunk.dtype if chunk.dtype.kind == "f" else np.float64, copy=False)

        parts = map_ordered(self.parts(size), work)
        return np.concatenate(list(parts)) if out is None else write_rows(out, parts)

    def rowwise(self, function: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray:
        """Return `function(rows, *arguments)`, which has one entry per row, of all rows."""
        return np.concatenate([function(self.read(part)[1], *arguments) for part in self.parts(2**16)])

    def subset(self, X: np.ndarray) -> Source:
        """Return a source of some of the rows, where the others are."""
        return ArraySource(X, checked=True)

    def thinned(
        self, size: int | None, random_state: np.random.RandomState, weight: np.ndarray | None = None, run: int = 1
    ) -> tuple[np.ndarray, Source, np.ndarray | None]:
        """Draw rows as `sample` does, and return their numbers, a source of them and their weights."""
        rows, X, weight = self.sample(size, random_state, weight, run=run)
        return rows, self.subset(X), weight

    def paired(self, lag: int, rows: tuple[np.ndarray, np.ndarray] | None) -> Source:
        """Return a source of pairs of rows, each a row of 2d numbers (`kdmaps.data.pairs.make_pairs`).

        Parameters
        ----------
        lag : int
            Number of rows from the first to the second one.
        rows : (ndarray, ndarray) of int or None
            First and second rows; None, for a stream of unknown length, is all that are `lag` apart.
        """
        raise NotImplementedError

    def bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the smallest and the largest value of each column, where they are at hand."""
        return None

    @property
    def rows_for_splitters(self) -> np.ndarray:
        """The rows as scikit-learn's splitters want them: an array, of which most look at the length only."""
        return np.broadcast_to(0.0, (self.n_samples or 0, 1))

    def content(self, preview: Sample) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and row numbers by which these data are told from others: all of them if they are at hand."""
        return preview.X, preview.rows


class Form(Protocol):
    """What is summed over rows (see `kdmaps.forms`)."""

    def moments(
        self,
        basis: Any,
        source: Source,
        sample_weight: np.ndarray | None = None,
        rows: np.ndarray | None = None,
        *,
        engine: str | None = "numba",
        memory_limit: float | None = None,
        kept: int = 0,
    ) -> Any:
        """Sum over the rows of a source in this process."""

    def part(self, rows: slice) -> Form:
        """Return the form of these rows alone."""

    def pack(self, sets: Iterable[Any]) -> tuple[np.ndarray, ...]:
        """Return the sums of several sets of rows as plain arrays that add up."""

    def unpack(self, packed: Any) -> list[Any]:
        """Invert `pack`."""


class Sample(NamedTuple):
    """Some rows of a source, in their order."""

    rows: np.ndarray
    X: np.ndarray
    weight: np.ndarray | None


class ArraySource(Source):
    """An array of two dimensions in memory, or mapped from a file: any rows can be read at any time.

    Parameters
    ----------
    array : ndarray or memmap
    checked : bool
        Whether all values are known to be finite.
    """

    array: np.ndarray
    n_samples: int | None
    n_features: int

    def __init__(self, array: np.ndarray, checked: bool = False):
        if array.ndim != 2 or array.dtype.kind not in "fiub":
            raise ValueError(
                f"X must be an array of numbers with two dimensions, got {array.dtype} of shape {array.shape}; reshape "
                "it to (n_samples, n_features)."
            )
        self.array, self._checked = array, checked
        self.n_samples, self.n_features = array.shape
        self.has_rows = True
        _check_size(self.n_samples, self.n_features)
        self._map: mmap.mmap | None = getattr(array, "_mmap", None)
        self.many_passes: bool = self._map is None
        # A private mapping ("c") may hold changes that exist nowhere else.
        if getattr(array, "mode", "c") not in ("r", "r+") or not hasattr(mmap, "MADV_DONTNEED"):
            self._map = None
        self._mapped = 0

    def parts(self, size: int, rows: np.ndarray | None = None) -> list[Any]:
        if rows is None:
            return list(slices(self.array.shape[0], size))
        return [rows[part] for part in slices(len(rows), size)]

    def read(self, part: Any) -> Part:
        chunk = self.array[part]
        if not self._checked:
            check_finite(chunk, part, self.feature_names)
        if self._map is not None:
            self._mapped += chunk.nbytes if isinstance(part, slice) else len(part) * FAULT_BYTES
            if self._mapped > MAPPED_BYTES:  # the pages stay in the system's cache, but are no longer ours
                self._mapped = 0
                self._map.madvise(mmap.MADV_DONTNEED)
        return part, chunk

    def sample(
        self,
        size: int | None,
        random_state: np.random.RandomState,
        weight: np.ndarray | None = None,
        typical: bool = True,
        run: int = 1,
    ) -> Sample:
        n = self.array.shape[0]
        index = draw_rows(n, size, random_state, weight, run)
        if self.many_passes:
            X = self.array if len(index) == n else self.read(index)[1]
        else:  # few rows at a time, so that few pages are mapped at a time
            X = np.concatenate([self.read(part)[1] for part in self.parts(2**8, index)])
        return Sample(index, X, None if weight is None else weight[index])

    def paired(self, lag: int, rows: tuple[np.ndarray, np.ndarray] | None) -> Source:
        from kdmaps.data.pairs import ArrayPairs

        assert rows is not None  # the length of an array is known
        return ArrayPairs(self, *rows)

    def bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        return (self.array.min(axis=0), self.array.max(axis=0)) if self.many_passes else None

    @property
    def rows_for_splitters(self) -> np.ndarray:
        return self.array

    def content(self, preview: Sample) -> tuple[np.ndarray, np.ndarray]:
        return self.array, np.arange(len(self.array))


def check_finite(rows: np.ndarray, index: slice | np.ndarray, names: Sequence[str] | None = None) -> None:
    """Raise for NaN or infinity, with the numbers of the rows and the names of the columns."""
    with np.errstate(over="ignore", invalid="ignore"):
        if rows.dtype.kind != "f" or np.isfinite(rows.sum()):  # a sum that overflows proves nothing
            return
    numbers = np.arange(index.start, index.stop) if isinstance(index, slice) else index
    if not np.isfinite(rows).all():
        raise ValueError(not_finite(rows, numbers, names, ""))


def _check_size(n_samples: int, n_features: int) -> None:
    for number, what in ((n_samples, "sample"), (n_features, "feature")):
        if number == 0:
            raise ValueError(f"Found array with 0 {what}(s) in X, while a minimum of 1 is required.")


def as_rows(chunk: Any, number: int) -> np.ndarray:
    """Return a chunk as an array of two dimensions and a floating type."""
    rows = np.asarray(coordinates(chunk) if made_by(chunk, "mdtraj", "Trajectory") else chunk)
    if rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise ValueError(
            f"Chunk {number} of X must be an array of numbers with two dimensions, got {type(chunk).__name__} "
            f"({rows.dtype} of shape {rows.shape}); each chunk holds some rows of (n_samples, n_features)."
        )
    # In C order, as frames are not: the order of a sum, and so its rounding, does not depend on what a chunk was.
    return np.ascontiguousarray(rows, dtype=None if rows.dtype in (np.float32, np.float64) else np.float64)


def weights_at(weight: np.ndarray, index: slice | np.ndarray) -> np.ndarray:
    """Return the weights of some rows of a stream, which may turn out to be longer than its weights."""
    last = index.stop - 1 if isinstance(index, slice) else index.max(initial=-1)
    if last >= len(weight):
        raise ValueError(f"sample_weight has {len(weight)} entries, but X has more samples; give one for each.")
    return weight[index]


def counted_rows(part: slice, weight: np.ndarray | None) -> np.ndarray:
    """Return the rows of a part that have a positive weight."""
    rows = np.arange(part.start, part.stop)
    return rows if weight is None else rows[weights_at(weight, part) > 0]


def draw_rows(
    n_samples: int,
    size: int | None,
    random_state: np.random.RandomState,
    weight: np.ndarray | None = None,
    run: int = 1,
) -> np.ndarray:
    """`size` random row numbers of positive weight, in order; all of them if there are no more rows, or for None.

    So many rows of a `run`, one after the other, are drawn together.
    """
    if size is None or n_samples <= size:
        return np.arange(n_samples)
    pieces = ((counted_rows(part, weight),) for part in slices(n_samples, 2**16))
    return draw_by_keys(pieces, size, random_state.randint(2**31), run)[0]


def draw_by_keys(
    pieces: Iterable[tuple[np.ndarray, ...]], size: int, seed: int, run: int = 1
) -> tuple[np.ndarray, ...]:
    """Columns of `size` rows with the smallest of independent uniform keys: a uniform draw without replacement.

    Parameters
    ----------
    pieces : iterable of tuples of ndarray
        Columns of equal length.
    size, seed : int
    run : int
        So many consecutive rows have the same key.
    """
    rng = np.random.default_rng(seed)
    kept: tuple[np.ndarray, ...] = ()
    keys, bound = np.empty(0), 1.0
    rest = np.empty(0)  # keys of the rows of the last run that are in the next piece
    for piece in pieces:
        n = len(piece[0])
        more = np.repeat(rng.random(max(0, -(-(n - len(rest)) // run))), run)
        new, rest = np.split(np.concatenate([rest, more]), [n])
        chosen = new < bound
        keys = np.concatenate([keys, new[chosen]])
        columns = tuple(column[chosen] for column in piece)
        kept = tuple(map(np.concatenate, zip(kept, columns, strict=True))) if kept else columns
        if len(keys) > size:
            bound = np.partition(keys, size - 1)[size - 1]
            smallest = keys < bound
            # Of a run that does not fit, the first rows: then no draw depends on how the rows were cut into pieces.
            smallest[np.flatnonzero(keys == bound)[: size - np.count_nonzero(smallest)]] = True
            keys, kept = keys[smallest], tuple(column[smallest] for column in kept)
    return kept


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
        if error.errno not in DISK_FULL:
            raise
        place = tempfile.gettempdir()
        raise OSError(f"{place} has no room for a copy of the samples; set TMPDIR to a directory that has.") from error
    return np.array(mapped) if mapped.nbytes <= IN_MEMORY_BYTES else mapped
