"""Interrupt every kind of work many times, and write the counts to results/faults/table.md.

Run `python -m benchmarks.faults` from the root of the repository; `--times` sets how often. Finished trials are kept in
rows.jsonl, next to the table, and not repeated.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.faults._dask import lose_workers
from benchmarks.faults._plan import KILLS, Trials
from benchmarks.faults._work import WORK
from experiments._runner import Row, markdown, run_tasks
from kdmaps.utils.files import write_text

#: Counts of each kind of fault.
FOUND = {
    "kill": ("tried", "interrupted", "half-written", "lost", "unequal"),
    "full": ("tried", "interrupted", "half-written", "lost", "unequal", "unclear", "left behind"),
    "worker": ("tried", "interrupted", "unequal"),
}
WORDS = {
    "kill": "Killed at a random moment, at a call that opens or renames a file, or in the middle of a file:",
    "full": "Disk full from a random byte of a file on:",
    "worker": "A Dask worker killed while it loads a block, at places spread over the whole search:",
}
#: Faults of one row.
PART = 10


def interrupt(fault: str, work: str, times: int, part: int) -> list[Row]:
    """Return the counts of `times` faults in one kind of work; every part draws different faults."""
    found: Counter[str] = Counter()
    if fault == "worker":
        found = lose_workers(times)
    else:
        kinds, rng = KILLS if fault == "kill" else ("full",), random.Random(f"{work} {part}")
        with tempfile.TemporaryDirectory() as place:
            trials = Trials(work, Path(place))
            for number in range(times):
                found.update(trials.attempt(number, trials.fault(kinds[number % len(kinds)], rng)))
    return [{"fault": fault, "work": work, **{what: int(found[what]) for what in FOUND[fault]}}]


def table(rows: list[Row], fault: str) -> str:
    """Return the counts of one kind of fault, with a description above."""
    works = dict.fromkeys(row["work"] for row in rows if row["fault"] == fault)
    own = {work: [row for row in rows if (row["fault"], row["work"]) == (fault, work)] for work in works}
    cells = [[work, *(str(sum(row[what] for row in parts)) for what in FOUND[fault])] for work, parts in own.items()]
    return f"{WORDS[fault]}\n\n{markdown(['work', *FOUND[fault]], cells)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=100, help="how often each kind of work is killed")
    parser.add_argument("--out", type=Path, default=Path("results", "faults"))
    options = parser.parse_args()
    parts = max(1, options.times // PART)
    plan = [("kill", work, part) for part in range(parts) for work in WORK]
    plan += [("full", work, part) for part in range(max(1, parts // 5)) for work in WORK]
    plan += [("worker", "search of Dask data", 0)]
    tasks = [{"fault": fault, "work": work, "times": PART, "part": part} for fault, work, part in plan]
    rows = run_tasks(interrupt, tasks, options.out / "rows.jsonl", jobs=1)
    text = "\n".join(table(rows, fault) for fault in FOUND)
    write_text(options.out / "table.md", text)
    print(text)


if __name__ == "__main__":
    main()
