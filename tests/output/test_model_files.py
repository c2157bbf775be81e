"""Models on disk: what is read is what was written, and nothing else is read."""

import builtins
import json
import os
import pickle
import warnings
import zipfile
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

from kdmaps import Factor, KernelDiffusionMap
from kdmaps.analysis.evidence import Evidence
from kdmaps.bases import BASES
from kdmaps.data.support import Support
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.forms.moments import Moments
from kdmaps.kernels import FAMILIES, Gaussian, Laplacian, Matern, Metric, Mixture
from kdmaps.output import model_files as io
from kdmaps.spectrum.modes import Modes
from shared import known_warning

# Small files of 150 samples, whose modes are not the point.
pytestmark = known_warning()  # of few samples

RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 3)) * [1.0, 0.7, 0.4]
CHUNK = RNG.standard_normal((40, 3))
CHUNK.flags.writeable = X.flags.writeable = False

# Normalised a second time, these weights change in the last bit.
WEIGHTS = [0.2, 0.72, 0.08]
ROOT = [[0.9, 0.3, -0.2], [-0.5, 0.7, 0.1], [0.2, 0.4, 0.5]]
METRICS = [Metric(Matern(1.5, [1.0, 2.0, 0.5]), ROOT), Mixture([Metric(Gaussian(1.1), ROOT), Laplacian(2.0)])]
MIXTURE = Mixture([Gaussian(1.1), Mixture([Matern(1.5, 0.7), Gaussian(0.9)]), Laplacian(2.0)], WEIGHTS)


def fitted(**parameters):
    return KernelDiffusionMap(**{"n_components": 3, "n_features": 40, "random_state": 0, **parameters}).fit(X)


def reloaded(estimator, tmp_path):
    estimator.save(tmp_path / "model.npz")
    return io.load(tmp_path / "model.npz")


def assert_same(first, second, data=X, **options):
    np.testing.assert_array_equal(first.transform(data), second.transform(data), strict=True)
    np.testing.assert_array_equal(first.gradient(data), second.gradient(data), strict=True)
    assert first.score(data, **options) == second.score(data, **options)
    for name in ("eigenvalues_", "rates_", "timescales_", "coefficients_"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), strict=True)
    for field in fields(Modes):
        np.testing.assert_array_equal(getattr(first.modes_, field.name), getattr(second.modes_, field.name))
    assert first.kernel_ == second.kernel_


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("kernel", [*FAMILIES, Matern(2.5, [1.0, 2.0, 0.5]), MIXTURE, *METRICS], ids=str)
def test_a_loaded_model_equals_the_saved_one_and_goes_on(basis, kernel, tmp_path):
    model = fitted(basis=basis, kernel=kernel)
    again = reloaded(model, tmp_path)
    assert_same(model, again)
    assert again.get_params() == model.get_params()
    assert_same(model.partial_fit(CHUNK), again.partial_fit(CHUNK))
    assert again.moments_.count == 190
    assert isinstance(again.moments_.count, int)


def test_only_a_metric_needs_a_newer_reader(tmp_path):
    """Version 0.1.0 reads version 2, and asks for an upgrade where it would not know the kernel."""
    for kernel, version in [(MIXTURE, 2), (METRICS[0], 3), (METRICS[1], 3)]:
        fitted(kernel=kernel).save(tmp_path / "model.npz")
        assert io.read_header(tmp_path / "model.npz")["version"] == version


def test_float32_stays_float32(tmp_path):
    data = X.astype(np.float32)
    model = fitted().fit(data)
    again = reloaded(model, tmp_path)
    assert again.transform(data).dtype == np.float32
    assert_same(model, again, data)


