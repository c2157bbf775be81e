"""What commands read: samples, their weights and groups, columns to draw, and a diffusion tensor."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import numpy as np

from kdmaps.cli import _options as options
from kdmaps.data import ArraySource, Source, Table, gather, open_tables, read_column
from kdmaps.data import angles as data_angles
from kdmaps.data.findings import effective_sample_size
from kdmaps.data.pairs import common_step, refuse_gap
from kdmaps.exceptions import DataWarning
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.utils.warn import warn

#: Fewer samples than this mean that the stride is too long, and say nothing about the order of rows.
MIN_SAMPLES = 10
#: Names of columns that are shown before they are only counted.
SHOWN_NAMES = 8


@dataclass(frozen=True)
class Samples:
    """Samples in memory or mapped from a file, and what is known about each.

    Attributes
    ----------
    X : ndarray of shape (n_samples, d)
    names : list of str or None
        Of the columns.
    weight, group : ndarray of shape (n_samples,) or None
    places : dict of str to sequence
        Where every sample comes from: columns of the table of modes.
    ordered : bool
        Whether rows are in the order of time.
    diffusion :
        The diffusion tensor, as estimators take it.
    time_step : float or None
        Time between rows in ps, of a trajectory file that tells it.
    notes : tuple of str
        What was warned of while the files were read.
    drawn : dict of str to ndarray of shape (n_samples,)
        Columns to draw the modes over.
    """

    X: np.ndarray
    names: list[str] | None
    weight: np.ndarray | None
    group: np.ndarray | None
    places: dict[str, Any]
    ordered: bool
    diffusion: Any
    time_step: float | None = None
    notes: tuple[str, ...] = ()
    drawn: dict[str, np.ndarray] = field(default_factory=dict)

    def describe(self) -> str:
        """Return number and columns of the samples."""
        d = self.X.shape[1]
        columns = shorten(self.names) if self.names else f"{d} columns" if d > 1 else "1 column"
        return f"{len(self.X)} samples of {columns}{self._of_weights()}"

    def _of_weights(self) -> str:
        """Say what the weights leave of the samples; those that are all 0 are refused by the fit."""
        if self.weight is None or not self.weight.any():
            return ""
        relative = self.weight / self.weight.max()  # squares of large ones would overflow
        return f"; weights leave {effective_sample_size(relative):.4g} effective ones"

    @property
    def source(self) -> Source:
        """The samples with the names of their columns, as estimators take them."""
        source = ArraySource(self.X if self.X.dtype.kind == "f" else self.X.astype(np.float64))
        source.feature_names = self.names
        return source


@dataclass(frozen=True)
class Files:
    """Where samples and what belongs to them are, as options say; `timed` if time matters."""

    data: options.DataArgument
    columns: options.ColumnsOption = None
    angles: options.AnglesOption = None
    degrees: options.DegreesOption = False
    weights: options.WeightsOption = None
    stride: options.StrideOption = 1
    array: options.ArrayOption = None
    header: options.HeaderOption = None
    topology: options.TopologyOption = None
    descriptor: options.DescriptorOption = "heavy-atoms"
    groups: options.GroupsOption = None
    diffusion: options.DiffusionOption = None
    draw: options.DrawOption = None
    timed: bool = False

    @property
    def name(self) -> str:
        """The name of the data."""
        more = len(self.data) - 1
        return self.data[0].name + (f" and {more} more" if more else "")

    def open(self, reference: Path | None = None) -> Table:
        """Inspect the files; `reference` is the trajectory on whose first frame atoms are superposed."""
        return open_tables(
            self.data,
            array=self.array,
            header=self.header,
            stride=self.stride,
            topology=self.topology,
            descriptor=self.descriptor,
            reference=reference,
        )

    def with_angles(self, samples: Source) -> Source:
        """Put cosine and sine in the places of angles."""
        if self.angles is None:
            if self.degrees:
                raise ValueError("--degrees says how to read angles; name their columns with --angles.")
            return samples
        try:
            return data_angles(samples, split_names(self.angles), self.degrees)
        except ValueError as error:
            raise ValueError(f"--angles {error}") from error

    def read(self) -> Samples:
        """Read the samples, and check that weights, groups and tensors belong to them."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            samples = self._read()
        return replace(samples, notes=tuple(texts_of(caught)))

    def _read(self) -> Samples:
        table = self.open()
        if self.columns is None and table.width and set(table.labels) <= set(self.left_out):
            raise ValueError(
                "No column is left to fit: --draw, --weights and --groups name them all. Say with --columns which ones "
                "to fit; a column may be fitted and drawn."
            )
        words = [name for name in table.words if self.columns is None and name not in self.left_out]
        if words:
            warn(
                f"Not columns of numbers: {', '.join(words)}; left out. Name the columns to fit with --columns, or "
                "those that tell trajectories apart with --groups.",
                DataWarning,
            )
        samples = self.with_angles(table.select(self.columns, leave_out=self.left_out))
        X = gather(samples)
        weight, group = self.weights_of(table, len(X)), self.groups_of(table, len(X))
        drawn = {Path(name).stem: self._column("--draw", name, table, len(X)) for name in self._drawn}
        if self.stride > 1 and len(X) < MIN_SAMPLES:
            raise ValueError(f"--stride {self.stride} leaves {len(X)} samples; take a smaller one.")
        places = places_of(table, len(X), self.stride)
        if self.groups is not None:
            places["group"] = group
        tensor = _diffusion(self.diffusion, self.stride, *X.shape)
        step = self.step_of(table, group) if self.timed else None
        return Samples(X, samples.feature_names, weight, group, places, table.ordered, tensor, step, (), drawn)

    @property
    def _drawn(self) -> list[str]:
        return [] if self.draw is None else split_names(self.draw)

    @property
    def left_out(self) -> list[str]:
        """Columns that are not fitted unless `columns` or `angles` names them."""
        angles = [] if self.angles is None else split_names(self.angles)
        return [*self._beside.values(), *(name for name in self._drawn if name not in angles)]

    @property
    def _beside(self) -> dict[str, str]:
        """Columns or files that are no samples, by the argument of `fit` that they are for."""
        given = {"sample_weight": self.weights, "groups": self.groups}
        return {name: where for name, where in given.items() if where is not None}

    def weights_of(self, table: Table, n_samples: int) -> np.ndarray | None:
        """Read the weights and check that they are weights; None if none were given."""
        weight: np.ndarray | None = self._column("--weights", self.weights, table, n_samples)
        if weight is not None and not (weight.dtype.kind in "fiub" and np.all(np.isfinite(weight) & (weight >= 0))):
            raise ValueError(
                f"--weights: {self.weights} has entries that are no weights; they must be finite numbers, 0 or more."
            )
        return weight

    def groups_of(self, table: Table, n_samples: int) -> np.ndarray | None:
        """Read the trajectory of each sample: as --groups says, else its file, if there are several."""
        group: np.ndarray | None = self._column("--groups", self.groups, table, n_samples)
        if group is not None:
            return group.astype(str) if group.dtype.kind == "O" else group
        return np.asarray(places_of(table, n_samples, self.stride)["file"]) if table.lengths else None

    def step_of(self, table: Table, groups: np.ndarray | None) -> float | None:
        """Return the time between rows, where the files tell it; refuse rows that are no frames at equal steps."""
        if self.groups is None and table.gap is not None:
            refuse_gap(table.gap())
        return None if table.times is None else common_step(table.times(), groups)

    def _column(self, option: str, where: str | None, table: Table, n_samples: int) -> Any:
        """Return one value per sample, or None if none was asked for."""
        if where is None:
            return None
        column = read_column(where, table, option, self.stride)
        if len(column) != n_samples:
            raise ValueError(f"{option}: {where} has {len(column)} rows, but {self.name} has {n_samples}.")
        return column

    def program(self) -> str:
        """Write lines of Python that read the same samples, with weights, groups and tensor."""
        roles, several = self._beside, len(self.data) > 1
        opening = "open_tables" if several else "open_table"
        paths: str | list[str] = [*map(str, self.data)] if several else str(self.data[0])
        options: dict[str, Any] = {"stride": self.stride, "array": self.array, "header": self.header}
        if self.topology is not None:
            options |= {"topology": str(self.topology), "descriptor": self.descriptor}
        samples = _call("table.select", columns=self.columns, leave_out=self.left_out)
        if self.angles is not None:
            samples = f"angles({samples}, {split_names(self.angles)}{', degrees=True' if self.degrees else ''})"
        used = ["gather", opening, *(["angles"] if self.angles else []), *(["read_column"] if roles else [])]
        lines = [
            f"from kdmaps.data import {', '.join(sorted(used))}",
            f"table = {_call(opening, paths, **options)}",
            f"X = gather({samples})",
            *(f"{name} = read_column({where!r}, table, {name!r}, {self.stride})" for name, where in roles.items()),
        ]
        by_file, stored = several and "groups" not in roles, str(self.diffusion).endswith(".npy")
        if by_file or stored:
            lines.append("import numpy as np")
        if by_file:
            lines.append(f"groups = np.repeat(np.arange({len(self.data)}), table.lengths)[::{self.stride}]")
        if stored:
            lines.append(f"diffusion = np.load({self.diffusion!r}, mmap_mode='r')")
        if stored and self.stride > 1:
            lines.append(f"diffusion = diffusion[::{self.stride}] if diffusion.ndim == 3 else diffusion")
        return "\n".join(lines)


