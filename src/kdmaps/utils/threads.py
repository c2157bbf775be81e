"""One thread per core: blocks of samples, or kernels, are given to Python threads that release the interpreter lock.

The libraries below them (BLAS, and OpenMP in scikit-learn) use one thread for each call. Most products are small: the
threads of these libraries would spend more time waiting for each other than working, many times more if other processes
occupy the cores. Every public function that computes is decorated with `@one_blas_thread()`.

Threads work in the context of their caller, so that checks made there reach its result (`kdmaps.checks.collected`).
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import copy_context
from functools import cache
from itertools import chain
from numbers import Integral
from typing import Any, NamedTuple

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

#: Tasks that wait for a busy thread: one is enough to keep it busy, and each holds a chunk of samples.
QUEUED = 1
_local = threading.local()
# Contexts of `one_blas_thread`, in all threads together, and the numbers of BLAS threads before the first of them.
_lock = threading.Lock()
_contexts = 0
_before: list[int] = []


@contextmanager
def at_most(n_workers: int) -> Iterator[None]:
    """Within this context, loops of the calling thread start at most so many threads."""
    before = getattr(_local, "most", None)
    _local.most = n_workers if before is None else min(before, n_workers)
    try:
        yield
    finally:
        _local.most = before


def single_thread() -> AbstractContextManager[None]:
    """Return a context in which loops of the calling thread start no other threads, since their caller does."""
    return at_most(1)


class Cancelled(BaseException):
    """Raised in a worker thread whose result is not needed any more."""


def check_cancelled() -> None:
    """Raise `Cancelled` in a worker of `map_unordered` after the iteration has ended."""
    stop = getattr(_local, "stop", None)
    if stop is not None and stop.is_set():
        raise Cancelled


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within this context, and in functions with the decorator `@one_blas_thread()`, BLAS uses one thread for a call.

    So does OpenMP. Contexts may be nested. Contexts of several threads overlap and end in any order: the first sets the
    number of the process, the last restores it. OpenMP has one number for each thread, which applies to the calling
    thread and to the workers of this module.
    """
    global _contexts, _before
    libraries = _libraries()
    with _lock:
        if _contexts == 0:
            _before = _set_threads(libraries.of_process, [1] * len(libraries.of_process))
        _contexts += 1
    before = _set_threads(libraries.of_thread, [1] * len(libraries.of_thread))
    try:
        yield
    finally:
        _set_threads(libraries.of_thread, before)
        with _lock:
            _contexts -= 1
            if _contexts == 0:
                _set_threads(libraries.of_process, _before)


def _pool(n_workers: int) -> ThreadPoolExecutor:
    """Return a pool whose workers have the limits of the calling thread."""
    return ThreadPoolExecutor(n_workers, initializer=_limit_worker, initargs=(getattr(_local, "most", None),))


def _limit_worker(most: int | None) -> None:
    _local.most = most
    libraries = _libraries().of_thread
    _set_threads(libraries, [1] * len(libraries))


class _Libraries(NamedTuple):
    """Loaded libraries that start threads."""

    of_process: list[Any]  # with one number of threads for the process
    of_thread: list[Any]  # with one number for each calling thread: OpenMP, and OpenBLAS on top of it


@cache  # scanning the loaded libraries takes milliseconds
def _libraries() -> _Libraries:
    """Return the libraries of numpy, scipy and scikit-learn that start threads."""
    import scipy.linalg  # noqa: F401  loads its BLAS
    import sklearn.utils  # noqa: F401  loads OpenMP

    libraries = _Libraries([], [])
    for library in ThreadpoolController().lib_controllers:
        openmp = library.user_api == "openmp" or getattr(library, "threading_layer", "") == "openmp"
        if library.num_threads is not None:
            (libraries.of_thread if openmp else libraries.of_process).append(library)
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
    """Return the number of threads of a loop: one per core that this process may use, unless fewer are allowed."""
    limit = int(os.environ.get("OMP_NUM_THREADS", "").split(",")[0] or 0)  # "2,4" limits nested levels too
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = min(limit, cores) if limit > 0 else cores
    most: int | None = getattr(_local, "most", None)
    return allowed if most is None else min(allowed, most)


def n_workers_of(n_jobs: int | None) -> int:
    """Return the number of threads for the parameter `n_jobs` of an estimator: -1 is one per core, None is 1."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or an integer of threads, -1 for all, got {n_jobs!r}.")
    if n_jobs == -1:
        return n_threads()
    workers: int = effective_n_jobs(n_jobs)
    return workers


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
        lanes = [stack.enter_context(_pool(1)) for _ in range(workers)]
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
    with one_blas_thread(), _pool(workers) as pool:
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
        pool = _pool(n_workers)
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
