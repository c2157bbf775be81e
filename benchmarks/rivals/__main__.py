"""Measure kdmaps and its rivals on the same samples, one process after the other.

`accuracy` depends only on the samples; `times` needs an idle machine. Finished measurements are kept and never
repeated; `show` rewrites tables and figures from stored rows.

    make rivals                                            # the environment, then everything
    .venv-rivals/bin/python -m benchmarks.rivals accuracy
    .venv-rivals/bin/python -m benchmarks.rivals times --sizes 500 1000
    .venv-rivals/bin/python -m benchmarks.rivals show
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.rivals._measure import measure, measure_accuracy
from benchmarks.rivals._methods import RIVALS
from benchmarks.rivals._page import draw_error_by_time, draw_time_by_size, goals, goals_table, load_rows, page
from experiments._runner import Row, run_tasks
from kdmaps.utils.files import replacing

PROBLEMS = ("ou2d-4", "ou10d", "dw1d", "circle", "triplewell1d", "sphere-3", "sphere-19")
SIZES = (500, 1_000, 5_000, 20_000, 100_000)
ACCURACY_SAMPLES = 500
#: Further sizes that the goals on speed compare.
EXTRA = [
    {"rival": rival, "problem": problem, "n": 10_000, "n_modes": 4, "options": options}
    for problem, rivals, options in (
        ("ou10d", ("kdmaps, one fit", "klap"), {"n_features": 500}),
        ("sphere-50", ("kdmaps, one fit", "textbook"), {}),
    )
    for rival in rivals
]


def accuracy(rivals: list[str], systems: list[str], seeds: int, limits: dict, path: Path) -> list[Row]:
    tasks = [
        {"rival": rival, "problem": problem, "n": ACCURACY_SAMPLES, "seed": seed, **limits}
        for problem in systems
        for rival in rivals
        for seed in range(seeds)
    ]
    return run_tasks(measure_accuracy, tasks, path, jobs=1)


def times(rivals: list[str], systems: list[str], sizes: list[int], limits: dict, path: Path) -> list[Row]:
    """Rows by size; a rival that exceeded a limit on a problem skips its larger samples."""
    timed = [name for name in rivals if RIVALS[name].timed]
    rows: list[Row] = []
    over: set[tuple[str, str]] = set()
    for n in sorted(sizes):
        tasks = [
            {"rival": rival, "problem": problem, "n": n, "seed": 0, **limits}
            for problem in systems
            for rival in timed
            if (rival, problem) not in over
        ]
        found = run_tasks(measure, tasks, path, jobs=1)
        over |= {(row["rival"], row["problem"]) for row in found if row.get("limit")}
        rows += found
    extra = [{**task, "seed": 0, **limits} for task in EXTRA if task["rival"] in timed]
    return rows + run_tasks(measure, extra, path, jobs=1)


def show(measured: list[Row], timed: list[Row], out: Path) -> None:
    """Write table.md and the figures, print the goals."""
    out.mkdir(parents=True, exist_ok=True)
    with replacing(out / "table.md") as (file,):
        file.write(page(measured, timed).encode())
    if usual := [row for row in timed if "n_modes" not in row]:
        draw_time_by_size(usual, out / "time.png")
        draw_error_by_time(usual, out / "error.png")
    print(goals_table(goals(measured, timed)))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=("all", "accuracy", "times", "show"), default="all")
    parser.add_argument("--rivals", nargs="+", choices=list(RIVALS), default=list(RIVALS), metavar="RIVAL")
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="numbers of samples that are timed")
    parser.add_argument("--seeds", type=int, default=3, help=f"samples of {ACCURACY_SAMPLES} for the accuracy")
    parser.add_argument("--seconds", type=float, default=120.0, help="limit of a timed process, in seconds")
    parser.add_argument(
        "--patience", type=float, default=600.0, help="limit of a process that is not timed, in seconds"
    )
    parser.add_argument("--gigabytes", type=float, default=12.0, help="limit of the memory of a process")
    parser.add_argument("--out", type=Path, default=Path("results/rivals"))
    options = parser.parse_args(arguments)
    parts = {"accuracy", "times"} if options.part == "all" else {options.part}
    memory = {"gigabytes": options.gigabytes}
    kept = {part: options.out / f"{part}.jsonl" for part in ("accuracy", "times")}
    if "accuracy" in parts:
        limits = {"seconds": options.patience, **memory}
        accuracy(options.rivals, options.problems, options.seeds, limits, kept["accuracy"])
    if "times" in parts:
        limits = {"seconds": options.seconds, **memory}
        times(options.rivals, options.problems, options.sizes, limits, kept["times"])
    show(load_rows(kept["accuracy"]), load_rows(kept["times"]), options.out)


if __name__ == "__main__":
    main()