def _call(function: str, *arguments: str | list[str], **keywords: Any) -> str:
    """Write the call of a function, without keywords that have their default."""
    given = (
        f"{name}={value!r}" for name, value in keywords.items() if isinstance(value, bool) or value not in (None, 1, [])
    )
    return f"{function}({', '.join([*map(repr, arguments), *given])})"


def _diffusion(text: str | None, stride: int, n_samples: int, n_columns: int) -> Any:
    """Return the diffusion tensor that an option describes; one tensor per row of the file is thinned as the rows."""
    if text in (None, "tangent"):
        return text
    try:
        if text.endswith(".npy"):
            array = np.lib.format.open_memmap(text, mode="r")
            value: Any = array[::stride] if array.ndim == 3 else array
        else:
            numbers = [float(part) for part in text.split(",")]
            value = numbers if len(numbers) > 1 else numbers[0]
        DiffusionTensor(value, n_columns).check_rows(n_samples)
    except (OSError, EOFError, ValueError) as error:
        words = get_close_matches(text, ["tangent"])
        reason = f"did you mean {words[0]}?" if words else error
        raise ValueError(
            f"--diffusion {text}: {reason} Give a number, one number per column as in 1,0.5, tangent, or a .npy file "
            f"of shape ({n_columns}, {n_columns}) or (rows, {n_columns}, {n_columns})."
        ) from error
    return value


