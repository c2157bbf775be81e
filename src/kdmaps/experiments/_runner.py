"""What all experiments share: rows that are computed once, kept on disk, and shown as a table."""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config

from kdmaps.utils.progress import track

Row = dict[str, Any]


def run_tasks(
    function: Callable[..., list[Row]], tasks: Sequence[dict[str, Any]], path: Path, jobs: int = 2, show: bool = True
) -> list[Row]:
    """Rows of `function(**task)` for every task, in the order of the tasks.

    Finished tasks are appended to `path` (JSON lines) at once and never computed again: after a kill, run it again.
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
            with path.open("a") as file:
                file.write("\n" + json.dumps({"task": tasks[i], "rows": rows, "versions": versions()}))
    return [row for key in keys for row in done[key]]


def key_of(task: dict[str, Any]) -> str:
    """A task as text."""
    return json.dumps(task, sort_keys=True)


def finished(path: Path) -> dict[str, list[Row]]:
    """The rows in a file, by the keys of their tasks."""
    done: dict[str, list[Row]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue  # a line cut off by a kill
        done[key_of(entry["task"])] = entry["rows"]
    return done


def _run(index: int, function: Callable[..., list[Row]], task: dict[str, Any]) -> tuple[int, list[Row]]:
    return index, function(**task)


def options_of(name: str, description: str | None, n_seeds: int, quick: str) -> argparse.ArgumentParser:
    """The options that experiments have in common; `quick` says what `--quick` leaves out."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=n_seeds, help="how many")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--out", type=Path, default=Path("results", name))
    parser.add_argument("--jobs", type=int, default=2)
    return parser


def publish(name: str, rows: list[Row], table: Callable[..., str], figure: Callable[..., None], out: Path) -> None:
    """Print the table of the rows, and write it and their figure."""
    text = table(rows)
    (out / "table.md").write_text(text + "\n")
    figure(rows, out / f"{name}.png")
    print(text)


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in ("kdmaps", "numpy", "scipy")}}


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
