"""Weights of points relative to the law from which bursts were started."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.spatial import cKDTree

from kdmaps.clocks.runs import Runs
from kdmaps.exceptions import ArgumentError
from kdmaps.utils.files import as_path, replacing
from kdmaps.utils.numbers import rounded
from kdmaps.utils.types import PathLike
from kdmaps.utils.validation import as_numbers

#: Weights at other points are geometric means of the weights at so many nearest samples.
NEIGHBORS = 5
#: A start that is farther from its row than this, relative to the standard deviation of a column, is another point.
SAME_POINT = 1e-3


@dataclass(frozen=True, eq=False)
class Starts:
    """Rows of X to start bursts from, drawn with given probabilities; pass it to `fit` as `burst_start`."""

    rows: np.ndarray  #: (n,): numbers of the rows, which may repeat.
    weights: np.ndarray  #: (n,): importance weights w/p with mean 1, of the stationary law at these rows.
    probabilities: np.ndarray  #: (n_samples,): the probability p with which each row of X was drawn.

    def __len__(self) -> int:
        return len(self.rows)

    def save(self, path: PathLike) -> None:
        """Write rows, weights and probabilities to an `.npz` file, for `kdmaps fit --burst-start`."""
        with replacing(as_path("path", path)) as (file,):
            np.savez(file, rows=self.rows, weights=self.weights, probabilities=self.probabilities)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read a file that `save` wrote."""
        with np.load(as_path("path", path), allow_pickle=False) as stored:
            missing = [name for name in ("rows", "weights", "probabilities") if name not in stored]
            if missing:
                raise ArgumentError(
                    "{path} lacks the array {missing}; give a file of Starts.save.", path=path, missing=missing[0]
                )
            return cls(stored["rows"], stored["weights"], stored["probabilities"])

    def __repr__(self) -> str:
        return f"Starts({len(self.rows)} bursts from {len(np.unique(self.rows))} of {len(self.probabilities)} rows)"


def checked_starts(start: Any, weight: Any, runs: Runs, X: np.ndarray) -> tuple[np.ndarray | None, Any, Any]:
    """Return the rows of the starts, their probabilities at all rows, and given weights; each may be None."""
    if start is None:
        if weight is None:
            raise ArgumentError(
                "{bursts} need {burst_start}: the rows of X they start from (kdmaps.dynamics.where_to_start chooses "
                "them), or {burst_weight}, their weights for the stationary law."
            )
        return None, None, _checked_weights(weight, runs)
    probabilities = None
    if isinstance(start, Starts):
        probabilities = start.probabilities
        start = start.rows
        if len(probabilities) != len(X):
            raise ArgumentError(
                "{burst_start} was chosen from {chosen} samples, but X has {n}; give the samples of where_to_start.",
                chosen=len(probabilities),
                n=len(X),
            )
    rows = np.asarray(start)
    if rows.shape != (len(runs),) or rows.dtype.kind not in "iu":
        raise ArgumentError(
            "{burst_start} must be one row number of X for each of {n} bursts, got {kind} of shape {shape}.",
            n=len(runs),
            kind=rows.dtype,
            shape=rows.shape,
        )
    if rows.min() < 0 or rows.max() >= len(X):
        raise ArgumentError(
            "{burst_start} holds row {row}, but X has {n} rows, counted from 0.",
            row=int(rows.min() if rows.min() < 0 else rows.max()),
            n=len(X),
        )
    _check_places(rows, runs, X)
    return rows, probabilities, None if weight is None else _checked_weights(weight, runs)


def _check_places(rows: np.ndarray, runs: Runs, X: np.ndarray) -> None:
    """Raise an error if bursts do not start at their rows of X.

    The first stored frame may be one step after the start, so that half of the bursts may be as far away as they move
    between two frames.
    """
    scale = np.maximum(X.std(axis=0), np.finfo(float).tiny)
    away = np.linalg.norm((runs.starts - X[rows]) / scale, axis=1)
    moved = np.linalg.norm((runs.frames[runs.first + 1] - runs.starts) / scale, axis=1)
    if np.median(away) > SAME_POINT + 2 * np.median(moved):
        run = int(np.argmax(away))
        raise ArgumentError(
            "The bursts do not start at the rows of {burst_start}: burst {run} (counted from 0) begins {away} standard "
            "deviations from row {row} of X. Check the order of the bursts, and that bursts and X have the same "
            "columns.",
            run=run,
            away=rounded(float(away[run])),
            row=int(rows[run]),
        )


def _checked_weights(weight: Any, runs: Runs) -> np.ndarray:
    """Return one weight for each burst, (n_runs,), or for each frame of the bursts, (n_frames,)."""
    listed = isinstance(weight, list | tuple) and len(weight) > 0 and np.ndim(weight[0]) == 1
    if listed:
        lengths = [len(part) for part in weight]
        if lengths != runs.lengths.tolist():
            raise ArgumentError(
                "{burst_weight} must have one array for each of {n} bursts, as long as the burst, or one number each.",
                n=len(runs),
            )
        weight = np.concatenate(weight)
    array = as_numbers("burst_weight", weight, "one number for each burst, or an array for each")
    array = array.ravel() if array.ndim == 2 and array.shape == (len(runs), runs.lengths[0]) else array
    if array.shape not in ((len(runs),), (len(runs.frames),)):
        raise ArgumentError(
            "{burst_weight} must have one number for each of {n} bursts, or one for each of their frames, got shape "
            "{shape}.",
            n=len(runs),
            shape=array.shape,
        )
    if not np.isfinite(array).all() or array.min() < 0 or array.max() == 0:
        raise ArgumentError("{burst_weight} must hold finite numbers, 0 or more, not all 0.")
    return array


def weights_along(
    runs: Runs, numbers: np.ndarray, points: np.ndarray, known: np.ndarray, at_starts: np.ndarray, root: np.ndarray
) -> np.ndarray:
    """Return the weights (stationary law)/(law of the starts) at frames `numbers` of the bursts, as (n_frames,).

    They are interpolated from the weights `known` at some points, with the distances |root·(x - y)|; starts have their
    own. Other frames get 0.
    """
    weights = np.zeros(len(runs.frames))
    near = nearest(points @ root.T, runs.frames[numbers] @ root.T)
    with np.errstate(divide="ignore"):
        weights[numbers] = np.exp(np.log(known[near]).mean(axis=1))
    weights[runs.first] = at_starts
    return weights


def nearest(points: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Return the numbers of the points that are nearest to each query, (n_queries, 5)."""
    count = min(NEIGHBORS, len(points))
    near = cKDTree(points).query(queries, k=count)[1]
    return np.reshape(near, (len(queries), count))
