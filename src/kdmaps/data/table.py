"""Columns of a file, and the selection of samples among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kdmaps.exceptions import ArgumentError
from kdmaps.language import Either
from kdmaps.utils.frames import durations

if TYPE_CHECKING:
    from kdmaps.data.sources import Source

#: Number of names of columns listed in a message.
_SHOWN_NAMES = 12

#: Match names of columns that are times, with an optional unit.
is_time = re.compile(r"(?i:time)(?:[_ ]?[(\[]?(fs|ps|ns|us|µs|ms|s|min|h|d)[)\]]?)?").fullmatch

Blocks = Iterator[np.ndarray]


@dataclass(frozen=True)
class Table:
    """Columns of a file, read on demand."""

    width: int  #: Number d of numeric columns.
    #: Takes a list of indices of numeric columns; yields blocks of their rows, from the first row on.
    blocks: Callable[[list[int]], Blocks]
    names: list[str] | None = None  #: Names of the numeric columns, if any.
    #: Other columns, such as text or further arrays of an archive: each function yields the blocks of one column.
    extras: dict[str, Callable[[], Blocks]] = field(default_factory=dict)
    array: np.ndarray | None = None  #: The numeric columns, if they are in memory or mapped.
    n_samples: int | None = None  #: Number of rows, if known.
    ordered: bool = False  #: True if the rows are known to be in temporal order.
    times: Callable[[], np.ndarray] | None = None  #: Returns the times of the rows, if the file contains them.
    time_unit: str = ""  #: Unit of the times, if known.
    #: Definition of each numeric column by atoms, as in `kdmaps export --inputs`; "" for other columns.
    inputs: list[str] = field(default_factory=list)
    #: Numbers of rows of the joined files, complete after a pass over the blocks; empty for a single file.
    lengths: list[int] = field(default_factory=list)
    hint: str = ""  #: Added to the error message for a file without numeric columns.
    words: tuple[str, ...] = ()  #: Extras that are columns of text in the same table.
    #: Returns a description of the first gap between rows, such as an empty line of text, or None.
    gap: Callable[[], str | None] | None = None

    @classmethod
    def from_blocks(cls, width: int, start: Callable[[], Blocks], **fields: Any) -> Table:
        """Make a table from a function that yields blocks of all numeric columns; `fields` are further attributes."""

        def blocks(columns: list[int]) -> Blocks:
            return start() if columns == list(range(width)) else (block[:, columns] for block in start())

        return cls(width, blocks, **fields)

    @property
    def labels(self) -> list[str]:
        """Names of the numeric columns, or their numbers if they are not named."""
        return [str(j) for j in range(self.width)] if self.names is None else self.names

    def column(self, name: str) -> np.ndarray | None:
        """Return a column by its label or the name of an extra; None if it does not exist."""
        if name in self.extras:
            blocks = self.extras[name]()
        elif name in self.labels:
            blocks = self.blocks([self.labels.index(name)])
        else:
            return None
        return np.concatenate([*blocks])[:, 0]

    def select(self, columns: str | Sequence[str] | None = None, leave_out: Iterable[str] = ()) -> Source:
        """Return the samples.

        Parameters
        ----------
        columns : str or sequence of str, optional
            Names, numbers and slices of numbers, in a sequence or separated by commas: "phi,psi", "0:3", "0,2:". By
            default all numeric columns.
        leave_out : iterable of str
            Columns for other purposes, such as weights, that are left out by default.
        """
        from kdmaps.data.sources import ArraySource  # which imports the formats, and these this module
        from kdmaps.data.streams import StreamSource

        if columns is None:
            taken = set(leave_out)
            picks: list[int | str] = [j for j, name in enumerate(self.labels) if name not in taken]
            if not picks:
                raise ValueError(f"No column is left for the samples. {self.describe_columns()}")
        else:
            items = [part.strip() for part in columns.split(",")] if isinstance(columns, str) else columns
            picks = [pick for item in items for pick in self._pick(item)]
        labels = self.labels
        names = [pick if isinstance(pick, str) else labels[pick] for pick in picks]
        if len(set(names)) < len(names):
            raise ArgumentError(
                "{option} contains a column twice.", option=Either(f"columns={columns!r}", f"--columns {columns}")
            )
        numbers = [pick for pick in picks if isinstance(pick, int)]
        array = self._view(numbers) if len(numbers) == len(picks) else self._read(names)
        known = None if self.names is None and len(numbers) == len(picks) else names
        source: Source
        if array is None:
            source = StreamSource(partial(self.blocks, numbers), n_samples=self.n_samples, feature_names=known)
        else:
            source = ArraySource(array)
            source.feature_names = known
        source.times, source.gap = self.times, self.gap
        source.time_unit = None if self.times is None else self.time_unit
        return source

    def every(self, stride: int) -> Table:
        """Return the table of every stride-th row."""

        def thinned(start: Callable[..., Blocks]) -> Callable[..., Blocks]:
            def blocks(*columns: list[int]) -> Blocks:
                begin = 0
                for block in start(*columns):
                    if len(rows := block[-begin % stride :: stride]):
                        yield rows
                    begin += len(block)

            return blocks

        times = self.times
        return replace(
            self,
            blocks=thinned(self.blocks),
            times=None if times is None else lambda: times()[::stride],
            extras={name: thinned(start) for name, start in self.extras.items()},
            array=None if self.array is None else self.array[::stride],
            n_samples=None if self.n_samples is None else -(-self.n_samples // stride),
        )

    def with_times(self) -> Table:
        """Return the table with the times of its rows if a column has such a name: time, time_ps, time (ps)."""
        found = ((name, is_time(name)) for name in [*(self.names or ()), *self.extras])
        name, match = next(((name, match) for name, match in found if match), ("", None))
        if self.times is not None or match is None:
            return self

        dated = name in self.words

        def times() -> np.ndarray:
            values = np.asarray(self.column(name))
            try:
                return durations(values.astype("M8[us]")) if dated else values
            except ValueError as error:
                raise ValueError(
                    f"Column {name!r} has times that are neither numbers nor dates such as 2024-05-01 12:30:00 "
                    f"({error}); convert them, or rename the column if it is not a time."
                ) from None

        return replace(self, times=times, time_unit="s" if dated else match[1] or self.time_unit)

    def describe_columns(self) -> str:
        """Return a sentence that lists the columns."""
        known = [*(self.names or []), *self.extras]
        named = f", named {', '.join(known[:_SHOWN_NAMES])}{' …' if len(known) > _SHOWN_NAMES else ''}" if known else ""
        if self.width:
            return f"Columns are numbered 0 to {self.width - 1}{named}."
        return f"Columns are{named.removeprefix(', named')}. {self.hint}".strip()

    def _view(self, numbers: list[int]) -> np.ndarray | None:
        """Return columns of the array; None if this would copy them from a file."""
        if self.array is None:
            return None
        if numbers == list(range(numbers[0], numbers[-1] + 1)):
            return self.array[:, numbers[0] : numbers[-1] + 1]
        return None if isinstance(self.array, np.memmap) else self.array[:, numbers]

    def _read(self, names: list[str]) -> np.ndarray:
        """Read complete columns, including extras."""
        columns = {name: np.asarray(self.column(name)) for name in names}
        for name, column in columns.items():
            if column.dtype.kind not in "fiub":
                raise ValueError(f"Column {name!r} is text, not numbers; leave it out.")
        return np.column_stack([*columns.values()])

    def _shape(self) -> str:
        return f"{self.width} columns {'with' if self.names else 'without'} names"

    def _pick(self, item: str) -> Sequence[int | str]:
        if item in self.extras:
            return [item]
        if self.names is not None and item in self.names:
            return [self.names.index(item)]
        ends = item.split(":")
        if len(ends) in (1, 2) and all(end == "" or end.lstrip("-").isdecimal() for end in ends) and item != "":
            where = (
                range(self.width)[slice(*(int(end) if end else None for end in ends))] if ":" in item else [int(item)]
            )
            if where and all(0 <= j < self.width for j in where):
                return list(where)
        raise ArgumentError(
            "{option}: column {item!r} does not exist. {known}",
            option=Either("columns", "--columns"),
            item=item,
            known=self.describe_columns(),
        )


def _check_same_columns(tables: Sequence[Table], paths: Sequence[object]) -> None:
    """Raise a ValueError unless all tables have the columns of the first, in any order."""
    first = tables[0]
    for table, path in zip(tables, paths, strict=True):
        if (table.names is None) != (first.names is None) or table.width != first.width:
            differ = f"{path} has {table._shape()}, but {paths[0]} has {first._shape()}"
        elif differing := set(table.names or ()) ^ set(first.names or ()):
            differ = f"{path} and {paths[0]} differ in columns: {', '.join(sorted(differing))}"
        else:
            continue
        raise ValueError(f"{differ}; joined files must have the same columns.")


def join(tables: Sequence[Table], paths: Sequence[object]) -> Table:
    """Join the rows of files with the same columns, read one after the other."""
    _check_same_columns(tables, paths)
    first = tables[0]
    lengths: list[int] = []

    def counted(start: Callable[[Table], Blocks]) -> Blocks:
        found = []
        for table in tables:
            found.append(0)
            for block in start(table):
                found[-1] += len(block)
                yield block
        lengths[:] = found

    def numbers(columns: list[int]) -> Blocks:
        labels = first.labels

        def start(table: Table) -> Blocks:
            where = {name: j for j, name in enumerate(table.labels)}
            return table.blocks([where[labels[j]] for j in columns])

        return counted(start)

    def extra(name: str) -> Blocks:
        return counted(lambda table: table.extras[name]())

    timed = [table.times for table in tables if table.times is not None]
    counts = [table.n_samples for table in tables]
    arrays = [table.array for table in tables if table.array is not None and not isinstance(table.array, np.memmap)]
    return Table(
        first.width,
        numbers,
        first.names,
        {name: partial(extra, name) for name in first.extras if all(name in table.extras for table in tables)},
        array=np.concatenate(arrays) if len(arrays) == len(tables) and first.names is None else None,
        n_samples=None if None in counts else sum(filter(None, counts)),
        time_unit=first.time_unit,
        ordered=first.ordered,
        times=None if len(timed) < len(tables) else lambda: np.concatenate([times() for times in timed]),
        lengths=lengths,
        hint=first.hint,
        inputs=first.inputs,
        words=tuple(dict.fromkeys(name for table in tables for name in table.words)),
        gap=lambda: next((where for table in tables if table.gap is not None and (where := table.gap())), None),
    )
