"""A Dask task uses one core, as Dask assumes."""

import threading

import numpy as np
import pytest
from joblib import cpu_count
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_info

from kdmaps import KernelDiffusionMap
from kdmaps.utils.threads import n_threads

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
tasks = pytest.importorskip("kdmaps.data.dask")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(cpu_count() < 2, reason="needs two cores"),
]
X = np.random.default_rng(0).standard_normal((1200, 3)) * [1.0, 0.8, 0.4]


@pytest.fixture(scope="module")
def client():
    """A worker process in which BLAS and the chunk loop use two threads each by default."""
    threads = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    local = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.Client(n_workers=1, env=threads, **local, set_as_default=False) as client:
        yield client


def threads_of_blas():
    return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


def measured(samples):
    """A diffusion "tensor" 1 + 10 (threads of BLAS - 1) + 100 (threads of the chunk loop - 1), on the worker."""
    return np.full(len(samples), 1.0 + 10 * (threads_of_blas() - 1) + 100 * (n_threads() - 1))


def test_fit_uses_one_thread(client):
    assert client.submit(measured, X[:1]).result(timeout=120) == [111.0]  # without limits
    model = KernelDiffusionMap(2, n_features=40, random_state=0)
    local = model.fit(X).rates_
    with client.as_current():
        remote = model.set_params(diffusion=measured).fit(da.from_array(X, chunks=300)).rates_
    # A rate is proportional to the tensor; sums in another order change it by far less than 1e-10.
    assert_allclose(remote, local, rtol=1e-10)


def threads_while_projecting(block):
    """Threads of BLAS and of the chunk loop during the evaluation of features."""
    seen = []

    class Basis:
        chunk_rows = 100

        def features(self, rows):
            seen.extend([threads_of_blas(), n_threads()])
            return np.zeros((len(rows), 1))

    tasks._project(block, Basis(), np.ones(1), [{"array-location": [(0, len(block))]}])
    return seen


def test_transform_uses_one_thread(client):
    assert client.submit(threads_while_projecting, X[:100]).result(timeout=120) == [1, 1]


def threads_of_overlapping_tasks():
    """Threads of BLAS before, while only the second of two tasks is running, and after."""
    entered, leave = threading.Event(), threading.Event()

    def task():
        with tasks._one_core():
            entered.set()
            leave.wait(10)

    second, seen = threading.Thread(target=task), [threads_of_blas()]
    with tasks._one_core():
        second.start()
        entered.wait(10)
    seen.append(threads_of_blas())
    leave.set()
    second.join()
    return [*seen, threads_of_blas()]


def test_limit_ends_with_the_last_task(client):
    assert client.submit(threads_of_overlapping_tasks).result(timeout=120) == [2, 1, 2]
