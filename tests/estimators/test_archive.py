"""The archive of a model: one digest, and memory bounded by the size of the file."""

import struct
import zipfile
import zlib

import numpy as np
import pytest

import kdmaps
from kdmaps import KernelDiffusionMap
from kdmaps.estimators import model_files as io
from shared import known, traced_peak

pytestmark = known("no-gap")


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "model.npz"
    X = np.random.default_rng(0).standard_normal((150, 3)) * [1.0, 0.7, 0.4]
    KernelDiffusionMap(2, n_features=8, landmarks=np.zeros((2, 3)), random_state=0).fit(X).save(path)
    return path


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path, members):
    """Write an archive whose parts are all valid, each with its checksum."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def edited(path, change):
    with np.load(path) as archive:
        arrays = dict(archive)
    change(arrays)
    with open(path, "wb") as file:
        np.savez(file, **arrays)
    return path


def rename(arrays):
    """Swap two names; contents and their order stay."""
    swapped = {"moments.gram": "moments.energy", "moments.energy": "moments.gram"}
    renamed = {swapped.get(name, name): array for name, array in arrays.items()}
    arrays.clear()
    arrays.update(renamed)


EDITS = {
    "renamed": rename,
    "value": lambda arrays: arrays.update({"modes.rates": arrays["modes.rates"] * 2}),
    "type": lambda arrays: arrays.update({"modes.rates": arrays["modes.rates"].astype(np.float32)}),
    "names": lambda arrays: arrays.update(
        {"moments.gram": arrays["moments.energy"], "moments.energy": arrays["moments.gram"]}
    ),
    "more": lambda arrays: arrays.update({"note": np.zeros(1)}),
    "fewer": lambda arrays: arrays.pop("parameters.landmarks"),
    "no digest": lambda arrays: arrays.pop("digest"),
    "order": lambda arrays: arrays.update({"modes.rates": arrays.pop("modes.rates")}),
    "header": lambda arrays: arrays.update(
        header=np.frombuffer(arrays["header"].tobytes().replace(b'"random_state": 0', b'"random_state": 1'), np.uint8)
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_file_that_was_edited_is_refused(edit, good, tmp_path):
    """Every part is valid, with its own checksum; the whole is not what was written."""
    path = tmp_path / "edited.npz"
    path.write_bytes(good.read_bytes())
    edited(path, lambda arrays: None)
    kdmaps.load(path)  # written anew, but the same
    for read in (kdmaps.load, io.read_header):
        with pytest.raises(ValueError, match=r"edited\.npz (was damaged or|is not a usable .* its digest is missing)"):
            read(edited(path, EDITS[edit]))
        path.write_bytes(good.read_bytes())


def test_a_member_that_is_named_twice(good, tmp_path):
    members = members_of(good)
    path = write_members(tmp_path / "twice.npz", members)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("modes.rates.npy", members["modes.rates.npy"])
    with pytest.raises(ValueError, match="names a member twice"):
        kdmaps.load(tmp_path / "twice.npz")


def nested(path, count, size):
    """Add members of which each holds the next one: `count` times the size of the file, all with valid checksums."""
    content = bytes(size)
    entries, blob = [], content
    for number in range(count):
        name = f"m{count - number:04}".encode()
        local = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 0, 0, 0, 33, zlib.crc32(blob), len(blob), len(blob), 5, 0)
        entries.append((name, zlib.crc32(blob), len(blob), len(local) + len(name) + len(blob)))
        blob = local + name + blob
    members = members_of(path)
    with zipfile.ZipFile(path, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
        archive.fp.write(blob)
        end = archive.fp.tell()
        archive.start_dir = end
        for name, crc, length, distance in reversed(entries):
            info = zipfile.ZipInfo(name.decode())
            info.CRC, info.compress_size, info.file_size, info.header_offset = crc, length, length, end - distance
            info.create_system = 3
            archive.filelist.append(info)
        archive._didModify = True
    return path


def test_nested_members_do_not_fill_the_memory(good, tmp_path):
    path = tmp_path / "nested.npz"
    path.write_bytes(good.read_bytes())
    nested(path, 600, 10**6)
    assert path.stat().st_size < 1.2e6

    def load():
        with pytest.raises(ValueError, match="claim to hold more than the file"):
            kdmaps.load(path)

    assert traced_peak(load) < 3e6  # in 0.1.0 769 MB


def test_a_shape_beyond_the_file_takes_no_memory(good, tmp_path):
    members = members_of(good)
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000,), }"
    rates = members["modes.rates.npy"]
    members["modes.rates.npy"] = rates[:10] + header.ljust(117) + b"\n" + rates[128:]

    def load():
        with pytest.raises(ValueError, match=r"modes\.rates does not have the size of its shape"):
            kdmaps.load(write_members(tmp_path / "huge.npz", members))

    assert traced_peak(load) < 1e6  # the file has some 20 kB
