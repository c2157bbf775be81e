"""Where paths go next, and how long they take: committors and mean first passage times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.data.inputs import join_trajectories
from kdmaps.diagnostics.projection import Projection
from kdmaps.diagnostics.resampling import Resampling, basic_intervals
from kdmaps.dynamics._galerkin import System, stopped_system
from kdmaps.dynamics._model import project_model
from kdmaps.dynamics._states import CoarseStates
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.exceptions import UnreliableModesWarning
from kdmaps.utils.frames import join_rows
from kdmaps.utils.threads import slices
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.warn import warn

#: Frames whose values in all resamples are held at a time.
CHUNK_FRAMES = 2**14


@dataclass(frozen=True)
class Committor:
    """Probabilities to reach the target before the source.

    Attributes
    ----------
    values : ndarray of shape (n_frames,)
        0 in the source, 1 in the target, between 0 and 1 elsewhere; rows as in X.
    errors : ndarray of shape (n_frames,)
        Standard errors.
    """

    values: np.ndarray
    errors: np.ndarray

    def __repr__(self) -> str:
        n, between = len(self.values), (self.values > 0.4) & (self.values < 0.6)
        return (
            f"Committor of {n} frames: {np.count_nonzero(between)} between 0.4 and 0.6, mean standard error "
            f"{self.errors.mean():.2g}"
        )


@dataclass(frozen=True)
class PassageTimes:
    """Mean first passage times between states.

    Attributes
    ----------
    labels : ndarray of shape (m,)
        The states.
    times : ndarray of shape (m, m)
        From state i (the mean over its frames) to state j, in the unit of `time_step`; 0 on the diagonal.
    intervals : ndarray of shape (m, m, 2)
        Confidence intervals.
    confidence : float
        Confidence level of the intervals.
    """

    labels: np.ndarray
    times: np.ndarray
    intervals: np.ndarray
    confidence: float

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data for each pair of states, for example for `pandas.DataFrame`."""
        return [
            {
                "from": self.labels[i].item(),
                "to": self.labels[j].item(),
                "time": float(self.times[i, j]),
                "time_low": float(self.intervals[i, j, 0]),
                "time_high": float(self.intervals[i, j, 1]),
            }
            for i in range(len(self.labels))
            for j in range(len(self.labels))
            if i != j
        ]

    def __repr__(self) -> str:
        lines = [f"Mean first passage times in the unit of time_step ({100 * self.confidence:g} % intervals)"]
        lines += [
            f"  from label {row['from']} to label {row['to']}: {row['time']:.4g} ({row['time_low']:.4g} – "
            f"{row['time_high']:.4g})"
            for row in self.table()
        ]
        return "\n".join(lines)


