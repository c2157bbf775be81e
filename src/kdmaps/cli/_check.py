"""`kdmaps check`."""

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import kdmaps
from kdmaps.cli._app import FOUND, app, say
from kdmaps.cli._options import Files, in_options, with_files


@app.command()
@with_files("diffusion", "draw")
def check(files: Files) -> None:
    """Check data for common mistakes. The exit code is 1 if there are findings other than notes."""
    from kdmaps.cli._reading import read_samples
    from kdmaps.estimators.cost import predicted_cost

    samples = read_samples(files)
    findings = kdmaps.data.check_data(samples.source, samples.weight, samples.group)
    say(f"{files.name}, {samples.describe()}")
    if samples.source.n_samples is not None:
        seconds, memory = predicted_cost(samples.source.n_samples, samples.source.n_features)
        say(f"A default fit takes about {seconds:.0f} s of one core and {memory:.0f} MB, within a factor of two.")
    if not findings and not samples.notes:
        say("Nothing suspicious was found.")
        return
    table = Table(show_lines=True)
    for title in ("check", "found", "what to do"):
        table.add_column(title, no_wrap=title == "check")
    for note in samples.notes:
        table.add_row("reading", Text(note), "")
    for finding in findings:
        style = "red" if finding.severity == "error" else ""
        name = finding.name + (" (note)" if finding.severity == "note" else "")
        table.add_row(*(Text(part, style) for part in (name, finding.found, in_options(finding.remedy))))
    Console().print(table)
    if samples.notes or any(finding.severity != "note" for finding in findings):
        raise typer.Exit(FOUND)
