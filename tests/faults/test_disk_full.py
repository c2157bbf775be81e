"""A full disk: the error names the file, and existing files are unchanged."""

import errno
import subprocess

import numpy as np
import pytest

import kdmaps
from kdmaps.data import make_writer
from kdmaps.utils.files import append_line, create, read_lines, replacing, write_text
from shared import GRID

SIZE = 256 * 1024


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """A file system of 256 kB."""
    place = tmp_path_factory.mktemp("disk")
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("cannot mount a file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.fixture
def full(disk):
    """The same file system with 4 kB of free space."""
    for path in disk.iterdir():
        path.unlink()
    (disk / "ballast").write_bytes(bytes(SIZE - 3 * 4096))
    for name in ("model.npz", "modes.npy"):
        (disk / name).write_bytes(b"old content")
    return disk


def saved(model, X, folder):
    model.save(folder / "model.npz")


def transformed(model, X, folder):
    model.transform(np.tile(X, (40, 1)), out=folder / "modes.npy")


def reported(model, X, folder):
    kdmaps.report.write_report(model, X, folder / "report.html")


def written(suffix):
    def write(model, X, folder):
        with replacing(folder / f"modes{suffix}") as (file,):
            make_writer(suffix)(file, np.tile(X, (40, 1)), ["x", "y"], {})

    return write


WAYS = {"save": saved, "transform": transformed, "report": reported}
WAYS |= {suffix: written(suffix) for suffix in (".npy", ".npz", ".csv", ".parquet")}


@pytest.mark.parametrize("way", WAYS)
def test_full_disk(way, full, X):
    model = kdmaps.KernelDiffusionMap(2, n_features=80, bandwidth=3.0, random_state=0).fit(X)
    before = {path.name: path.read_bytes() for path in full.iterdir()}
    with pytest.raises(OSError, match=r"(model|modes|report)\.\w+ could not be written") as caught:
        WAYS[way](model, X, full)
    assert caught.value.errno == errno.ENOSPC
    assert {path.name: path.read_bytes() for path in full.iterdir()} == before


def test_search_continues_after_space_was_freed(full, X):
    settings = {"n_components": 2, **GRID, "n_features": 30, "random_state": 0, "n_jobs": 1}
    whole = kdmaps.KernelSearchCV(**settings).fit(X)
    search = kdmaps.KernelSearchCV(**settings, checkpoint=full / "search.jsonl")
    with pytest.raises(OSError, match=r"search\.jsonl could not be written"):
        search.fit(X)
    assert not hasattr(search, "best_params_")
    begun = len(read_lines(full / "search.jsonl"))
    assert begun >= 2  # the header, and a kernel at least
    (full / "ballast").unlink()
    np.testing.assert_array_equal(search.fit(X).transform(X), whole.transform(X))
    assert len(read_lines(full / "search.jsonl")) == 1 + 6  # one line for each kernel, including the first ones


def test_incomplete_line_is_ignored(full):
    path = full / "rows.jsonl"
    append_line(path, {"a": 1})
    with pytest.raises(OSError, match=r"rows\.jsonl could not be written"):
        append_line(path, {"b": "x" * SIZE})
    (full / "ballast").unlink()
    append_line(path, {"c": 3})
    assert read_lines(path) == [{"a": 1}, {"c": 3}]


def test_incomplete_new_file_is_removed(full):
    with pytest.raises(OSError, match=r"new\.jsonl could not be written"):
        create(full / "new.jsonl", bytes(SIZE))
    with pytest.raises(OSError, match=r"table\.md could not be written"):
        write_text(full / "table.md", "σ" * SIZE)
    assert sorted(path.name for path in full.iterdir()) == ["ballast", "model.npz", "modes.npy"]
