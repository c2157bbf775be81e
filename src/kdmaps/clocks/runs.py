"""Short unbiased runs of equal time steps, as one table of frames."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kdmaps.data.files import is_dask
from kdmaps.data.inputs import as_source
from kdmaps.data.pairs import check_steps
from kdmaps.data.sources import gather
from kdmaps.exceptions import ArgumentError
from kdmaps.utils.frames import column_names
from kdmaps.utils.validation import check_positive_number

#: Time steps of different runs that differ by less, relative to the first, are equal: files have single precision.
STEP_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class Runs:
    """Frames of several runs, one run after the other."""

    frames: np.ndarray  #: (n_frames, d)
    lengths: np.ndarray  #: (n_runs,): number of frames of each run.
    time_step: float  #: Time between frames.

    @classmethod
    def read(
        cls,
        runs: Any,
        time_step: float | None,
        *,
        name: str = "bursts",
        n_columns: int | None = None,
        columns: Sequence[str] | None = None,
        min_frames: int = 2,
    ) -> Self:
        """Read runs from arrays, data frames, files, streams or Dask data.

        Parameters
        ----------
        runs : list of runs, or array of shape (n_runs, n_frames, d)
        time_step : float or None
            Time between frames; None is the step of the times in the runs.
        name : str
            The argument, in messages.
        n_columns, columns : int, sequence of str, optional
            Number and names of the columns that every run must have.
        min_frames : int
            Smallest number of frames of a run.
        """
        tables, steps = _tables(runs, name)
        lengths = np.array([len(table) for table in tables])
        widths = sorted({table.shape[1] for table in tables})
        if len(widths) > 1:
            raise _error(name, " have {widths} columns; all runs must have the same.", widths=_listed(widths))
        if n_columns is not None and widths[0] != n_columns:
            raise _error(
                name,
                " have {width} columns, but X has {n_columns}; give the same columns in the same order.",
                width=widths[0],
                n_columns=n_columns,
            )
        _check_names(runs, name, columns)
        if lengths.min() < min_frames:
            raise _error(
                name,
                " must have at least {least} frames each: run {run} (counted from 0) has {frames}. Leave it out, "
                "or store frames more often.",
                least=min_frames,
                run=int(np.argmin(lengths)),
                frames=int(lengths.min()),
            )
        return cls(np.concatenate(tables), lengths, _common_step(steps, time_step, name))

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def first(self) -> np.ndarray:
        """Number of the first frame of each run."""
        return np.concatenate([[0], np.cumsum(self.lengths)[:-1]])

    @property
    def owner(self) -> np.ndarray:
        """Run of each frame."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def starts(self) -> np.ndarray:
        """First frame of each run, (n_runs, d)."""
        return self.frames[self.first]

    def pairs(self, lag: int) -> np.ndarray:
        """Return the numbers of all frames that have a frame `lag` later in the same run."""
        after_start = np.arange(len(self.frames)) - np.repeat(self.first, self.lengths)
        return np.flatnonzero(after_start + lag < np.repeat(self.lengths, self.lengths))

    def displacements(self, lag: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the first frames of all pairs, their displacements after `lag` frames, and their runs."""
        begin = self.pairs(lag)
        return self.frames[begin], self.frames[begin + lag] - self.frames[begin], self.owner[begin]

    def take(self, chosen: np.ndarray) -> "Runs":
        """Return some of the runs."""
        kept = np.concatenate([np.arange(self.first[run], self.first[run] + self.lengths[run]) for run in chosen])
        return Runs(self.frames[kept], self.lengths[chosen], self.time_step)

    def by_length(self, function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """Evaluate a function for all runs of one length together, and return the results in the order of the runs.

        The function gets the numbers of the frames, (n_frames, n_some_runs), and the numbers of the runs, and returns
        one row for each run.
        """
        rows: np.ndarray | None = None
        for length in np.unique(self.lengths):
            chosen = np.flatnonzero(self.lengths == length)
            values = function(self.first[chosen] + np.arange(length)[:, None], chosen)
            if rows is None:
                rows = np.empty((len(self), *values.shape[1:]))
            rows[chosen] = values
        assert rows is not None
        return rows


def _tables(runs: Any, name: str) -> tuple[list[np.ndarray], list[float | None]]:
    """Return the frames of each run as floats, and the time steps that the runs contain."""
    if getattr(runs, "ndim", None) == 3:
        runs = list(runs)
    if not isinstance(runs, list | tuple) or not runs:
        raise _error(
            name,
            " must be a list of runs (arrays of shape (n_frames, d), data frames, files, streams), or an array "
            "of shape (n_runs, n_frames, d); got {got}.",
            got=type(runs).__name__ if not isinstance(runs, list | tuple) else "an empty list",
        )
    tables: list[np.ndarray] = []
    steps: list[float | None] = []
    for number, run in enumerate(runs):
        table, step = _table(run, name, number)
        if table.ndim != 2 or 0 in table.shape:
            raise _error(
                name,
                ": run {number} (counted from 0) has the shape {shape}; every run needs (n_frames, d).",
                number=number,
                shape=table.shape,
            )
        finite = np.isfinite(table).all(axis=1)
        if not finite.all():
            raise _error(
                name,
                ": frame {frame} of run {number} (counted from 0) has NaN or infinity; leave out the run, or cut "
                "it before this frame.",
                frame=int(np.argmin(finite)),
                number=number,
            )
        tables.append(table)
        steps.append(step)
    return tables, steps


def _table(run: Any, name: str, number: int) -> tuple[np.ndarray, float | None]:
    """Return the frames of a run as floats, and the step of its times, if it has times."""
    in_memory = hasattr(run, "__array__") and not is_dask(run) and column_names(run) is None
    if in_memory or isinstance(run, list):
        array = np.asarray(run)
        if array.dtype.kind not in "fiub":
            raise _error(
                name,
                ": run {number} (counted from 0) holds {kind}, not numbers.",
                number=number,
                kind=array.dtype,
            )
        return array.astype(np.float64), None
    source = as_source(run)
    return np.asarray(gather(source), dtype=np.float64), check_steps(source)


def _check_names(runs: Any, name: str, columns: Sequence[str] | None) -> None:
    """Raise an error if runs that are data frames have other columns than X."""
    for number, run in enumerate(runs if columns is not None else ()):
        names = column_names(run)
        if names is not None and columns is not None and list(names) != list(columns):
            raise _error(
                name,
                ": run {number} (counted from 0) has the columns {names}, but X has {columns}.",
                number=number,
                names=", ".join(names),
                columns=", ".join(columns),
            )


def _common_step(steps: Sequence[float | None], time_step: float | None, name: str) -> float:
    """Return the time between frames, which must be the same in all runs."""
    stored = [step for step in steps if step is not None]
    different = [step for step in stored if abs(step - stored[0]) > STEP_TOLERANCE * stored[0]]
    if different:
        raise _error(
            name,
            " have frames every {first:.6g} and every {other:.6g}; all runs need the same time between frames.",
            first=stored[0],
            other=different[0],
        )
    if time_step is not None:
        return check_positive_number("time_step", time_step)
    if not stored:
        raise _error(name, " need the time between their frames, which makes time scales real: give {time_step}.")
    return stored[0]


def _error(name: str, template: str, **words: Any) -> ArgumentError:
    """Return an error about an argument, whose name is the beginning of its message."""
    return ArgumentError(("{bursts}" if name == "bursts" else name) + template, **words)


def _listed(numbers: Sequence[int]) -> str:
    return " and ".join(map(str, numbers))
