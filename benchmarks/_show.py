"""Tables of the benchmarks: on the terminal, and under `results/` if they are published."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from experiments._runner import markdown


def make_table(title: str, *columns: str) -> Table:
    """Return an empty table; numbers, in all columns but the first, are aligned to the right."""
    table = Table(title=title)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


def at_most(value: float, goal: float | None) -> str:
    """Return the cell of an upper limit: the limit, and whether the value keeps it."""
    return "" if goal is None else f"≤ {goal:g} {'✓' if value <= goal else '✗'}"


def at_least(value: float, goal: float, unit: str = "") -> str:
    """Return the cell of a lower limit: the limit, and whether the value reaches it."""
    return f"≥ {goal:g}{unit} {'✓' if value >= goal else '✗'}"


def show(table: Table, keep: str | None = None) -> None:
    """Print a table; with a name to `keep` it under, also write results/NAME/table.md."""
    Console(width=120).print(table)
    if keep is not None:
        path = Path("results") / keep / "table.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        # A line that belongs to the line above is indented, which Markdown does not show.
        rows = [
            [cell.replace("    ", "… ", 1) if cell.startswith("    ") else cell for cell in map(str, row)]
            for row in zip(*(column.cells for column in table.columns), strict=True)
        ]
        path.write_text(f"{table.title}.\n\n{markdown([str(column.header) for column in table.columns], rows)}\n")