def with_files(*leave_out: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command with a parameter `files` one that has the options of `Files` in its place, but those left out."""
    hints = get_type_hints(Files, include_extras=True)
    shared = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.default is MISSING else one.default,
            annotation=hints[one.name],
        )
        for one in fields(Files)
        if get_origin(hints[one.name]) is Annotated and one.name not in leave_out
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            read = {option.name: given.pop(option.name) for option in shared}
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
    return options.PANELS.index(panel) if panel in options.PANELS else -1


def places_of(table: Table, n_samples: int, stride: int) -> dict[str, Any]:
    """Return where every sample comes from: its row, counted from 0, and of several files its file."""
    rows = range(0, n_samples * stride, stride)
    if not table.lengths:
        return {"row": rows}
    file = np.repeat(np.arange(len(table.lengths)), table.lengths)[::stride]
    first = np.concatenate([[0], np.cumsum(table.lengths)[:-1]])
    return {"file": file, "row": np.asarray(rows) - first[file]}


def split_names(text: str) -> list[str]:
    """Return the names in a list that is separated by commas."""
    return [name.strip() for name in text.split(",")]


def texts_of(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Return what warnings that were caught tell the user."""
    return [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]


def shorten(names: Sequence[str]) -> str:
    """Join names of columns, of which there may be many."""
    return ", ".join(names[:SHOWN_NAMES]) + (f", … ({len(names)} in all)" if len(names) > SHOWN_NAMES else "")
