"""Dask gives the same results as arrays in memory, for any chunks and schedulers, and after the loss of workers."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

from kdmaps import KernelDiffusionMap, KernelSearchCV, TangentDiffusion
from kdmaps.data import PREVIEW_SAMPLES, as_source
from kdmaps.forms.energy import compute_moments
from kdmaps.forms.moments import Moments
from kdmaps.utils.files import read_lines
from shared import GRID, adaptive, assert_same_moments, known

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore:X (has|does not have) (valid )?feature names"),
    known("no-gap"),
]

N, DIM = 1200, 3
X = np.random.default_rng(0).standard_normal((N, DIM)) * [1.0, 0.8, 0.4]
WEIGHT = np.random.default_rng(1).uniform(0, 2, N) * (np.arange(N) % 5 > 0)
#: A trajectory with X as its noise.
PATH = lfilter([1], [1, -0.9], X, axis=0)
PATH.flags.writeable = X.flags.writeable = WEIGHT.flags.writeable = False
CHUNKS = [(400, DIM), (97, 2), ((1, 0, 1199), DIM), (N, DIM)]
#: Sums in another order differ by 1e-16 of their size; Fourier features with λ=1e-2 amplify that by far less than 1e6.
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def model(**parameters):
    return KernelDiffusionMap(2, n_features=40, random_state=0, **parameters)


def search(**parameters):
    return KernelSearchCV(2, random_state=0, **(GRID | {"n_features": 30, "max_extensions": 1} | parameters))


def slow_load(directory, victim=None, at=0, path=False, block_info=None):
    """A block of X (or PATH). Loads are recorded; the first from number `at` on kills a process (None: this one)."""
    rows = PATH if path else X
    (start, stop), _ = block_info[None]["array-location"]
    (Path(directory) / f"{os.getpid()}-{uuid4().hex}").touch()
    if at and len(loads(directory)) >= at:
        try:
            os.close(os.open(Path(directory) / "killed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return rows[start:stop]
        os.kill(os.getpid() if victim is None else victim, signal.SIGKILL)
        time.sleep(0.2)
    return rows[start:stop]


def recorded(directory, victim=None, at=0, rows=200, path=False):
    chunks = (tuple(np.diff([*range(0, N, rows), N]).tolist()), (DIM,))
    options = {"chunks": chunks, "dtype": np.float64, "meta": np.empty((0, 0))}
    return da.map_blocks(slow_load, str(directory), victim, at, path, **options)


def loads(directory):
    """Process numbers of all loads."""
    return [int(name.partition("-")[0]) for name in os.listdir(directory) if "-" in name]


@pytest.fixture(scope="module")
def client():
    local = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    # On a busy machine a restarted worker may take longer than 30 s; it is then given up, and the test never ends.
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "300s"}),
        distributed.Client(n_workers=2, **local, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(params=["synchronous", "threads", pytest.param("cluster", marks=pytest.mark.slow)])
def scheduler(request):
    with ExitStack() as stack:
        if request.param == "cluster":
            stack.enter_context(request.getfixturevalue("client").as_current())
        else:
            stack.enter_context(dask.config.set(scheduler=request.param))
        yield request.param


# --- same results as in memory ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
def test_fit_transform_and_score_as_in_memory(scheduler, chunks):
    lazy = da.from_array(X, chunks=chunks)
    local, remote = model().fit(X, sample_weight=WEIGHT), model().fit(lazy, sample_weight=da.from_array(WEIGHT, 100))
    assert remote.moments_.count == N
    assert_allclose(remote.moments_.gram, local.moments_.gram, rtol=1e-12, atol=1e-12 * N)
    assert_allclose(remote.moments_.energy, local.moments_.energy, rtol=1e-12, atol=1e-12 * N)
    assert_allclose(remote.timescales_, local.timescales_, **CLOSE)
    modes = remote.transform(lazy, time=0.3)
    assert modes.chunks == (lazy.chunks[0], (2,))
    assert_allclose(modes.compute(), local.transform(X, time=0.3), **CLOSE)
    assert_allclose(remote.score(lazy, sample_weight=WEIGHT), local.score(X, sample_weight=WEIGHT), **CLOSE)


@pytest.mark.parametrize(
    "parameters",
    [
        {"rates": "cross-fitted"},
        {"diffusion": TangentDiffusion(dimension=2)},
        {"diffusion": lambda X: 1 + X[:, 0] ** 2},
        {"diffusion": (1 + X[:, :1] ** 2)[:, :, None] * np.eye(DIM)},
        {"basis": "random-phase", "center": False},
        {"dtype": "float32", "memory_limit": 50},
    ],
    ids=("cross-fitted", "tangent", "function", "array", "random-phase", "float32"),
)
def test_settings_of_a_fit(parameters):
    local, remote = model(**parameters).fit(X), model(**parameters).fit(da.from_array(X, chunks=(350, 2)))
    # Products of float32 features are rounded to float32 in each chunk, and chunks differ here.
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if "dtype" in parameters else CLOSE
    assert_allclose(remote.timescales_, local.timescales_, **tolerance)
    assert_allclose(remote.transform(X), local.transform(X), **tolerance)


def test_landmarks():
    local, remote = (model(basis="landmarks", rates="cross-fitted").fit(x) for x in (X, da.from_array(X, chunks=250)))
    assert_array_equal(remote.basis_.landmarks, local.basis_.landmarks)
    # Kernel functions are nearly dependent: their pencil amplifies the rounding of sums by up to 1e8.
    assert_allclose(remote.timescales_, local.timescales_, rtol=1e-8)


def test_partial_fit():
    local, remote = model().fit(X[:500]), model().fit(da.from_array(X[:500], chunks=200))
    local.partial_fit(X[500:])
    remote.partial_fit(da.from_array(X[500:], chunks=300))
    assert_allclose(remote.timescales_, local.timescales_, **CLOSE)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@known("discrete-columns")  # of integers
def test_types_of_blocks(dtype):
    values = (10 * X).astype(dtype)
    same = model(regularization=1e-4)  # in the unit of a rate, which is a hundred times smaller here
    local, lazy = clone(same).fit(values), da.from_array(values, chunks=500)
    modes = same.fit(lazy).transform(lazy)
    assert modes.dtype == modes.compute().dtype == local.transform(values).dtype
    assert_allclose(modes, local.transform(values), rtol=1e-6, atol=1e-6 if dtype == "float32" else 1e-10)


def test_data_frames_and_unknown_lengths():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    lazy = dd.from_pandas(frame, npartitions=5)
    some = lazy[lazy.a > 0]  # of unknown length
    local = model().fit(frame[frame.a > 0])
    remote = model().fit(some)
    assert list(remote.feature_names_in_) == ["a", "b", "c"]
    assert_allclose(remote.timescales_, local.timescales_, **CLOSE)
    assert_allclose(remote.transform(some).compute(), local.transform(frame[frame.a > 0]), **CLOSE)
    array = da.from_array(X, chunks=300)
    assert_allclose(model().fit(array[array[:, 0] > 0]).timescales_, local.timescales_, **CLOSE)
    with pytest.raises(ValueError, match="has the columns c, b, a"):
        remote.transform(lazy[["c", "b", "a"]])


@pytest.mark.slow
def test_transform_is_lazy_and_samples_stay_on_workers(client, tmp_path):
    with client.as_current():
        fitted = model().fit(X)
        modes = fitted.transform(recorded(tmp_path))
        assert loads(tmp_path) == []
        assert_allclose(modes, fitted.transform(X), **CLOSE)
        model().fit(recorded(tmp_path))
    assert os.getpid() not in loads(tmp_path)


def test_packed_moments_are_one_matrix():
    basis = model().fit(X).basis_
    moments = compute_moments(basis, X, WEIGHT)
    packed = Moments.pack([moments])
    p = basis.n_features
    assert sum(part.size for part in packed) == p * (p + 1) + p + 3
    assert_same_moments(Moments.unpack(packed)[0], moments, rtol=1e-15)


# --- searches ---------------------------------------------------------------------------------------------------------
def assert_same_search(local, remote, **tolerance):
    assert remote.best_params_ == local.best_params_
    assert remote.extensions_ == local.extensions_
    for name in ("selection_score", "selection_error", "mean_test_score", "fold_agreement"):
        assert_allclose(remote.cv_results_[name], local.cv_results_[name], **(CLOSE | tolerance))
    assert_allclose(remote.timescales_, local.timescales_, **(CLOSE | tolerance))


# With eight folds there are so many classes of samples that every set is summed separately.
@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{}, {"max_search_samples": 500}, {"cv": 8}, {"cv": GroupKFold(3)}], ids=str)
@known("flat")  # any wide kernel suits Gaussian samples
def test_search_as_in_memory(parameters):
    groups = np.arange(N) // 50 if isinstance(parameters.get("cv"), GroupKFold) else None
    local = search(**parameters).fit(X, sample_weight=WEIGHT, groups=groups)
    remote = search(**parameters).fit(da.from_array(X, chunks=(331, 2)), sample_weight=WEIGHT, groups=groups)
    assert_same_search(local, remote)


@pytest.mark.slow
def test_search_on_a_cluster(client, tmp_path):
    tangent = TangentDiffusion(dimension=2)
    local = search(diffusion=tangent).fit(X, sample_weight=WEIGHT)
    with client.as_current():
        remote = search(diffusion=tangent).fit(recorded(tmp_path), sample_weight=WEIGHT)
        assert_same_search(local, remote)
        some = search(max_search_samples=600).fit(recorded(tmp_path))
    assert_same_search(search(max_search_samples=600).fit(X), some)
    assert os.getpid() not in loads(tmp_path)


@pytest.mark.slow
def test_search_of_landmarks():
    narrow = {"basis": "landmarks", "bandwidths": [0.5, 1.0]}
    local, remote = (search(**narrow).fit(x) for x in (X, da.from_array(X, chunks=500)))
    assert_same_search(local, remote, rtol=1e-8, atol=1e-8)  # as for a fit


def test_more_samples_than_the_preview():
    many = np.random.default_rng(2).standard_normal((PREVIEW_SAMPLES + 3000, 2)) * [1.0, 0.5]
    few = {"families": ["gaussian"], "n_features": 10}
    assert_same_search(search(**few).fit(many), search(**few).fit(da.from_array(many, chunks=4000)))


@pytest.mark.slow
def test_adaptive_search():
    settings = {"families": ["gaussian"], "random_state": 0, "n_features": 30, "max_search_samples": 600}
    local, remote = (adaptive(2, refine=False, **settings).fit(x) for x in (X, da.from_array(X, chunks=90)))
    assert remote.best_params_ == local.best_params_
    assert_allclose(remote.timescales_, local.timescales_, rtol=1e-7)  # rounding, times a condition of 1e8


def test_checkpoint_does_not_depend_on_chunks(tmp_path):
    path = tmp_path / "search.jsonl"
    first = search(checkpoint=path).fit(da.from_array(X, chunks=300))
    size = path.stat().st_size
    again = search(checkpoint=path).fit(da.from_array(X, chunks=500))
    assert path.stat().st_size == size
    assert_array_equal(
        again.cv_results_["mean_fit_time"], first.cv_results_["mean_fit_time"]
    )  # read, not measured again
    with pytest.raises(ValueError, match="belongs to other data"):
        search(checkpoint=path).fit(da.from_array(X + 1e-9, chunks=300))


# --- failures ---------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@known("weighted-pairs")
@pytest.mark.parametrize("lag", [None, 3])
def test_worker_dies_during_a_fit(client, tmp_path, lag):
    local = model(lag=lag).fit(PATH if lag else X, sample_weight=WEIGHT)
    with client.as_current():
        # Six blocks for the preview, then six for the sums: the ninth load is in the middle of these.
        samples = recorded(tmp_path, at=9, path=lag is not None)
        remote = model(lag=lag).fit(samples, sample_weight=WEIGHT)
    assert (tmp_path / "killed").exists()
    assert len(loads(tmp_path)) > 12  # the blocks of the dead worker are loaded again
    assert remote.moments_.count == N - (lag or 0)  # including pairs across blocks
    assert_allclose(remote.timescales_, local.timescales_, **CLOSE)


@pytest.mark.slow
def test_block_that_kills_every_worker(client, tmp_path, monkeypatch):
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    with client.as_current(), pytest.raises(RuntimeError, match="rechunk X into smaller blocks"):
        model().fit(recorded(tmp_path, at=1))


@pytest.mark.slow
def test_worker_dies_during_a_search(client, tmp_path):
    local = search().fit(X, sample_weight=WEIGHT)
    with client.as_current():
        remote = search().fit(recorded(tmp_path, at=25), sample_weight=WEIGHT)
    assert (tmp_path / "killed").exists()
    assert len(loads(tmp_path)) > 40
    assert_same_search(local, remote)


@pytest.fixture
def scheduler_process(tmp_path_factory):
    """A client of a scheduler and a worker in separate processes, and the process number of the scheduler."""
    address = tmp_path_factory.mktemp("scheduler") / "address.json"
    options = ["--scheduler-file", str(address), "--no-dashboard"]
    commands = ["dask_scheduler --host 127.0.0.1 --port 0", "dask_worker --nthreads 1 --no-nanny"]
    quiet = {"stderr": subprocess.DEVNULL, "env": os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}}
    processes = [
        subprocess.Popen([sys.executable, "-m", f"distributed.cli.{name}", *rest, *options], **quiet)
        for name, *rest in map(str.split, commands)
    ]
    try:
        with distributed.Client(scheduler_file=str(address), set_as_default=False, timeout=120) as client:
            yield client, processes[0].pid
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_scheduler_dies(scheduler_process, tmp_path):
    client, scheduler = scheduler_process
    fitted = model().fit(X)
    record, out = tmp_path / "record", tmp_path / "out"
    record.mkdir()
    out.mkdir()
    samples = recorded(record, victim=scheduler, at=4)
    with client.as_current():
        with pytest.raises(ConnectionError, match=r"scheduler was lost.*Start a new Client"):
            fitted.transform(samples, out=out / "modes.npy")
        with pytest.raises(ConnectionError, match="scheduler was lost"):
            fitted.fit(samples)
    assert (record / "killed").exists()
    assert os.listdir(out) == []
    assert_allclose(fitted.timescales_, model().fit(X).timescales_)  # the failed fit did not change the model


@pytest.mark.slow
def test_search_continues_after_its_scheduler_died(scheduler_process, tmp_path):
    client, scheduler = scheduler_process
    path = tmp_path / "search.jsonl"
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    with client.as_current(), pytest.raises(ConnectionError, match=r"scheduler was lost.*continues from it"):
        search(checkpoint=path).fit(recorded(before, victim=scheduler, at=30))
    assert len(read_lines(path)) > 1  # the header, and a kernel at least
    with dask.config.set(scheduler="synchronous"):
        again = search(checkpoint=path).fit(recorded(after))
        whole = search().fit(X)
    assert_same_search(whole, again)


def test_transform_to_disk(scheduler, tmp_path):
    fitted = model().fit(X)
    fitted.transform(da.from_array(X, chunks=170), out=tmp_path / "modes.npy")
    assert_allclose(np.load(tmp_path / "modes.npy"), fitted.transform(X), **CLOSE)


def test_rows_that_are_not_finite(scheduler):
    bad = X.copy()
    bad[777, 1] = np.nan
    lazy, fitted = da.from_array(bad, chunks=250), model().fit(X)
    for attempt in (model().fit, search().fit, lambda x: fitted.transform(x).compute()):
        with pytest.raises(ValueError, match=r"NaN in row\(s\) 777 "):
            attempt(lazy)
    unknown = lazy[lazy[:, 0] < 100]  # all rows, but of unknown number
    with pytest.raises(ValueError, match=r"Block 3: .* row\(s\) 27 "):
        fitted.transform(unknown).compute()
    with pytest.raises(ValueError, match=r"row\(s\) 777 "):
        model().fit(unknown)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (lambda: da.ones((4, 3, 2)), r"two dimensions.*reshape"),
        (
            lambda: dd.from_pandas(pd.DataFrame({"a": [1.0], "b": ["x"]}), npartitions=1),
            "drop columns that are not num",
        ),
        (lambda: da.ones((0, 2)), r"0 sample\(s\)"),
        (lambda: da.ones((5, 0)), r"0 feature\(s\)"),
    ],
)
def test_invalid_data(samples, message):
    with pytest.raises(ValueError, match=message):
        model().fit(samples())


def test_wrong_number_of_weights_or_columns(scheduler):
    with pytest.raises(ValueError, match="sample_weight"):
        model().fit(da.from_array(X, chunks=500), sample_weight=da.ones(N - 1))
    with pytest.raises(ValueError, match=r"X has 2 features.* expecting 3"):
        model().fit(X).transform(da.from_array(X, chunks=500)[:, :2])


def test_parts():
    source = as_source(da.from_array(X, chunks=(300, 2)))
    parts = [source.read(part) for part in source.parts(128)]
    assert_array_equal(np.concatenate([rows for _, rows in parts]), X)
    assert [index.start for index, _ in parts[:4]] == [0, 128, 256, 300]
