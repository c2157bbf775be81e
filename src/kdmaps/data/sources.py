"""The protocol of sources, the source of arrays, and random samples of rows.

A source is rows of numbers that are read in parts. Only a few parts are in memory at a time, so data may be larger than
memory. `kdmaps.data.inputs.as_source` makes a source of anything that an estimator accepts.
"""

from __future__ import annotations

import mmap
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from kdmaps.checks import Phrase, or_fewer
from kdmaps.data.formats.arrays import write_rows
from kdmaps.data.formats.base import block_rows, made_by
from kdmaps.data.formats.trajectories import coordinates
from kdmaps.exceptions import Undetermined
from kdmaps.utils.files import DISK_FULL
from kdmaps.utils.frames import refuse_masked
from kdmaps.utils.threads import map_ordered, n_threads, slices
from kdmaps.utils.types import PathLike
from kdmaps.utils.validation import not_finite

#: Bytes read from a memory-mapped file before its pages are released.
MAPPED_BYTES = 16 * 2**20
#: Numbers side by side in which the smallest and the largest of each column are found.
FOLDED = 1024
#: With fewer samples, and fewer columns, the kernels of a search take turns: each step takes less than a millisecond,
#: and threads would mostly wait for the interpreter, on a busy machine for a time slice of the system.
FEWEST_FOR_THREADS, MANY_COLUMNS = 2_000, 100
#: Bytes that the system maps around a single row.
FAULT_BYTES = 2**16
#: Number of samples that determine the median bandwidth, the landmarks and the origin of larger data.
PREVIEW_SAMPLES = 10_000
#: Samples that take more bytes than this are copied to a temporary file instead of memory.
IN_MEMORY_BYTES = 2**26

Part = tuple[Any, np.ndarray]


