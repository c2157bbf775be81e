"""The application that the commands belong to, its errors, and output to the terminal."""

import errno
import functools
import textwrap
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

import kdmaps
from kdmaps.exceptions import CheckWarning, KdmapsError, Sayable
from kdmaps.language import CLI

if TYPE_CHECKING:
    from kdmaps.checks import Check, Checks

#: Exit codes other than 0: findings of `kdmaps check`, errors that the user can correct, and Ctrl-C (128 + SIGINT, the
#: convention of shells).
FOUND, USER_ERROR, INTERRUPTED = 1, 2, 130
#: Largest number of warnings on the terminal, if a page shows all.
MOST_WARNINGS = 3
#: Order of the commands in `kdmaps --help`.
ORDER = ("check", "fit", "transform", "inspect", "states", "forecast", "committor", "compare", "export", "demo")

#: Names of values in `--help`, by the types that typer shows.
VALUES = {
    "<bool>": "",
    "<str>": "TEXT",
    "<path>": "FILE",
    "<file>": "FILE",
    "<dir>": "DIR",
    **dict.fromkeys(("<int>", "<int range>"), "N"),
    **dict.fromkeys(("<float>", "<float range>"), "X"),
}


class _Readable:
    """Mixin whose `--help` shows names of values, not Python types, and nothing for arguments, which have a name."""

    def get_params(self, ctx: Any) -> list[Any]:
        def shown(one: Any, ctx: Any) -> str:
            argument = one.param_type_name == "argument"
            return "" if argument else VALUES.get(one.display_type(ctx), "") if one.metavar is None else one.metavar

        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in parameters:
            one.display_type_rich = functools.partial(shown, one)
        return parameters


class Command(_Readable, TyperCommand):
    """Command with readable help."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}").replace("}...", "...") for piece in super().collect_usage_pieces(ctx)]


class _Commands(_Readable, TyperGroup):
    """Commands whose errors are a message and an exit code, not a traceback."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=ORDER.index)

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                # Also if a filter of the surrounding program would ignore it or raise an error.
                warnings.simplefilter("always", CheckWarning)
                return super().invoke(ctx)
        except KeyboardInterrupt:
            say("Interrupted; no file is left half-written.", error=True)
            raise typer.Exit(INTERRUPTED) from None
        except (ValueError, OSError, ImportError) as error:
            if ctx.params.get("traceback") or getattr(error, "errno", None) == errno.EPIPE:
                raise
            text = error.say(CLI) if isinstance(error, KdmapsError) else str(error)
            say(f"Error: {text}", error=True)
            raise typer.Exit(USER_ERROR) from None


app: typer.Typer = typer.Typer(
    cls=_Commands,
    help="Slow modes of stochastic systems from samples.",
    epilog="Exit codes: 0 success, 1 findings of check, 2 an error that you can correct, 130 interrupted.",
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
    """Print a sentence to standard output or standard error: wrapped on a terminal, otherwise one line."""
    console = Console(stderr=error)
    if console.is_terminal:
        indent = " " * (len(text) - len(text.lstrip()) + 2)
        options: Any = {"break_long_words": False, "break_on_hyphens": False}
        text = textwrap.fill(text, console.width, subsequent_indent=indent, **options)
    console.print(Text(text, style), soft_wrap=True, highlight=False)


def print_check(check: Sayable, *, error: bool = False) -> None:
    """Print a failed check, with the address of its section of the documentation."""
    say(f"Warning: {check.say(CLI)} ({check.link})", "yellow", error=error)


def print_warnings(checks: "Checks", page: Path | None = None, printed: Iterable["Check"] = ()) -> None:
    """Print the most harmful warnings, without those printed before; `page` has all, without a page all are printed."""
    before = {check.code for check in printed}
    warnings = [check for check in checks.warnings if check.code not in before]
    shown = warnings if page is None else warnings[:MOST_WARNINGS]
    for check in shown:
        print_check(check)
    if len(warnings) > len(shown):
        say(f"{len(warnings) - len(shown)} more in {page}.", "yellow")


def print_note(text: str, *, error: bool = False) -> None:
    """Print something that users should know and that is no failed check."""
    say(f"Note: {text}", "yellow", error=error)


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Print a warning of the library without the line of code that raised it."""
    if isinstance(message, CheckWarning):
        print_check(message.check, error=True)
    else:
        say(f"Warning: {message}", "yellow", error=True)


def print_table(titles: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; titles are wrapped if it is too wide, and cells if it is still too wide."""
    table, console, names, cells = Table(), Console(), list(titles), list(rows)
    of_cells = [max((len(row[j]) for row in cells), default=0) for j in range(len(names))]
    narrow = [max(width, *map(len, name.split() or [""])) for width, name in zip(of_cells, names, strict=True)]
    room = console.width - 3 * len(names) - 1 - sum(narrow)
    fits = room >= 0
    for name, width in zip(names, narrow, strict=True):
        more = min(room, max(0, len(name) - width)) if fits else 0
        room -= more
        title = textwrap.fill(name, width + more) if fits and name else name
        table.add_column(Text(title), justify="right", overflow="fold", no_wrap=fits)
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)
