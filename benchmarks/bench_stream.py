"""Fits and transforms of data on disk: time, peak memory, growth with N, and exactness of the sums.

Run `python -m benchmarks.bench_stream` from the root of the repository; `--rows` takes fewer samples. The samples are
written to a temporary file first (80 bytes each), in `--directory`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks._show import at_most, make_table, show
from benchmarks._timing import best_times, peak_memory_above
from kdmaps import KernelDiffusionMap
from kdmaps.data import ArraySource
from kdmaps.utils.blas import add_gram
from kdmaps.utils.threads import map_reduce, n_threads, slices

ROWS, DIM, FEATURES = 10_000_000, 10, 300
MEMORY_GOAL, TIME_GOAL, GROWTH_GOAL = 500, 1.3, 0.1
#: The relative rounding error of a sum of N numbers falls like 1/√N: the sums lose no digit if their error stays near
#: the rounding error of one number.
EXACTNESS_GOAL = 1e-14


def write_samples(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(rows, DIM))
    for part in slices(rows, 2**17):
        out[part] = rng.standard_normal((part.stop - part.start, DIM))


def bare_products(path: Path, chunk_rows: int) -> np.ndarray:
    """Read the same chunks from the same file, and one symmetric product for each, one thread per core."""
    source = ArraySource(np.load(path, mmap_mode="r"), checked=True)
    Z = np.random.default_rng(1).standard_normal((chunk_rows, FEATURES))

    def step(state, part):
        _, chunk = source.read(part)
        add_gram(state, Z[: len(np.array(chunk))])

    return sum(map_reduce(source.parts(chunk_rows), lambda: np.zeros((FEATURES, FEATURES)), step))


def memory(statement: str) -> float:
    """Peak memory in MB above an interpreter that has loaded all libraries and compiled code."""
    return peak_memory_above(
        "import warnings; warnings.simplefilter('ignore')\n"
        "import numpy as np; from kdmaps import KernelDiffusionMap\n"
        f"model = KernelDiffusionMap(n_features={FEATURES}, random_state=0)\n"
        f"small = np.random.default_rng(1).standard_normal((2000, {DIM}))\n"
        "model.fit(small).transform(small)",
        statement,
    )


def exactness(rows: int) -> float:
    """Relative error of the sums of `partial_fit` over chunks of many sizes, with a mean 1e4 deviations from zero.

    The reference adds the same features in extended precision.
    """
    rng = np.random.default_rng(2)
    model = KernelDiffusionMap(2, bandwidth=2.0, n_features=6, random_state=0)
    total, gram, left = np.zeros(6, np.longdouble), np.zeros((6, 6), np.longdouble), rows
    while left:
        X = rng.standard_normal((min(left, int(10 ** rng.uniform(2, 5.5))), 1)) + 1e4
        model.partial_fit(X)
        phi = model.basis_.features(X).astype(np.longdouble)
        total, gram, left = total + phi.sum(axis=0), gram + phi.T @ phi, left - len(X)
    moments = model.moments_
    assert moments.count == rows
    errors = [np.abs(a - b).max() / np.abs(b).max() for a, b in ((moments.total, total), (moments.gram, gram))]
    return float(max(errors))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--repeats", type=int, default=2, help="runs of which the best counts")
    parser.add_argument("--directory", type=Path, help="where the samples are written (a temporary directory)")
    arguments = parser.parse_args()
    rows = arguments.rows
    warnings.simplefilter("ignore")  # warnings about modes of random numbers

    title = f"Streams, N={rows:,}, d={DIM}, p={FEATURES}, {n_threads()} threads, best of {arguments.repeats}"
    table = make_table(title, "what", "value", "goal", "time")
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        path, tenth, out = (Path(directory) / name for name in ("X.npy", "tenth.npy", "modes.npy"))
        write_samples(path, rows)
        write_samples(tenth, rows // 10)
        model = KernelDiffusionMap(n_features=FEATURES, random_state=0).fit(tenth)
        single = KernelDiffusionMap(n_features=FEATURES, random_state=0, dtype="float32")
        chunk = model.basis_.chunk_rows
        times = best_times(
            {
                "bare": lambda: bare_products(path, chunk),
                "fit": lambda: model.fit(path),
                "single": lambda: single.fit(path),
                "tenth": lambda: model.fit(tenth),
            },
            arguments.repeats,
        )
        start = time.perf_counter()
        model.transform(path, out=out)
        transform = time.perf_counter() - start
        ratio, growth = times["fit"] / times["bare"], times["fit"] / times["tenth"] / 10
        table.add_row("bare products + reading", "", "", f"{times['bare']:.2f} s")
        table.add_row("fit from a .npy file", f"{ratio:.2f} bare", at_most(ratio, TIME_GOAL), f"{times['fit']:.2f} s")
        table.add_row("    in float32", f"{times['single'] / times['bare']:.2f} bare", "", f"{times['single']:.2f} s")
        table.add_row(
            "    a tenth of the samples, per sample: excess",
            f"{growth - 1:+.1%}",
            at_most(abs(growth - 1), GROWTH_GOAL),
            f"{times['tenth']:.2f} s",
        )
        table.add_row("transform to a .npy file", "", "", f"{transform:.2f} s")
        for name, statement in (
            ("fit", f"model.fit({str(path)!r})"),
            ("fit with memory_limit=50", f"model.set_params(memory_limit=50).fit({str(path)!r})"),
            ("transform", f"model.transform({str(path)!r}, out={str(out)!r})"),
        ):
            peak = memory(statement)
            table.add_row(f"peak memory, {name}", f"{peak:.0f} MB", at_most(peak, MEMORY_GOAL), "")
    error = exactness(rows)
    table.add_row("error of sums, p=6, mean far from zero", f"{error:.1e}", at_most(error, EXACTNESS_GOAL), "")
    show(table, None if rows < ROWS else "stream")


if __name__ == "__main__":
    main()
