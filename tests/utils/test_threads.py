"""Loops over tasks; numbers of BLAS threads and filters of warnings are restored, whichever thread ends first."""

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest
from joblib import cpu_count
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info, threadpool_limits

import kdmaps
from kdmaps.utils import threads as threads_module
from kdmaps.utils.threads import (
    at_most,
    map_ordered,
    map_reduce,
    map_unordered,
    n_threads,
    n_workers_of,
    one_blas_thread,
    slices,
)
from shared import SMALL_SEARCH


def blas():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def openmp():
    """Numbers of OpenMP threads of the calling thread."""
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"]


@pytest.fixture
def two_threads():
    """BLAS and OpenMP with two threads, on any machine and in any environment."""
    threads_module._libraries.cache_clear()  # other tests may have loaded more libraries
    with threadpool_limits(2):
        if set(blas()) != {2}:
            pytest.skip("this BLAS has one thread")
        yield


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_overlapping_contexts_restore_the_number(order):
    stacks = [ExitStack(), ExitStack()]
    for stack in stacks:
        stack.enter_context(one_blas_thread())
        assert set(blas()) == {1}
    stacks[order[0]].close()
    assert set(blas()) == {1}  # the other context has not ended
    stacks[order[1]].close()
    assert set(blas()) == {2}


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_overlapping_threads_restore_the_number(order):
    """The threads of a pool live on, and the last one to set the number is not the first one."""
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        pools, stacks = (one, two), (ExitStack(), ExitStack())
        for pool, stack in zip(pools, stacks, strict=True):
            pool.submit(stack.enter_context, one_blas_thread()).result()
            assert set(blas()) == {1}
        pools[order[0]].submit(stacks[order[0]].close).result()
        assert set(blas()) == {1}
        pools[order[1]].submit(stacks[order[1]].close).result()
        assert set(blas()) == {2}
        with threadpool_limits(1, user_api="blas"):
            assert set(blas()) == {1}  # other threads may still set it


@pytest.mark.usefixtures("two_threads")
def test_nested_contexts():
    with one_blas_thread():
        with one_blas_thread():
            assert set(blas()) == {1}
        assert set(blas()) == {1}
    assert set(blas()) == {2}


@pytest.mark.usefixtures("two_threads")
def test_an_error_restores_the_number():
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        1 / 0  # noqa: B018
    assert set(blas()) == {2}


@pytest.mark.usefixtures("two_threads")
def test_openmp_of_the_calling_thread():
    if set(openmp()) != {2}:
        pytest.skip("no OpenMP")
    with one_blas_thread():
        assert set(openmp()) == {1}
    assert set(openmp()) == {2}


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("loop", ["map_reduce", "map_ordered", "map_unordered"])
def test_workers_use_one_thread_of_blas_and_openmp(monkeypatch, loop):
    monkeypatch.setattr(threads_module, "n_threads", lambda: 2)
    numbers, names = [], set()

    def work(_):
        numbers.extend([*blas(), *openmp()])
        names.add(threading.current_thread().name)

    if loop == "map_reduce":
        map_reduce([0, 1], lambda: None, lambda state, task: work(task))
    elif loop == "map_ordered":
        list(map_ordered([0, 1], work))
    else:
        list(map_unordered([0, 1], work, 2))
    assert threading.current_thread().name not in names
    assert set(numbers) == {1}


@pytest.mark.usefixtures("two_threads")
def test_decorated_functions_may_call_each_other():
    @one_blas_thread()
    def outer():
        return [*inner(), *blas()]

    @one_blas_thread()
    def inner():
        return blas()

    assert set(outer()) == {1}
    assert set(blas()) == {2}


class TestNumberOfWorkers:
    def test_the_smaller_limit_applies(self, monkeypatch):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
        with at_most(3):
            assert n_threads() == 3
            with at_most(5):
                assert n_threads() == 3
            with at_most(2):
                assert n_threads() == 2
        assert n_threads() == 8

    def test_workers_inherit_the_limit(self, monkeypatch):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
        with at_most(3):
            assert list(map_ordered(range(4), lambda _: n_threads())) == [3] * 4

    @pytest.mark.parametrize(("n_jobs", "expected"), [(None, 1), (1, 1), (3, 3), (-1, 5)])
    def test_n_jobs(self, monkeypatch, n_jobs, expected):
        monkeypatch.setattr(threads_module, "n_threads", lambda: 5)
        assert n_workers_of(n_jobs) == expected

    @pytest.mark.parametrize("n_jobs", [0, 1.5, "all"])
    def test_invalid_n_jobs(self, n_jobs):
        with pytest.raises(ValueError, match="n_jobs"):
            n_workers_of(n_jobs)


