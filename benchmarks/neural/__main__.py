"""Measure neural methods and kdmaps on the same samples; finished measurements are kept and never repeated.

make rivals                                         # the environments, then everything
python -m benchmarks.neural run --sizes 500
python -m benchmarks.neural show                    # table and picture of what there is
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.neural._measure import measure
from benchmarks.neural._peers import PEERS
from benchmarks.neural._tables import draw, page

from kdmaps.experiments._runner import Row, finished, run_tasks
from kdmaps.utils.files import write_text

PROBLEMS = ("ou2d-4", "ou10d", "triplewell2d", "muller-brown", "sphere-3", "circle", "triplewell2d+48")
#: Samples and their seeds that are reported, on these problems; learning rates are tuned on others.
CASES = {500: (PROBLEMS, range(3)), 5_000: (("ou10d", "triplewell2d", "triplewell2d+48"), range(2))}
TUNING_PROBLEMS, TUNING_SEED = ("ou2d-4", "triplewell2d"), 900
#: Processor time of the training of a network, in seconds: about that of the default of kdmaps; and, on one problem,
#: five times as much.
TRAINING, PATIENT = 3.0, 15.0


def tuned(peer: str, path: Path) -> float | None:
    """Return the best learning rate of three, by the mean SubR² of two problems."""
    rates = PEERS[peer].learning_rates
    if not rates:
        return None
    task = {"peer": peer, "n": 500, "problem_names": list(TUNING_PROBLEMS), "seeds": [TUNING_SEED]}
    rows = run_tasks(measure, [{**task, "learning_rates": list(rates), "training": TRAINING}], path, 1, show=False)
    means = [np.mean([row.get("subr2", 0.0) for row in rows if row.get("learning_rate") == rate]) for rate in rates]
    return rates[int(np.argmax(means))]


def plan(peers: list[str], sizes: list[int], path: Path) -> list[dict[str, Any]]:
    """Return all tasks: one process for a method, a size and a problem; all methods of a problem come together."""
    best = {peer: tuned(peer, path) for peer in peers}
    tasks = [
        {"peer": peer, "n": n, "problem_names": [name], "seeds": list(CASES[n][1]), "training": TRAINING}
        for n in sizes
        for name in CASES[n][0]
        for peer in peers
    ]
    patient = {"n": 500, "problem_names": [TUNING_PROBLEMS[0]], "seeds": [0], "training": PATIENT}
    tasks += [{"peer": peer, **patient} for peer in peers if best[peer] is not None and 500 in sizes]
    return [{**task, "learning_rates": [best[task["peer"]]]} for task in tasks]


def load(path: Path) -> list[Row]:
    """Return the rows in a file."""
    return [row for rows in finished(path).values() for row in rows]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=("all", "run", "show"), default="all")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS), metavar="PEER")
    parser.add_argument("--sizes", nargs="+", type=int, choices=list(CASES), default=list(CASES))
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
