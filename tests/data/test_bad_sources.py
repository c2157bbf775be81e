"""Errors of sources that cannot be read; files are not left incomplete."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kdmaps import KernelDiffusionMap
from kdmaps.data import as_source
from kdmaps.data.sources import check_finite
from shared import known

pytestmark = known("no-gap")

N, DIM = 700, 3
X = np.random.default_rng(0).standard_normal((N, DIM)) * [1.0, 0.8, 0.4]
X.flags.writeable = False


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("kdmaps.data.formats.base.BLOCK_BYTES", 24 * 101)  # several blocks in every file


def cut(size):
    """A generator of a chunk of this size, and the rest."""
    return iter(np.split(X, [size]))


def make(**options):
    return KernelDiffusionMap(**{"n_components": 2, "n_features": 30, "random_state": 0, **options})


def test_unknown_suffix(tmp_path):
    (tmp_path / "X.xyz").touch()
    with pytest.raises(ValueError, match=r"X: .*X\.xyz: .*known are \.csv, .*\.npz.*callable"):
        make().fit(tmp_path / "X.xyz")


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"X: .*X\.npy does not exist"):
        make().fit(tmp_path / "X.npy")


def test_not_an_array(tmp_path):
    (tmp_path / "X.npy").write_bytes(b"hello")
    with pytest.raises(ValueError, match=r"X: .*X\.npy cannot be read"):
        make().fit(tmp_path / "X.npy")


def test_several_arrays(tmp_path):
    np.savez(tmp_path / "X.npz", a=X, b=X)
    with pytest.raises(ValueError, match=r"X: .*a \(700, 3\), b \(700, 3\); choose .* with array"):
        make().fit(tmp_path / "X.npz")


def test_first_line_of_a_csv(tmp_path):
    # A byte-order mark is not a name, and numbers with a gap are a broken sample, not a header.
    path = tmp_path / "marked.csv"
    path.write_text("1,2\n3,4\n", encoding="utf-8-sig")
    assert_array_equal(as_source(path).sample(None, np.random.RandomState(0)).X, [[1, 2], [3, 4]])
    path.write_text("1,\n3,4\n")
    with pytest.raises(ValueError, match="line 1"):
        as_source(path).sample(None, np.random.RandomState(0))


def test_text_in_csv(tmp_path):
    (tmp_path / "X.csv").write_text("1,2\n3,4\n5,six\n")
    with pytest.raises(ValueError, match=r"X\.csv, .*'six'"):
        make().fit(tmp_path / "X.csv")
    (tmp_path / "X.csv").write_text("a,b\n3,four\n")
    with pytest.raises(ValueError, match=r"X: .*X\.csv has columns of text: b"):
        make().fit(tmp_path / "X.csv")


def test_wrong_width():
    with pytest.raises(ValueError, match="Chunk 1 of X has 2 columns, previous chunks have 3"):
        make().fit(lambda: iter([X[:9], X[:9, :2]]))


@pytest.mark.parametrize("chunk", [X[:, 0], "abc", np.array([["a"]]), None])
def test_not_a_chunk(chunk):
    with pytest.raises(ValueError, match=r"Chunk 1 of X .* two dimensions"):
        make().fit(lambda: iter([X, chunk]))


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_not_finite(value, what, tmp_path):
    bad = X.copy()
    bad[[130, 257], 1] = value
    np.save(tmp_path / "X.npy", bad)
    for source in (tmp_path / "X.npy", lambda: iter(np.split(bad, 7))):
        model = make(bandwidth=1.0)
        with pytest.raises(ValueError, match=rf"contains {what} in row\(s\) 130"):
            model.fit(source)
        assert not hasattr(model, "n_features_in_")


def test_huge_numbers_are_not_infinity():
    check_finite(np.full((4, 2), 1e308), slice(0, 4))


def test_same_iterator_twice():
    chunks = cut(50)
    with pytest.raises(ValueError, match="same iterator twice"):
        make().fit(lambda: chunks)


def test_fewer_rows_in_the_second_pass():
    lengths = iter([100, 100, 90])
    with pytest.raises(ValueError, match="returned 90 rows instead of 100"):
        make().fit(lambda: iter([X[: next(lengths)]]))


def test_empty_iterator():
    for chunks in ([], [X[:0]]):
        with pytest.raises(ValueError, match=r"0 sample\(s\)\. An iterator is empty"):
            make().fit(iter(chunks))


@pytest.mark.parametrize("length", [N - 1, N + 1])
def test_weights_of_a_stream(length):
    with pytest.raises(ValueError, match="sample_weight has"):
        make(bandwidth=1.0).fit(lambda: cut(100), sample_weight=np.ones(length))


def test_tensors_of_a_stream():
    with pytest.raises(ValueError, match=r"diffusion .* stream of unknown length"):
        make(diffusion=np.tile(np.eye(DIM), (N, 1, 1))).fit(lambda: cut(100))


def test_suffix_of_out(tmp_path):
    with pytest.raises(ValueError, match=r"out must be the name of a \.npy file"):
        make().fit(X).transform(X, out=tmp_path / "modes.csv")


def test_failed_transform_keeps_the_old_file(tmp_path):
    model = make().fit(X)
    (tmp_path / "modes.npy").write_text("before")
    with pytest.raises(ValueError, match="contains NaN"):
        model.transform(lambda: iter([X, np.full((3, DIM), np.nan)]), out=tmp_path / "modes.npy")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]
