"""What `kdmaps fit` reads: samples, their weights and groups, and a diffusion tensor."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from kdmaps.cli._models import describe, places_of, shorten, split_names, texts_of, with_angles
from kdmaps.data import ArraySource, Source, Table, gather, open_tables, read_column
from kdmaps.data.pairs import common_step
from kdmaps.forms.diffusion import DiffusionTensor

#: Fewer samples than this mean that the stride is too long, and say nothing about the order of rows.
MIN_SAMPLES = 10


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

    def describe(self) -> str:
        """Return number and columns of the samples."""
        d = self.X.shape[1]
        columns = shorten(self.names) if self.names else f"{d} columns" if d > 1 else "1 column"
        return f"{len(self.X)} samples of {columns}"

    @property
    def source(self) -> Source:
        """The samples with the names of their columns, as estimators take them."""
        source = ArraySource(self.X if self.X.dtype.kind == "f" else self.X.astype(np.float64))
        source.feature_names = self.names
        return source


@dataclass(frozen=True)
class Files:
    """Where samples and what belongs to them are, as the options of `kdmaps fit` say; `timed` if time matters."""

    data: list[Path]
    columns: str | None
    stride: int
    array: str | None
    header: bool | None
    weights: str | None
    groups: str | None
    topology: Path | None
    descriptor: str
    angles: str | None = None
    degrees: bool = False
    diffusion: str | None = None
    timed: bool = False

    def read(self) -> Samples:
        """Read the samples, and check that weights, groups and tensors belong to them."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            samples = self._read()
        return replace(samples, notes=tuple(texts_of(caught)))

    def _read(self) -> Samples:
        table = open_tables(
            self.data,
            array=self.array,
            header=self.header,
            stride=self.stride,
            topology=self.topology,
            descriptor=self.descriptor,
        )
        samples = table.select(self.columns, leave_out=[where for where in self._beside.values()])
        samples = with_angles(samples, self.angles, self.degrees)
        weight, group = self._column("--weights", self.weights, table), self._column("--groups", self.groups, table)
        X = gather(samples)
        for name, where, column in (("--weights", self.weights, weight), ("--groups", self.groups, group)):
            if column is not None and len(column) != len(X):
                raise ValueError(f"{name}: {where} has {len(column)} rows, but {describe(self.data)} has {len(X)}.")
        if self.stride > 1 and len(X) < MIN_SAMPLES:
            raise ValueError(f"--stride {self.stride} leaves {len(X)} samples; take a smaller one.")
        if weight is not None and not (weight.dtype.kind in "fiub" and np.all(np.isfinite(weight) & (weight >= 0))):
            raise ValueError(
                f"--weights: {self.weights} has entries that are no weights; they must be finite numbers, 0 or more."
            )
        places = places_of(table, len(X), self.stride)
        if group is not None:
            places["group"] = group = group.astype(str) if group.dtype.kind == "O" else group
        elif table.lengths:
            group = np.asarray(places["file"])
        tensor = _diffusion(self.diffusion, self.stride, *X.shape)
        step = common_step(table.times(), group) if self.timed and table.times is not None else None
        return Samples(X, samples.feature_names, weight, group, places, table.ordered, tensor, step)

    @property
    def _beside(self) -> dict[str, str]:
        """Columns or files that are no samples, by the argument of `fit` that they are for."""
        given = {"sample_weight": self.weights, "groups": self.groups}
        return {name: where for name, where in given.items() if where is not None}

    def _column(self, option: str, where: str | None, table: Table) -> np.ndarray | None:
        return None if where is None else read_column(where, table, option, self.stride)

    def program(self) -> str:
        """Write lines of Python that read the same samples, with weights, groups and tensor."""
        roles, several = self._beside, len(self.data) > 1
        opening = "open_tables" if several else "open_table"
        paths: str | list[str] = [*map(str, self.data)] if several else str(self.data[0])
        options: dict[str, Any] = {"stride": self.stride, "array": self.array, "header": self.header}
        if self.topology is not None:
            options |= {"topology": str(self.topology), "descriptor": self.descriptor}
        samples = _call("table.select", columns=self.columns, leave_out=[*roles.values()])
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
