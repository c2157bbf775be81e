"""`kdmaps check`."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdmaps.cli._app import FOUND, app
from kdmaps.cli._options import HelpAllOption
from kdmaps.cli._reading import Files, with_files
from kdmaps.data import check_data


@app.command()
@with_files("diffusion", "draw")
def check(files: Files, help_all: HelpAllOption = False) -> None:
    """Look for what is probably not meant in samples, without a fit: exit code 1 if something is found, else 0."""
    samples = files.read()
    findings = check_data(samples.source, samples.weight, samples.group)
    console = Console()
    console.print(f"{files.name}, {samples.describe()}", highlight=False, soft_wrap=True, markup=False)
    if not findings and not samples.notes:
        console.print("Nothing suspicious was found.", highlight=False)
        return
    table = Table(show_lines=True)
    for title in ("check", "found", "what to do"):
        table.add_column(title, no_wrap=title == "check")
    for note in samples.notes:
        table.add_row("reading", Text(note), "")
    for finding in findings:
        style = "red" if finding.severity == "error" else ""
        table.add_row(*(Text(part, style) for part in (finding.name, finding.found, finding.remedy)))
    console.print(table)
    if samples.notes or any(finding.severity != "note" for finding in findings):
        raise typer.Exit(FOUND)
