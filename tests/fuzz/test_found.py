"""Defects found by fuzzing, each as a separate test."""

import numpy as np
import pytest

import kdmaps
from kdmaps.data import make_writer, open_table
from kdmaps.spectrum.path import RegularizationPath
from shared import known, traced_peak


def test_partial_fit_of_one_sample(X):
    """A chunk of a single row."""
    model = kdmaps.KernelDiffusionMap(2, n_features=30, bandwidth=3.0, random_state=0)
    model.fit(X[:-1]).partial_fit(X[-1:])
    features = model.basis_.features(X)
    np.testing.assert_allclose(model.moments_.gram, features.T @ features, rtol=1e-10, atol=1e-10)  # rounding


def test_memory_limit_changed_after_the_fit(X):
    model = kdmaps.KernelDiffusionMap(2, n_features=30, bandwidth=3.0, random_state=0).fit(X)
    model.set_params(memory_limit="much")
    for call in (model.transform, model.score):
        with pytest.raises(ValueError, match="memory_limit must be"):
            call(X)


def test_parameter_that_cannot_be_stored(X, tmp_path):
    model = kdmaps.KernelDiffusionMap(2, n_features=30, bandwidth=3.0, random_state=0).fit(X)
    with pytest.raises(ValueError, match="regularization=inf cannot be stored"):
        model.set_params(regularization=np.inf).save(tmp_path / "model.npz")
    assert [*tmp_path.iterdir()] == []


@known("scales", "outliers", "ridge", "energy-samples", "variance-samples")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_model_with_overflowing_distances_can_be_loaded(tmp_path):
    far = np.random.default_rng(0).standard_normal((40, 2))
    far[0, 0] = 1e300
    model = kdmaps.KernelDiffusionMap(1, n_features=8, bandwidth=1.0, random_state=0).fit(far)
    assert not np.isfinite(model.support_.radius)
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(kdmaps.load(tmp_path / "model.npz").rates_, model.rates_)


def test_matrix_without_eigenvalues():
    with pytest.raises(np.linalg.LinAlgError, match=r"eigenvalues of L.* too extreme"):
        RegularizationPath(np.eye(3), np.full((3, 3), np.nan))


def test_array_shorter_than_its_file(tmp_path):
    """numpy maps the first rows of such a file without an error."""
    path = tmp_path / "t.npy"
    np.save(path, np.ones((60, 2)))
    path.write_bytes(path.read_bytes().replace(b"(60, 2)", b"(20, 2)"))
    assert np.load(path, mmap_mode="r").shape == (20, 2)
    with pytest.raises(ValueError, match=r"t\.npy cannot be read .* does not match its shape \(20, 2\)"):
        open_table(path)


def test_invalid_text_in_a_late_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"x,y\n" + 50 * b"1.0,2.0\n" + b"1.0,\xc6\n")
    with pytest.raises(ValueError, match=r"t\.csv cannot be read as text: .*0xc6"):
        open_table(path).column("x")


def test_field_too_long(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"x," + 200_000 * b"y" + b"\n1.0,2.0\n")
    with pytest.raises(ValueError, match=r"t\.csv .*field limit"):
        open_table(path)


def test_flipped_bit_in_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    path, values = tmp_path / "t.parquet", np.random.default_rng(0).standard_normal((60, 2))
    with path.open("wb") as file:
        make_writer(".parquet")(file, values, ["x", "y"], {})
    content = bytearray(path.read_bytes())
    content[content.index(values[30, 0].tobytes()) + 6] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"t\.parquet cannot be read as Parquet"):
        open_table(path).column("x")


def test_damaged_chunk_of_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "t.zarr"
    zarr.create_array(str(path), shape=(60, 2), chunks=(16, 2), dtype=float)[:] = np.ones((60, 2))
    chunk = max((place for place in path.rglob("*") if place.is_file()), key=lambda place: "c" in place.parts)
    chunk.write_bytes(b"garbage")
    with pytest.raises(ValueError, match=r"t\.zarr cannot be read as Zarr"):
        open_table(path).column("0")


@known("within-lag", "no-gap", "no-memory")
def test_reversible_changed_after_the_fit(X, tmp_path):
    """The file contains the fitted model, not the changed parameter."""
    model = kdmaps.KernelDiffusionMap(2, n_features=30, bandwidth=3.0, lag=1, random_state=0).fit(X)
    model.set_params(reversible=False).save(tmp_path / "model.npz")
    np.testing.assert_array_equal(kdmaps.load(tmp_path / "model.npz").transform(X), model.transform(X))


@known("within-lag", "no-gap", "no-memory")
@pytest.mark.parametrize("changed", [{"dtype": "nonsense"}, {"dtype": "float32"}, {"time_step": "soon"}, {"lag": 7}])
def test_parameters_changed_after_the_fit(changed, X, tmp_path):
    """The file contains the parameters of the fit."""
    model = kdmaps.KernelDiffusionMap(2, n_features=30, bandwidth=3.0, lag=1, random_state=0).fit(X)
    model.set_params(**changed).save(tmp_path / "model.npz")
    loaded = kdmaps.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X), strict=True)
    np.testing.assert_array_equal(loaded.rates_, model.rates_)
    assert loaded.modes_.clock == model.modes_.clock
    loaded.partial_fit(X)  # with the parameters of the fit


def claiming(content, name, size):
    """An archive whose directory gives a stored member another compressed size."""
    entry = content.rindex(name.encode()) - 46  # its record in the central directory
    assert content[entry : entry + 4] == b"PK\1\2"
    return content[: entry + 20] + size.to_bytes(4, "little") + content[entry + 24 :]


@pytest.mark.parametrize("order", "CF")
def test_member_larger_than_the_file(order, X, tmp_path):
    """zipfile allocates as much memory as the directory of an archive claims for a member."""
    path, claim = tmp_path / "model.npz", 2**30
    kdmaps.KernelDiffusionMap(2, n_features=30, bandwidth=3.0, random_state=0).fit(X).save(path)
    path.write_bytes(claiming(path.read_bytes(), "digest.npy", claim))
    np.savez(tmp_path / "t.npz", X=np.asarray(X, order=order))
    (tmp_path / "t.npz").write_bytes(claiming((tmp_path / "t.npz").read_bytes(), "X.npy", claim))

    def attempt():
        with pytest.raises(ValueError, match=r"model\.npz .* claim to hold more than the file"):
            kdmaps.load(path)
        with pytest.raises(ValueError, match=r"t\.npz .* larger than the file"):
            open_table(tmp_path / "t.npz")

    assert traced_peak(attempt) < claim / 100


def test_damaged_name_of_an_array(tmp_path):
    """The column must not be left out silently."""
    path = tmp_path / "t.npz"
    np.savez(path, x=np.zeros(60), y=np.ones(60))
    content = path.read_bytes()
    path.write_bytes(content[: (last := content.rindex(b"y.npy"))] + b"y.npx" + content[last + 5 :])
    with pytest.raises(ValueError, match=r"t\.npz cannot be read as an archive of arrays"):
        open_table(path)
