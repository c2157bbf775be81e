"""`kdmaps bench`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from kdmaps.cli._app import app
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.exceptions import UnreliableModesWarning


@app.command()
def bench(
    samples: Annotated[int, typer.Option(min=1000, help="Number of samples.")] = 50_000,
    columns: Annotated[int, typer.Option(min=1, help="Number of columns.")] = 10,
    features: Annotated[int, typer.Option(min=10, help="Number of features.")] = 300,
    repeats: Annotated[int, typer.Option(min=1, help="Number of runs; the fastest counts.")] = 3,
) -> None:
    """Time a fit on this machine, relative to the one matrix product that it needs."""
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((samples, columns)), rng.standard_normal((samples, features))
    model = KernelDiffusionMap(n_features=features, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreliableModesWarning)  # random numbers have no slow modes
        fit = _best(lambda: model.fit(X), repeats)
        evaluate = _best(lambda: model.transform(X), repeats)
    product = _best(lambda: Z.T @ Z, repeats)
    table = Table(title=f"{samples:,} samples, {columns} columns, {features} features, best of {repeats}")
    for title in ("what", "seconds", "in products"):
        table.add_column(title, justify="left" if title == "what" else "right")
    for name, seconds in (("one product ZᵀZ of the features", product), ("fit", fit), ("transform", evaluate)):
        table.add_row(name, f"{seconds:.4f}", f"{seconds / product:.2f}")
    console = Console()
    console.print(table)
    console.print("All benchmarks: make bench, in the source tree.", highlight=False)


def _best(run: Callable[[], object], repeats: int) -> float:
    run()  # compilation and the start of threads are not what is measured
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)
