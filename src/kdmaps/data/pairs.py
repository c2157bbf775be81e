"""Pairs of frames of a trajectory, a lag apart.

A pair is a row of 2d numbers, (x_t, x_{t+τ}). Chunks, folds, weights, random draws and Dask work on pairs as on
samples; only the sums over them differ (`kdmaps.forms.lagged`).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from kdmaps.checks import Check, rules, warn
from kdmaps.data.sources import ArraySource, Part, Sample, Source, draw_rows
from kdmaps.exceptions import ArgumentError, Undetermined
from kdmaps.language import Either

#: Number of trajectories listed in a warning.
NAMED = 5
#: Consecutive pairs that are drawn together. A function that is large on a short excursion only is fast, because the
#: trajectory enters and leaves; without the pairs that do, it would appear infinitely slow.
RUN = 100
#: Minimum number of runs drawn, so that every block of a trajectory has some.
MIN_RUNS = 60


class PairSource(Source):
    """Pairs of frames, rows of 2d numbers, from any source; `order` sorts interleaved trajectories."""

    def __init__(self, pairs: Source, order: np.ndarray | None = None):
        self.pairs: Source = pairs
        self._order = order
        self.n_features: int = pairs.n_features // 2
        self.many_passes: bool = pairs.many_passes
        self.has_rows: bool = pairs.has_rows
        self._drawn: Sample | None = None

    @property
    def n_samples(self) -> int | None:  # type: ignore[override]
        """Number of pairs."""
        return self.pairs.n_samples

    def parts(self, size: int, rows: np.ndarray | None = None) -> Iterable[Any]:
        return self.pairs.parts(size, rows)

    def read(self, part: Any) -> Part:
        return self.pairs.read(part)

    def sample(self, *args: Any, **options: Any) -> Sample:
        """Draw pairs and return their first frames."""
        self._drawn = drawn = self.pairs.sample(*args, **options)
        return drawn._replace(X=split_pairs(drawn.X)[0])

    def second_frames(self, rows: np.ndarray) -> np.ndarray:
        """Return the second frames of these pairs, without another pass if they were in the last sample."""
        drawn = self._drawn
        known = drawn is not None and np.isin(rows, drawn.rows, assume_unique=True).all()
        pairs = drawn.X[np.searchsorted(drawn.rows, rows)] if drawn is not None and known else self.pairs.take(rows)
        return split_pairs(pairs)[1]

    def thinned(
        self, size: int | None, random_state: np.random.RandomState, weight: np.ndarray | None = None, run: int = RUN
    ) -> tuple[np.ndarray, Source, np.ndarray | None]:
        """Draw runs of consecutive pairs of a trajectory, shorter runs if `size` is small."""
        if size is not None:
            run = max(1, min(run, size // MIN_RUNS))
        if self._order is None:
            rows, pairs, weight = self.pairs.thinned(size, random_state, weight, run)
            return rows, PairSource(pairs), weight
        in_order = None if weight is None else weight[self._order]
        rows = np.sort(self._order[draw_rows(len(self._order), size, random_state, in_order, run)])
        chosen = self.pairs.subset(self.pairs.take(rows))
        return rows, PairSource(chosen), None if weight is None else weight[rows]

    @property
    def n_callers(self) -> int:
        return self.pairs.n_callers

    def moments(self, *args: Any, **options: Any) -> list[Any]:
        return self.pairs.moments(*args, **options)

    def rowwise(self, function: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray:
        """Apply `function`, a test of single frames, to both frames of each pair, and combine the results by and."""
        return self.pairs.rowwise(partial(_both, function), *arguments)

    def content(self, preview: Sample) -> tuple[np.ndarray, np.ndarray]:
        return self.pairs.content(preview)

    def bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        return self.pairs.bounds()


class ArrayPairs(Source):
    """Pairs of rows of an array in memory or mapped from a file; only one chunk of pairs is copied at a time."""

    has_rows = True

    def __init__(self, frames: ArraySource, starts: np.ndarray, ends: np.ndarray):
        self._frames, self._starts, self._ends = frames, starts, ends
        self.n_samples: int = len(starts)
        self.n_features: int = 2 * frames.n_features
        self.many_passes: bool = frames.many_passes

    def read(self, part: Any) -> Part:
        first, second = (self._frames.read(_run(index[part]))[1] for index in (self._starts, self._ends))
        return part, np.concatenate([first, second], axis=1)

    def content(self, preview: Sample) -> tuple[np.ndarray, np.ndarray]:
        return self._frames.array, self._starts

    def bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        return self._frames.bounds()


def _run(rows: np.ndarray) -> slice | np.ndarray:
    """Return consecutive row numbers as a slice, which does not copy rows."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and np.all(np.diff(rows) == 1):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def _both(function: Callable[..., np.ndarray], rows: np.ndarray, *arguments: Any) -> np.ndarray:
    first, second = split_pairs(rows)
    return function(first, *arguments) & function(second, *arguments)


