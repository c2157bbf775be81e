"""Files that are read and written."""

import struct
import tempfile
import tracemalloc
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import kdmaps
from kdmaps import KernelDiffusionMap, problems
from kdmaps.cli import app
from silent.case import case, close, dw


def command(*arguments: object) -> None:
    """Run a command; its output becomes a warning."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "300", "NO_COLOR": "1"})
    warnings.warn(result.output, stacklevel=2)


@case(
    2,
    "was read as the numbers of the columns",
    "tests/data/test_text.py",
)
def numeric_header() -> tuple[str, bool]:
    """`pd.DataFrame(X).to_csv(…, index=False)`, read by `kdmaps fit`: the numbers of ten columns taken for a sample."""
    X = np.column_stack([dw(), 0.3 * np.random.default_rng(0).standard_normal((600, 9))])
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "f.csv"), Path(folder, "out")
        pd.DataFrame(X).to_csv(path, index=False)
        command("fit", path, "--modes", 2, "--out", out, "--resamples", 0, "--seed", 0)
        rows, time = len((out / "modes.csv").read_text().split()) - 1, kdmaps.load(out / "model.npz").timescales_[0]
    return f"slowest time {time:.2g} (1.3), {rows} rows of modes for 600 samples", rows == 600 and close(time, 1.27)


def saved(folder: str) -> Path:
    """Return a model file."""
    KernelDiffusionMap(2, n_features=8, bandwidth=2.0, random_state=0).fit(dw()).save(Path(folder, "model.npz"))
    return Path(folder, "model.npz")


@case(
    20,
    "was damaged or edited: its digest does not belong to its content",
    "tests/estimators/test_archive.py",
)
def edited() -> tuple[str, bool]:
    """Model file whose rates were doubled, with valid checksums of its parts."""
    with tempfile.TemporaryDirectory() as folder:
        path = saved(folder)
        before = kdmaps.load(path).rates_[0]
        with np.load(path) as archive:
            arrays = dict(archive)
        np.savez(path, **{**arrays, "modes.rates": 2 * arrays["modes.rates"]})
        return f"loads, with {kdmaps.load(path).rates_[0] / before:.2g} times the rates", False


@case(
    21,
    "claim to hold more than the file",
    "tests/estimators/test_archive.py",
)
def nested() -> tuple[str, bool]:
    """Model file of 1 MB with 600 members that contain each other."""
    with tempfile.TemporaryDirectory() as folder:
        path, blob, entries = saved(folder), bytes(10**6), []
        for number in range(600):
            name, sizes = f"m{number:04}", (zlib.crc32(blob), len(blob), len(blob))
            blob = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 0, 0, 0, 33, *sizes, 5, 0) + name.encode() + blob
            entries.append((name, sizes, len(blob)))
        with zipfile.ZipFile(path, "a") as archive:
            archive.fp.seek(archive.start_dir)
            archive.fp.write(blob)
            archive.start_dir = end = archive.fp.tell()
            for name, (crc, size, _), length in entries:
                info = zipfile.ZipInfo(name)
                info.CRC, info.compress_size, info.file_size, info.header_offset = crc, size, size, end - length
                archive.filelist.append(info)
            archive._didModify = True
        tracemalloc.start()
        try:
            kdmaps.load(path)
        except ValueError as error:
            warnings.warn(str(error), stacklevel=2)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return f"{peak / 1e6:.0f} MB of memory", peak < 10e6


@case(23, "", "tests/data/test_text.py")
def formula() -> tuple[str, bool]:
    """Group label `=1+1`: first cell of the rows of modes.csv."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "f.csv"), Path(folder, "out")
        X = problems.load("ou2d-4").sample(300, random_state=0)
        frame = pd.DataFrame(X, columns=["x", "y"]).assign(run=np.repeat(["=1+1", "b", "c"], 100))
        frame.to_csv(path, index=False)
        given = ("--kernel", "gaussian", "--bandwidth", 3, "--lambda", 0.001, "--resamples", 0)
        command("fit", path, "--modes", 2, *given, "--groups", "run", "--out", out)
        label = str(pd.read_csv(out / "modes.csv").iloc[0, 1])
    return f"`{label}`", not label.startswith("=")
