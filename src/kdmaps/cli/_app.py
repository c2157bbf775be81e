"""The application that the commands belong to, and how it fails."""

from __future__ import annotations

import errno
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

import kdmaps

#: Exit codes: what the user can mend, and Ctrl-C (128 + SIGINT, as shells have it).
USER_ERROR, INTERRUPTED = 2, 130


#: As `kdmaps --help` lists them: what is needed first comes first.
ORDER = ("fit", "transform", "inspect", "demo", "reproduce", "bench")


class _Commands(TyperGroup):
    """Commands whose errors are a message and an exit code, not a traceback."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=ORDER.index)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _complain("Interrupted; no file is left half-written.")
            raise typer.Exit(INTERRUPTED) from None
        except (ValueError, OSError, ImportError) as error:
            if ctx.params.get("traceback") or getattr(error, "errno", None) == errno.EPIPE:
                raise
            _complain(f"Error: {error}")
            raise typer.Exit(USER_ERROR) from None


def _complain(text: str) -> None:
    Console(stderr=True).print(Text(text), soft_wrap=True, highlight=False)


app = typer.Typer(
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
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where an error comes from.")] = False,
) -> None:
    """Slow modes of stochastic systems from samples."""