def split_pairs(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second frames of pairs."""
    d = rows.shape[1] // 2
    return rows[:, :d], rows[:, d:]


class PairedData(NamedTuple):
    """Pairs of frames (or samples), with the weights and groups of the first frames."""

    source: Source
    weight: np.ndarray | None
    groups: np.ndarray | None


def make_pairs(source: Source, lag: int, weight: np.ndarray | None = None, groups: Any = None) -> PairedData:
    """Pair every frame with the one `lag` frames later in the same trajectory.

    A pair has the weight of its first frame. Groups are the trajectories of the frames, which may be interleaved.
    Raises a ValueError if time steps differ, or if an empty line separates rows of a file without groups; warns of
    trajectories that are too short for a pair.
    """
    check_steps(source, groups)
    known = [len(given) for given in (weight, groups) if given is not None]
    n = source.n_samples or (known[0] if known else None)
    if n is None:  # a stream of unknown length
        return PairedData(PairSource(source.paired(lag, None)), None, None)
    labels = None if groups is None else np.asarray(groups)
    starts, ends = paired_rows(n, lag, labels)
    if labels is not None:
        _warn_of_short(labels, lag)
    at_starts = [None if given is None else given[starts] for given in (weight, labels)]
    order = None
    if labels is not None and np.any(ends - starts != lag):
        order = np.argsort(np.unique(labels[starts], return_inverse=True)[1].ravel(), kind="stable")
    pairs = ArrayPairs(source, starts, ends) if isinstance(source, ArraySource) else source.paired(lag, (starts, ends))
    return PairedData(PairSource(pairs, order), *at_starts)


def _warn_of_short(groups: np.ndarray, lag: int) -> None:
    """Warn of trajectories without two frames a lag apart."""
    names, lengths = np.unique(groups, return_counts=True)
    short = names[lengths <= lag]
    if short.size:
        shown = ", ".join(map(str, short[:NAMED])) + (", …" if short.size > NAMED else "")
        words = {"count": names.size, "shown": shown, "lag_frames": lag}
        warn(Check(rules.SHORT_TRAJECTORIES, short.size, words=words))


def refuse_gap(where: str | None) -> None:
    """Raise a ValueError for a gap between rows of a file, if `Table.gap` found one."""
    if where is not None:
        raise ArgumentError(
            "{where}, as between trajectories, and a lag would pair rows across it. Remove empty lines within a "
            "trajectory, mark the trajectories with {groups}, or give each as {part}.",
            where=where,
            part=Either("an array of a list", "a file"),
        )


def check_steps(source: Source, groups: Any = None) -> float | None:
    """Return the time step between the rows of a source, if it is known; raise unless rows are at equal steps."""
    if groups is None and source.gap is not None:
        refuse_gap(source.gap())
    step = None if source.times is None else common_step(source.times(), groups)
    return None if source.time_unit is None else step


def time_step_check(source: Source, groups: Any, fitted: float) -> Check | None:
    """Check the time between rows against the time step of a fit; None if rows have no times."""
    step = check_steps(source, groups)
    return None if step is None else compare_steps(step, fitted)


def compare_steps(step: float, fitted: float) -> Check:
    """Check the time between rows against the time step of a fit.

    Both may be in different units, such as ps and ns: factors of 1000 are not a difference.
    """
    ratio = step / fitted
    thousands = round(np.log10(ratio) / 3)
    words = {"own": f"{step:.6g}", "fitted": f"{fitted:.6g}", "factor": max(ratio, 1 / ratio)}
    return Check(rules.OTHER_TIME_STEP, float(ratio / 1000.0**thousands), words=words)


def common_step(times: np.ndarray | None, groups: Any = None) -> float | None:
    """Return the time step (durations in seconds), or None if no trajectory has two frames; raise if steps differ."""
    if times is None or len(times) < 2:
        return None
    try:
        starts, ends = paired_rows(len(times), 1, None if groups is None else np.asarray(groups))
    except Undetermined:  # trajectories of one frame
        return None
    step, steps, odd = unequal_steps(times, starts, ends)
    if len(odd) or step <= 0:
        k = odd[0] if len(odd) else 0
        shown = [_duration(one, times.dtype) for one in (steps[k], step)]
        raise ArgumentError(
            "Frames are not at equal time steps: row {row} comes {step} after row {before}, but most steps are {most}. "
            "A lag counts frames: take frames at equal steps, {cut}, or mark the trajectories with {groups}.{index}",
            row=ends[k],
            before=starts[k],
            step=shown[0],
            most=shown[1],
            cut=Either("cut trajectories at gaps (kdmaps.data.split_at_gaps)", "give each trajectory as a file"),
            index=Either(" For a data frame whose index is not a time, give X.to_numpy().", ""),
        )
    return step if times.dtype.kind != "m" else step * float(np.ones((), times.dtype) / np.timedelta64(1, "s"))


def _duration(step: float, dtype: np.dtype[Any]) -> str:
    """Return a time step as a number, or as days, hours, minutes and seconds."""
    if dtype.kind != "m":
        return f"{step:.6g}"
    sign = "-" if step < 0 else ""
    return sign + str(np.array(abs(round(step)), dtype).astype("m8[us]").item())


def unequal_steps(times: np.ndarray, starts: Any, ends: Any) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the median time step, all steps, and the numbers of the steps that differ from it."""
    times = times.view(np.int64) if times.dtype.kind == "m" else times
    steps = np.subtract(times[ends], times[starts], dtype=np.float64)
    step = float(np.median(steps))
    # Files store times in single precision; times that are integers are exact.
    rounding = 0.0 if times.dtype.kind in "iu" else 4 * np.finfo(np.float32).eps * float(np.abs(times).max())
    return step, steps, np.flatnonzero(np.abs(steps - step) > 1e-3 * abs(step) + rounding)


def paired_rows(n_frames: int, lag: int, groups: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the first and of the second frames of all pairs."""
    if groups is not None and groups.shape != (n_frames,):
        raise ValueError(f"groups must have one label for each of {n_frames} frames, got shape {groups.shape}.")
    rows = np.arange(n_frames)
    if groups is None:
        starts, ends, longest = rows[: max(n_frames - lag, 0)], rows[lag:], n_frames
    else:
        # Trajectories may be interleaved: sort by trajectory, without changing the order within each.
        owner = np.unique(groups, return_inverse=True)[1].ravel()
        order = np.argsort(owner, kind="stable")
        same = owner[order[lag:]] == owner[order[: max(n_frames - lag, 0)]]
        starts, ends = order[: max(n_frames - lag, 0)][same], order[lag:][same]
        by_start = np.argsort(starts, kind="stable")
        starts, ends, longest = starts[by_start], ends[by_start], int(np.bincount(owner).max())
    if not len(starts):
        raise Undetermined(
            "{lag:{frames}} leaves no pair of frames: the longest trajectory has {longest} frame(s), "
            "n_samples={count}. Use a shorter lag or longer trajectories.",
            frames=lag,
            longest=longest,
            count=n_frames,
        )
    return starts, ends


def paired_chunks(chunks: Iterable[np.ndarray], lag: int, starts: np.ndarray | None) -> Iterator[np.ndarray]:
    """Pair the frames of consecutive chunks, across chunks too; `starts` are the first frames, by default all."""
    held: np.ndarray | None = None
    first, found = 0, False
    for rows in chunks:
        held = rows.copy() if held is None else np.concatenate([held, rows])  # the next chunk may overwrite this one
        n = len(held) - lag
        if n < 1:
            continue
        chosen = slice(0, n)
        if starts is not None:
            low, high = np.searchsorted(starts, (first, first + n))
            chosen = starts[low:high] - first  # type: ignore[assignment]
        pairs = np.concatenate([held[:n][chosen], held[lag:][chosen]], axis=1)
        if len(pairs):
            found = True
            yield pairs
        held, first = held[n:], first + n
    if not found:
        raise Undetermined(
            "{lag:{frames}} leaves no pair of frames in X; use a shorter lag or longer trajectories.", frames=lag
        )


@dataclass(frozen=True)
class Tail:
    """Last frames of an array, whose pairs are completed by the next array (`partial_fit` with a lag)."""

    frames: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray | None

    @classmethod
    def of(cls, source: Source, lag: int, weight: np.ndarray | None, groups: Any) -> Self | None:
        """Return the last `lag` frames of each trajectory of an array."""
        if not isinstance(source, ArraySource):
            return None
        labels = None if groups is None else np.asarray(groups)
        waiting = np.ones(len(source.array), dtype=bool)
        waiting[paired_rows(len(source.array), lag, labels)[0]] = False
        of_each = [None if given is None else given[waiting] for given in (weight, labels)]
        return cls(np.array(source.array[waiting]), *of_each)

    def before(self, source: Source, weight: np.ndarray | None, groups: Any) -> tuple[Source, Any, Any]:
        """Return array, weights and groups with these frames in front; with groups, only of continued trajectories."""
        if not isinstance(source, ArraySource) or (groups is None) != (self.groups is None):
            return source, weight, groups
        continued: Any = slice(None)
        if self.groups is not None:
            continued = np.isin(self.groups, groups)
            groups = np.concatenate([self.groups[continued], groups])
        frames = self.frames[continued]
        if weight is not None or self.weight is not None:
            own = np.ones(source.n_samples or 0) if weight is None else weight
            weight = np.concatenate([np.ones(len(frames)) if self.weight is None else self.weight[continued], own])
        return ArraySource(np.concatenate([frames, source.array]), checked=True), weight, groups
