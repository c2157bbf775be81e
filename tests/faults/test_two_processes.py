"""Two processes that use one checkpoint or one folder: files stay complete, and results are correct."""

import json
import sys
import threading
from multiprocessing import get_context

import numpy as np
import pytest

import kdmaps
from kdmaps.exceptions import DataWarning
from kdmaps.selection.checkpoint import Checkpoint
from kdmaps.utils.files import append_line, create, is_intact, read_lines, sealed
from shared import GRID

SETTINGS = {"n_components": 2, **GRID, "n_features": 30, "n_jobs": 1}
pytestmark = pytest.mark.filterwarnings("ignore::kdmaps.exceptions.UnreliableModesWarning")


def append_many(path, word, times):
    for number in range(times):
        append_line(path, sealed({"word": word, "number": number, "long": word * 5000}))


def save_many(path, times, X, seed):
    model = kdmaps.KernelDiffusionMap(2, bandwidth=3.0, n_features=40, random_state=seed).fit(X)
    for _ in range(times):
        model.save(path)


def both(target, *arguments):
    """Run a function in two processes at once, each with its arguments."""
    context = get_context("spawn" if sys.platform != "linux" else "fork")
    processes = [context.Process(target=target, args=own) for own in arguments]
    for process in processes:
        process.start()
    return processes


def test_lines_of_two_processes_are_not_mixed(tmp_path):
    path = tmp_path / "rows.jsonl"
    for process in both(append_many, (path, "a", 200), (path, "b", 200)):
        process.join()
        assert process.exitcode == 0
    found = read_lines(path)
    assert len(found) == 400
    assert all(map(is_intact, found))


def test_model_file_is_always_complete(tmp_path, X):
    paths = [tmp_path / name for name in ("a.npz", "b.npz", "both.npz")]
    for seed, path in enumerate(paths[:2]):
        save_many(path, 1, X, seed)
    whole = {path.read_bytes() for path in paths[:2]}
    save_many(paths[2], 1, X, 0)
    processes = both(save_many, *((paths[2], 100, X, seed) for seed in (0, 1)))
    looks = 0
    while any(process.is_alive() for process in processes):
        assert paths[2].read_bytes() in whole
        looks += 1
    assert looks > 10
    assert [process.exitcode for process in processes] == [0, 0]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)


def test_new_file_is_created_once(tmp_path):
    """Of many concurrent attempts, exactly one creates the file."""
    path, made = tmp_path / "new", []
    gate = threading.Barrier(16)

    def make(number):
        gate.wait()
        if create(path, b"%d" % number):
            made.append(number)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [int(path.read_bytes())] == made
    assert [path] == [*tmp_path.iterdir()]


def test_checkpoint_created_by_another_search(tmp_path, X):
    """A file created after both searches looked for it: the same search continues, a different one is refused."""
    path = tmp_path / "search.jsonl"
    first, same, other = (Checkpoint(path) for _ in range(3))
    first.begin(0, lambda: "these data", "score")
    same.begin(0, lambda: "these data", "score")
    assert same.seed == 0
    with pytest.raises(ValueError, match="belongs to other data"):
        other.begin(1, lambda: "these data", "score")
    assert len(read_lines(path)) == 1


def test_two_searches_on_one_checkpoint(tmp_path, X):
    path = tmp_path / "search.jsonl"
    whole = kdmaps.KernelSearchCV(**SETTINGS, random_state=0).fit(X)
    searches = [kdmaps.KernelSearchCV(**SETTINGS, random_state=0, checkpoint=path) for _ in range(2)]
    threads = [threading.Thread(target=search.fit, args=(X,)) for search in searches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    third = kdmaps.KernelSearchCV(**SETTINGS, random_state=0, checkpoint=path)
    for search in (*searches, third.fit(X)):
        assert search.best_params_ == whole.best_params_
        np.testing.assert_array_equal(search.transform(X), whole.transform(X))


def test_lines_of_another_search_are_ignored(tmp_path, X):
    """A search appends to its file by name, even if the file was replaced by another search."""
    path, old = tmp_path / "search.jsonl", tmp_path / "old.jsonl"
    kdmaps.KernelSearchCV(**SETTINGS, random_state=1, checkpoint=old).fit(X)
    kdmaps.KernelSearchCV(**SETTINGS, random_state=0, checkpoint=path).fit(X)
    own, foreign = read_lines(path), read_lines(old)
    path.write_text("\n".join(map(json.dumps, [own[0], *foreign[1:]])))
    search = kdmaps.KernelSearchCV(**SETTINGS, random_state=0, checkpoint=path)
    with pytest.warns(DataWarning, match="6 of 6 lines"):
        search.fit(X)
    whole = kdmaps.KernelSearchCV(**SETTINGS, random_state=0).fit(X)
    np.testing.assert_array_equal(search.transform(X), whole.transform(X))
