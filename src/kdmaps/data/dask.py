"""Samples in Dask arrays and data frames: workers sum their blocks, and the client receives one sum.

A worker reduces each of its blocks to Moments (about p² numbers, whatever the number of rows). These are added up in a
tree on the workers, and the client solves the p×p problem. An active `distributed.Client` is used; otherwise Dask's
threads or processes. Every task can be recomputed from the graph, so the loss of a worker only costs time.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import get_scheduler
from dask.delayed import Delayed, delayed

from kdmaps.data.formats.arrays import write_rows
from kdmaps.data.sources import ArraySource, Form, Part, Source, as_rows, check_finite
from kdmaps.utils.threads import n_threads, one_blas_thread, single_thread, slices
from kdmaps.utils.types import PathLike

#: Sums of a block as plain arrays (`Form.pack`).
Sums = tuple[np.ndarray, ...]
#: Number of sums added by one task of the tree.
BRANCHES = 8
#: Minimum number of rows in a block of a subsample; fewer are not worth a task.
MIN_BLOCK_ROWS = 5_000
#: Number of blocks computed ahead by `_fetch` for each thread of the workers.
BLOCKS_AHEAD = 2


class DaskSource(Source):
    """Rows of a Dask array or data frame; unknown lengths of blocks are computed when row numbers are needed."""

    many_passes = True
    has_rows = True

    def __init__(self, X: Any):
        self.array: Any = X
        if not isinstance(X, da.Array):
            names = list(X.columns)
            self.feature_names: list[str] | None = names if all(isinstance(name, str) for name in names) else None
            self.array = X.to_dask_array()
        if self.array.ndim != 2 or self.array.dtype.kind not in "fiub" or np.isnan(self.array.shape[1]):
            raise ValueError(
                f"X must be a Dask array of numbers with two dimensions, got {self.array.dtype} of shape "
                f"{self.array.shape}; reshape it to (n_samples, n_features) and drop columns that are not numbers."
            )
        if self.array.shape[1] == 0:
            raise ValueError("Found array with 0 feature(s) in X, while a minimum of 1 is required.")
        if self.array.numblocks[1] > 1:
            self.array = self.array.rechunk({1: -1})
        self.n_features: int = self.array.shape[1]
        # A client or a setting may be local to the calling thread; the threads of a search need it too.
        self._get = get_scheduler(collections=[self.array])
        self._lock = threading.Lock()
        self._held: dict[int, tuple[Any, list[Delayed]]] = {}

    # --- blocks -------------------------------------------------------------------------------------------------------
    @cached_property
    def _blocks(self) -> list[Delayed]:
        return self.array.to_delayed().ravel().tolist()

    @cached_property
    def _parts(self) -> list[slice]:
        """Rows of each block."""
        lengths = self.array.chunks[0]
        if np.isnan(lengths).any():
            lengths = self._compute([delayed(len)(block) for block in self._blocks])
        ends = np.cumsum(lengths).tolist()
        if not ends or ends[-1] == 0:
            raise ValueError("Found array with 0 sample(s) in X, while a minimum of 1 is required.")
        return [slice(start, stop) for start, stop in zip([0, *ends], ends, strict=False)]

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return self._parts[-1].stop

    def parts(self, size: int, rows: np.ndarray | None = None) -> Iterator[Part]:
        assert rows is None  # sums over sets of rows are split by blocks (`moments`)
        for part, block in zip(self._parts, self._blocks, strict=True):
            (values,) = self._compute([delayed(_rows)(block, part.start)])
            for cut in slices(len(values), size):
                yield slice(part.start + cut.start, part.start + cut.stop), values[cut]

    def read(self, part: Any) -> Part:
        return part

    def take(self, rows: np.ndarray) -> np.ndarray:
        tasks = []
        for part, block in zip(self._parts, self._blocks, strict=True):
            first, last = np.searchsorted(rows, (part.start, part.stop))
            if first < last:
                every = last - first == part.stop - part.start
                chosen = slice(None) if every else rows[first:last] - part.start
                tasks.append(delayed(_rows)(block, part.start, chosen))
        return np.concatenate(self._compute(tasks))

    def subset(self, X: np.ndarray) -> Source:
        rows = max(MIN_BLOCK_ROWS, -(-len(X) // self._n_threads))
        with self._explained():
            return DaskSource(dask.persist(da.from_array(X, chunks=(rows, -1)), scheduler=self._get)[0])

    def paired(self, lag: int, rows: tuple[np.ndarray, np.ndarray] | None) -> Source:
        assert rows is not None  # the lengths of the blocks are known
        array, (starts, ends) = self._sized, rows
        if len(starts) == self.n_samples - lag:  # one trajectory: slices are cheaper than row numbers
            first, second = array[:-lag], array[lag:]
        else:
            first, second = array[starts], array[ends]
        return DaskSource(da.concatenate([first, second.rechunk({0: first.chunks[0]})], axis=1))

    @property
    def _sized(self) -> da.Array:
        """The array, with the lengths of its blocks."""
        if not np.isnan(self.array.chunks[0]).any():
            return self.array
        shapes = [(part.stop - part.start, self.n_features) for part in self._parts]
        blocks = zip(self._blocks, shapes, strict=True)
        return da.concatenate([da.from_delayed(block, shape, self.array.dtype) for block, shape in blocks])

    # --- work on the blocks -------------------------------------------------------------------------------------------
    def moments(
        self,
        form: Form,
        basis: Any,
        sample_weight: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        sets: Sequence[tuple[int, int] | None] = (None,),
        **options: Any,
    ) -> list[Any]:
        options.pop("kept", None)  # matrices of the client do not count for the limit of a worker
        shared = delayed((basis, tuple(sets), options), traverse=False)
        columns = [
            self._spread(sample_weight, lambda part: sample_weight[part]),  # type: ignore[index]
            self._spread(labels, lambda part: labels[part]),  # type: ignore[index]
            self._spread(form, form.part),
        ]
        tasks = [
            delayed(_block_sums)(block, part.start, shared, *others)
            for block, part, *others in zip(self._blocks, self._parts, *columns, strict=True)
            if part.start < part.stop
        ]
        while len(tasks) > 1:
            tasks = [delayed(_add)(tasks[i : i + BRANCHES]) for i in range(0, len(tasks), BRANCHES)]
        (total,) = self._compute(tasks)
        return form.unpack(total)

    def project(self, basis: Any, factors: np.ndarray, size: int, out: PathLike | None = None) -> Any:
        """Return a Dask array, not yet computed; with `out`, compute and write it."""
        dtype = self.array.dtype if self.array.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        values = self.array.map_blocks(
            _project,
            delayed(basis, traverse=False),
            factors,
            chunks=(self.array.chunks[0], (len(factors),)),
            meta=np.empty((0, 0), dtype),
        )
        return values if out is None else write_rows(out, self._fetch(values))

    def _fetch(self, values: da.Array) -> Iterator[np.ndarray]:
        blocks = values.to_delayed().ravel().tolist()
        for part in slices(len(blocks), BLOCKS_AHEAD * self._n_threads):
            yield from self._compute(blocks[part])

    def rowwise(self, function: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray:
        shared = delayed(arguments, traverse=False)
        return np.concatenate(self._compute([delayed(_apply)(function, block, shared) for block in self._blocks]))

    def _spread(self, whole: Any, cut: Callable[[slice], Any]) -> list[Any]:
        """Split an object with one entry per row by blocks, and send it to the workers once for all candidates."""
        if whole is None:
            return [None] * len(self._parts)
        with self._lock:
            if id(whole) not in self._held:
                if cut(slice(0)) is whole:  # independent of rows
                    pieces = [delayed(whole, traverse=False)] * len(self._parts)
                else:
                    pieces = [delayed(cut(part), traverse=False) for part in self._parts]
                if self._client is not None:
                    with self._explained():
                        pieces = self._client.persist(pieces)
                self._held[id(whole)] = whole, pieces  # keeping the object keeps its id unique
            return self._held[id(whole)][1]

    # --- the scheduler ------------------------------------------------------------------------------------------------
    @property
    def _client(self) -> Any:
        """The `distributed.Client`, or None for a scheduler inside this process."""
        owner = getattr(self._get, "__self__", None)
        return owner if hasattr(owner, "persist") else None

    @property
    def _n_threads(self) -> int:
        """Threads of all workers."""
        if self._client is None:
            return n_threads()
        with self._explained():
            return max(1, sum(self._client.nthreads().values()))

    @property
    def n_callers(self) -> int:
        # One more, whose blocks are summed while the client solves.
        return max(n_threads(), -(-self._n_threads // len(self._parts)) + 1)

    def _compute(self, tasks: list[Delayed]) -> tuple[Any, ...]:
        with self._explained():
            return dask.compute(*tasks, scheduler=self._get)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Convert errors of the cluster to messages with a remedy."""
        if self._client is None:
            yield
            return
        from distributed import CancelledError, KilledWorker
        from distributed.comm import CommClosedError

        try:
            if self._client.status != "running":
                raise CommClosedError(f"the client is {self._client.status}")
            yield
        except (CancelledError, CommClosedError) as error:
            raise ConnectionError(
                "The connection to the Dask scheduler was lost; nothing was changed or written. Start a new Client and "
                "call again (a search with a checkpoint continues from it)."
            ) from error
        except KilledWorker as error:
            raise RuntimeError(
                "Every worker that computed a certain block of X died, most likely for lack of memory; rechunk X into "
                "smaller blocks, or give the workers more memory."
            ) from error