def test_feature_names_are_kept_and_checked(tmp_path):
    frame = pd.DataFrame(X, columns=["φ", "ψ", "x y"])
    again = reloaded(fitted().fit(frame), tmp_path)
    assert list(again.feature_names_in_) == ["φ", "ψ", "x y"]
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame.rename(columns={"φ": "other"}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert again.set_output(transform="pandas").transform(frame).shape == (150, 3)


@known_warning("variance of mode")
@pytest.mark.parametrize("diffusion", [2.0, [1.0, 2.0, 3.0], np.diag([1.0, 2.0, 3.0]), np.tile(np.eye(3), (150, 1, 1))])
def test_diffusion_is_kept(diffusion, tmp_path):
    model = fitted(diffusion=diffusion)
    again = reloaded(model, tmp_path)
    np.testing.assert_array_equal(again.diffusion, diffusion)
    assert_same(model, again, diffusion=diffusion)


def test_a_factor_is_kept_as_a_factor(tmp_path):
    model = fitted(diffusion=Factor(RNG.standard_normal((150, 3, 3))))
    again = reloaded(model, tmp_path)
    assert isinstance(again.diffusion, Factor)
    assert_same(model, again, diffusion=again.diffusion)


def test_a_function_is_refused_with_a_way_out(tmp_path):
    def double(x):
        return 2 * np.ones(len(x))

    model = fitted(diffusion=double)
    score = model.score(X)
    with pytest.raises(ValueError, match=r"function and cannot be stored. Call set_params\(diffusion=None\)"):
        model.save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []
    again = reloaded(model.set_params(diffusion=None), tmp_path)
    assert again.score(X, diffusion=double) == score
    # Without it the energy would be another one than that of the fit.
    with pytest.raises(ValueError, match="diffusion is not that of the fit any more"):
        again.score(X)
    with pytest.raises(ValueError, match="diffusion changed after the first samples were summed"):
        again.partial_fit(CHUNK)
    again.partial_fit(CHUNK, diffusion=double)
    with pytest.raises(ValueError, match="diffusion is not that of the fit any more"):
        again.score(X)


def test_other_parameters(tmp_path):
    landmarks = X[:20].tolist()
    model = fitted(
        basis="landmarks", landmarks=landmarks, random_state=np.random.RandomState(3), regularization=np.float32(0.1)
    )
    again = reloaded(model, tmp_path)
    np.testing.assert_array_equal(again.landmarks, landmarks)
    assert again.random_state is None
    assert again.regularization == np.float32(0.1)
    assert_same(model, again)


def test_no_next_eigenvalue_is_not_taken_for_damage(tmp_path):
    model = fitted(basis="landmarks", landmarks=X[:3])
    assert np.isnan(reloaded(model, tmp_path).modes_.next_eigenvalue)


def test_unfitted_and_unknown_estimators_are_refused(tmp_path):
    class Other(KernelDiffusionMap):
        pass

    with pytest.raises(ValueError, match="not fitted"):
        io.save_model(KernelDiffusionMap(), tmp_path / "m")
    with pytest.raises(ValueError, match="Other cannot be saved"):
        io.save_model(Other(n_components=2).fit(X), tmp_path / "m")


def test_a_kernel_that_cannot_be_read_again_is_refused(tmp_path):
    class Mine(Gaussian):
        pass

    with pytest.raises(ValueError, match="Unknown kernel family 'Mine'"):
        fitted(kernel=Mine(1.0)).save(tmp_path / "m")


def test_the_name_is_kept_and_the_file_is_plain(tmp_path):
    model = fitted()
    model.save(tmp_path / "model.dat")
    model.save(str(tmp_path / "again"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again", "model.dat"]
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model.dat").read_bytes()
    with np.load(tmp_path / "again", allow_pickle=False) as archive:
        header = json.loads(archive["header"].tobytes())
        assert {archive[name].dtype.kind for name in archive.files} <= set("fiu")
    assert header["version"] == 2
    assert header["class"] == "KernelDiffusionMap"
    assert header["libraries"]["numpy"] == np.__version__


@pytest.mark.parametrize("where", ["write_archive", "fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(where, tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    fitted().save(path)
    before = path.read_bytes()

    def full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(io if where == "write_archive" else os, where, full_disk)
    with pytest.raises(OSError, match="No space left"):
        fitted(n_components=2).save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]
    assert path.read_bytes() == before


# --- bad files --------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "model.npz"
    fitted(n_features=8, n_components=2, landmarks=np.zeros((2, 3))).save(path)
    return path


def contents(path):
    """Arrays and header without a digest, as 0.1.0 wrote them: what the checks of every part are about."""
    with np.load(path) as archive:
        arrays = dict(archive)
    del arrays["digest"]
    header = json.loads(arrays.pop("header").tobytes())
    del header["sealed"], header["changed"]
    return arrays, header


def write(path, arrays, header):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    with open(path, "wb") as file:
        np.savez(file, header=np.frombuffer(text, dtype=np.uint8), **arrays)
    return path


def in_metric(root, kernel=None):
    kernel = {"family": "Gaussian", "bandwidth": 1.0} if kernel is None else kernel
    return {"kernel": {"family": "Metric", "kernel": kernel, "root": root.tolist()}}


HEADERS = {
    "newer": ({"version": 4}, "format version 4, newer than 3; upgrade kdmaps"),
    "no version": ({"version": None}, "format version None does not exist"),
    "foreign": ({"format": "other"}, "does not say 'kdmaps model'"),
    "class": ({"class": "os.system"}, "unknown estimator 'os.system'"),
    "class list": ({"class": ["KernelDiffusionMap"]}, "unknown estimator"),
    "basis": ({"basis": "ModeBasis"}, "unknown basis 'ModeBasis'"),
    "another basis": ({"basis": "LandmarkBasis"}, "basis.landmarks is missing"),
    "kernel": ({"kernel": {"family": "eval"}}, "Unknown kernel family 'eval'"),
    "kernel argument": ({"kernel": {"family": "Gaussian", "evil": 1}}, "evil"),
    "kernel value": ({"kernel": {"family": "Gaussian", "bandwidth": -1}}, "bandwidth must be positive"),
    "kernel size": ({"kernel": {"family": "Gaussian", "bandwidth": [1, 2]}}, "bandwidth has shape"),
    "kernel type": ({"kernel": "Gaussian"}, "damaged|usable"),
    "metric size": (in_metric(np.eye(2)), r"root has shape \(2, 2\), expected \(3, 3\)"),
    "metric shape": (in_metric(np.ones((3, 2))), r"root must be a finite square matrix, got shape \(3, 2\)"),
    "metric NaN": (in_metric(np.full((3, 3), np.nan)), "root must be a finite square matrix, .* with NaN or infinity"),
    "metric text": (in_metric(np.full((3, 3), "1")), "root must be a finite square matrix"),
    "metric within": (in_metric(np.eye(3), in_metric(np.eye(4))["kernel"]), r"root has shape \(4, 4\)"),
    "metric kernel": (in_metric(np.eye(3), {"family": "Gaussian", "bandwidth": [1, 2]}), "bandwidth has shape"),
    "metric alone": ({"kernel": {"family": "Metric", "root": np.eye(3).tolist()}}, "damaged"),
    "mixture": ({"kernel": {"family": "Mixture"}}, "kernels"),
    "parameter": ({"parameters": {"evil": 1}}, "has no parameter evil"),
    "parameter kind": ({"parameters": {"kernel": {"pickle": "x"}}}, "unknown kind of parameter 'pickle'"),
    "parameter array": ({"parameters": {"landmarks": {"array": "nowhere"}}}, "nowhere"),
    "dimension": ({"n_features_in": 4}, "basis.frequencies has shape"),
    "dimension type": ({"n_features_in": 3.0}, "not an integer"),
    "names": ({"feature_names_in": ["a", "b"]}, "not 3 strings"),
    "names type": ({"feature_names_in": 3}, "damaged"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_bad_headers(case, good, tmp_path):
    change, message = HEADERS[case]
    arrays, header = contents(good)
    with pytest.raises(ValueError, match=message) as caught:
        io.load(write(tmp_path / "bad.npz", arrays, {**header, **change}))
    assert "bad.npz" in str(caught.value)


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"[1]", b"{", b"null"])
def test_headers_that_are_no_header(text, good, tmp_path):
    with pytest.raises(ValueError, match="its header"):
        io.load(write(tmp_path / "bad.npz", contents(good)[0], text))


def test_a_header_without_a_field(good, tmp_path):
    arrays, header = contents(good)
    for name in set(header) - {"libraries"}:
        with pytest.raises(ValueError, match=r"bad\.npz is"):
            io.load(write(tmp_path / "bad.npz", arrays, {k: v for k, v in header.items() if k != name}))


def test_every_array_is_checked(good, tmp_path):
    arrays, header = contents(good)
    for name, array in arrays.items():
        with_nan = np.array(array, dtype=float)
        with_nan.flat[0] = np.nan
        bad = {"text": np.full(array.shape, "1"), "shape": np.zeros((*array.shape, 2)), "NaN": with_nan}
        if name == "modes.next_eigenvalue" or name.split(".")[-1] in io.UNKNOWN:
            del bad["NaN"]
        if name == "parameters.landmarks":  # checked by the next fit, like any parameter
            del bad["shape"]
        for value in bad.values():
            with pytest.raises(ValueError, match=name.replace(".", r"\.")):
                io.load(write(tmp_path / "bad.npz", {**arrays, name: value}, header))
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            io.load(write(tmp_path / "bad.npz", {k: v for k, v in arrays.items() if k != name}, header))


def test_moments_without_samples(good, tmp_path):
    arrays, header = contents(good)
    with pytest.raises(ValueError, match="no samples"):
        io.load(write(tmp_path / "bad.npz", {**arrays, "moments.weight": np.array(0.0)}, header))


class Bomb:
    def __reduce__(self):
        return builtins.exec, ("raise SystemExit('a stored model ran code')",)


def test_pickled_content_is_never_run(good, tmp_path):
    arrays, header = contents(good)
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        io.load(write(tmp_path / "bad.npz", {**arrays, "evil": np.array([Bomb()], dtype=object)}, header))
    (tmp_path / "bad.pkl").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match=r"not an \.npz archive"):
        io.load(tmp_path / "bad.pkl")


def test_a_compressed_file_is_not_unpacked(good, tmp_path):
    arrays, header = contents(good)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez_compressed(tmp_path / "bomb.npz", header=text, **arrays, more=np.zeros(10**6))
    with pytest.raises(ValueError, match="it is compressed, as no kdmaps model is"):
        io.load(tmp_path / "bomb.npz")


def test_an_array_that_claims_to_be_huge(good, tmp_path):
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(tmp_path / "huge.npz", "w") as target:
        for name in source.namelist():
            member = source.read(name)
            if name == "modes.rates.npy":
                header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000000,), }"
                member = member[:10] + header.ljust(117) + b"\n" + member[128:]
            target.writestr(name, member)
    with pytest.raises(ValueError, match="not a kdmaps model, or is truncated"):
        io.load(tmp_path / "huge.npz")


def test_foreign_files(tmp_path):
    path = tmp_path / "foreign"
    np.savez(tmp_path / "foreign.npz", a=np.ones(3))
    with pytest.raises(ValueError, match="no header"):
        io.load(tmp_path / "foreign.npz")
    for content in (b"", b"PK\x05\x06", b"time,x\n0,1\n", b"\x93NUMPY"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a kdmaps model, or is truncated"):
            io.load(path)
        with pytest.raises(ValueError, match=rf"^{path} is not a kdmaps model, or is truncated"):  # said once
            io.read_header(path)
    for read in (io.load, io.read_header):
        with pytest.raises(FileNotFoundError, match=r"There is no model .*nowhere"):
            read(tmp_path / "nowhere")
        with pytest.raises(IsADirectoryError, match=r"give the model\.npz in it"):
            read(tmp_path)


def test_a_truncated_file_is_never_read(good, tmp_path):
    content = good.read_bytes()
    path = tmp_path / "short.npz"
    for size in range(0, len(content), 97):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"short\.npz is not"):
            io.load(path)


def test_a_flipped_byte_is_found_or_harmless(good, tmp_path):
    content = good.read_bytes()
    path = tmp_path / "flipped.npz"
    expected = io.load(good).transform(X)
    for position in range(0, len(content), 61):
        changed = bytearray(content)
        changed[position] ^= 0xFF
        path.write_bytes(changed)
        try:
            found = io.load(path)
        except ValueError:
            continue
        # Not found: a date in the archive's directory, for example.
        np.testing.assert_array_equal(found.transform(X), expected)


def test_the_tables_name_every_field():
    assert [field.name for field in fields(Moments) if field.name not in ("flow", "change")] == list(io.MOMENTS)
    # Files hold rates, of which the quotients follow with the lag and the time step, parameters of the estimator.
    renamed = {"quotients": "rates"}
    stored = [renamed.get(field.name, field.name) for field in fields(Modes) if field.name != "clock"]
    assert stored == [*io.MODES, *io.FOLLOWING]
    assert [field.name for field in fields(Evidence)] == list(io.EVIDENCE)
    assert [field.name for field in fields(Support)] == list(io.SUPPORT)
    assert all(issubclass(cls, ModeTransformer) for cls in io.ESTIMATORS.values())


def test_where_a_file_cannot_be(tmp_path):
    model = KernelDiffusionMap(1, n_features=10, random_state=0).fit(np.random.default_rng(0).standard_normal((50, 2)))
    with pytest.raises(FileNotFoundError, match=r"There is no directory .*nowhere; create it first"):
        model.save(tmp_path / "nowhere" / "model.npz")
    with pytest.raises(IsADirectoryError, match="is a directory; give the name of a file"):
        model.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_0_1_0_has_no_digest(good, tmp_path):
    model = io.load(write(tmp_path / "old.npz", *contents(good)))
    assert_same(model, io.load(good))


def test_a_nested_header_is_refused(good, tmp_path):
    arrays, _ = contents(good)
    for read in (io.load, io.read_header):
        with pytest.raises(ValueError, match=r"bad\.npz is a damaged kdmaps model"):
            read(write(tmp_path / "bad.npz", arrays, b"[" * 100_000))
