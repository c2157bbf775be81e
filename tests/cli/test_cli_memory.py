"""`kdmaps fit` and `transform` of files that are larger than what they may hold in memory."""

import errno
import json
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import kdmaps
from commands import run
from kdmaps.data import gather, make_writer, open_table
from kdmaps.report import _fit_sections
from shared import traced_peak

pytestmark = pytest.mark.slow

COLUMNS = 24
GIVEN = ("--modes", 1, "--features", 16, "--kernel", "gaussian", "--bandwidth", 8, "--lambda", 0.01)


#: Settings with which a few thousand rows are much.
LITTLE_MEMORY = {
    "kdmaps.data.formats.base.BLOCK_BYTES": 2**17,
    "kdmaps.data.sources.IN_MEMORY_BYTES": 0,
    "kdmaps.estimators.fit.PREVIEW_SAMPLES": 500,
    # Figures do not depend on the number of samples, and are slow while memory is traced.
    "kdmaps.report._page.SECTIONS": (_fit_sections.samples, _fit_sections.reproduction),
    "kdmaps.analysis.coarse_states": lambda *_, **__: None,
    "kdmaps.bases._base.CHUNK_BYTES": 2**17,
}


def write(path, n):
    X = np.random.default_rng(0).standard_normal((n, COLUMNS)).round(3)
    X[:, 0] *= 2  # one slow mode
    with open(path, "wb") as file:
        make_writer(path.suffix)(file, X, [f"x{j}" for j in range(COLUMNS)], {})
    return X


def peaks(commands):
    """Return the peak of memory of each command, in a new process: in this one it depends on the tests before."""
    script = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); import test_cli_memory as t; t.print_peaks()"
    command = [sys.executable, "-W", "ignore", "-c", script, json.dumps(sys.path)]
    done = subprocess.run(command, input=json.dumps(commands, default=str), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def print_peaks():
    """Run the commands of `peaks`; the first one, which imports and compiles, is not counted."""
    commands, found = json.load(sys.stdin), []

    def successful(arguments):
        result = run(*arguments)
        assert result.exit_code == 0, result.output

    with pytest.MonkeyPatch.context() as patch:
        for name, value in LITTLE_MEMORY.items():
            patch.setattr(name, value)
        successful(commands[0])
        for arguments in commands:
            found.append(traced_peak(lambda arguments=arguments: successful(arguments)))
    print(json.dumps(found))


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npy"])
def test_memory_does_not_grow_with_the_file(ending, tmp_path):
    few, many, model = tmp_path / f"few{ending}", tmp_path / f"many{ending}", tmp_path / "out" / "model.npz"
    write(few, 14_000)
    X = write(many, 24_000)
    options = ("--columns", "0:20,22", "--out", tmp_path / "out", "--resamples", 20, "--force", *GIVEN)
    other = ("--columns", "0:20,22", "--out", tmp_path / "modes.npy")
    fits = [("fit", path, *options) for path in (few, many, many)]
    transforms = [("transform", model, path, *other) for path in (few, many)]
    before, *after, small, large = peaks([*fits, *transforms])
    # 10,000 more rows of 21 columns are 1.7 MB; the one mode at these rows is 0.08 MB, of which there are two copies,
    # and the peaks of two runs differ by up to 0.9 MB by when their threads meet.
    assert min(after) - before < 1.2e6
    assert large - small < 1.2e6
    model = kdmaps.load(model)
    chosen = X[:, [*range(20), 22]]
    settings = {"kernel": "gaussian", "bandwidth": 8.0, "n_features": 16, "regularization": 0.01, "random_state": 0}
    expected = kdmaps.KernelDiffusionMap(1, **settings)
    np.testing.assert_allclose(model.rates_, expected.fit(chosen).rates_, rtol=1e-10)  # text has all three decimals


def test_small_files_are_arrays_and_large_ones_are_mapped(tmp_path, monkeypatch):
    X = write(tmp_path / "X.csv", 50)
    whole = gather(open_table(tmp_path / "X.csv").select())
    assert not isinstance(whole, np.memmap)
    monkeypatch.setattr("kdmaps.data.sources.IN_MEMORY_BYTES", X.nbytes - 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mapped = gather(open_table(tmp_path / "X.csv").select())
    assert isinstance(mapped, np.memmap)
    np.testing.assert_array_equal(mapped, X)
    np.testing.assert_array_equal(whole, X)
    assert [path.name for path in tmp_path.iterdir()] == ["X.csv"]  # the copy has no name


def test_a_full_disk(tmp_path, monkeypatch):
    write(tmp_path / "X.csv", 50)

    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", Full)
    result = run("fit", tmp_path / "X.csv", *GIVEN, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "TMPDIR" in result.stderr
    assert not (tmp_path / "out").exists()


def test_weights_of_another_length(tmp_path):
    write(tmp_path / "X.csv", 50)
    np.save(tmp_path / "w.npy", np.ones(49))
    result = run("fit", tmp_path / "X.csv", *GIVEN, "--weights", tmp_path / "w.npy")
    assert result.exit_code == 2
    assert "--weights: " in result.stderr
    assert "has 49 rows, but" in result.stderr
