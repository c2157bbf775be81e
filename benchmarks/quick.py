"""Costs of fits and commands as ratios to matrix products, in two minutes; exit code 1 if a ratio exceeds its limit.

Run `make bench-quick` (or `python -m benchmarks.quick`) on an idle machine before every release. Limits are about
15 % above the ratios of a quiet machine with two cores: they find costs that have crept in, not small changes.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks import bench_engine, bench_lagged, bench_stream, bench_threads
from benchmarks._show import at_most, make_table, show
from benchmarks._timing import best_times
from kdmaps import AdaptiveDiffusionMap, KernelDiffusionMap
from kdmaps.dynamics import forecast
from kdmaps.estimators.cost import unit_seconds
from kdmaps.problems import load
from kdmaps.utils.threads import n_threads

#: Upper limits of the ratios.
LIMITS = {
    "fit, d=10, p=300 / syrk": 1.35,
    "fit, d=60, p=1024 / syrk": 1.6,
    "fit at landmarks, gaussian / syrk": 3.8,
    "fit at landmarks, matern32 / syrk": 4.8,
    "fit from a file / products and reading": 1.3,
    "fit of pairs / (syrk + gemm)": 1.2,
    "default, 500 × 3 / syrk of 100,000 × 300": 12.5,
    "default, 100,000 × 10 / syrk of 100,000 × 300": 60.0,
    "default, 300 × 600 / default, 300 × 10": 3.5,
    "default, 1,000 × 500 / default, 1,000 × 10, CPU": 5.0,
    "committor, 1,000 × 2 / unit, CPU": 50.0,
    "forecast, 2,000 × 2 / unit, CPU": 20.0,
    "forecast again, 100 values / one value, CPU": 25.0,
    "kdmaps fit --lag, 3,000 × 1 / unit, CPU": 230.0,
}
ROWS, FEATURES, REPEATS = 100_000, 300, 5


def engine() -> dict[str, float]:
    """Ratios of fits in memory, with Fourier features and with landmarks."""
    narrow = bench_engine.time_fit(ROWS, 10, FEATURES, REPEATS)
    wide = bench_engine.time_fit(ROWS // 2, 60, 1024, 2)
    found = {"fit, d=10, p=300 / syrk": narrow, "fit, d=60, p=1024 / syrk": wide}
    for kernel in ("gaussian", "matern32"):
        options = {"basis": "landmarks", "landmarks": bench_engine.samples(FEATURES, 10), "kernel": kernel}
        found[f"fit at landmarks, {kernel} / syrk"] = bench_engine.time_fit(ROWS, 10, FEATURES, 3, **options)
    return {name: times["fit"] / times["syrk"] for name, times in found.items()}


def stream() -> dict[str, float]:
    """Ratio of a fit from a .npy file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        bench_stream.write_samples(path, 2 * ROWS)
        model = KernelDiffusionMap(n_features=FEATURES, random_state=0).fit(path)
        rows = model.basis_.chunk_rows
        jobs: dict[str, Callable[[], object]] = {
            "bare": lambda: bench_stream.bare_products(path, rows),
            "fit": lambda: model.fit(path),
        }
        times = best_times(jobs, REPEATS)
    return {"fit from a file / products and reading": times["fit"] / times["bare"]}


def lagged() -> dict[str, float]:
    """Ratio of a fit of pairs of frames."""
    times = bench_lagged.time_fit(ROWS, 10, FEATURES, REPEATS)
    products = min(times["numpy"], times["dsyrk"]) + times["gemm"]
    return {"fit of pairs / (syrk + gemm)": times["fit"] / products}


def default() -> dict[str, float]:
    """Ratios of default fits, each the second one of its size."""
    Z = bench_engine.samples(ROWS, FEATURES)
    syrk = best_times({"syrk": lambda: Z.T @ Z}, REPEATS)["syrk"]

    def seconds(name: str, n: int, repeats: int = 2) -> float:
        X, times = load(name).sample(n, random_state=0), []
        for _ in range(repeats):
            start = time.perf_counter()
            AdaptiveDiffusionMap(random_state=0).fit(X)
            times.append(time.perf_counter() - start)
        return min(times)

    narrow, wide = seconds("triplewell2d+8", 300), seconds("triplewell2d+598", 300)
    return {
        "default, 500 × 3 / syrk of 100,000 × 300": seconds("ou3d", 500) / syrk,
        "default, 100,000 × 10 / syrk of 100,000 × 300": seconds("ou10d", ROWS, 1) / syrk,
        "default, 300 × 600 / default, 300 × 10": wide / narrow,
    }


def cpu_seconds(function: Callable[[], object]) -> float:
    """Processor time of all threads, which other processes hardly change."""
    start = time.process_time()
    function()
    return time.process_time() - start


def commands() -> dict[str, float]:
    """Ratios of processor times; the unit is a symmetric product of 20,000 × 300 numbers in one thread."""
    unit = unit_seconds()

    def search(n: int, dim: int) -> float:
        X = load(f"triplewell2d+{dim - 2}").sample(n, random_state=0)
        return cpu_seconds(lambda: AdaptiveDiffusionMap(random_state=0).fit(X))

    path = bench_threads.double_well(2_000)
    frames = np.column_stack([path, np.sin(path)])
    values = np.cos(np.outer(path[:, 0], np.arange(1, 101)))
    model = bench_threads.with_lag(frames, reversible=False)
    first = cpu_seconds(lambda: forecast(model, frames, values[:, 0], 1.0))
    again = cpu_seconds(lambda: forecast(model, frames, values[:, 1], 1.0))
    many = cpu_seconds(lambda: forecast(model, frames, values, 1.0))
    committor = bench_threads.committor(1_000)
    command = bench_threads.command_line("fit", 3_000)
    return {
        "default, 1,000 × 500 / default, 1,000 × 10, CPU": search(1_000, 500) / search(1_000, 10),
        "committor, 1,000 × 2 / unit, CPU": cpu_seconds(committor) / unit,
        "forecast, 2,000 × 2 / unit, CPU": first / unit,
        "forecast again, 100 values / one value, CPU": many / again,
        "kdmaps fit --lag, 3,000 × 1 / unit, CPU": cpu_seconds(command) / unit,
    }


def main() -> int:
    warnings.simplefilter("ignore")  # warnings about modes of random numbers
    table = make_table(f"Costs as ratios, {n_threads()} threads", "what", "ratio", "limit")
    ratios: dict[str, float] = {}
    for part in (engine, stream, lagged, default, commands):
        ratios |= part()
    for name, limit in LIMITS.items():
        table.add_row(name, f"{ratios[name]:.2f}", at_most(ratios[name], limit))
    show(table)
    return int(any(not ratios[name] <= limit for name, limit in LIMITS.items()))


if __name__ == "__main__":
    sys.exit(main())
