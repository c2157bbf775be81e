"""One thread per core: chunks of samples are dealt to Python threads whose work holds no interpreter lock."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any

from threadpoolctl import ThreadpoolController

#: Tasks that wait for a busy thread: one is enough to keep it busy, and each holds a chunk of samples.
QUEUED = 1
_local = threading.local()


@contextmanager
def single_thread() -> Iterator[None]:
    """Within this context, chunk loops of the calling thread stay in it: for callers that are parallel themselves."""
    before, _local.single = getattr(_local, "single", False), True
    try:
        yield
    finally:
        _local.single = before


class Cancelled(BaseException):
    """Raised in a worker thread whose result nobody waits for any more."""


def check_cancelled() -> None:
    """Raise `Cancelled` in a worker of `map_unordered` that was told to stop."""
    stop = getattr(_local, "stop", None)
    if stop is not None and stop.is_set():
        raise Cancelled


@contextmanager
def blas_threads(limit: int) -> Iterator[None]:
    """Within this context, BLAS uses at most `limit` threads per call.

    The number of threads belongs to the process (with OpenMP, to the calling thread). Contexts of several threads
    overlap and end in any order, so the smallest of their limits holds, and the last one to end gives back what the
    first one found.
    """
    own = _blas.enter(limit)
    try:
        yield
    finally:
        _blas.leave(limit, own)


def n_threads() -> int:
    """Threads for the chunk loop: one per core that this process may use."""
    if getattr(_local, "single", False):
        return 1
    limit = int(os.environ.get("OMP_NUM_THREADS", "").split(",")[0] or 0)  # "2,4" limits nested levels too
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(limit, cores) if limit > 0 else cores


def map_reduce(tasks: Iterable[Any], start: Callable[[], Any], step: Callable[[Any, Any], None]) -> list[Any]:
    """Deal `tasks` to one thread per core; each thread folds its share into a state of its own.

    Parameters
    ----------
    tasks : iterable
        Thread t of T takes tasks t, t+T, t+2T, ...: the same split in every run, so the same rounding. An iterator is
        advanced by the calling thread, while the others work, and at most a few tasks ahead.
    start : callable
        Makes a state.
    step : callable
        `step(state, task)` folds one task into a state, in place.

    Returns
    -------
    states : list of the threads' states, in order
    """
    workers = n_threads()
    if isinstance(tasks, Sized):
        workers = max(1, min(workers, len(tasks)))
    if workers == 1:
        state = start()
        for task in tasks:
            check_cancelled()
            step(state, task)
        return [state]
    states: list[Any] = []
    pending: list[deque[Future[Any]]] = [deque() for _ in range(workers)]
    with blas_threads(1), ExitStack() as stack:
        lanes = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(workers)]
        for number, task in enumerate(tasks):
            t = number % workers
            if number < workers:
                states.append(start())
            if len(pending[t]) > QUEUED:
                pending[t].popleft().result()
            pending[t].append(lanes[t].submit(step, states[t], task))
        for future in chain.from_iterable(pending):
            future.result()
    return states or [start()]


def map_ordered(tasks: Iterable[Any], work: Callable[[Any], Any]) -> Iterator[Any]:
    """`work(task)` for each task, computed by one thread per core a few tasks ahead, in the order of the tasks."""
    workers = n_threads()
    if workers == 1:
        yield from map(work, tasks)
        return
    pending: deque[Future[Any]] = deque()
    with blas_threads(1), ThreadPoolExecutor(workers) as pool:
        for task in tasks:
            if len(pending) > QUEUED * workers:
                yield pending.popleft().result()
            pending.append(pool.submit(work, task))
        while pending:
            yield pending.popleft().result()


def map_unordered(tasks: Sequence[Any], work: Callable[[Any], Any], n_workers: int) -> Generator[tuple[int, Any]]:
    """Yield (number, `work(task)`) of each task as it is finished, with one BLAS thread for each worker.

    When the iteration ends early (Ctrl-C, an error), workers stop at their next chunk of samples and are waited for:
    close the iterator, e.g. with `contextlib.closing`.
    """
    stop = threading.Event()

    def run(task: Any) -> Any:
        _local.stop = stop
        with single_thread():
            return work(task)

    with blas_threads(1):
        if n_workers == 1:
            with single_thread():
                yield from enumerate(map(work, tasks))
            return
        pool = ThreadPoolExecutor(n_workers)
        try:
            futures = {pool.submit(run, task): number for number, task in enumerate(tasks)}
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


class _BlasLimits:
    """The limits that hold at the moment, and the numbers of threads without them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limits: list[int] = []
        self._libraries: list[Any] | None = None
        self._found: list[int] = []  # of each library, when the first context began

    def enter(self, limit: int) -> list[tuple[Any, int]]:
        """Begin a context; return what to give back in this thread: libraries with OpenMP, and their numbers."""
        with self._lock:
            if self._libraries is None:
                # Scanning the loaded libraries takes milliseconds: do it once, when the BLAS libraries are loaded.
                found = ThreadpoolController().select(user_api="blas").lib_controllers
                self._libraries = [library for library in found if library.num_threads is not None]
            shared = self._shared()
            if not self._limits:
                self._found = [library.num_threads for library in shared]
            self._limits.append(limit)
            self._apply(shared)
        own = [(library, library.num_threads) for library in self._libraries if library not in shared]
        for library, number in own:
            library.set_num_threads(min(number, limit))
        return own

    def leave(self, limit: int, own: list[tuple[Any, int]]) -> None:
        """End a context."""
        with self._lock:
            self._limits.remove(limit)
            self._apply(self._shared())
        for library, number in own:
            library.set_num_threads(number)

    def _shared(self) -> list[Any]:
        """Return the libraries whose number of threads is that of the process."""
        return [library for library in self._libraries or () if _layer(library) != "openmp"]

    def _apply(self, shared: list[Any]) -> None:
        for library, found in zip(shared, self._found, strict=True):
            _set_threads(library, min([found, *self._limits]))


def _set_threads(library: Any, number: int) -> None:
    """Set the threads of a library, whichever thread did so before: since 3.8 threadpoolctl heeds the first alone."""
    release = getattr(library, "clear_controlling_thread", lambda **_: None)
    release(force=True)
    library.set_num_threads(number)
    release()


def _layer(library: Any) -> str:
    # That of MKL is the same number for all threads.
    return getattr(library, "threading_layer", "") if library.internal_api == "openblas" else ""


_blas = _BlasLimits()


def slices(n: int, size: int) -> Iterator[slice]:
    """Consecutive slices of at most `size` rows."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))
