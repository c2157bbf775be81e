"""One thread per core: chunks of samples are given to Python threads whose work releases the interpreter lock.

Threads work in the context of their caller, so that checks made there reach its result (`kdmaps.checks.collected`).
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from functools import cache
from itertools import chain
from typing import Any

from threadpoolctl import ThreadpoolController

#: Tasks that wait for a busy thread: one is enough to keep it busy, and each holds a chunk of samples.
QUEUED = 1
_local = threading.local()
# Contexts of `one_blas_thread`, over all threads, and the numbers of BLAS threads before the first of them.
_lock = threading.Lock()
_contexts = 0
_before: list[int] = []


@contextmanager
def single_thread() -> Iterator[None]:
    """Within this context, chunk loops of the calling thread start no other threads, since their caller does."""
    before, _local.single = getattr(_local, "single", False), True
    try:
        yield
    finally:
        _local.single = before


class Cancelled(BaseException):
    """Raised in a worker thread whose result is not needed any more."""


def check_cancelled() -> None:
    """Raise `Cancelled` in a worker of `map_unordered` after the iteration has ended."""
    stop = getattr(_local, "stop", None)
    if stop is not None and stop.is_set():
        raise Cancelled


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within this context, BLAS uses one thread per call.

    Contexts of several threads overlap and end in any order: the first sets the number, the last restores it.
    """
    global _contexts, _before
    process, openmp = _blas_libraries()
    with _lock:
        if _contexts == 0:
            _before = _set_threads(process, [1] * len(process))
        _contexts += 1
    own = _set_threads(openmp, [1] * len(openmp))
    try:
        yield
    finally:
        _set_threads(openmp, own)
        with _lock:
            _contexts -= 1
            if _contexts == 0:
                _set_threads(process, _before)


@cache  # scanning the loaded libraries takes milliseconds
def _blas_libraries() -> tuple[list[Any], list[Any]]:
    """Return BLAS libraries with one number of threads for the process, and OpenBLAS with one for each thread."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    libraries: tuple[list[Any], list[Any]] = ([], [])
    for library in found:
        if library.num_threads is not None:
            openmp = library.internal_api == "openblas" and getattr(library, "threading_layer", "") == "openmp"
            libraries[openmp].append(library)
    return libraries


def _set_threads(libraries: list[Any], numbers: list[int]) -> list[int]:
    """Set the numbers of threads and return the previous ones."""
    previous = [library.num_threads for library in libraries]
    for library, number in zip(libraries, numbers, strict=True):
        # Since threadpoolctl 3.8, only the first thread that sets a number may set another.
        release = getattr(library, "clear_controlling_thread", lambda **_: None)
        release(force=True)
        library.set_num_threads(number)
        release()
    return previous


def n_threads() -> int:
    """Return the number of threads of the chunk loop: one per core that this process may use."""
    if getattr(_local, "single", False):
        return 1
    limit = int(os.environ.get("OMP_NUM_THREADS", "").split(",")[0] or 0)  # "2,4" limits nested levels too
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(limit, cores) if limit > 0 else cores


def map_reduce(tasks: Iterable[Any], start: Callable[[], Any], step: Callable[[Any, Any], None]) -> list[Any]:
    """Deal `tasks` to one thread per core; `step(state, task)` adds a task to the state that its thread got by `start`.

    Thread t of T takes tasks t, t+T, t+2T, ...: the same split in every run, so the same rounding. An iterator is
    advanced by the calling thread, at most a few tasks ahead.
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
    with one_blas_thread(), ExitStack() as stack:
        lanes = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(workers)]
        for number, task in enumerate(tasks):
            t = number % workers
            if number < workers:
                states.append(start())
            if len(pending[t]) > QUEUED:
                pending[t].popleft().result()
            pending[t].append(lanes[t].submit(copy_context().run, step, states[t], task))
        for future in chain.from_iterable(pending):
            future.result()
    return states or [start()]


def map_ordered(tasks: Iterable[Any], work: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield `work(task)` in the order of the tasks, computed by one thread per core a few tasks ahead."""
    workers = n_threads()
    if workers == 1:
        yield from map(work, tasks)
        return
    pending: deque[Future[Any]] = deque()
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        for task in tasks:
            if len(pending) > QUEUED * workers:
                yield pending.popleft().result()
            pending.append(pool.submit(copy_context().run, work, task))
        while pending:
            yield pending.popleft().result()


def map_unordered(tasks: Sequence[Any], work: Callable[[Any], Any], n_workers: int) -> Generator[tuple[int, Any]]:
    """Yield (number, `work(task)`) of each task when it is finished, with one BLAS thread for each worker.

    When the iteration ends early (Ctrl-C, an error), workers stop at their next chunk of samples and are waited for:
    close the iterator, e.g. with `contextlib.closing`.
    """
    stop = threading.Event()

    def run(task: Any) -> Any:
        _local.stop = stop
        with single_thread():
            return work(task)

    with one_blas_thread():
        if n_workers == 1:
            with single_thread():
                yield from enumerate(map(work, tasks))
            return
        pool = ThreadPoolExecutor(n_workers)
        try:
            futures = {pool.submit(copy_context().run, run, task): number for number, task in enumerate(tasks)}
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def slices(n: int, size: int) -> Iterator[slice]:
    """Return consecutive slices of at most `size` rows."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))
