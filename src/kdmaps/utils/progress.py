"""Progress on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def track(items: Iterable[Any], total: int, label: Callable[[], str], show: bool) -> Iterator[Any]:
    """Pass on `items`, with a progress bar that shows `label()` if `show`."""
    if not show:
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:  # output is for results
        task = bar.add_task(label(), total=total)
        for item in items:
            yield item
            bar.update(task, advance=1, description=label())
