"""Options that several commands share, and their places in `--help`."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

#: Groups of options in `--help`, in this order.
PANELS = DATA, TRAJECTORY, KERNEL, OUTPUT = "Data", "Trajectory", "Modes and kernel", "Output"
#: Values of options, copied from the library because importing it takes seconds; tests/cli compares them.
FAMILIES = ("gaussian", "laplacian", "matern32", "matern52", "rq2", "rq5")
DESCRIPTORS = ("heavy-atoms", "dihedrals", "distances", "contacts", "atoms")
TABLE_FORMATS = ("csv", "parquet", "npy", "npz")
BASES = ("auto", "fourier", "landmarks")
RATES = ("ritz", "cross-fitted")
#: Treatments of a few rows behind an empty gap, `--isolated`.
ISOLATED = ("separate", "keep", "drop")
ENERGIES = ("gradients", "neighbors")
MIN_RESAMPLES = 20


def require(condition: bool, name: str, message: str) -> None:
    """Raise an error that names an option unless a condition holds."""
    if not condition:
        raise typer.BadParameter(message, param_hint=name)


def require_one_of(values: tuple[str, ...], name: str, given: str) -> None:
    """Raise an error unless an option has one of these values."""
    require(given in values, name, f"{given!r} is not one of {', '.join(values)}.")


def check_outputs(force: bool, *paths: Path) -> None:
    """Raise an error for files in a directory that is not writable, or that would be replaced without --force."""
    from kdmaps.utils.files import check_writable

    check_writable("--out", paths[0].parent)
    present = [path.name for path in paths if path.exists()]
    folder = paths[0].parent
    named = ", ".join(present) + ("" if folder == Path() else f" in {folder}")
    require(force or not present, "--out", f"{named} would be replaced. Give another --out, or add --force.")


def option(panel: str, help: str, *names: str, **settings: Any) -> Any:
    """Return an option in a group of `--help`."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **settings)


def rare(panel: str, help: str, *names: str, **settings: Any) -> Any:
    """Return an option that only `--help-all` shows."""
    return option(panel, help, *names, hidden=True, **settings)


def _show_all(ctx: Any, asked: bool) -> None:
    """Print the help with the rare options, and exit."""
    if asked:
        for parameter in ctx.command.params:
            parameter.hidden = False
        typer.echo(ctx.get_help())
        raise typer.Exit()


def existing(paths: Any) -> Any:
    """Return a path or a list of paths; raise unless all of them exist."""
    for path in paths if isinstance(paths, list) else [paths]:
        if not path.exists():
            remedy = " Remove the quotes, so that the shell expands the *." if "*" in str(path) else ""
            raise FileNotFoundError(f"{path} does not exist.{remedy}")
    return paths


BasisOption = Annotated[str, rare(KERNEL, f"Basis functions: {', '.join(BASES)}. PLUMED input needs fourier.")]
SeedOption = Annotated[int, rare(KERNEL, "Seed; the same seed gives the same results.", min=0)]
OutOption = Annotated[Path, option(OUTPUT, "Directory of the results.", file_okay=False, metavar="DIR")]
TableOption = Annotated[str, rare(OUTPUT, f"Format of the table: {', '.join(TABLE_FORMATS)}.", "--table")]
ForceOption = Annotated[bool, option(OUTPUT, "Replace files of an earlier run.", "--force")]
HelpAllOption = Annotated[
    bool, typer.Option("--help-all", callback=_show_all, is_eager=True, help="Show the rare options too.")
]
ModelArgument = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", callback=existing, help="A model written by `kdmaps fit` or `save`.", show_default=False
    ),
]


