"""`kdmaps reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kdmaps.cli._app import app


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Tables and figures; all of them by default.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, starting at 42.")] = 5,
    quick: Annotated[bool, typer.Option("--quick", help="One seed and some of the problems.")] = False,
    out: Annotated[Path, typer.Option(file_okay=False, help="Directory of rows, figures and pages.")] = Path("paper"),
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes.")] = 2,
) -> None:
    """Compute the paper's tables and figures: as printed, by the paper's protocol, and by kdmaps.

    Finished parts are kept: after an interruption, the same command continues where it stopped.
    """
    # Here, because the experiments import half of the library.
    from experiments import paper

    pages = paper.reproduce(names or paper.NAMES, seeds, quick, out, jobs)
    console = Console()
    for page in pages:
        console.print(f"Written: {page}", highlight=False, soft_wrap=True)
