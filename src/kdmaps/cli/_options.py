"""Options that several commands share, and their places in `--help`."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from kdmaps.data import DESCRIPTORS

#: Groups of options in `--help`, in this order.
PANELS = DATA, TRAJECTORY, KERNEL, OUTPUT = "Data", "Trajectory", "Modes and kernel", "Output"

#: Options by the arguments of estimators that they set.
OPTIONS = {
    "n_components": "--modes",
    "n_features": "--features",
    "random_state": "--seed",
    "sample_weight": "--weights",
    "time_step": "--time-step",
}
#: What stands for the arguments in messages of the library; a lag without a value is a word of the language.
_WORDS = (
    *((re.compile(rf"\b{name}\b(?:=([\w.]*\w))?"), option) for name, option in OPTIONS.items()),
    (re.compile(r"\blag='?(\w+)'?"), "--lag"),
    (re.compile(r"\bpass cv=3\b()"), "add --no-ordered"),
)


def in_options(text: str) -> str:
    """Return a message of the library with options in place of arguments: "n_components=4" is "--modes 4"."""
    for pattern, option in _WORDS:
        text = pattern.sub(partial(_given, option), text)
    return text


def _given(option: str, found: re.Match[str]) -> str:
    """Return an option with the value that was found, if there is one."""
    return f"{option} {found[1]}" if found[1] else option


def _show_all(ctx: Any, asked: bool) -> None:
    """Print the help with the options that `--help` leaves out, and exit."""
    if asked:
        for option in ctx.command.params:
            option.hidden = False
        typer.echo(ctx.get_help())
        raise typer.Exit()


def require(condition: bool, option: str, message: str) -> None:
    """Raise an error that names an option unless a condition holds."""
    if not condition:
        raise typer.BadParameter(message, param_hint=option)


DataArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATA",
        help="Files of samples (.npy .npz .csv .tsv .txt .dat .parquet .zarr, trajectories); each is a run of its own.",
        show_default=False,
    ),
]
ColumnsOption = Annotated[
    str | None, typer.Option(metavar="NAMES", help="Columns to use, as in x,y or 0:3; else all.", rich_help_panel=DATA)
]
AnglesOption = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Columns that are angles: use cosine and sine.", rich_help_panel=DATA),
]
DegreesOption = Annotated[
    bool,
    typer.Option("--degrees", help="Whether angles are in degrees, not radians.", rich_help_panel=DATA, hidden=True),
]
WeightsOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Weights of a biased simulation: a column or file.", rich_help_panel=DATA),
]
StrideOption = Annotated[int, typer.Option(min=1, help="Use every n-th row.", rich_help_panel=DATA, hidden=True)]
ArrayOption = Annotated[
    str | None, typer.Option(help="Name of the array in an .npz or .zarr file.", rich_help_panel=DATA, hidden=True)
]
HeaderOption = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of text holds names of columns. (default: if it holds no number, or 0, 1, 2, …)",
        rich_help_panel=DATA,
        hidden=True,
    ),
]
TopologyOption = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        metavar="FILE",
        help="Topology (.pdb …) of a trajectory.",
        rich_help_panel=TRAJECTORY,
    ),
]
DescriptorOption = Annotated[
    str,
    typer.Option(metavar="NAME", help=f"Coordinates of it: {' or '.join(DESCRIPTORS)}.", rich_help_panel=TRAJECTORY),
]
GroupsOption = Annotated[
    str | None,
    typer.Option(
        help="Trajectory of each row: a column, or a file with one. (default: each file is one)",
        rich_help_panel=TRAJECTORY,
        hidden=True,
    ),
]
DrawOption = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Columns or files to draw modes over; not fitted.", rich_help_panel=OUTPUT),
]
DiffusionOption = Annotated[
    str | None,
    typer.Option(
        help="Diffusion tensor: a number, a diagonal as in 1,0.5, tangent, or a .npy file of one matrix or one per "
        "row. (default: identity)",
        rich_help_panel=KERNEL,
        hidden=True,
    ),
]
HelpAllOption = Annotated[
    bool,
    typer.Option("--help-all", callback=_show_all, is_eager=True, help="Show the rare options too."),
]
ModelArgument = Annotated[Path, typer.Argument(help="A model that `kdmaps fit` or `save` wrote.", show_default=False)]
