"""The same rows give the same result, however they are stored and split into chunks."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import kdmaps
from kdmaps import KernelDiffusionMap
from kdmaps.data import ArraySource, StreamSource, as_source
from shared import adaptive, known, traced_peak

pytestmark = [
    pytest.mark.filterwarnings("ignore:X (has|does not have) (valid )?feature names"),
    known("no-gap"),
]

N, DIM = 700, 3
X = np.random.default_rng(0).standard_normal((N, DIM)) * [1.0, 0.8, 0.4]
WEIGHT = np.random.default_rng(1).uniform(0, 2, N) * (np.arange(N) % 5 > 0)
X.flags.writeable = WEIGHT.flags.writeable = False


def cut(*sizes):
    """A generator of chunks of these sizes, and the rest."""
    return iter(np.split(X, np.cumsum(sizes)))


def npy(path):
    np.save(path / "X.npy", X)
    return path / "X.npy"


def npz(path):
    np.savez_compressed(path / "X.npz", X=X, other=np.ones(3))
    return str(path / "X.npz")


def csv(path):
    pd.DataFrame(X, columns=["a", "b", "c"]).to_csv(path / "X.csv", index=False)
    return path / "X.csv"


def csv_without_names(path):
    np.savetxt(path / "X.csv", X, delimiter=",", fmt="%.17g")
    return path / "X.csv"


def text(path):
    np.savetxt(path / "X.dat", X, fmt="%.17g", header="! FIELDS a b c")
    return path / "X.dat"


def parquet(path):
    pytest.importorskip("pyarrow")
    pd.DataFrame(X, columns=["a", "b", "c"]).to_parquet(path / "X.parquet", row_group_size=99)
    return path / "X.parquet"


def zarr_array(path):
    zarr = pytest.importorskip("zarr")
    array = zarr.open(str(path / "X.zarr"), mode="w", shape=X.shape, chunks=(64, DIM), dtype="f8")
    array[:] = X
    return array


def mdtraj_trajectory(path):
    mdtraj = pytest.importorskip("mdtraj")
    return mdtraj.Trajectory(X.reshape(N, 1, 3), None)


def mdtraj_chunks(path):
    mdtraj = pytest.importorskip("mdtraj")
    return lambda: (mdtraj.Trajectory(part.reshape(-1, 1, 3), None) for part in cut(100, 300))


def mdanalysis_group(path):
    universe = pytest.importorskip("MDAnalysis").Universe.empty(2, trajectory=True)
    both = np.stack([X + 5, X], axis=1)
    universe.load_new(both.astype(np.float32), order="fac")
    return universe.atoms[1:]


SOURCES = {
    "array": lambda path: X,
    "list": lambda path: X.tolist(),
    "data frame": lambda path: pd.DataFrame(X, columns=["a", "b", "c"]),
    "npy": npy,
    "memmap": lambda path: np.load(npy(path), mmap_mode="r"),
    "npz": npz,
    "csv": csv,
    "csv without names": csv_without_names,
    "text": text,
    "parquet": parquet,
    "zarr": zarr_array,
    "zarr path": lambda path: zarr_array(path) is not None and path / "X.zarr",
    "callable": lambda path: lambda: cut(1, 64, 300, 0, 2),
    "callable of frames": lambda path: lambda: (pd.DataFrame(part, columns=["xyz", "b", "c"]) for part in cut(100)),
    "iterator": lambda path: cut(333, 333),
    "mdtraj": mdtraj_trajectory,
    "callable of mdtraj": mdtraj_chunks,
    "MDAnalysis": mdanalysis_group,
}
SINGLE = {"mdtraj", "callable of mdtraj", "MDAnalysis"}  # they store float32
every_source = pytest.mark.parametrize("name", SOURCES)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("kdmaps.data.formats.base.BLOCK_BYTES", 24 * 101)  # several blocks in every file
    monkeypatch.setattr("kdmaps.bases._base.CHUNK_BYTES", 0)  # 64 rows a chunk
    monkeypatch.setattr("kdmaps.data.sources.MAPPED_BYTES", 24 * 200)


def make(**options):
    return KernelDiffusionMap(**{"n_components": 2, "n_features": 30, "random_state": 0, **options})


class TestEverySource:
    @every_source
    def test_rows(self, name, tmp_path):
        source = as_source(SOURCES[name](tmp_path))
        read = [source.read(part) for part in source.parts(64)]
        assert_array_equal(np.concatenate([np.arange(N)[index] for index, _ in read]), np.arange(N))
        expected = X.astype(np.float32) if name in SINGLE else X
        assert_array_equal(np.concatenate([rows for _, rows in read]), expected)
        assert {len(rows) for _, rows in read[:-1]} == {64}
        assert source.shape == (N, DIM)

    @pytest.mark.slow
    @every_source
    @pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
    @pytest.mark.parametrize("basis", ["fourier", "landmarks"])
    def test_fit_and_score_as_for_an_array(self, name, weight, basis, tmp_path):
        expected = make(basis=basis).fit(X.astype(np.float32) if name in SINGLE else X, sample_weight=weight)
        model = make(basis=basis).fit(SOURCES[name](tmp_path), sample_weight=weight)
        # The same chunks in the same order: not even the rounding differs. (A frame is column-major: its mean, the
        # origin, is summed in another order.)
        rtol = 1e-9 if name == "data frame" else 0
        assert_allclose(model.rates_, expected.rates_, rtol=rtol)
        assert_allclose(np.abs(model.transform(X[:9])), np.abs(expected.transform(X[:9])), rtol=1e3 * rtol)
        assert model.moments_.count == N
        (tmp_path / "again").mkdir()
        score = model.score(SOURCES[name](tmp_path / "again"), sample_weight=weight)
        again = expected.score(X.astype(np.float32) if name in SINGLE else X, sample_weight=weight)
        assert_allclose(score, again, rtol=rtol)

    @every_source
    def test_transform_to_memory_and_to_disk(self, name, tmp_path):
        model = make().fit(X)
        expected = model.transform(X.astype(np.float32) if name in SINGLE else X)
        assert_array_equal(model.transform(SOURCES[name](tmp_path)), expected)
        (tmp_path / "again").mkdir()
        out = tmp_path / "modes.npy"
        mapped = model.transform(SOURCES[name](tmp_path / "again"), out=out)
        assert isinstance(mapped, np.memmap)
        assert_array_equal(np.load(out), expected, strict=True)
        assert not list(tmp_path.glob("*.tmp"))

    @every_source
    def test_subsample_as_for_an_array(self, name, tmp_path):
        draw = as_source(X).sample(50, np.random.RandomState(3), WEIGHT)
        source = as_source(SOURCES[name](tmp_path))
        if name == "iterator":
            with pytest.raises(ValueError, match="can be read only once"):
                source.sample(50, np.random.RandomState(3), WEIGHT)
            return
        same = source.sample(50, np.random.RandomState(3), WEIGHT)
        assert_array_equal(same.rows, draw.rows)
        assert_array_equal(same.weight, draw.weight)
        assert_allclose(same.X, X[draw.rows], rtol=1e-7 if name in SINGLE else 0)
        assert np.all(draw.weight > 0)


def test_all_rows_are_equally_likely():
    source, counts = as_source(X[:60]), np.zeros(60)
    for seed in range(600):
        counts[source.sample(20, np.random.RandomState(seed)).rows] += 1
    # 20 of 60 in 600 draws: counts are hypergeometric with mean 200, so χ² has 59 degrees of freedom, reduced by the
    # negative correlation of a draw without replacement (1 - 1/3).
    chi = np.sum((counts - 200) ** 2) / (600 * 20 / 60 * (1 - 20 / 60))
    assert stats.chi2(59).ppf(0.001) < chi < stats.chi2(59).ppf(0.999)


def test_names_of_columns(tmp_path):
    model = make().fit(csv(tmp_path))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    pd.DataFrame(X, columns=["a", "b", "x"]).to_csv(tmp_path / "X.csv", index=False)
    with pytest.raises(ValueError, match=r"columns a, b, x.* feature names of fit were a, b, c"):
        model.score(tmp_path / "X.csv")


def test_partial_fit_takes_sources(tmp_path):
    model = make(bandwidth=2.0).partial_fit(npy(tmp_path)).partial_fit(lambda: cut(10))
    assert model.moments_.count == 2 * N
    assert_allclose(model.rates_, make(bandwidth=2.0).fit(X).rates_, rtol=1e-10)


class TestLargeStream:
    def test_iterator_with_a_given_bandwidth(self, monkeypatch):
        monkeypatch.setattr("kdmaps.estimators.fit.PREVIEW_SAMPLES", 100)
        with pytest.raises(ValueError, match=r"Pass a callable .* give bandwidth as a number"):
            make().fit(cut(64, 64))
        model = make(bandwidth=2.0).fit(cut(64, 64))
        # The origin differs, but not the span of the features and their norm.
        assert_allclose(model.rates_, make(bandwidth=2.0).fit(X).rates_, rtol=1e-9)

    @known("mismatch")
    def test_previews_are_equal_for_all_sources(self, monkeypatch):
        monkeypatch.setattr("kdmaps.estimators.fit.PREVIEW_SAMPLES", 100)
        one, two = make().fit(X), make().fit(lambda: cut(5, 400))
        assert one.kernel_.bandwidth == two.kernel_.bandwidth
        assert_array_equal(one.coefficients_, two.coefficients_)
        assert one.kernel_.bandwidth != make(random_state=1).fit(X).kernel_.bandwidth

    @pytest.mark.slow
    def test_memory_does_not_grow(self):
        def peak(n_chunks):
            def stream():
                return (
                    np.random.default_rng(k).standard_normal((2000, 4)) * [1.0, 0.8, 0.4, 0.4] for k in range(n_chunks)
                )

            make().fit(stream)  # compile
            return traced_peak(lambda: make().fit(stream))

        # 90 more chunks are 5.8 MB; the subsample of 10,000 rows and its merging take 0.3 MB a copy in both.
        assert peak(100) - peak(10) < 1e6


def test_private_changes_of_a_mapping_survive(tmp_path):
    mapped = np.load(npy(tmp_path), mmap_mode="c")
    mapped[:5] = 7.0
    source = ArraySource(mapped)
    for part in source.parts(10):
        source.read(part)
    assert np.all(mapped[:5] == 7.0)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs /proc of Linux")
def test_mapped_file_does_not_fill_memory(tmp_path):
    def resident():
        entries = Path("/proc/self/smaps").read_text().split("VmFlags")
        mine = next(entry for entry in entries if str(tmp_path) in entry)
        return int(mine.split("Rss:")[1].split()[0]) / 1024

    np.save(tmp_path / "X.npy", np.ones((10**6, 4)))  # 32 MB
    source = as_source(tmp_path / "X.npy")
    for part in source.parts(10_000):
        source.read(part)[1].sum()
    assert resident() < 2
    source.sample(1000, np.random.RandomState(0))  # a thousand rows all over the file
    assert resident() < 2


@known("discrete-columns")
def test_column_major_integers_on_disk(tmp_path):
    whole = np.asfortranarray(np.round(10 * X).astype(np.int32))
    np.save(tmp_path / "X.npy", whole)
    assert_array_equal(
        *(make(regularization=1e-4).fit(source).rates_ for source in (tmp_path / "X.npy", whole.astype(float)))
    )


class TestSearch:
    options = {"n_components": 2, "families": ["gaussian"], "n_features": 30, "random_state": 0}  # noqa: RUF012

    def test_all_samples(self, tmp_path):
        grid = {**self.options, "bandwidths": 2, "regularizations": [1e-2]}
        expected = kdmaps.KernelSearchCV(**grid).fit(X)
        for source in (npy(tmp_path), lambda: cut(100, 1)):
            search = kdmaps.KernelSearchCV(**grid).fit(source)
            assert_array_equal(search.cv_results_["selection_score"], expected.cv_results_["selection_score"])
            assert_array_equal(search.rates_, expected.rates_)

    def test_subsample(self):
        grid = {**self.options, "bandwidths": 2, "regularizations": [1e-2], "max_search_samples": 200}
        blocks = kdmaps.BlockedKFold(3, gap=20)
        search = kdmaps.KernelSearchCV(**grid, cv=blocks).fit(lambda: cut(100, 1), sample_weight=WEIGHT)
        assert search.search_result_.assignment.shape == (200, 3)
        assert search.best_estimator_.moments_.count == N
        # The same draw from an array; and gaps of 20 of all samples, not of the subsample, between the sets.
        array = kdmaps.KernelSearchCV(**grid, cv=blocks).fit(X, sample_weight=WEIGHT)
        assert_array_equal(array.cv_results_["selection_score"], search.cv_results_["selection_score"])
        rows = as_source(X).sample(200, np.random.RandomState(0), WEIGHT).rows
        for roles in search.search_result_.assignment.T:
            test, train = rows[roles == 2], rows[roles == 1]
            assert np.abs(test[:, None] - train).min() > 20

    @known("flat")  # for a Gaussian law any wide kernel will do
    def test_adaptive(self):
        options = {**self.options, "refine": False, "regularizations": [1e-2], "max_search_samples": 150}
        one, two = (adaptive(**options).fit(source) for source in (X, lambda: cut(31, 500)))
        assert_array_equal(one.rates_, two.rates_)
        assert two.best_estimator_.moments_.count == N
        assert len(two.search_result_.assignment) == 150


def test_source_can_be_reused():
    source = StreamSource(lambda: cut(100))
    assert_array_equal(make().fit(source).transform(source), make().fit(X).transform(X))
