"""Interrupt every kind of work many times, and write what was found to results/faults/table.md.

Run `python -m benchmarks.faults` from the root of the repository; `--times` says how often, `--quick` is ten times.
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

from kdmaps.experiments._runner import markdown
from kdmaps.utils.files import write_text

FOUND = ("tried", "interrupted", "half-written", "lost", "unequal")
FULL_FOUND = (*FOUND, "unclear", "left behind")


def interrupt(name: str, times: int, kinds: tuple[str, ...]) -> Counter[str]:
    """Return what `times` faults of these kinds, in turn, do to a kind of work."""
    rng = random.Random(name)
    with tempfile.TemporaryDirectory() as place:
        trials = Trials(name, Path(place))
        found: Counter[str] = Counter()
        for number in range(times):
            found.update(trials.attempt(number, trials.fault(kinds[number % len(kinds)], rng)))
    return found


def table(rows: dict[str, Counter[str]], columns: tuple[str, ...]) -> str:
    """Return counts as a Markdown table."""
    cells = [[name, *(str(int(count[column])) for column in columns)] for name, count in rows.items()]
    return markdown(["work", *columns], cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=100, help="how often each kind of work is killed")
    parser.add_argument("--quick", action="store_true", help="ten times")
    parser.add_argument("--out", type=Path, default=Path("results", "faults"))
    options = parser.parse_args()
    times = 10 if options.quick else options.times
    kills = {name: interrupt(name, times, KILLS) for name in WORK}
    full = {name: interrupt(name, max(1, times // 5), ("full",)) for name in WORK}
    workers = lose_workers(max(2, times // 10))
    text = (
        f"Killed at a random moment, at a call that opens or renames a file, or in the middle of a file.\n\n"
        f"{table(kills, FOUND)}\n\n"
        f"No room for a file, from a random byte on.\n\n{table(full, FULL_FOUND)}\n\n"
        "A Dask worker killed while it loads a block, at places spread over the whole search.\n\n"
        f"{table({'search of Dask data': workers}, ('tried', 'interrupted', 'unequal'))}\n"
    )
    options.out.mkdir(parents=True, exist_ok=True)
    write_text(options.out / "table.md", text)
    print(text)


if __name__ == "__main__":
    main()