class Source(ABC):
    """Samples in rows that can be read in parts, summed, sampled and mapped to modes."""

    n_features: int  #: Number of columns d.
    n_samples: int | None = None  #: Number of rows; None for a stream that has not been read to its end.
    feature_names: list[str] | None = None  #: Names of the columns, if any.
    #: Returns the times of the rows, or None if the rows are at equal steps.
    times: Callable[[], np.ndarray | None] | None = None
    #: Unit of the times, "" if unknown; None if they only show whether rows are at equal steps.
    time_unit: str | None = None
    #: Returns a description of the first gap between rows of a file, such as an empty line, or None.
    gap: Callable[[], str | None] | None = None
    many_passes = False  #: True if hundreds of passes over all rows, as in a search, are affordable.
    has_rows = False  #: True if rows can be read by their numbers, as needed for folds and blocks.

    @property
    def shape(self) -> tuple[int | None, int]:
        """(n_samples, n_features)."""
        return self.n_samples, self.n_features

    def parts(self, size: int, rows: np.ndarray | None = None) -> Iterable[Any]:
        """Return consecutive parts of `size` rows, the last one shorter, as arguments of `read`.

        Sources with row numbers can be restricted to `rows`.
        """
        if rows is None:
            return list(slices(self.n_samples or 0, size))
        return [rows[part] for part in slices(len(rows), size)]

    @abstractmethod
    def read(self, part: Any) -> Part:
        """Return the index of a part (a slice or an array of row numbers) and its rows, which are finite."""

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows with these numbers, which are in ascending order."""
        return self.read(rows)[1]

    def sample(
        self,
        size: int | None,
        random_state: np.random.RandomState,
        weight: np.ndarray | None = None,
        typical: bool = True,
        run: int = 1,
    ) -> Sample:
        """Draw `size` rows of positive weight, or all rows if there are at most `size` or it is None.

        All subsets are equally likely. With a `run`, so many consecutive rows are drawn together; the last run may be
        shorter. The result depends only on the rows and the random state, not on how rows are stored or split into
        chunks. Without `typical`, a stream that can be read only once returns its first rows.
        """
        rows = draw_rows(self.n_samples or 0, size, random_state, weight, run)
        return Sample(rows, self.take(rows), None if weight is None else weight[rows])

    @property
    def n_callers(self) -> int:
        """Number of concurrent calls of `moments` that keep all cores, or all workers, busy; 1 for few samples."""
        few = self.n_samples is not None and self.n_samples < FEWEST_FOR_THREADS
        return 1 if few and self.n_features < MANY_COLUMNS else n_threads()

    def moments(
        self,
        form: Form,
        basis: Any,
        sample_weight: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        sets: Sequence[tuple[int, int] | None] = (None,),
        **options: Any,
    ) -> list[Any]:
        """Return the sums of a form over several sets of rows, one result for each.

        A set (j, c) is the rows with `labels[:, j] == c`; None is all rows. Options are those of `EnergyForm.moments`.
        """
        rows = (None if chosen is None else np.flatnonzero(labels[:, chosen[0]] == chosen[1]) for chosen in sets)  # type: ignore[index]
        return [form.moments(basis, self, sample_weight, part, **options) for part in rows]

    def project(self, basis: Any, factors: np.ndarray, size: int, out: PathLike | None = None) -> Any:
        """Return the features of a basis at all rows, times `factors`, in the floating type of the rows.

        The rows are read in chunks of `size`. If `out` is given, features are written to this `.npy` file and mapped
        from it.
        """

        def work(part: Any) -> np.ndarray:
            _, chunk = self.read(part)
            values = basis.features(np.asarray(chunk, dtype=np.float64)) * factors
            return values.astype(chunk.dtype if chunk.dtype.kind == "f" else np.float64, copy=False)

        parts = map_ordered(self.parts(size), work)
        return np.concatenate(list(parts)) if out is None else write_rows(out, parts)

    def rowwise(self, function: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray:
        """Apply `function(rows, *arguments)`, which returns one value per row, to all rows."""
        return np.concatenate([function(self.read(part)[1], *arguments) for part in self.parts(2**16)])

    def subset(self, X: np.ndarray) -> Source:
        """Return a source of some of the rows in the same place: in memory or on the workers."""
        return ArraySource(X, checked=True)

    def thinned(
        self, size: int | None, random_state: np.random.RandomState, weight: np.ndarray | None = None, run: int = 1
    ) -> tuple[np.ndarray, Source, np.ndarray | None]:
        """Draw rows as in `sample`; return their numbers, a source of them and their weights."""
        rows, X, weight = self.sample(size, random_state, weight, run=run)
        return rows, self.subset(X), weight

    def paired(self, lag: int, rows: tuple[np.ndarray, np.ndarray] | None) -> Source:
        """Return a source of pairs of rows with 2d columns, `lag` rows apart.

        `rows` are the first and second rows of the pairs; None means all pairs of a stream of unknown length.
        """
        raise NotImplementedError

    def bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the smallest and the largest value of each column, or None if this needs another pass."""
        return None

    @property
    def rows_for_splitters(self) -> np.ndarray:
        """X for the splitters of scikit-learn, most of which use only its length."""
        return np.broadcast_to(0.0, (self.n_samples or 0, 1))

    def content(self, preview: Sample) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and row numbers that identify the data: all rows of an array, otherwise a preview."""
        return preview.X, preview.rows


class Form(Protocol):
    """Terms of sums over rows (see `kdmaps.forms`)."""

    def moments(self, basis: Any, source: Source, *args: Any, **options: Any) -> Any:
        """Sum over the rows of a source in this process."""

    def part(self, rows: slice) -> Form:
        """Return the form for these rows only."""

    def pack(self, sets: Iterable[Any]) -> tuple[np.ndarray, ...]:
        """Return the sums of several sets of rows as arrays that can be added."""

    def unpack(self, packed: Any) -> list[Any]:
        """Invert `pack`."""


class Sample(NamedTuple):
    """Some rows of a source, in their order."""

    rows: np.ndarray
    X: np.ndarray
    weight: np.ndarray | None

    def take(self, kept: np.ndarray) -> Sample:
        """Return some of these rows."""
        return Sample(self.rows[kept], self.X[kept], None if self.weight is None else self.weight[kept])

    def thinned(self, most: int, seed: int) -> Sample:
        """Return at most this many of these rows, drawn at random, in their order."""
        n = len(self.rows)
        return self if n <= most else self.take(np.sort(np.random.RandomState(seed).permutation(n)[:most]))

    def counted(self, n_components: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the rows of positive weight, and their weights; raise if they are too few for so many modes."""
        X, weight = self.X, self.weight
        if weight is not None:
            X, weight = X[weight > 0], weight[weight > 0]
        if len(X) <= n_components:
            raise too_few(f"sample(s) of X{'' if weight is None else ' (of positive weight)'}", X.shape, n_components)
        return X, weight


