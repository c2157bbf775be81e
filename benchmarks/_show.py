"""A table on the terminal and, for what is published, as a file of `results/`."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from experiments._runner import markdown


def show(table: Table, keep: str | None = None) -> None:
    """Print `table`; with a name to `keep` it under, write results/NAME/table.md too."""
    Console(width=120).print(table)
    if keep is not None:
        path = Path("results") / keep / "table.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        # Lines that belong to the line above are indented, which Markdown does not see.
        rows = [
            [cell.replace("    ", "… ", 1) if cell.startswith("    ") else cell for cell in map(str, row)]
            for row in zip(*(column.cells for column in table.columns), strict=True)
        ]
        path.write_text(f"{table.title}.\n\n{markdown([str(column.header) for column in table.columns], rows)}\n")
