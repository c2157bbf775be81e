"""Samples in Dask arrays and data frames: the workers sum their blocks, the client gets one sum.

A block of samples becomes its Moments (about p² numbers, whatever the number of rows) on the worker that holds it.
These are added up in a tree on the workers, and the p×p problem is solved by the client. An active
`distributed.Client` is used; without one, Dask's own threads or processes are. Every task can be computed again from
the graph, so the loss of a worker costs time and nothing else.
"""

from __future__ import annotations

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
from kdmaps.data.sources import ArraySource, Form, Part, Sample, Source, as_rows, check_finite, draw_rows
from kdmaps.utils.threads import n_threads, one_blas_thread, single_thread, slices
from kdmaps.utils.types import PathLike

#: Sums of a block as plain arrays (`Form.pack`).
Sums = tuple[np.ndarray, ...]
#: Sums that one task of the tree adds up.
BRANCHES = 8
#: A block of a subsample has at least this many rows: fewer are not worth a task.
MIN_BLOCK_ROWS = 5_000
#: Blocks that `fetch` has under way for each thread of the workers.
BLOCKS_AHEAD = 2


class DaskSource(Source):
    """Rows of a Dask array or data frame.

    Parameters
    ----------
    X : dask.array.Array of shape (n_samples, d), or dask.dataframe.DataFrame
        Lengths of blocks that are not known are computed when row numbers matter, which is one more pass.

    Attributes
    ----------
    array : dask.array.Array
        All columns of a row are in one block.
    """

    array: Any

    many_passes = True
    has_rows = True

    def __init__(self, X: Any):
        self.array = X
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
        # Threads of a sweep would not see a client or a setting that is local to the calling thread.
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

    def parts(self, size: int) -> Iterator[Part]:
        for part, block in zip(self._parts, self._blocks, strict=True):
            (rows,) = self._compute([delayed(_rows)(block, part.start)])
            for cut in slices(len(rows), size):
                yield slice(part.start + cut.start, part.start + cut.stop), rows[cut]

    def read(self, part: Any) -> Part:
        return part

    def take(self, rows: np.ndarray) -> np.ndarray:
        tasks = []
        for part, block in zip(self._parts, self._blocks, strict=True):
            first, last = np.searchsorted(rows, (part.start, part.stop))
            if first < last:
                every = last - first == part.stop - part.start
                chosen = slice(None) if every else rows[first:last] - part.start
                tasks.append(delayed(_chosen_rows)(block, chosen, part.start))
        return np.concatenate(self._compute(tasks))

    def sample(
        self,
        size: int | None,
        random_state: np.random.RandomState,
        weight: np.ndarray | None = None,
        typical: bool = True,
        run: int = 1,
    ) -> Sample:
        rows = draw_rows(self.n_samples, size, random_state, weight, run)
        return Sample(rows, self.take(rows), None if weight is None else weight[rows])

    def subset(self, X: np.ndarray) -> Source:
        rows = max(MIN_BLOCK_ROWS, -(-len(X) // self._n_threads))
        with self._explained():
            return DaskSource(dask.persist(da.from_array(X, chunks=(rows, -1)), scheduler=self._get)[0])

    def paired(self, lag: int, rows: tuple[np.ndarray, np.ndarray] | None) -> Source:
        assert rows is not None  # the lengths of the blocks are known
        array, (starts, ends) = self._sized, rows
        if len(starts) == self.n_samples - lag:  # one trajectory: slices need no row numbers
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
        *,
        engine: str | None = "numba",
        memory_limit: float | None = None,
        kept: int = 0,  # matrices of the client, which the limit of a worker does not count
    ) -> list[Any]:
        options = {"engine": engine, "memory_limit": memory_limit}
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
        """Cut what has one entry per row into the parts of the blocks; it travels once, not for every candidate."""
        if whole is None:
            return [None] * len(self._parts)
        with self._lock:
            if id(whole) not in self._held:
                if cut(slice(0)) is whole:  # nothing of it belongs to single rows
                    pieces = [delayed(whole, traverse=False)] * len(self._parts)
                else:
                    pieces = [delayed(cut(part), traverse=False) for part in self._parts]
                if self._client is not None:
                    with self._explained():
                        kept = self._client.persist(list({piece.key: piece for piece in pieces}.values()))
                    by_key = {piece.key: piece for piece in kept}
                    pieces = [by_key[piece.key] for piece in pieces]
                self._held[id(whole)] = whole, pieces  # with the object itself: its number must stay its own
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
        # While one is being solved, the blocks of the next are summed.
        return max(n_threads(), -(-self._n_threads // len(self._parts)) + 1)

    def _compute(self, tasks: list[Delayed]) -> tuple[Any, ...]:
        with self._explained():
            return dask.compute(*tasks, scheduler=self._get)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of the cluster, in words that say what to do."""
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
                "The Dask scheduler was lost, and with it what was being computed; nothing was changed or written. "
                "Start a new Client and call again (a search goes on from its checkpoint, if it has one)."
            ) from error
        except KilledWorker as error:
            raise RuntimeError(
                "A block of X ended every worker that tried it, most likely for lack of memory; rechunk X into smaller "
                "blocks, or give the workers more memory."
            ) from error


# --- tasks: what runs on a worker -------------------------------------------------------------------------------------
class _Limit:
    """A limit of one thread on BLAS while any task runs.

    The limit holds for the whole process, and only the thread that set it can take it back. Tasks come and go in many
    threads, so a thread of its own sets it before the first of them and takes it back after the last one.
    """

    def __init__(self) -> None:
        self._lock, self._running = threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if self._running == 0:
                set_, self._over = threading.Event(), threading.Event()
                self._holder = threading.Thread(target=self._hold, args=(set_, self._over), daemon=True)
                self._holder.start()
                set_.wait()
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                self._over.set()
                self._holder.join()

    @staticmethod
    def _hold(set_: threading.Event, over: threading.Event) -> None:
        with one_blas_thread():
            set_.set()
            over.wait()


_limit = _Limit()


@contextmanager
def _one_core() -> Iterator[None]:
    """Use the one core that Dask counts for a task: neither BLAS nor the chunk loop start threads."""
    with _limit, single_thread():
        yield


def _rows(block: Any, start: int) -> np.ndarray:
    rows = as_rows(block, 0)
    check_finite(rows, slice(start, start + len(rows)))
    return rows


def _chosen_rows(block: Any, chosen: slice | np.ndarray, start: int) -> np.ndarray:
    rows = as_rows(block, 0)
    numbers = np.arange(start, start + len(rows))[chosen]
    check_finite(rows[chosen], numbers)
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
    totals = [np.array(column) for column in parts[0]]  # copies: results of tasks are not ours
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
