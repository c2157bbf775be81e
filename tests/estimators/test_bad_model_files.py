"""Damaged files, and files that are not models: they are refused with a reason, and nothing in them is executed."""

import builtins
import json
import pickle
import zipfile

import numpy as np
import pytest

import kdmaps
from kdmaps import KernelDiffusionMap
from kdmaps.estimators import model_files as io
from shared import known

# A small file of 150 samples, whose modes are not the point.
pytestmark = known("no-gap")  # of few samples

X = np.random.default_rng(0).standard_normal((150, 3)) * [1.0, 0.7, 0.4]
X.flags.writeable = False


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "model.npz"
    KernelDiffusionMap(2, n_features=8, landmarks=np.zeros((2, 3)), random_state=0).fit(X).save(path)
    return path


def contents(path):
    """Arrays and header without a digest, as in 0.1.0, so that the checks of each part are reached."""
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


def test_files_with_an_engine_can_be_read(good, tmp_path):
    """Version 0.1.0 stored the engine of the sums, a parameter that no longer exists."""
    arrays, header = contents(good)
    parameters = {**header["parameters"], "engine": None}
    again = kdmaps.load(write(tmp_path / "old.npz", arrays, {**header, "parameters": parameters}))
    np.testing.assert_array_equal(again.transform(X), kdmaps.load(good).transform(X))


def test_files_without_checks_have_those_of_their_modes(good, tmp_path):
    """Versions 0.1.0 and 0.2.0 stored none."""
    arrays, header = contents(good)
    del header["checks"]
    old = kdmaps.load(write(tmp_path / "old.npz", arrays, header))
    assert {check.code for check in old.trust_.checks} < {check.code for check in old.checks}
    now = kdmaps.load(good).checks
    assert {*old.checks.outcomes} <= {*now.outcomes}


def in_metric(root, kernel=None):
    kernel = {"family": "Gaussian", "bandwidth": 1.0} if kernel is None else kernel
    return {"kernel": {"family": "Metric", "kernel": kernel, "root": root.tolist()}}


HEADERS = {
    "newer": ({"version": 6}, "format version 6, newer than 5; upgrade kdmaps"),
    "no version": ({"version": None}, "format version None does not exist"),
    "foreign": ({"format": "other"}, "not the header of a kdmaps model"),
    "class": ({"class": "os.system"}, "unknown estimator 'os.system'"),
    "class list": ({"class": ["KernelDiffusionMap"]}, "unknown estimator"),
    "basis": ({"basis": "ModeBasis"}, "unknown basis 'ModeBasis'"),
    "another basis": ({"basis": "LandmarkBasis"}, "basis.landmarks is missing"),
    "kernel": ({"kernel": {"family": "eval"}}, "Unknown kernel family 'eval'"),
    "kernel argument": ({"kernel": {"family": "Gaussian", "evil": 1}}, "evil"),
    "kernel value": ({"kernel": {"family": "Gaussian", "bandwidth": -1}}, "bandwidth must be positive"),
    "kernel size": ({"kernel": {"family": "Gaussian", "bandwidth": [1, 2]}}, "bandwidth has shape"),
    "kernel type": ({"kernel": "Gaussian"}, "damaged|usable"),
    "metric size": (in_metric(np.eye(2)), r"root has shape \(2, 2\), expected \(3, "),
    "metric shape": (in_metric(np.ones((3, 4))), r"root must be a finite matrix .*, got shape \(3, 4\)"),
    "metric NaN": (in_metric(np.full((3, 3), np.nan)), "root must be a finite matrix .* with NaN or infinity"),
    "metric text": (in_metric(np.full((3, 3), "1")), "root must be a finite matrix"),
    "metric within": (in_metric(np.eye(3), in_metric(np.eye(4))["kernel"]), r"root has shape \(4, 4\)"),
    "metric kernel": (in_metric(np.eye(3), {"family": "Gaussian", "bandwidth": [1, 2]}), "bandwidth has shape"),
    "metric alone": ({"kernel": {"family": "Metric", "root": np.eye(3).tolist()}}, "damaged"),
    "mixture": ({"kernel": {"family": "Mixture"}}, "kernels"),
    "parameter": ({"parameters": {"evil": 1, "dtype": "float64"}}, "evil is not a parameter"),
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
        kdmaps.load(write(tmp_path / "bad.npz", arrays, {**header, **change}))
    assert "bad.npz" in str(caught.value)


@pytest.mark.parametrize("dtype", ["U9999999", "O", "int8", "float16", ["float64"], 1e999])
def test_a_basis_has_a_floating_type(dtype, good, tmp_path):
    """Text of 10^7 characters for each of some thousand numbers would take all memory."""
    arrays, header = contents(good)
    parameters = {**header["parameters"], "dtype": dtype}
    with pytest.raises(ValueError, match="neither float32 nor float64"):
        kdmaps.load(write(tmp_path / "bad.npz", arrays, {**header, "parameters": parameters}))


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"[1]", b"{", b"null"])
def test_rejects_invalid_headers(text, good, tmp_path):
    with pytest.raises(ValueError, match="its header"):
        kdmaps.load(write(tmp_path / "bad.npz", contents(good)[0], text))