def committor(
    model: ModeTransformer,
    X: SamplesLike,
    source: ArrayLike,
    target: ArrayLike,
    *,
    states: ArrayLike | CoarseStates | None = None,
    groups: ArrayLike | None = None,
    n_resamples: int = 100,
    random_state: RandomStateLike = None,
) -> Committor:
    """Estimate the probability that a path from each frame reaches the target before the source.

    Parameters
    ----------
    model : fitted estimator, with a lag
        Its leading functions, up to 50, represent the committor.
    X : array-like of shape (n_frames, d), list of such arrays, path of a file
        Frames at equal time steps; they need not be in equilibrium.
    source, target : array-like of bool of shape (n_frames,), list of such arrays, or int or sequence of int
        Which frames are in the two sets; with `states`, labels of states.
    states : array-like of int of shape (n_frames,), list of such arrays, or CoarseStates, optional
        The state of each frame; of `CoarseStates`, the cores (`CoarseStates.cores`).
    groups : array-like of shape (n_frames,), optional
        Trajectory of each frame.
    n_resamples : int, default=100
        Number of resamples of the block bootstrap.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    Committor

    Notes
    -----
    Dynamical Galerkin approximation with stopped pairs: a pair ends when its path enters one of the sets, so that any
    lag gives the same answer, up to errors of sampling and of the space. Paths are seen at the frames only; an
    excursion into a set between two frames is missed.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(20000, dt=0.02, random_state=0)[0]
    >>> m = kdmaps.KernelDiffusionMap(1, lag=5, time_step=0.02, regularization=1e-4, random_state=0).fit(path)
    >>> found = kdmaps.dynamics.committor(m, path, path[:, 0] < -1, path[:, 0] > 1, random_state=0)
    >>> middle = abs(path[:, 0]) < 0.1
    >>> bool(abs(found.values[middle].mean() - 0.5) < 0.1)
    True
    """
    resampling = Resampling(n_resamples, 0.95, random_state)
    X, groups, lengths = join_trajectories(X, groups)
    along = project_model(model, X, groups)
    n, labels = len(along.rows), None if states is None else _labels(states, len(along.rows), lengths)
    if labels is None:
        source, target = join_rows("source", source, lengths), join_rows("target", target, lengths)
    sets = [_mask(name, given, n, labels) for name, given in (("source", source), ("target", target))]
    if (sets[0] & sets[1]).any():
        shared = np.count_nonzero(sets[0] & sets[1])
        raise ValueError(f"source and target share {shared} frames; they must not overlap.")
    if (sets[0] | sets[1]).all():
        raise ValueError("source and target leave no frame between them; make them smaller.")
    inside = [mask[along.rows] for mask in sets]
    system = stopped_system(along, inside[0] | inside[1], inside[1].astype(np.float64), 0.0)
    coefficients = [system.solve(row) for row in (np.ones(len(along.blocks)), *resampling.counts(len(along.blocks)))]
    if not np.isfinite(coefficients[0]).all():
        raise ValueError("No path of X reaches source or target; make them larger or use longer trajectories.")
    values, errors = _values_and_errors(system, np.array(coefficients), inside[1])
    return Committor(along.in_order_of_rows(values), along.in_order_of_rows(errors))


