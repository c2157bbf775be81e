"""`kdmaps check`."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdmaps.cli._app import FOUND, app
from kdmaps.cli._models import describe
from kdmaps.cli._options import (
    AnglesOption,
    ArrayOption,
    ColumnsOption,
    DataArgument,
    DegreesOption,
    DescriptorOption,
    GroupsOption,
    HeaderOption,
    StrideOption,
    TopologyOption,
    WeightsOption,
)
from kdmaps.cli._reading import Files
from kdmaps.data import check_data


@app.command()
def check(
    data: DataArgument,
    columns: ColumnsOption = None,
    stride: StrideOption = 1,
    array: ArrayOption = None,
    header: HeaderOption = None,
    angles: AnglesOption = None,
    degrees: DegreesOption = False,
    weights: WeightsOption = None,
    groups: GroupsOption = None,
    topology: TopologyOption = None,
    descriptor: DescriptorOption = "heavy-atoms",
) -> None:
    """Look for what is probably not meant in samples, without a fit: exit code 1 if something is found, else 0."""
    files = Files(data, columns, stride, array, header, weights, groups, topology, descriptor, angles, degrees)
    samples = files.read()
    findings = check_data(samples.source, samples.weight, samples.group)
    console = Console()
    console.print(f"{describe(data)}, {samples.describe()}", highlight=False, soft_wrap=True, markup=False)
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
    raise typer.Exit(FOUND)
