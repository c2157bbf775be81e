"""Columns of a file, and what is chosen of them."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from kdmaps.data.objects import block_rows
from kdmaps.data.sources import ArraySource, Source, StreamSource

#: Samples that take more bytes than this are not gathered in memory.
IN_MEMORY_BYTES = 2**26
_SHOWN_NAMES = 12

Blocks = Iterator[np.ndarray]


@dataclass(frozen=True)
class Table:
    """Columns of a file, which is read when they are asked for.

    Attributes
    ----------
    width : int
        Number d of columns of numbers.
    blocks : callable
        Blocks of rows, from the first one on, of the columns of numbers with these indices.
    names : list of str or None
        Of the columns of numbers, if the file names them.
    extras : dict of str to callable
        Blocks of columns beside them: text, or further arrays of an archive.
    array : ndarray or None
        The columns of numbers, where they are in memory or mapped.
    n_samples : int or None
        Number of rows, where the file tells.
    ordered : bool
        Whether the rows are known to be in the order of time.
    lengths : list of int
        Numbers of rows of the files that were joined, complete after a pass over the blocks; empty for one file.
    hint : str
        What to say of a file where the user has yet to choose, or that holds no numbers.
    """

    width: int
    blocks: Callable[[list[int]], Blocks]
    names: list[str] | None = None
    extras: dict[str, Callable[[], Blocks]] = field(default_factory=dict)
    array: np.ndarray | None = None
    n_samples: int | None = None
    ordered: bool = False
    lengths: list[int] = field(default_factory=list)
    hint: str = ""

    def column(self, name: str) -> np.ndarray | None:
        """A column by its name, or by its number where columns have none; None if there is no such column."""
        labels = self._labels(range(self.width))
        if name in self.extras:
            blocks = self.extras[name]()
        elif name in labels:
            blocks = self.blocks([labels.index(name)])
        else:
            return None
        return np.concatenate([*blocks])[:, 0]

    def select(self, columns: str | Sequence[str] | None = None, leave_out: Iterable[str] = ()) -> Source:
        """The samples.

        Parameters
        ----------
        columns : str or sequence of str, optional
            Names, numbers and slices of numbers, in a sequence or separated by commas: "phi,psi", "0:3", "0,2:". By
            default all columns of numbers.
        leave_out : iterable of str
            Columns with another role, not among the samples unless `columns` asks for them.
        """
        if columns is None:
            taken = set(leave_out)
            labels = self._labels(range(self.width))
            picks: list[int | str] = [j for j, name in enumerate(labels) if name not in taken]
            if not picks:
                raise ValueError(f"No column is left for the samples. {self._offer()}")
        else:
            items = [part.strip() for part in columns.split(",")] if isinstance(columns, str) else columns
            picks = [pick for item in items for pick in self._pick(item)]
        names = self._labels(picks)
        if len(set(names)) < len(names):
            raise ValueError(f"columns={columns!r} takes a column twice.")
        numbers = [pick for pick in picks if isinstance(pick, int)]
        known = None if self.names is None and len(numbers) == len(picks) else names
        source = self._source(numbers, known) if len(numbers) == len(picks) else self._mixed(names)
        source.feature_names = known
        return source

    def every(self, stride: int) -> Table:
        """The table of every stride-th row."""

        def thinned(start: Callable[..., Blocks]) -> Callable[..., Blocks]:
            def blocks(*columns: list[int]) -> Blocks:
                begin = 0
                for block in start(*columns):
                    if len(rows := block[-begin % stride :: stride]):
                        yield rows
                    begin += len(block)

            return blocks

        return replace(
            self,
            blocks=thinned(self.blocks),
            extras={name: thinned(start) for name, start in self.extras.items()},
            array=None if self.array is None else self.array[::stride],
            n_samples=None if self.n_samples is None else -(-self.n_samples // stride),
        )

    def _source(self, numbers: list[int], names: list[str] | None) -> Source:
        if self.array is not None:
            if numbers == list(range(numbers[0], numbers[-1] + 1)):  # a view, also of a file
                return ArraySource(self.array[:, numbers[0] : numbers[-1] + 1])
            if not isinstance(self.array, np.memmap):
                return ArraySource(self.array[:, numbers])
        return StreamSource(lambda: self.blocks(numbers), n_samples=self.n_samples, feature_names=names)

    def _mixed(self, names: list[str]) -> Source:
        """Columns of which some are arrays of their own, which are read whole."""
        columns = {name: np.asarray(self.column(name)) for name in names}
        for name, column in columns.items():
            if column.dtype.kind not in "fiub":
                raise ValueError(f"Column {name!r} holds text, not numbers; leave it out.")
        return ArraySource(np.column_stack([*columns.values()]))

    def _shape(self) -> str:
        return f"{self.width} columns {'with' if self.names else 'without'} names"

    def _labels(self, picks: Iterable[int | str]) -> list[str]:
        return [pick if isinstance(pick, str) else self.names[pick] if self.names else str(pick) for pick in picks]

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
        raise ValueError(f"There is no column {item!r}. {self._offer()}")

    def _offer(self) -> str:
        known = [*(self.names or []), *self.extras]
        named = f", named {', '.join(known[:_SHOWN_NAMES])}{' …' if len(known) > _SHOWN_NAMES else ''}" if known else ""
        if self.width:
            return f"Columns are numbered 0 to {self.width - 1}{named}."
        return f"Columns are{named.removeprefix(', named')}. {self.hint}".strip()


def join(tables: Sequence[Table], paths: Sequence[object]) -> Table:
    """Files with the same columns, one below the other, read one after the other."""
    first = tables[0]
    for table, path in zip(tables, paths, strict=True):
        if (table.names is None) != (first.names is None) or table.width != first.width:
            raise ValueError(
                f"{path} has {table._shape()}, but {paths[0]} has {first._shape()}; files that are joined need the "
                "same columns."
            )
        if differing := set(table.names or ()) ^ set(first.names or ()):
            raise ValueError(
                f"{path} and {paths[0]} differ in columns: {', '.join(sorted(differing))}; files that are joined need "
                "the same ones."
            )
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
        names = first._labels(columns)
        return counted(
            lambda table: table.blocks([table.names.index(name) for name in names] if table.names else columns)
        )

    def beside(name: str) -> Blocks:
        return counted(lambda table: table.extras[name]())

    counts = [table.n_samples for table in tables]
    return Table(
        first.width,
        numbers,
        first.names,
        {name: partial(beside, name) for name in first.extras if all(name in table.extras for table in tables)},
        n_samples=None if None in counts else sum(filter(None, counts)),
        ordered=first.ordered,
        lengths=lengths,
        hint=first.hint,
    )


def gather(source: Source) -> np.ndarray:
    """All rows as one array: in memory if it is small, else mapped from a temporary file, which nobody else sees."""
    if isinstance(source, ArraySource):
        return source.array
    try:
        with tempfile.TemporaryFile() as file:
            for part in source.parts(block_rows(source.n_features)):
                rows = source.read(part)[1]
                file.write(rows.data)
            file.flush()
            mapped = np.memmap(file, rows.dtype, "r", shape=source.shape)  # type: ignore[call-overload]
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        place = tempfile.gettempdir()
        raise OSError(f"{place} has no room for a copy of the samples; set TMPDIR to a directory that has.") from error
    return np.array(mapped) if mapped.nbytes <= IN_MEMORY_BYTES else mapped
