"""Functions of a model along trajectories, and sums over pairs of their frames for any lag, block by block.

A model is projected once on few functions: its modes and what comes after them. Whatever is asked of other lags is then
a matter of these columns, and X is read only once. Sums of blocks that are long compared with the correlation time are
resampled to find errors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kdmaps.bases import ModeBasis
from kdmaps.data.correlation import trajectories_of
from kdmaps.data.inputs import join_trajectories
from kdmaps.diagnostics.blocks import MAX_BLOCKS, independent_blocks
from kdmaps.estimators.transformer import ModeTransformer, checked_source
from kdmaps.forms.engines import chunk_rows
from kdmaps.forms.moments import Moments, StackedMoments
from kdmaps.spectrum.pencil import find_modes
from kdmaps.utils.threads import map_ordered
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.validation import checked_weight

#: Functions that a model is projected on, and bytes that their values at all frames may take.
MOST_FUNCTIONS, MOST_BYTES = 50, 2**28


@dataclass(frozen=True)
class Along:
    """Values of functions at all frames, trajectories one after another.

    Attributes
    ----------
    values : ndarray of shape (n_frames, q)
    owner : ndarray of int of shape (n_frames,)
        Trajectory of each frame.
    rows : ndarray of int of shape (n_frames,)
        Row of X of each frame.
    weight : ndarray of shape (n_frames,) or None
    n_modes : int
        The first of the functions, whose correlation time decides how long blocks are.
    lag, time_step : int, float
        Of the model.
    """

    values: np.ndarray
    owner: np.ndarray
    rows: np.ndarray
    weight: np.ndarray | None
    n_modes: int
    lag: int
    time_step: float

    @property
    def longest(self) -> int:
        """Frames of the longest trajectory."""
        return int(np.bincount(self.owner).max())

    @cached_property
    def blocks(self) -> list[slice]:
        """Consecutive frames that are approximately independent of those of other blocks."""
        trajectories = np.split(np.arange(len(self.owner)), np.flatnonzero(np.diff(self.owner)) + 1)
        found = independent_blocks(self.values[:, : self.n_modes], self.weight, trajectories, "auto", MAX_BLOCKS)[0]
        return [slice(int(rows[0]), int(rows[-1]) + 1) for rows in found]

    def with_values(self, values: np.ndarray) -> Along:
        """Return the same frames and blocks with the values of other functions."""
        other = replace(self, values=values)
        other.__dict__["blocks"] = self.blocks  # those of the modes
        return other

    def in_order_of_rows(self, values: np.ndarray) -> np.ndarray:
        """Return what has one entry per frame in the order of the rows of X."""
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
        """Sum over the pairs a lag apart: variance and what changes in the lag, as `kdmaps.forms.lagged` does."""
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
        changed = difference.T @ difference
        gram = (sums.T @ sums + changed) / 4
        return Moments(len(here), float(weight.sum()), float(weight @ weight), total, gram, changed / 2)


def project(
    model: ModeTransformer,
    X: SamplesLike,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    n_functions: int | None = None,
) -> Along:
    """Evaluate the leading functions of a model at all frames.

    Parameters
    ----------
    model : fitted estimator, with a lag
    X : array-like of shape (n_frames, d), list of such arrays, path
    groups : array-like of shape (n_frames,), optional
        Trajectory of each frame.
    sample_weight : array-like of shape (n_frames,), optional
    n_functions : int, optional
        At most this many, but at least the modes; by default as many as memory allows, up to 50.
    """
    lag = _lag_of(model)
    fitted: Any = getattr(model, "best_estimator_", model)
    X, groups, _ = join_trajectories(X, groups)
    source = checked_source(fitted, X)
    if source.n_samples is None:
        raise ValueError("X must have a known number of frames: an array or a file, not a stream of chunks.")
    weight, n = checked_weight(sample_weight, source), source.n_samples
    trajectories = trajectories_of(groups, n)
    r = len(fitted.eigenvalues_)
    most = max(r, min(n_functions or MOST_FUNCTIONS, MOST_BYTES // (8 * n)))
    basis = _leading_functions(fitted, most)
    size = chunk_rows(fitted.basis_, 0, getattr(fitted, "memory_limit", None))
    values = np.asarray(source.project(basis, np.ones(basis.n_features), size), dtype=np.float64)
    rows = np.concatenate(trajectories)
    owner = np.repeat(np.arange(len(trajectories)), [len(part) for part in trajectories])
    if groups is not None:  # otherwise they are in order
        values, weight = values[rows], None if weight is None else weight[rows]
    return Along(values, owner, rows, weight, r, lag, float(model.modes_.clock.time_step))


def _lag_of(model: ModeTransformer) -> int:
    """Return the lag of a model; raise unless it was fitted to pairs of frames."""
    check_is_fitted(model)
    if hasattr(model, "named_steps"):
        raise ValueError(
            f"model is a {type(model).__name__}; give its last step, and the frames as the steps before it make them: "
            "(pipeline[-1], pipeline[:-1].transform(X), ...)."
        )
    modes = getattr(model, "modes_", None)
    if modes is None or modes.clock.lag is None:
        raise ValueError(
            f"model ({type(model).__name__}) was fitted without a lag: its time scales are not those of a trajectory. "
            "Fit it with lag=1 (in frames) and time_step."
        )
    return int(modes.clock.lag)


def check_reversible(model: ModeTransformer) -> None:
    """Raise for a model of pairs whose direction in time matters."""
    if getattr(model, "right_modes_", None) is not None:
        raise ValueError(
            "model was fitted with reversible=False; time scales over several lags, and both clocks, are those of a "
            "system in equilibrium. Fit it with reversible=True."
        )


def checked_lags(lags: Any, longest: int) -> np.ndarray:
    """Return lags as ascending positive integers, shorter than the longest trajectory."""
    array = np.atleast_1d(np.asarray(lags))
    if not np.issubdtype(array.dtype, np.integer) or array.ndim != 1 or not array.size or np.any(np.diff(array) <= 0):
        raise ValueError(f"lags must be ascending integers, in frames, got {lags!r}.")
    if array[0] < 1:
        raise ValueError(f"lags must be at least 1 frame, got {array[0]}.")
    if array[-1] >= longest:
        raise ValueError(
            f"lags go up to {array[-1]} frames, but the longest trajectory has {longest}; use shorter lags or longer "
            "trajectories."
        )
    return array


def _leading_functions(fitted: Any, most: int) -> ModeBasis:
    """Return as many leading functions of the fitted eigenproblem as its sums determine, at least the modes."""
    r, basis = len(fitted.eigenvalues_), fitted.basis_
    n_functions = min(most, basis.n_features - 1)
    while n_functions > r:
        try:
            found = find_modes(fitted.moments_, basis.ridge, n_functions, fitted.regularization)
        except ValueError:  # the samples do not determine so many
            n_functions //= 2
            continue
        return ModeBasis(basis, found.coefficients, found.offset)
    return ModeBasis(basis, fitted.coefficients_, fitted.modes_.offset)
