"""Measure neural methods and kdmaps on the same samples; finished measurements are kept and never repeated.

make rivals                                         # the environments, then everything
python -m benchmarks.neural run --sizes 500
python -m benchmarks.neural show                    # table and figure of the stored rows
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.neural._measure import PROBLEMS, measure
from benchmarks.neural._methods import PEERS
from benchmarks.neural._page import draw, page
from experiments._runner import Row, finished, run_tasks
from kdmaps.utils.files import write_text

SOME = ("ou10d", "triplewell2d", "triplewell2d+48")
#: Samples, problems and seeds that are reported, in the order of the run; learning rates are tuned on others. Added
#: seeds get a separate line, because a finished task is identified by all of its seeds.
CASES: tuple[tuple[int, tuple[str, ...], tuple[int, ...]], ...] = (
    (500, PROBLEMS, (0, 1, 2)),
    (500, PROBLEMS, (3, 4)),
    (100_000, (*SOME, "muller-brown"), (0,)),
    (100_000, (*SOME, "muller-brown"), (1,)),
    (5_000, SOME, (0, 1)),
    (5_000, ("ou2d-4", "muller-brown", "sphere-3", "circle"), (0, 1)),
    (5_000, PROBLEMS, (2,)),
    (5_000, PROBLEMS, (3, 4)),
    (100_000, (*SOME, "muller-brown"), (2,)),
)
SIZES = tuple(sorted({case[0] for case in CASES}))
TUNING_PROBLEMS, TUNING_SEED = ("ou2d-4", "triplewell2d"), 900
#: Processor time of the training of a network in seconds, about as long as the default fit of kdmaps.
TRAINING = {500: 3.0, 5_000: 3.0, 100_000: 15.0}
#: Samples that are also trained for PATIENCE times as long.
PATIENT, PATIENCE = {500: "ou2d-4", 5_000: "ou10d"}, 5


def tuned(peer: str, path: Path) -> float | None:
    """Return the best learning rate of three, by the mean SubR² of two problems."""
    rates = PEERS[peer].learning_rates
    if not rates:
        return None
    task = {"peer": peer, "n": 500, "problem_names": list(TUNING_PROBLEMS), "seeds": [TUNING_SEED]}
    rows = run_tasks(measure, [{**task, "learning_rates": list(rates), "training": TRAINING[500]}], path, 1, show=False)
    means = [np.mean([row.get("subr2", 0.0) for row in rows if row.get("learning_rate") == rate]) for rate in rates]
    return rates[int(np.argmax(means))]


def plan(peers: list[str], sizes: list[int], path: Path) -> list[dict[str, Any]]:
    """Return all tasks: one process for a method, a problem and some seeds; all methods of a problem come together."""
    best = {peer: tuned(peer, path) for peer in peers}
    tasks = [
        {"peer": peer, "n": n, "problem_names": [name], "seeds": list(seeds), "training": TRAINING[n]}
        for n, names, seeds in CASES
        if n in sizes
        for name in names
        for peer in peers
    ]
    tasks += [
        {"peer": peer, "n": n, "problem_names": [PATIENT[n]], "seeds": [0], "training": PATIENCE * TRAINING[n]}
        for n in sizes
        for peer in peers
        if n in PATIENT and best[peer] is not None
    ]
    return [{**task, "learning_rates": [best[task["peer"]]]} for task in tasks]


def load(path: Path) -> list[Row]:
    """Return the rows in a file."""
    return [row for rows in finished(path).values() for row in rows]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=("all", "run", "show"), default="all")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS), metavar="PEER")
    parser.add_argument("--sizes", nargs="+", type=int, choices=SIZES, default=list(SIZES))
    parser.add_argument("--out", type=Path, default=Path("results/neural"))
    options = parser.parse_args(arguments)
    rows, tuning = options.out / "rows.jsonl", options.out / "tuning.jsonl"
    if options.part != "show":
        run_tasks(measure, plan(options.peers, options.sizes, tuning), rows, jobs=1)
    if options.part == "run":
        return
    found = load(rows)
    write_text(options.out / "table.md", page(found, load(tuning)))
    draw(found, options.out / "neural.png")


if __name__ == "__main__":
    main()
