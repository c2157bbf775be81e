"""`kdmaps check`."""

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import kdmaps
from kdmaps.cli._app import FOUND, app, say
from kdmaps.cli._options import Files, with_files
from kdmaps.language import CLI


@app.command()
@with_files("diffusion", "draw")
def check(files: Files) -> None:
    """Check data for common mistakes. The exit code is 1 if there are findings other than notes."""
    from kdmaps.checks import Checks, Severity
    from kdmaps.cli._reading import read_samples
    from kdmaps.estimators.cost import predicted_cost

    samples = read_samples(files)
    checks = Checks([*samples.checks, *kdmaps.data.check_data(samples.source, samples.weight, samples.group)])
    say(f"{files.name}, {samples.describe()}")
    if samples.source.n_samples is not None:
        seconds, memory = predicted_cost(samples.source.n_samples, samples.source.n_features)
        say(f"A default fit takes about {seconds:.0f} s of one core and {memory:.0f} MB, within a factor of two.")
    failed, notes = checks.failed, checks.notes
    if not failed and not notes:
        say("Nothing suspicious was found.")
        return
    table = Table(show_lines=True)
    for title in ("check", "found", "what to do"):
        table.add_column(title, no_wrap=title == "check")
    for check in (*failed, *notes):
        style = "red" if check.rule.severity is Severity.ERROR else ""
        name = check.name + (" (note)" if check.rule.severity is Severity.NOTE else "")
        table.add_row(*(Text(part, style) for part in (name, check.message(CLI), check.remedy(CLI))))
    Console().print(table)
    if failed:
        raise typer.Exit(FOUND)
