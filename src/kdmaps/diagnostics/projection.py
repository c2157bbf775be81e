"""Functions of a fit evaluated along trajectories, and sums over pairs of frames for any lag, block by block.

X is read once, to evaluate the modes and the functions that follow them; all lags are then computed from these columns.
Blocks are long compared with the correlation time and are resampled for error bars.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.bases import Basis, ModeBasis
from kdmaps.checks import warn_of
from kdmaps.data.correlation import trajectories_of
from kdmaps.data.pairs import time_step_check
from kdmaps.data.sources import Source
from kdmaps.diagnostics.resampling import MAX_BLOCKS, independent_blocks
from kdmaps.exceptions import Undetermined
from kdmaps.forms.moments import Moments, StackedMoments, chunk_rows
from kdmaps.spectrum.modes import Modes
from kdmaps.spectrum.pencil import find_modes
from kdmaps.utils.threads import map_ordered

#: Maximum number of functions, and maximum bytes of their values at all frames.
MOST_FUNCTIONS, MOST_BYTES = 50, 2**28


@dataclass(frozen=True)
class Projection:
    """Values of functions at all frames, one trajectory after another."""

    values: np.ndarray  # (n_frames, q)
    owner: np.ndarray  # trajectory of each frame
    rows: np.ndarray  # row of X of each frame
    weight: np.ndarray | None
    n_modes: int  # the first functions are the modes, whose correlation time determines the length of blocks
    lag: int  # of the fit, in frames
    time_step: float
    directed: bool = False  # whether the direction of time matters

    @property
    def longest(self) -> int:
        """Number of frames of the longest trajectory."""
        return int(np.bincount(self.owner).max())

    @cached_property
    def trajectories(self) -> list[np.ndarray]:
        """Positions of the frames of each trajectory."""
        return np.split(np.arange(len(self.owner)), np.flatnonzero(np.diff(self.owner)) + 1)

    @cached_property
    def blocks(self) -> list[slice]:
        """Consecutive frames that are approximately independent of the other blocks."""
        modes = self.values[:, : self.n_modes]
        found = independent_blocks(modes, self.weight, self.trajectories, "auto", MAX_BLOCKS)[0]
        return [slice(int(rows[0]), int(rows[-1]) + 1) for rows in found]

    def with_values(self, values: np.ndarray) -> Self:
        """Return the same frames, in the same blocks, with the values of other functions."""
        other = replace(self, values=values)
        other.__dict__["blocks"] = self.blocks
        return other

    def in_order_of_rows(self, values: np.ndarray) -> np.ndarray:
        """Return an array with one entry per frame in the order of the rows of X."""
        found = np.empty_like(values)
        found[self.rows] = values
        return found

    def pairs(self, lag: int, block: slice) -> tuple[slice | np.ndarray, slice | np.ndarray]:
        """Return the first and the second frames of the pairs that begin in a block and stay in one trajectory."""
        stop = max(block.start, min(block.stop, len(self.owner) - lag))
        first, second = slice(block.start, stop), slice(block.start + lag, stop + lag)
        same = self.owner[first] == self.owner[second]
        if same.all():
            return first, second
        starts = block.start + np.flatnonzero(same)
        return starts, starts + lag

    def moments(self, lag: int) -> StackedMoments:
        """Sum over the pairs of every block, as `kdmaps.forms.lagged` does."""
        return StackedMoments(list(map_ordered(self.blocks, lambda block: self._moments(lag, block))))

    def _moments(self, lag: int, block: slice) -> Moments:
        first, second = self.pairs(lag, block)
        here, there = self.values[first], self.values[second]
        weight = np.ones(len(here)) if self.weight is None else self.weight[first]
        sums, difference = here + there, there - here
        total = weight @ sums / 2
        if self.weight is not None:
            root = np.sqrt(weight)[:, None]
            sums, difference = sums * root, difference * root
        changed, flow = difference.T @ difference, sums.T @ difference / 2
        gram, change = (sums.T @ sums + changed) / 4, weight @ (there - here) / 2
        return Moments(len(here), float(weight.sum()), float(weight @ weight), total, gram, changed / 2, flow, change)


def project(
    basis: Basis,
    moments: Moments,
    modes: Modes,
    regularization: float,
    source: Source,
    groups: ArrayLike | None = None,
    weight: np.ndarray | None = None,
    *,
    n_functions: int | None = None,
    memory_limit: float | None = None,
) -> Projection:
    """Evaluate the modes of pairs of frames, and the functions that follow them, at all frames.

    `n_functions` is the maximum number of functions, but at least the modes; by default as many as memory allows, up
    to 50.
    """
    r = len(modes.eigenvalues)
    most = max(r, min(n_functions or MOST_FUNCTIONS, MOST_BYTES // (8 * _known_length(source))))
    functions = _leading_functions(basis, moments, modes, regularization, most)
    found = evaluate(functions, modes, source, groups, weight, memory_limit)
    return replace(found, directed=moments.flow is not None)


def _known_length(source: Source) -> int:
    if source.n_samples is None:
        raise ValueError("X must have a known number of frames: an array or a file, not a stream of chunks.")
    return source.n_samples


def evaluate(
    functions: ModeBasis,
    modes: Modes,
    source: Source,
    groups: ArrayLike | None = None,
    weight: np.ndarray | None = None,
    memory_limit: float | None = None,
) -> Projection:
    """Evaluate functions, of which the first are the modes, at all frames."""
    trajectories, lag = trajectories_of(groups, _known_length(source)), modes.clock.lag
    assert lag is not None
    warn_of([time_step_check(source, groups, float(modes.clock.time_step))])
    size = chunk_rows(functions.basis, 0, memory_limit)
    values = np.asarray(source.project(functions, np.ones(functions.n_features), size), dtype=np.float64)
    rows = np.concatenate(trajectories)
    owner = np.repeat(np.arange(len(trajectories)), [len(part) for part in trajectories])
    if groups is not None:  # otherwise the rows are in order
        values, weight = values[rows], None if weight is None else weight[rows]
    return Projection(values, owner, rows, weight, len(modes.eigenvalues), lag, float(modes.clock.time_step))


def _leading_functions(basis: Basis, moments: Moments, modes: Modes, regularization: float, most: int) -> ModeBasis:
    """Return as many leading functions of the eigenproblem as its sums determine, at least the modes."""
    n_functions = min(most, basis.n_features - 1)
    while n_functions > len(modes.eigenvalues):
        try:
            found = find_modes(moments, basis.ridge, n_functions, regularization)
        except Undetermined:  # too few samples for so many functions
            n_functions //= 2
            continue
        return ModeBasis(basis, found.coefficients, found.offset)
    return ModeBasis(basis, modes.coefficients, modes.offset)