# --- tasks, which run on a worker -------------------------------------------------------------------------------------
@contextmanager
def _one_core() -> Iterator[None]:
    """Use one core, as Dask assumes for a task: neither BLAS nor the chunk loop start threads."""
    with one_blas_thread(), single_thread():
        yield


def _rows(block: Any, start: int, chosen: slice | np.ndarray = slice(None)) -> np.ndarray:
    rows = as_rows(block, 0)
    numbers = np.arange(start, start + len(rows))
    check_finite(rows[chosen], numbers[chosen])
    return rows[chosen]


def _apply(function: Callable[..., np.ndarray], block: Any, arguments: tuple[Any, ...]) -> np.ndarray:
    return function(as_rows(block, 0), *arguments)


def _block_sums(
    block: Any, start: int, shared: tuple[Any, ...], weight: np.ndarray | None, labels: np.ndarray | None, form: Form
) -> Sums:
    basis, sets, options = shared
    rows = ArraySource(_rows(block, start), checked=True)
    with _one_core():
        return form.pack(rows.moments(form, basis, weight, labels, sets, **options))


def _add(parts: list[Sums]) -> Sums:
    totals = [np.array(column) for column in parts[0]]  # copies: results of tasks must not be changed
    for part in parts[1:]:
        for total, column in zip(totals, part, strict=True):
            total += column
    return tuple(totals)


def _project(block: Any, basis: Any, factors: np.ndarray, block_info: Any = None) -> np.ndarray:
    rows = as_rows(block, 0)
    start = block_info[0]["array-location"][0][0]
    try:
        check_finite(rows, slice(0, len(rows)) if np.isnan(start) else slice(int(start), int(start) + len(rows)))
    except ValueError as error:
        if np.isnan(start):
            raise ValueError(f"Block {block_info[0]['chunk-location'][0]}: {error}") from None
        raise
    with _one_core():
        pieces = [
            basis.features(np.asarray(rows[cut], dtype=np.float64)) for cut in slices(len(rows), basis.chunk_rows)
        ]
    values = np.concatenate(pieces) if pieces else np.empty((0, len(factors)))
    return (values * factors).astype(rows.dtype, copy=False)