def test_a_header_without_a_field(good, tmp_path):
    arrays, header = contents(good)
    for name in set(header) - {"libraries", "checks"}:  # files of 0.2.0 have no checks
        with pytest.raises(ValueError, match=r"bad\.npz is"):
            kdmaps.load(write(tmp_path / "bad.npz", arrays, {k: v for k, v in header.items() if k != name}))


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
                kdmaps.load(write(tmp_path / "bad.npz", {**arrays, name: value}, header))
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            kdmaps.load(write(tmp_path / "bad.npz", {k: v for k, v in arrays.items() if k != name}, header))


def test_moments_without_samples(good, tmp_path):
    arrays, header = contents(good)
    with pytest.raises(ValueError, match="no samples"):
        kdmaps.load(write(tmp_path / "bad.npz", {**arrays, "moments.weight": np.array(0.0)}, header))


class Bomb:
    def __reduce__(self):
        return builtins.exec, ("raise SystemExit('a stored model ran code')",)


@pytest.mark.parametrize(
    ("parameters", "rates", "message"),
    [
        ({}, [-1.0, 2.0], "negative rates"),
        ({"lag": -3}, [1.0, 2.0], "its lag must be a positive integer"),
        ({"lag": 1.5}, [1.0, 2.0], "its lag must be a positive integer"),
        ({"lag": 1, "time_step": -0.1}, [1.0, 2.0], "its time_step must be a positive number"),
        ({"lag": True}, [1.0, 2.0], "its lag must be a positive integer"),
    ],
)
def test_impossible_times(good, tmp_path, parameters, rates, message):
    arrays, header = contents(good)
    header["parameters"] |= parameters
    arrays["modes.rates"] = np.array(rates)
    with pytest.raises(ValueError, match=message):
        kdmaps.load(write(tmp_path / "m.npz", arrays, header))


def test_pickled_content_is_never_run(good, tmp_path):
    arrays, header = contents(good)
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        kdmaps.load(write(tmp_path / "bad.npz", {**arrays, "evil": np.array([Bomb()], dtype=object)}, header))
    (tmp_path / "bad.pkl").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match=r"not an \.npz archive"):
        kdmaps.load(tmp_path / "bad.pkl")


def test_a_compressed_file_is_not_unpacked(good, tmp_path):
    arrays, header = contents(good)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez_compressed(tmp_path / "bomb.npz", header=text, **arrays, more=np.zeros(10**6))
    with pytest.raises(ValueError, match="it is compressed"):
        kdmaps.load(tmp_path / "bomb.npz")


def test_an_array_that_claims_to_be_huge(good, tmp_path):
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(tmp_path / "huge.npz", "w") as target:
        for name in source.namelist():
            member = source.read(name)
            if name == "modes.rates.npy":
                header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000000,), }"
                member = member[:10] + header.ljust(117) + b"\n" + member[128:]
            target.writestr(name, member)
    with pytest.raises(ValueError, match="not a kdmaps model, or is truncated"):
        kdmaps.load(tmp_path / "huge.npz")


def test_foreign_files(tmp_path):
    path = tmp_path / "foreign"
    np.savez(tmp_path / "foreign.npz", a=np.ones(3))
    with pytest.raises(ValueError, match="header is missing"):
        kdmaps.load(tmp_path / "foreign.npz")
    for content in (b"", b"PK\x05\x06", b"time,x\n0,1\n", b"\x93NUMPY"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a kdmaps model, or is truncated"):
            kdmaps.load(path)
        with pytest.raises(ValueError, match=rf"^{path} is not a kdmaps model, or is truncated"):  # said once
            io.read_header(path)
    for read in (kdmaps.load, io.read_header):
        with pytest.raises(FileNotFoundError, match=r"nowhere.* does not exist"):
            read(tmp_path / "nowhere")
        with pytest.raises(IsADirectoryError, match=r"give the model\.npz in it"):
            read(tmp_path)


def test_a_truncated_file_is_never_read(good, tmp_path):
    content = good.read_bytes()
    path = tmp_path / "short.npz"
    for size in range(0, len(content), 97):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"short\.npz is not"):
            kdmaps.load(path)


def test_a_flipped_byte_is_found_or_harmless(good, tmp_path):
    content = good.read_bytes()
    path = tmp_path / "flipped.npz"
    expected = kdmaps.load(good).transform(X)
    for position in range(0, len(content), 61):
        changed = bytearray(content)
        changed[position] ^= 0xFF
        path.write_bytes(changed)
        try:
            found = kdmaps.load(path)
        except ValueError:
            continue
        # Not found: a date in the archive's directory, for example.
        np.testing.assert_array_equal(found.transform(X), expected)


def test_reads_files_of_0_1_0_without_a_digest(good, tmp_path):
    old, new = kdmaps.load(write(tmp_path / "old.npz", *contents(good))), kdmaps.load(good)
    np.testing.assert_array_equal(old.transform(X), new.transform(X), strict=True)
    np.testing.assert_array_equal(old.rates_, new.rates_)


def test_a_nested_header_is_refused(good, tmp_path):
    arrays, _ = contents(good)
    for read in (kdmaps.load, io.read_header):
        with pytest.raises(ValueError, match=r"bad\.npz is a damaged kdmaps model"):
            read(write(tmp_path / "bad.npz", arrays, b"[" * 100_000))
