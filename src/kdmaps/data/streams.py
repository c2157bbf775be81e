"""Samples from a stream of chunks."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kdmaps.data.formats.base import block_rows
from kdmaps.data.pairs import paired_chunks
from kdmaps.data.sources import Part, Sample, Source, as_rows, check_finite, counted_rows, draw_by_keys, weights_at
from kdmaps.utils.frames import column_names

#: Tolerance for sums of the same rows in different chunks, which differ by rounding; sums of other rows differ by 1/√n.
SAME = 1e-9


def _place_sums(rows: np.ndarray, start: int) -> np.ndarray:
    """Return the sums of row number times value, and of row number times absolute value, for each column."""
    places = np.arange(start + 1, start + rows.shape[0] + 1, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # sums that are not finite are not compared
        return np.array([places @ rows, places @ np.abs(rows)])


class StreamSource(Source):
    """Consecutive chunks of rows.

    Chunks may share one buffer that is overwritten: everything that is kept or read ahead is a copy.

    Parameters
    ----------
    start : callable
        Returns an iterator of chunks from the first row on.
    once : bool
        True if the chunks can be read only once.
    n_samples : int, optional
        Number of rows, if known.
    feature_names : list of str, optional
        Names of the columns.
    """

    def __init__(
        self,
        start: Callable[[], Iterator[Any]],
        once: bool = False,
        n_samples: int | None = None,
        feature_names: list[str] | None = None,
    ):
        self._start, self._once = start, once
        self.n_samples, self.feature_names = n_samples, feature_names
        self._head: list[np.ndarray] = []  # chunks of a one-time stream that were read ahead
        self._rest: Iterator[np.ndarray] | None = None
        self._last: Any = None
        self._sums: np.ndarray | None = None  # `_place_sums` of the last complete pass
        self.n_features: int = next(self._chunks(keep=True)).shape[1]

    def _open(self) -> Iterator[np.ndarray]:
        chunks = self._start()
        if not hasattr(chunks, "__next__"):
            if not hasattr(chunks, "__iter__"):
                raise ValueError(f"X is a callable and must return an iterator of chunks, got {chunks!r}.")
            chunks = iter(chunks)
        if chunks is self._last:
            raise ValueError("X returned the same iterator twice; the callable must return a new one at every call.")
        self._last = chunks
        start, sums, origin = 0, np.zeros((2, 1)), 0.0
        for number, chunk in enumerate(chunks):
            rows, names = as_rows(chunk, number), column_names(chunk)
            if number == 0 and self.feature_names is None:
                self.feature_names = names
            if names is not None and self.feature_names is not None and names != self.feature_names:
                raise ValueError(
                    f"Chunk {number} of X has the columns {', '.join(names)}, but the columns of X are "
                    f"{', '.join(self.feature_names)}; give every chunk the same columns in the same order."
                )
            if number and rows.shape[1] != self.n_features:
                raise ValueError(
                    f"Chunk {number} of X has {rows.shape[1]} columns, previous chunks have {self.n_features}; every "
                    "chunk must have the same columns."
                )
            origin = origin if start or not len(rows) else rows[0].copy()  # a large offset would mask differences
            sums = sums + _place_sums(rows - origin, start)
            check_finite(rows, slice(start, start := start + rows.shape[0]), self.feature_names)
            yield rows
        if self.n_samples not in (None, start):
            raise ValueError(
                f"X returned {start} rows instead of {self.n_samples}; it must return the same rows in every pass."
            )
        if start == 0:
            raise ValueError(
                "X is a stream of 0 sample(s). An iterator is empty after it was read: pass a callable that returns a "
                "new one."
            )
        if self._sums is not None and (np.abs(sums[0] - self._sums[0]) > SAME * self._sums[1]).any():
            raise ValueError(
                "X returned different rows than in the previous pass, or the same rows in a different order; do not "
                "shuffle rows, and draw random ones with a fixed seed."
            )
        self.n_samples, self._sums = start, sums

    def _chunks(self, keep: bool = False) -> Iterator[np.ndarray]:
        """Yield all chunks, or the remaining chunks of a one-time stream.

        With `keep`, chunks are copies, and a one-time stream yields them again in the next call.
        """
        if not self._once:
            yield from map(np.array, self._open()) if keep else self._open()
            return
        if self._rest is None:
            self._rest = self._open()
        held = list(self._head)
        if not keep:
            self._head.clear()
        yield from held
        for chunk in self._rest:
            if keep:
                chunk = chunk.copy()
                self._head.append(chunk)
            yield chunk

    def parts(self, size: int, rows: np.ndarray | None = None) -> Iterator[Part]:
        assert rows is None  # has_rows is False
        held: list[np.ndarray] = []
        count, start = 0, 0
        for chunk in self._chunks():
            while chunk.shape[0]:
                take = chunk[: size - count].copy()
                held.append(take)
                count, chunk = count + take.shape[0], chunk[take.shape[0] :]
                if count == size:
                    yield slice(start, start + count), np.concatenate(held) if len(held) > 1 else held[0]
                    held, count, start = [], 0, start + count
        if count:
            yield slice(start, start + count), np.concatenate(held)

    def read(self, part: Any) -> Part:
        return part

    def paired(self, lag: int, rows: tuple[np.ndarray, np.ndarray] | None) -> Source:
        if rows is not None and np.any(rows[1] - rows[0] != lag):
            raise ValueError(
                "groups interleaves the frames of several trajectories, which cannot be paired in a stream; give the "
                "frames of each trajectory consecutively, or give an array."
            )
        starts = None if rows is None else rows[0]
        n_pairs = None if starts is None else len(starts)
        return StreamSource(lambda: paired_chunks(self._chunks(), lag, starts), self._once, n_pairs)

    def sample(
        self,
        size: int | None,
        random_state: np.random.RandomState,
        weight: np.ndarray | None = None,
        typical: bool = True,
        run: int = 1,
    ) -> Sample:
        head, count = [], 0
        for chunk in self._chunks(keep=True):
            head.append(chunk)
            count += chunk.shape[0]
            if size is not None and count > size:
                break
        more = size is not None and count > size
        seed = random_state.randint(2**31) if more else 0
        if not more or (self._once and not typical):
            rows, X = np.arange(count), np.concatenate(head)
        elif self._once:
            raise ValueError(
                f"X is an iterator, which can be read only once, but the median bandwidth, landmarks and searches need "
                f"another pass over more than {size} samples. Pass a callable that returns a new iterator, give "
                "bandwidth as a number (with Fourier features), or call partial_fit for each chunk."
            )
        else:
            parts = self.parts(block_rows(self.n_features))
            pieces = ((rows := counted_rows(part, weight), X[rows - part.start]) for part, X in parts)
            rows, X = draw_by_keys(pieces, size, seed, run)  # type: ignore[arg-type]
        return Sample(rows, X, None if weight is None else weights_at(weight, rows))
