"""Progress: bars on a terminal, and a line every few seconds in a log file."""

import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

#: Seconds between two lines of a log.
LINE_EVERY = 10.0


class _Log:
    """Lines on stderr with the current stage, printed by a thread, since one step may last for many lines."""

    def __init__(self) -> None:
        self.text, self._begin, self._ended = "", time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(LINE_EVERY):
            if self.text:
                print(f"kdmaps: {time.monotonic() - self._begin:.0f} s, {self.text}", file=sys.stderr, flush=True)

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


_log: _Log | None = None


@contextmanager
def reporting(show: bool) -> Iterator[None]:
    """Use one log for everything that `track` and `stage` report in this context; a terminal has bars instead."""
    global _log
    if not show or _log is not None or _has_bars():
        yield
        return
    _log = _Log()
    try:
        yield
    finally:
        _log.end()
        _log = None


@contextmanager
def stage(name: str, show: bool) -> Iterator[None]:
    """If `show`, report on stderr the name of a stage whose steps are not counted."""
    if show and _has_bars():
        from rich.console import Console

        with Console(stderr=True).status(name):
            yield
        return
    with reporting(show):
        _report(name)
        yield
        _report("")


def track(items: Iterable[Any], total: int, label: Callable[[], str], show: bool) -> Generator[Any]:
    """Pass on `items`; if `show`, report how many are done and `label()` on stderr."""
    if show:
        items = (_bar if _has_bars() else _lines)(items, total, label)
    yield from items


def _has_bars() -> bool:
    """Return whether stderr shows bars: a terminal or a notebook, with rich."""
    if find_spec("rich") is None:
        return False
    from rich.console import Console

    console = Console(stderr=True)
    return console.is_terminal or console.is_jupyter


def _bar(items: Iterable[Any], total: int, label: Callable[[], str]) -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:  # stdout is for results
        task = bar.add_task(label(), total=total)
        for item in items:
            yield item
            bar.update(task, advance=1, description=label())


def _lines(items: Iterable[Any], total: int, label: Callable[[], str]) -> Iterator[Any]:
    with reporting(True):
        _report(f"{label()}, 0/{total}")
        for done, item in enumerate(items, start=1):
            yield item
            _report(f"{label()}, {done}/{total}")


def _report(text: str) -> None:
    if _log is not None:
        _log.text = text
