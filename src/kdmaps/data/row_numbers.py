"""Row numbers: random draws of them, which do not depend on how the rows are stored, and the weights at them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kdmaps.utils.threads import slices


def weights_at(weight: np.ndarray, index: slice | np.ndarray) -> np.ndarray:
    """Return the weights of some rows of a stream, which may turn out to be longer than its weights."""
    last = index.stop - 1 if isinstance(index, slice) else index.max(initial=-1)
    if last >= len(weight):
        raise ValueError(f"sample_weight has {len(weight)} entries, but X has more samples; give one for each.")
    return weight[index]


def counted_rows(part: slice, weight: np.ndarray | None) -> np.ndarray:
    """Return the rows of a part that have a positive weight."""
    rows = np.arange(part.start, part.stop)
    return rows if weight is None else rows[weights_at(weight, part) > 0]


def draw_rows(
    n_samples: int,
    size: int | None,
    random_state: np.random.RandomState,
    weight: np.ndarray | None = None,
    run: int = 1,
) -> np.ndarray:
    """`size` random row numbers of positive weight, in order; all of them if there are no more rows, or for None.

    So many rows of a `run`, one after the other, are drawn together.
    """
    if size is None or n_samples <= size:
        return np.arange(n_samples)
    pieces = ((counted_rows(part, weight),) for part in slices(n_samples, 2**16))
    return draw_by_keys(pieces, size, random_state.randint(2**31), run)[0]


def draw_by_keys(
    pieces: Iterable[tuple[np.ndarray, ...]], size: int, seed: int, run: int = 1
) -> tuple[np.ndarray, ...]:
    """Columns of `size` rows with the smallest of independent uniform keys: a uniform draw without replacement.

    Parameters
    ----------
    pieces : iterable of tuples of ndarray
        Columns of equal length.
    size, seed : int
    run : int
        So many consecutive rows have the same key.
    """
    rng = np.random.default_rng(seed)
    kept: tuple[np.ndarray, ...] = ()
    keys, bound = np.empty(0), 1.0
    rest = np.empty(0)  # keys of the rows of the last run that are in the next piece
    for piece in pieces:
        n = len(piece[0])
        more = np.repeat(rng.random(max(0, -(-(n - len(rest)) // run))), run)
        new, rest = np.split(np.concatenate([rest, more]), [n])
        chosen = new < bound
        keys = np.concatenate([keys, new[chosen]])
        columns = tuple(column[chosen] for column in piece)
        kept = tuple(map(np.concatenate, zip(kept, columns, strict=True))) if kept else columns
        if len(keys) > size:
            bound = np.partition(keys, size - 1)[size - 1]
            smallest = keys < bound
            # Of a run that does not fit, the first rows: then no draw depends on how the rows were cut into pieces.
            smallest[np.flatnonzero(keys == bound)[: size - np.count_nonzero(smallest)]] = True
            keys, kept = keys[smallest], tuple(column[smallest] for column in kept)
    return kept
