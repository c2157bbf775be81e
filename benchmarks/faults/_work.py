"""The work that is interrupted: each kind writes files to a folder, the same bytes for the same seed."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

import kdmaps
from experiments._runner import markdown, publish, run_tasks
from kdmaps.__main__ import main as command

N_SAMPLES = 300
X = kdmaps.problems.load("ou2d-4").sample(N_SAMPLES, random_state=0)
#: Rows of the transform to disk, in blocks.
N_BLOCKS, BLOCK = 20, 2000
SEARCH = {"families": ["gaussian", "rq2"], "bandwidths": 3, "regularizations": [1e-3, 1e-2], "max_extensions": 0}


def make_model(seed: int) -> kdmaps.KernelDiffusionMap:
    return kdmaps.KernelDiffusionMap(2, bandwidth=3.0, n_features=40, random_state=seed)


def make_search(seed: int, **options: object) -> kdmaps.KernelSearchCV:
    return kdmaps.KernelSearchCV(2, **SEARCH, n_features=30, random_state=seed, n_jobs=1, **options)


def fit_and_save(folder: Path, seed: int) -> None:
    make_model(seed).fit(X).save(folder / "model.npz")


def search_and_save(folder: Path, seed: int) -> None:
    make_search(seed, checkpoint=folder / "search.jsonl").fit(X).save(folder / "model.npz")


def transform_to_disk(folder: Path, seed: int) -> None:
    def blocks() -> Iterator[np.ndarray]:
        return (np.tile(X, (BLOCK // N_SAMPLES + 1, 1))[:BLOCK] for _ in range(N_BLOCKS))

    make_model(seed).fit(X).transform(blocks, out=folder / "modes.npy")


def report(folder: Path, seed: int) -> None:
    kdmaps.report.write_report(make_model(seed).fit(X), X, folder / "report.html")


def fit_command(folder: Path, seed: int) -> None:
    os.chdir(folder)
    if not Path("data.csv").exists():
        np.savetxt("data.csv", X, delimiter=",", header="x,y", comments="")
    given = "--modes 2 --features 40 --kernel gaussian --bandwidth 3 --lambda 0.001 --resamples 20 --out . --force"
    sys.argv = ["kdmaps", "fit", "data.csv", *given.split(), "--seed", str(seed)]
    said = io.StringIO()
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(said):
            command()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(said.getvalue()) from end


def experiment(folder: Path, seed: int) -> None:
    tasks = [{"seed": seed + i} for i in range(12)]
    rows = run_tasks(_row, tasks, folder / "rows.jsonl", jobs=1, show=False)

    def table(rows: list[dict[str, float]]) -> str:
        return markdown(["seed", "time scale"], [[str(row["seed"]), f"{row['timescale']:.17g}"] for row in rows])

    with redirect_stdout(io.StringIO()):
        publish("rows", rows, table, lambda rows: Figure(figsize=(1, 1)), folder)


def _row(seed: int) -> list[dict[str, float]]:
    return [{"seed": seed, "timescale": float(make_model(seed).fit(X).timescales_[0])}]


class Work(NamedTuple):
    """Work done in a folder, and its files."""

    run: Callable[[Path, int], None]
    files: tuple[str, ...]  # that appear whole
    #: File to which finished parts are appended; without one, the files of an earlier fit are replaced.
    grows: str | None = None


WORK = {
    "fit and save": Work(fit_and_save, ("model.npz",)),
    "search with a checkpoint": Work(search_and_save, ("model.npz",), "search.jsonl"),
    "transform to disk": Work(transform_to_disk, ("modes.npy",)),
    "report": Work(report, ("report.html",)),
    "kdmaps fit": Work(fit_command, ("model.npz", "modes.csv", "report.html")),
    "rows of an experiment": Work(experiment, ("table.md", "rows.png"), "rows.jsonl"),
}