@dataclass(frozen=True)
class Files:
    """Options that name the samples and what belongs to them."""

    data: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA",
            callback=existing,
            help="Tables, arrays or trajectories; one file for each run.",
            show_default=False,
        ),
    ]
    columns: Annotated[
        str | None, option(DATA, "Columns to use, as in x,y or 0:3. (default: all)", metavar="NAMES")
    ] = None
    angles: Annotated[str | None, option(DATA, "Columns that are angles: use cosine and sine.", metavar="NAMES")] = None
    degrees: Annotated[bool, rare(DATA, "Angles are in degrees instead of radians.", "--degrees")] = False
    weights: Annotated[
        str | None, option(DATA, "Weights of a biased simulation: a column or file.", metavar="NAME")
    ] = None
    stride: Annotated[int, rare(DATA, "Use every n-th row.", min=1)] = 1
    array: Annotated[str | None, rare(DATA, "Name of the array in an .npz or .zarr file.")] = None
    header: Annotated[
        bool | None,
        rare(
            DATA,
            "Whether the first line of text contains column names. (default: if it has no number, or 0, 1, 2, …)",
            "--header/--no-header",
        ),
    ] = None
    topology: Annotated[
        Path | None,
        option(TRAJECTORY, "Topology (.pdb …) of a trajectory.", exists=True, dir_okay=False, metavar="FILE"),
    ] = None
    descriptor: Annotated[
        str, option(TRAJECTORY, f"Columns: {', '.join(DESCRIPTORS)}; dihedrals:chi1, atoms:name CA.")
    ] = "heavy-atoms"
    groups: Annotated[
        str | None, rare(TRAJECTORY, "Trajectory of each row: a column or file. (default: one per file)")
    ] = None
    diffusion: Annotated[
        str | None,
        rare(
            KERNEL,
            "Diffusion tensor: a number, a diagonal as in 1,0.5, tangent, or a .npy file of one matrix or one per "
            "row. (default: identity)",
        ),
    ] = None
    draw: Annotated[str | None, option(OUTPUT, "Columns or files to draw modes over, not fitted.", metavar="NAMES")] = (
        None
    )

    help_all: HelpAllOption = False

    def __post_init__(self) -> None:
        kinds = [one.partition(":")[0].strip() for one in self.descriptor.split("+")]
        unknown = next((kind for kind in kinds if kind not in DESCRIPTORS), DESCRIPTORS[0])
        require_one_of(DESCRIPTORS, "--descriptor", unknown)

    @property
    def name(self) -> str:
        """Name of the data."""
        more = len(self.data) - 1
        return self.data[0].name + (f" and {more} more" if more else "")

    @property
    def drawn(self) -> list[str]:
        """Columns or files to draw over."""
        return split_names(self.draw)

    @property
    def roles(self) -> dict[str, str]:
        """Columns or files of weights and groups, by the argument of `fit` that they are for."""
        given = {"sample_weight": self.weights, "groups": self.groups}
        return {name: where for name, where in given.items() if where is not None}

    @property
    def left_out(self) -> list[str]:
        """Columns that are not fitted unless `columns` or `angles` names them."""
        angles = split_names(self.angles)
        return [*self.roles.values(), *(name for name in self.drawn if name not in angles)]


def split_names(text: str | None) -> list[str]:
    """Return the names in a comma-separated list."""
    return [] if text is None else [name.strip() for name in text.split(",")]


def with_files(*leave_out: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of `Files`, except those left out, in place of its parameter `files`."""
    hints = get_type_hints(Files, include_extras=True)
    shared = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.default is MISSING else one.default,
            annotation=hints[one.name],
        )
        for one in fields(Files)
        if one.name not in leave_out
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            read = {one.name: given.pop(one.name) for one in shared}
            command(files=Files(**read), **given)

        known = get_type_hints(command, include_extras=True)
        parameters = []
        for name, one in inspect.signature(command).parameters.items():
            own = one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=known[name])
            parameters += shared if name == "files" else [own]
        parameters.sort(key=_panel)
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def _panel(one: inspect.Parameter) -> int:
    """Return the place of an option among the groups of `--help`; arguments and `--help-all` come first."""
    panel = getattr(one.annotation.__metadata__[0], "rich_help_panel", None)
    return PANELS.index(panel) if panel in PANELS else -1
