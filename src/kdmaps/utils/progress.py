"""Progress on the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any

#: Seconds between two lines where there is no bar.
LINE_EVERY = 5.0


def track(items: Iterable[Any], total: int, label: Callable[[], str], show: bool) -> Iterator[Any]:
    """Pass on `items`; if `show`, report progress and `label()` on stderr: with rich a bar, else a line at times."""
    if not show:
        return iter(items)
    return (_bar if find_spec("rich") is not None else _lines)(items, total, label)


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
    last = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - last >= LINE_EVERY:
            last = time.monotonic()
            print(f"kdmaps: {done}/{total}, {label()}", file=sys.stderr, flush=True)
