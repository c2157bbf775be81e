"""Interrupt work many times, examine the files, and do the work again."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

from benchmarks.faults._process import Fault, run
from benchmarks.faults._work import WORK, Work
from kdmaps.utils.files import read_lines

#: Seeds of the existing files, and of the files that replace them.
BEFORE, AFTER = 1, 0
KILLS = ("moment", "call", "byte")


class Trials:
    """One kind of work: its files without a fault, and trials with faults.

    Parameters
    ----------
    name : str
        A key of WORK.
    place : Path
        An empty folder.
    """

    def __init__(self, name: str, place: Path):
        self.name, self.place, self.work = name, place, WORK[name]
        self._old = place / "old"
        self._old.mkdir(parents=True)
        if self.work.grows is None:
            _check(run(name, self._old, BEFORE).error)
        folder = self._fresh("new")
        whole = run(name, folder, AFTER)
        _check(whole.error)
        self.seconds, self.calls = whole.seconds, whole.calls
        self.before, self.after = contents(self.work, self._old), contents(self.work, folder)
        grown = [] if self.work.grows is None else [(folder / self.work.grows).read_bytes()]
        self.longest = max(map(len, [*self.after.values(), *grown]))

    def _fresh(self, name: str) -> Path:
        folder = self.place / name
        shutil.copytree(self._old, folder)
        return folder

    def fault(self, kind: str, rng: random.Random) -> Fault:
        """Draw a fault: a moment of the work, one of its calls, a byte of its files."""
        last = {"moment": self.seconds, "call": self.calls}.get(kind, self.longest)
        return Fault(kind, rng.uniform(0, last) if kind == "moment" else rng.randint(1, last))

    def attempt(self, number: int, fault: Fault) -> Counter[str]:
        """Do the work with a fault, then without, and count the failures.

        Keys are "tried", "interrupted", "half-written" (a file that is neither the one before nor the new one), "lost"
        (the file before is gone, or a finished part of the work was done again) and "unequal" (after doing it again).
        """
        folder = self._fresh(str(number))
        ending = run(self.name, folder, AFTER, fault)
        found = contents(self.work, folder)
        wrong = [name for name in found if found[name] not in (self.before[name], self.after[name])]
        lost = [name for name in found if found[name] is None and self.before[name] is not None]
        count = Counter({"tried": 1, "interrupted": ending.killed or bool(ending.error), "half-written": bool(wrong)})
        if fault.kind == "full" and ending.error:
            rest = {path.name for path in folder.iterdir()} - {*found, self.work.grows, "data.csv"}
            count["unclear"] = not any(name in ending.error for name in (*found, str(self.work.grows), "TMPDIR"))
            count["left behind"] = bool(rest)
        finished = self._finished(folder)
        again = run(self.name, folder, AFTER)
        count["unequal"] = bool(again.error) or contents(self.work, folder) != self.after
        count["lost"] = bool(lost) or not finished <= Counter(dict.fromkeys(self._finished(folder), 1))
        shutil.rmtree(folder)
        return count

    def _finished(self, folder: Path) -> Counter[str]:
        """Return how often each finished part of the work is in the file that grows."""
        if self.work.grows is None:
            return Counter()
        return Counter(str(line.get("key", line.get("task"))) for line in read_lines(folder / self.work.grows))


def contents(work: Work, folder: Path) -> dict[str, bytes | None]:
    """Return the files of a folder that have to be whole; None for those that are missing."""
    paths = {name: folder / name for name in work.files}
    return {name: path.read_bytes() if path.exists() else None for name, path in paths.items()}


def _check(error: str) -> None:
    if error:
        raise RuntimeError(f"The work fails without any fault: {error}")
