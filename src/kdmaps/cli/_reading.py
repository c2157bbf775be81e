"""Read samples, their weights and groups, columns to draw, and a diffusion tensor."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from kdmaps.checks import Check, collected, muted, rules, warn
from kdmaps.cli._options import Files, split_names
from kdmaps.data import ArraySource, Source, Table, angles, gather, open_tables, read_column
from kdmaps.data.findings import effective_sample_size
from kdmaps.data.pairs import common_step, refuse_gap
from kdmaps.data.table import is_time
from kdmaps.forms.diffusion import DiffusionTensor

#: With fewer samples, the stride is too long.
MIN_SAMPLES = 10
#: Number of column names that are shown.
SHOWN_NAMES = 8


@dataclass(frozen=True)
class Samples:
    """Samples in memory or mapped from a file, with what belongs to each."""

    X: np.ndarray
    names: list[str] | None
    weight: np.ndarray | None
    group: np.ndarray | None
    places: dict[str, Any]  # file and row of every sample: columns of the table of modes
    ordered: bool  # rows are in temporal order
    diffusion: Any
    time_step: float | None  # between rows, if time matters and the files contain it
    time_unit: str | None  # of the times in the files
    inputs: list[str] | None  # definition of the columns by atoms, as in `kdmaps export --inputs`
    checks: tuple[Check, ...]  # from reading the files
    drawn: dict[str, np.ndarray]  # columns to draw the modes over

    def describe(self) -> str:
        """Return the number of samples and their columns."""
        names, d = self.names, self.X.shape[1]
        columns = f"{d} columns" if d > 1 else "1 column"
        if names:
            columns = ", ".join(names[:SHOWN_NAMES]) + (f", … ({d} in all)" if d > SHOWN_NAMES else "")
        weights = ""
        if self.weight is not None and self.weight.any():  # the fit refuses weights that are all 0
            relative = self.weight / self.weight.max()  # squares of large ones would overflow
            weights = f"; weights leave {effective_sample_size(relative):.4g} effective samples"
        n = len(self.X)
        return f"{n} sample{'s' if n > 1 else ''} of {columns}{weights}"

    @property
    def source(self) -> Source:
        """The samples with their column names, as estimators take them."""
        source = ArraySource(self.X if self.X.dtype.kind == "f" else self.X.astype(np.float64))
        source.feature_names = self.names
        return source


def read_samples(files: Files, timed: bool = False) -> Samples:
    """Read the samples, and check that weights, groups and tensors belong to them; `timed` if time matters."""
    with muted(), collected() as checks:
        table = open_files(files)
        if files.columns is None and table.width and set(table.labels) <= set(files.left_out):
            raise ValueError(
                "No column is left to fit: --draw, --weights and --groups name them all. Name the columns to fit with "
                "--columns; a column may be fitted and drawn."
            )
        used = {*files.left_out, *(name for name in table.words if table.times is not None and is_time(name))}
        text = [name for name in table.words if files.columns is None and name not in used]
        warn(Check(rules.WORDS, len(text), where=tuple(text)))
        samples = with_angles(files, table.select(files.columns, leave_out=files.left_out))
        X = gather(samples)
        n = len(X)
        weight, group = weights_of(files, table, n), groups_of(files, table, n)
        drawn = {Path(name).stem: _column("--draw", name, files, table, n) for name in _drawn(files, table)}
        if files.stride > 1 and n < MIN_SAMPLES:
            raise ValueError(f"--stride {files.stride} leaves {n} samples; use a smaller one.")
        places = places_of(files, table, n)
        if files.groups is not None:
            places["group"] = group
        tensor = _diffusion(files, *X.shape)
        step = time_step_of(files, table, group) if timed else None
    names, unit = samples.feature_names, table.time_unit or None
    inputs = _inputs(table, names or [])
    return Samples(X, names, weight, group, places, table.ordered, tensor, step, unit, inputs, tuple(checks), drawn)


def _drawn(files: Files, table: Table) -> list[str]:
    """Return the columns to draw over; phi and psi are the dihedrals of all residues, one residue after the other."""
    known = {*table.labels, *table.extras}
    several = {name: [one for one in table.extras if one.startswith(f"{name} ")] for name in files.drawn}
    several = {name: ones for name, ones in several.items() if ones and name not in known}
    residues = dict.fromkeys(one.partition(" ")[2] for ones in several.values() for one in ones)
    each = [f"{name} {residue}" for residue in residues for name in several]
    return [*(name for name in files.drawn if name not in several), *(one for one in each if one in known)]


def _inputs(table: Table, names: Sequence[str]) -> list[str] | None:
    """Return the torsions and distances that the columns are; None if a column is something else."""
    known = dict(zip(table.labels, table.inputs, strict=False))
    of_columns = [known.get(name, "") for name in names]
    found = list(dict.fromkeys(of_columns))
    whole = all(one and of_columns.count(one) == (2 if one.startswith("torsion") else 1) for one in found)
    return found if found and whole else None


def open_files(files: Files, reference: Path | None = None) -> Table:
    """Inspect the files; `reference` is the trajectory on whose first frame atoms are superposed."""
    given = {name: getattr(files, name) for name in ("array", "header", "stride", "topology", "descriptor")}
    return open_tables(files.data, reference=reference, **given)


def with_angles(files: Files, samples: Source) -> Source:
    """Replace angles by cosine and sine."""
    if files.angles is None:
        if files.degrees:
            raise ValueError("--degrees needs --angles: name the columns that are angles.")
        return samples
    return angles(samples, split_names(files.angles), files.degrees)


def weights_of(files: Files, table: Table, n_samples: int) -> np.ndarray | None:
    """Read the weights; None if none were given."""
    weight: np.ndarray | None = _column("--weights", files.weights, files, table, n_samples)
    if weight is not None and not (weight.dtype.kind in "fiub" and np.all(np.isfinite(weight) & (weight >= 0))):
        raise ValueError(f"--weights: {files.weights} has invalid entries; weights are finite numbers, 0 or more.")
    return weight


def groups_of(files: Files, table: Table, n_samples: int) -> np.ndarray | None:
    """Read the trajectory of each sample: as in --groups, or else its file if there are several."""
    group: np.ndarray | None = _column("--groups", files.groups, files, table, n_samples)
    if group is not None:
        return group.astype(str) if group.dtype.kind == "O" else group
    return np.asarray(places_of(files, table, n_samples)["file"]) if table.lengths else None


def time_step_of(files: Files, table: Table, groups: np.ndarray | None) -> float | None:
    """Return the time between rows if the files contain it; raise unless rows are frames at equal steps."""
    if files.groups is None and table.gap is not None:
        refuse_gap(table.gap())
    return None if table.times is None else common_step(table.times(), groups)


def places_of(files: Files, table: Table, n_samples: int) -> dict[str, Any]:
    """Return the row of every sample, counted from 0, and its file if there are several."""
    rows = range(0, n_samples * files.stride, files.stride)
    if not table.lengths:
        return {"row": rows}
    file = np.repeat(np.arange(len(table.lengths)), table.lengths)[:: files.stride]
    first = np.concatenate([[0], np.cumsum(table.lengths)[:-1]])
    return {"file": file, "row": np.asarray(rows) - first[file]}


def row_names(files: Files, places: dict[str, Any]) -> list[str]:
    """Return file and row of every sample, as in run1.xtc:532; only the row if there is one file."""
    if "file" not in places:
        return list(map(str, places["row"]))
    short = [path.name for path in files.data]
    named = short if len(set(short)) == len(short) else list(map(str, files.data))
    return [f"{named[i]}:{row}" for i, row in zip(places["file"], places["row"], strict=True)]


def _column(name: str, where: str | None, files: Files, table: Table, n_samples: int) -> Any:
    """Return one value per sample for the option `name`; None if it was not given."""
    if where is None:
        return None
    column = read_column(where, table, name, files.stride)
    if len(column) != n_samples:
        raise ValueError(f"{name}: {where} has {len(column)} rows, but {files.name} has {n_samples}.")
    return column


def _diffusion(files: Files, n_samples: int, n_columns: int) -> Any:
    """Return the diffusion tensor that an option describes; one tensor per row of the file is thinned as the rows."""
    text = files.diffusion
    if text is None or text == "tangent":
        return text
    try:
        if text.endswith(".npy"):
            array = np.lib.format.open_memmap(text, mode="r")
            value: Any = array[:: files.stride] if array.ndim == 3 else array
        else:
            numbers = [float(part) for part in text.split(",")]
            value = numbers if len(numbers) > 1 else numbers[0]
        DiffusionTensor(value, n_columns).check_rows(n_samples)
    except (OSError, EOFError, ValueError) as error:
        similar = get_close_matches(text, ["tangent"])
        reason = f"did you mean {similar[0]}?" if similar else f"{str(error).rstrip('.')}."
        raise ValueError(
            f"--diffusion {text}: {reason} Give a number, one number per column as in 1,0.5, tangent, or a .npy file "
            f"of shape ({n_columns}, {n_columns}) or (rows, {n_columns}, {n_columns})."
        ) from error
    return value


def reading_program(files: Files) -> str:
    """Write lines of Python that read the same samples, with weights, groups and tensor."""
    several = len(files.data) > 1
    opening = "open_tables" if several else "open_table"
    paths: str | list[str] = [*map(str, files.data)] if several else str(files.data[0])
    options: dict[str, Any] = {"stride": files.stride, "array": files.array, "header": files.header}
    if files.topology is not None:
        options |= {"topology": str(files.topology), "descriptor": files.descriptor}
    samples = _call("table.select", columns=files.columns, leave_out=files.left_out)
    if files.angles is not None:
        samples = f"angles({samples}, {split_names(files.angles)}{', degrees=True' if files.degrees else ''})"
    used = ["gather", opening, *(["angles"] if files.angles else []), *(["read_column"] if files.roles else [])]
    lines = [
        f"from kdmaps.data import {', '.join(sorted(used))}",
        f"table = {_call(opening, paths, **options)}",
        f"X = gather({samples})",
        *(f"{name} = read_column({where!r}, table, {name!r}, {files.stride})" for name, where in files.roles.items()),
    ]
    by_file, stored = several and files.groups is None, str(files.diffusion).endswith(".npy")
    if by_file or stored:
        lines.append("import numpy as np")
    if by_file:
        lines.append(f"groups = np.repeat(np.arange({len(files.data)}), table.lengths)[::{files.stride}]")
    if stored:
        lines.append(f"diffusion = np.load({files.diffusion!r}, mmap_mode='r')")
    if stored and files.stride > 1:
        lines.append(f"diffusion = diffusion[::{files.stride}] if diffusion.ndim == 3 else diffusion")
    return "\n".join(lines)


def _call(function: str, *arguments: str | list[str], **keywords: Any) -> str:
    """Write the call of a function, without keywords that have their default."""
    given = (
        f"{name}={value!r}" for name, value in keywords.items() if isinstance(value, bool) or value not in (None, 1, [])
    )
    return f"{function}({', '.join([*map(repr, arguments), *given])})"
