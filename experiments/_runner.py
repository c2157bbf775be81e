"""Shared code of the experiments: compute rows once, store them on disk, and write tables."""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from matplotlib.figure import Figure

from kdmaps import problems
from kdmaps.problems import Problem
from kdmaps.utils.files import append_line, is_intact, read_lines, replacing, sealed, write_text
from kdmaps.utils.progress import track

Row = dict[str, Any]


def run_tasks(
    function: Callable[..., list[Row]], tasks: Sequence[dict[str, Any]], path: Path, jobs: int = 2, show: bool = True
) -> list[Row]:
    """Return the rows of `function(**task)` for all tasks, in the order of the tasks.

    Finished tasks are appended to `path` (JSON lines) and not computed again, so an interrupted run can be resumed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    done = finished(path)
    keys = [key_of(task) for task in tasks]
    missing = [i for i, key in enumerate(keys) if key not in done]
    with parallel_config(backend="loky", inner_max_num_threads=1):
        results = Parallel(n_jobs=jobs, return_as="generator_unordered")(
            delayed(_run)(i, function, tasks[i]) for i in missing
        )
        for i, rows in track(results, len(missing), lambda: path.stem, show):
            done[keys[i]] = rows
            append_line(path, sealed({"task": tasks[i], "rows": rows, "versions": versions()}))
    return [row for key in keys for row in done[key]]


def rows_before(name: str, rows: list[Row], root: Path = Path()) -> list[Row]:
    """Return the rows of version 0.1.0 for the same samples, of problems for which it has all of them."""
    old = {(row["problem"], row["seed"]): row for row in read_lines(root / "results" / name / "rows_0_1_0.jsonl")}
    keys = sorted({(row["problem"], row["seed"]) for row in rows})
    unknown = {problem for problem, seed in keys if (problem, seed) not in old}
    return [old[key] for key in keys if key[0] not in unknown]


def key_of(task: dict[str, Any]) -> str:
    """Return a task as text."""
    return json.dumps(task, sort_keys=True)


def finished(path: Path) -> dict[str, list[Row]]:
    """Return the rows in a file by the keys of their tasks, without lines that were changed.

    Version 0.1.0 wrote lines without a checksum.
    """
    lines = [line for line in read_lines(path) if is_intact(line) or line.keys() == {"task", "rows", "versions"}]
    return {key_of(line["task"]): line["rows"] for line in lines}


def _run(index: int, function: Callable[..., list[Row]], task: dict[str, Any]) -> tuple[int, list[Row]]:
    return index, function(**task)


def options_of(
    name: str, description: str | None, n_seeds: int, quick: str, first_seed: int | None = None
) -> argparse.ArgumentParser:
    """Return a parser of the common options; `quick` is the help text of `--quick`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=n_seeds, help="number of seeds")
    if first_seed is not None:
        parser.add_argument("--first-seed", type=int, default=first_seed, help="seed of the first sample")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--out", type=Path, default=Path("results", name))
    parser.add_argument("--jobs", type=int, default=2)
    return parser


def publish(
    name: str, rows: list[Row], table: Callable[[list[Row]], str], figure: Callable[[list[Row]], Figure], out: Path
) -> None:
    """Print and write the table of the rows, and write their figure."""
    text = table(rows)
    write_text(out / "table.md", text + "\n")
    with replacing(out / f"{name}.png") as (file,):
        figure(rows).savefig(file, format="png", dpi=130)
    print(text)


def grouped(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by their values of some keys, in the order of their first appearance."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def load_samples(problem: str, seed: int) -> tuple[Problem, np.ndarray]:
    """Return a problem and 500 of its samples, or 1000 in ten or more dimensions."""
    system = problems.load(problem)
    return system, system.sample(1000 if system.dim >= 10 else 500, random_state=seed)


def versions() -> dict[str, str]:
    """Return the versions of the packages that determine the numbers."""
    return {"python": platform.python_version(), **{name: version(name) for name in ("kdmaps", "numpy", "scipy")}}


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