@pytest.mark.usefixtures("two_threads")
def test_concurrent_searches_restore_threads_and_filters(tmp_path):
    """Rates equal the rates of a single search, for data in memory and in text files."""
    X = kdmaps.problems.load("ou2d-4").sample(200, random_state=0)
    np.savetxt(tmp_path / "X.txt", X)
    start = threading.Barrier(4)

    def fit(number):
        start.wait()
        search = kdmaps.KernelSearchCV(**SMALL_SEARCH, n_jobs=1 + number % 2)
        return search.fit(X if number < 2 else tmp_path / "X.txt").rates_

    filters = list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        rates = list(pool.map(fit, range(4)))
    assert warnings.filters == filters
    assert set(blas()) == {2}
    alone = kdmaps.KernelSearchCV(**SMALL_SEARCH).fit(X).rates_
    np.testing.assert_allclose(rates, [alone] * 4, rtol=1e-6)


def test_a_search_sets_no_warning_filter():
    """If two threads each set a filter, one of the filters would remain."""
    filters, seen = list(warnings.filters), []

    def diffusion(x):
        seen.append(list(warnings.filters))
        return np.ones(len(x))

    X = kdmaps.problems.load("ou2d-4").sample(200, random_state=0)
    kdmaps.KernelSearchCV(**SMALL_SEARCH, diffusion=diffusion).fit(X)
    assert len(seen) > 1
    assert all(inside == filters for inside in seen)


def test_text_readers_set_no_warning_filter(tmp_path):
    """A filter that one thread sets while another thread reads would never be removed."""
    (tmp_path / "X.txt").write_text("\n".join(["# x y", "", *["1.5 2.5", "", "# pause", "2.5 1.0"] * 200, ""]))
    filters, seen = list(warnings.filters), []
    blocks = kdmaps.data.open_table(tmp_path / "X.txt").blocks([0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy warns of empty lines and of the end of a file
        inside = list(warnings.filters)
        for block in blocks:
            seen.append(len(block))
            assert warnings.filters == inside
    assert sum(seen) == 400
    assert warnings.filters == filters


class TestMapReduce:
    @pytest.mark.parametrize("threads", [1, 2, 3, 8])
    @pytest.mark.parametrize("n_tasks", [0, 1, 2, 7])
    def test_every_task_once(self, monkeypatch, threads, n_tasks):
        monkeypatch.setattr(threads_module, "n_threads", lambda: threads)
        states = map_reduce(list(range(n_tasks)), list, lambda state, task: state.append(task))
        assert len(states) == max(1, min(threads, n_tasks))
        assert sorted(task for state in states for task in state) == list(range(n_tasks))

    def test_deterministic(self, monkeypatch):
        # With terms of very different size, another split or order would round differently.
        monkeypatch.setattr(threads_module, "n_threads", lambda: 2)
        values = np.random.default_rng(4).standard_normal(1000) * 10.0 ** np.arange(-8, 8).repeat(63)[:1000]

        def step(state, i):
            state += values[i]

        sums = {float(sum(map_reduce(list(range(1000)), lambda: np.zeros(()), step))) for _ in range(20)}
        assert len(sums) == 1

    def test_threads_run_together(self, monkeypatch):
        monkeypatch.setattr(threads_module, "n_threads", lambda: 2)
        meeting = threading.Barrier(2, timeout=10)  # breaks unless both threads are inside a step at once
        map_reduce([0, 1], lambda: None, lambda state, task: meeting.wait())

    def test_error_in_a_step(self, monkeypatch):
        monkeypatch.setattr(threads_module, "n_threads", lambda: 2)

        def step(state, task):
            if task == 3:
                raise ValueError("task 3 is bad")

        with pytest.raises(ValueError, match="task 3 is bad"):
            map_reduce(list(range(6)), list, step)

    @pytest.mark.parametrize(("value", "expected"), [("1", 1), ("1,4", 1)])
    def test_n_threads_from_openmp(self, monkeypatch, value, expected):
        # "1,4" is OpenMP's syntax for one thread with up to four nested threads.
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert n_threads() == expected

    def test_n_threads_is_at_most_the_number_of_cores(self, monkeypatch):
        monkeypatch.setenv("OMP_NUM_THREADS", "100000")
        many = n_threads()
        monkeypatch.setenv("OMP_NUM_THREADS", "")
        assert many == n_threads() == cpu_count()


@pytest.mark.parametrize(("n", "size"), [(0, 3), (1, 3), (6, 3), (7, 3), (2, 100)])
def test_slices_cover_every_row_once(n, size):
    parts = [np.arange(n)[part] for part in slices(n, size)]
    assert_array_equal(np.concatenate([np.arange(0), *parts]), np.arange(n))
    assert all(0 < len(part) <= size for part in parts)