#: Rows for each mode that messages ask for, if there are too few for any fit.
ROWS_PER_MODE = 10


def too_few(rows: str, shape: tuple[int, ...], n_components: int) -> Undetermined:
    """Return an error about a table with too few rows, as messages call them, for so many modes."""
    least = ROWS_PER_MODE * n_components
    return Undetermined(
        "{count} {rows} are too few for {modes} mode(s); give at least {least}{fewer}.{transposed}",
        count=shape[0],
        rows=rows,
        modes=n_components,
        least=least,
        fewer=or_fewer(shape[0] // ROWS_PER_MODE),
        transposed=Phrase("transposed", {"columns": shape[1]}) if shape[1] >= least else "",
    )


class ArraySource(Source):
    """A two-dimensional array in memory or mapped from a file.

    Parameters
    ----------
    array : ndarray or memmap
    checked : bool
        Skip the test for NaN and infinity. Otherwise an array in memory is tested once, a mapped file at every read.
    """

    has_rows = True

    def __init__(self, array: np.ndarray, checked: bool = False):
        if array.ndim != 2 or array.dtype.kind not in "fiub":
            raise ValueError(
                f"X must be an array of numbers with two dimensions, got {array.dtype} of shape {array.shape}; reshape "
                "it to (n_samples, n_features)."
            )
        for number, what in zip(array.shape, ("sample", "feature"), strict=True):
            if number == 0:
                raise ValueError(f"Found array with 0 {what}(s) in X, while a minimum of 1 is required.")
        self.array: np.ndarray = array
        self._checked = checked
        self.n_samples: int | None = array.shape[0]
        self.n_features: int = array.shape[1]
        self._map: mmap.mmap | None = getattr(array, "_mmap", None)
        self.many_passes: bool = self._map is None
        # A private mapping ("c") may contain changes that are not in the file.
        if getattr(array, "mode", "c") not in ("r", "r+") or not hasattr(mmap, "MADV_DONTNEED"):
            self._map = None
        self._mapped = 0

    def read(self, part: Any) -> Part:
        chunk = self.array[part]
        if not self._checked:
            if self.many_passes:
                check_finite(self.array, slice(0, len(self.array)), self.feature_names)
                self._checked = True
            else:
                check_finite(chunk, part, self.feature_names)
        if self._map is not None:
            self._mapped += chunk.nbytes if isinstance(part, slice) else len(part) * FAULT_BYTES
            if self._mapped > MAPPED_BYTES:  # the pages stay in the cache of the system
                self._mapped = 0
                self._map.madvise(mmap.MADV_DONTNEED)
        return part, chunk

    def take(self, rows: np.ndarray) -> np.ndarray:
        if self.many_passes:
            return self.read(slice(None) if len(rows) == len(self.array) else rows)[1]
        return np.concatenate([self.read(part)[1] for part in self.parts(2**8, rows)])  # few pages at a time

    def bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        if not self.many_passes:
            return None
        n, d = self.array.shape
        k = max(1, FOLDED // d)  # rows side by side: numpy reduces long rows faster
        whole = n // k * k if self.array.flags.c_contiguous else 0
        rest, folded = self.array[whole:], self.array[:whole].reshape(-1, k * d)
        parts = [extreme(axis=0).reshape(-1, d) for extreme in (folded.min, folded.max)] if whole else [rest, rest]
        return np.vstack([parts[0], rest]).min(axis=0), np.vstack([parts[1], rest]).max(axis=0)

    @property
    def rows_for_splitters(self) -> np.ndarray:
        return self.array

    def content(self, preview: Sample) -> tuple[np.ndarray, np.ndarray]:
        return self.array, np.arange(len(self.array))


def check_finite(rows: np.ndarray, index: slice | np.ndarray, names: Sequence[str] | None = None) -> None:
    """Raise a ValueError with the row numbers and columns of NaN or infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        if rows.dtype.kind != "f" or np.isfinite(rows.sum()):  # finite values can have an infinite sum
            return
    numbers = np.arange(index.start, index.stop) if isinstance(index, slice) else index
    if not np.isfinite(rows).all():
        raise not_finite(rows, numbers, names)


def as_rows(chunk: Any, number: int) -> np.ndarray:
    """Return a chunk as a two-dimensional floating array."""
    refuse_masked(f"Chunk {number} of X", chunk)
    rows = np.asarray(coordinates(chunk) if made_by(chunk, "mdtraj", "Trajectory") else chunk)
    if rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise ValueError(
            f"Chunk {number} of X must be an array of numbers with two dimensions, got {type(chunk).__name__} "
            f"({rows.dtype} of shape {rows.shape}); each chunk is some rows of (n_samples, n_features)."
        )
    # Data frames are not in C order; in one order, sums have the same rounding for every type of chunk.
    return np.ascontiguousarray(rows, dtype=None if rows.dtype in (np.float32, np.float64) else np.float64)


def gather(source: Source) -> np.ndarray:
    """Return all rows as one array, mapped from an unnamed temporary file if it is large.

    Parameters
    ----------
    source : Source
    """
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
        raise OSError(f"{place} is too full for a copy of the samples; set TMPDIR to another directory.") from error
    return np.array(mapped) if mapped.nbytes <= IN_MEMORY_BYTES else mapped


# --- random row numbers -----------------------------------------------------------------------------------------------
def weights_at(weight: np.ndarray, index: slice | np.ndarray) -> np.ndarray:
    """Return the weights of some rows of a stream, or raise if there are more rows than weights."""
    last = index.stop - 1 if isinstance(index, slice) else index.max(initial=-1)
    if last >= len(weight):
        raise ValueError(f"sample_weight has {len(weight)} entries, but X has more samples; give one for each.")
    return weight[index]


def counted_rows(part: slice, weight: np.ndarray | None) -> np.ndarray:
    """Return the row numbers of a part that have a positive weight."""
    rows = np.arange(part.start, part.stop)
    return rows if weight is None else rows[weights_at(weight, part) > 0]


def draw_rows(
    n_samples: int,
    size: int | None,
    random_state: np.random.RandomState,
    weight: np.ndarray | None = None,
    run: int = 1,
) -> np.ndarray:
    """Draw the row numbers of `Source.sample`."""
    if size is None or n_samples <= size:
        return np.arange(n_samples)
    pieces = ((counted_rows(part, weight),) for part in slices(n_samples, 2**16))
    return draw_by_keys(pieces, size, random_state.randint(2**31), run)[0]


def draw_by_keys(
    pieces: Iterable[tuple[np.ndarray, ...]], size: int, seed: int, run: int = 1
) -> tuple[np.ndarray, ...]:
    """Draw rows, tuples of columns, without replacement: the `size` rows with the smallest uniform random keys.

    Each `run` of consecutive rows shares one key.
    """
    rng = np.random.default_rng(seed)
    kept: tuple[np.ndarray, ...] = ()
    keys, bound = np.empty(0), 1.0
    rest = np.empty(0)  # keys of a run that continues in the next piece
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
            # The first rows of a run that does not fit: the result must not depend on the pieces.
            smallest[np.flatnonzero(keys == bound)[: size - np.count_nonzero(smallest)]] = True
            keys, kept = keys[smallest], tuple(column[smallest] for column in kept)
    return kept