def _values_and_errors(system: System, coefficients: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of all frames, and their spread over the resamples."""
    values, errors = np.empty(len(target)), np.empty(len(target))
    for part in slices(len(target), CHUNK_FRAMES):
        found = np.clip(system.functions[part] @ coefficients.T + target[part, None], 0, 1)
        values[part], errors[part] = found[:, 0], np.nanstd(found[:, 1:], axis=1, ddof=1)
    return values, errors


def mean_first_passage_times(
    model: ModeTransformer,
    X: SamplesLike,
    states: ArrayLike | CoarseStates,
    *,
    groups: ArrayLike | None = None,
    n_resamples: int = 100,
    confidence: float = 0.95,
    random_state: RandomStateLike = None,
) -> PassageTimes:
    """Estimate the mean time that paths take from each state to each other one.

    Parameters
    ----------
    model : fitted estimator, with a lag
        Its leading functions, up to 50, represent the times.
    X : array-like of shape (n_frames, d), list of such arrays, path of a file
        Frames at equal time steps.
    states : array-like of int of shape (n_frames,), list of such arrays, or CoarseStates
        The state of each frame; frames with a negative label are in none. Of `CoarseStates`, the cores are used
        (`CoarseStates.cores`). States that touch are left and entered again and again by paths at their border, and
        the time to the next of these crossings is shorter than that to the other state: give cores, with -1 for the
        frames between them.
    groups : array-like of shape (n_frames,), optional
        Trajectory of each frame.
    n_resamples : int, default=100
        Number of resamples of the block bootstrap.
    confidence : float, default=0.95
        Confidence level of the intervals.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    PassageTimes
        Times are in the unit of the model's `time_step`.

    Warns
    -----
    UnreliableModesWarning
        If every frame is in a state, so that states touch.

    Notes
    -----
    As in `committor`, with m(x) = E[m(x_σ) + σ | x] and m = 0 in the target, for one target at a time. The mean is over
    the frames of the state in which paths begin.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(20000, dt=0.02, random_state=0)[0]
    >>> m = kdmaps.KernelDiffusionMap(1, lag=5, time_step=0.02, regularization=1e-4, random_state=0).fit(path)
    >>> cores = (path[:, 0] > 1).astype(int) - (abs(path[:, 0]) <= 1)  # 0 left, 1 right, -1 between
    >>> found = kdmaps.dynamics.mean_first_passage_times(m, path, cores, random_state=0)
    >>> bool(found.intervals[0, 1, 0] < found.times[0, 1] < found.intervals[0, 1, 1])
    True
    """
    resampling = Resampling(n_resamples, confidence, random_state)
    X, groups, lengths = join_trajectories(X, groups)
    along = project_model(model, X, groups)
    labels = _labels(states, len(along.rows), lengths)
    names = np.unique(labels[labels >= 0])
    if len(names) < 2:
        raise ValueError(f"states must hold at least two states (labels from 0 on), got {len(names)}.")
    if (labels >= 0).all():
        warn(
            "Every frame is in a state: paths cross the border between two states back and forth, and passage times "
            "to the next crossing are too short. Give cores of states, with the label -1 for frames between them, as "
            "CoarseStates.cores does; only states that paths jump between have no frames there.",
            UnreliableModesWarning,
        )
    member = labels[along.rows] == names[:, None]
    counts = np.vstack([np.ones(len(along.blocks)), resampling.counts(len(along.blocks))])
    found = np.stack([_times_to(along, member, j, counts) for j in range(len(names))], -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.where(found > 0, found, np.nan))
    between = ~np.eye(len(names), dtype=bool)
    usable = np.all(np.isfinite(logs[:, between]), axis=1)  # all times positive
    known = logs[1:][usable[1:]]
    if not usable[0] or len(known) < 2:
        raise ValueError(
            "X holds too few transitions between states for passage times; use fewer states or longer trajectories."
        )
    intervals = np.exp(basic_intervals(logs[0], known, confidence, len(along.blocks)))
    intervals[~between] = 0
    return PassageTimes(names, found[0], intervals, float(confidence))


def _times_to(along: Projection, member: np.ndarray, target: int, counts: np.ndarray) -> np.ndarray:
    """Return the mean time from each state to a target, one row for each row of `counts`."""
    system = stopped_system(along, member[target], np.zeros(len(along.rows)), along.time_step)
    sums = np.array([member[:, block] @ system.functions[block] for block in along.blocks])
    sizes = np.array([member[:, block].sum(axis=1) for block in along.blocks])
    totals, numbers = np.tensordot(counts, sums, axes=1), counts @ sizes
    times = np.array([total @ system.solve(row) for total, row in zip(totals, counts, strict=True)])
    with np.errstate(divide="ignore", invalid="ignore"):
        return times / numbers


def _labels(states: Any, n_frames: int, lengths: list[int] | None) -> np.ndarray:
    """Return the state of each frame; -1 outside the cores of coarse states, whose borders are crossed repeatedly."""
    labels = states.cores if isinstance(states, CoarseStates) else np.asarray(join_rows("states", states, lengths))
    if labels.shape != (n_frames,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"states must hold an integer label for each of the {n_frames} frames, got {labels.dtype} of shape "
            f"{labels.shape}."
        )
    return labels


def _mask(name: str, given: Any, n_frames: int, labels: np.ndarray | None) -> np.ndarray:
    """Return which frames are in a set."""
    array = np.asarray(given)
    if labels is not None:
        if array.dtype.kind not in "iu":
            raise ValueError(f"{name} must be one or several labels of states, got {given!r}.")
        mask = np.isin(labels, array)
    elif array.shape != (n_frames,) or array.dtype != bool:
        raise ValueError(
            f"{name} must say True or False for each of the {n_frames} frames, or be a label with states=..., got "
            f"{array.dtype} of shape {array.shape}."
        )
    else:
        mask = array
    if not mask.any():
        raise ValueError(f"{name} holds no frame; use a larger set.")
    return mask
