"""The application that the commands belong to, its errors, and output to the terminal."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

import kdmaps
from kdmaps.cli._options import in_options

#: Exit codes: findings of `kdmaps check`, errors that the user can correct, and Ctrl-C (128 + SIGINT, the convention of
#: shells).
FOUND, USER_ERROR, INTERRUPTED = 1, 2, 130
#: Order of the commands in `kdmaps --help`.
ORDER = ("check", "fit", "transform", "inspect", "states", "forecast", "compare", "export", "demo")


class _Commands(TyperGroup):
    """Commands whose errors are a message and an exit code, not a traceback."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=ORDER.index)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("Interrupted; no file is left half-written.", error=True)
            raise typer.Exit(INTERRUPTED) from None
        except (ValueError, OSError, ImportError) as error:
            if ctx.params.get("traceback") or getattr(error, "errno", None) == errno.EPIPE:
                raise
            say(f"Error: {in_options(str(error))}", error=True)
            raise typer.Exit(USER_ERROR) from None


app: typer.Typer = typer.Typer(
    cls=_Commands,
    help="Slow modes of stochastic systems from samples.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"kdmaps {kdmaps.__version__}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    traceback: Annotated[bool, typer.Option("--traceback", help="Show the origin of an error.")] = False,
) -> None:
    """Slow modes of stochastic systems from samples."""


def say(text: str, style: str = "", *, error: bool = False) -> None:
    """Print one line, unwrapped, to standard output or standard error."""
    Console(stderr=error).print(Text(text, style), soft_wrap=True, highlight=False)


def print_warning(text: str, *, error: bool = False) -> None:
    """Print a warning."""
    say(f"Warning: {in_options(text)}", "yellow", error=error)


def print_table(titles: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table."""
    table = Table()
    for title in titles:
        table.add_column(Text(title), justify="right")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
