"""Files with flipped, missing and inserted bytes give a ValueError that names the file, or the original content.

Text, `.npy` and Zarr do not have checksums, so a changed digit cannot be detected; for these, the result must still be
a table read in bounded memory.
"""

import json
import tempfile
import warnings
from functools import cache
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from outcomes import TIMES, count

import kdmaps
from experiments._runner import run_tasks
from kdmaps.data import make_writer, open_table
from shared import GRID, traced_peak

pytestmark = pytest.mark.slow
ROWS = np.random.default_rng(0).standard_normal((60, 2))
#: Maximum memory for reading a damaged file of a few kilobytes: a few blocks of 4 MB.
MAX_MEMORY = 64 * 2**20
#: Number of rows after which reading stops: missing chunks of a Zarr array with a damaged size are zeros.
MANY = 10**6
USUAL = settings(
    deadline=None,
    derandomize=TIMES == 1,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@st.composite
def damages(draw):
    """Return a function that flips, truncates, removes, repeats or inserts bytes."""
    kind = draw(st.sampled_from(["flip", "flip", "cut", "leave out", "repeat", "insert"]))
    places = draw(st.lists(st.floats(0, 1, exclude_max=True), min_size=2, max_size=4))
    mask, foreign = draw(st.integers(1, 255)), draw(st.binary(min_size=1, max_size=8))

    def damage(content):
        where = [int(place * len(content)) for place in places]
        first, last = min(where[:2]), max(where[:2])
        if kind == "cut":
            return content[:first]
        if kind == "leave out":
            return content[:first] + content[last:]
        if kind == "repeat":
            return content[:last] + content[first:]
        if kind == "insert":
            return content[:first] + foreign + content[first:]
        changed = bytearray(content)
        for place in where if len(places) > 2 else where[:1]:
            changed[place] ^= mask
        return bytes(changed)

    return damage


def write_text_table(path, delimiter):
    np.savetxt(path, ROWS, delimiter=delimiter, header=delimiter.join("xy"), comments="", fmt="%.6f")


def write_zarr(path):
    import zarr

    zarr.create_array(str(path), shape=ROWS.shape, chunks=(16, 2), dtype=ROWS.dtype)[:] = ROWS


def write_by_kdmaps(path):
    with path.open("wb") as file:
        make_writer(path.suffix)(file, ROWS, ["x", "y"], {})


#: name: (how a file is written, whether it has checksums)
FORMATS = {
    "t.csv": (lambda path: write_text_table(path, ","), False),
    "t.tsv": (lambda path: write_text_table(path, "\t"), False),
    "t.dat": (lambda path: write_text_table(path, " "), False),
    "t.npy": (lambda path: np.save(path, ROWS), False),
    "t.zarr": (write_zarr, False),
    "stored.npz": (lambda path: np.savez(path, X=ROWS), True),
    "packed.npz": (lambda path: np.savez_compressed(path, X=ROWS, w=ROWS[:, 0]), True),
    "t.parquet": (write_by_kdmaps, True),
}


@cache
def written(name):
    """The files of a table as {name within its folder: bytes}; one file has the name ""."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        FORMATS[name][0](path)
        if path.is_file():
            return {"": path.read_bytes()}
        return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def restored(folder, name, files):
    path = Path(folder) / name
    for inner, content in files.items():
        target = path / inner if inner else path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return path


def read(path):
    """All columns of a table, up to MANY rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = open_table(path)
        blocks, rows = [], 0
        for block in table.blocks(list(range(table.width))):
            blocks.append(block)
            rows += len(block)
            if rows > MANY:
                break
        for name in table.extras:
            for _ in table.extras[name]():
                pass
    return np.concatenate(blocks) if blocks else np.empty((0, table.width))


@pytest.mark.parametrize("name", FORMATS)
@given(damage=damages(), which=st.floats(0, 1, exclude_max=True))
@settings(USUAL, max_examples=60 * TIMES)
def test_tables(name, damage, which):
    files = dict(written(name))
    inner = [*files][int(which * len(files))]
    files[inner] = damage(files[inner])
    found, said = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = restored(folder, name, files)

        def attempt():
            try:
                found.append(read(path))
            except ValueError as error:
                said.append(str(error))

        assert traced_peak(attempt) < MAX_MEMORY
    assert all(name in text for text in said)
    same = bool(found) and found[0].shape == ROWS.shape and np.allclose(found[0], ROWS, rtol=0, atol=1e-6)
    if FORMATS[name][1]:
        assert same or not found
    count(name.replace("t.", "a ."), "as written" if same else "other numbers" if found else "error")


@cache
def model_file():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        kdmaps.KernelDiffusionMap(2, bandwidth=3.0, n_features=8, random_state=0).fit(ROWS).save(path)
        return path.read_bytes(), kdmaps.load(path).transform(ROWS)


@given(damage=damages())
@settings(USUAL, max_examples=300 * TIMES)
def test_models(damage):
    content, expected = model_file()
    found, said = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        path.write_bytes(damage(content))

        def attempt():
            try:
                found.append(kdmaps.load(path).transform(ROWS))
            except ValueError as error:
                said.append(str(error))

        assert traced_peak(attempt) < MAX_MEMORY
    assert all("model.npz" in text for text in said)
    for modes in found:
        np.testing.assert_array_equal(modes, expected)
    count("a model", "as written" if found else "error")


SEARCH = {"n_components": 2, **GRID, "families": ["gaussian"], "bandwidths": 2, "n_features": 10, "random_state": 0}


@cache
def checkpoint():
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "search.jsonl"
        search = kdmaps.KernelSearchCV(**SEARCH, n_jobs=1, checkpoint=path).fit(ROWS)
        return path.read_bytes(), search.transform(ROWS)


@given(damage=damages())
@settings(USUAL, max_examples=60 * TIMES)
def test_checkpoints(damage):
    content, expected = checkpoint()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "search.jsonl"
        path.write_bytes(damage(content))
        try:
            found, said = kdmaps.KernelSearchCV(**SEARCH, n_jobs=1, checkpoint=path).fit(ROWS), ""
        except ValueError as error:
            found, said = None, str(error)
    if found is None:
        assert "search.jsonl" in said
    else:
        np.testing.assert_array_equal(found.transform(ROWS), expected)
    count("a checkpoint", "error" if found is None else "as written")


def square(x):
    return [{"x": x, "square": x * x}]


@cache
def rows_file():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        run_tasks(square, TASKS, path, jobs=1, show=False)
        assert all("checksum" in json.loads(line) for line in path.read_text().split("\n") if line)
        return path.read_bytes()


TASKS = [{"x": x} for x in range(8)]


@given(damage=damages())
@settings(USUAL, max_examples=100 * TIMES)
def test_rows_of_experiments(damage):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_bytes(damage(rows_file()))
        rows = run_tasks(square, TASKS, path, jobs=1, show=False)
    assert [row["square"] for row in rows] == [x * x for x in range(8)]
    count("rows of an experiment", "as written")
