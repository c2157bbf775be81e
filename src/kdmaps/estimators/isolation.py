"""A fit without the few rows of X that lie behind empty gaps, and its functions at these rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import PredefinedSplit

from kdmaps.bases import ModeBasis, TensorRows
from kdmaps.checks import warn
from kdmaps.data.detached import RareGroup, detached_check, find_groups, left_out
from kdmaps.data.sources import ArraySource, Source
from kdmaps.forms.diffusion import Factor, is_per_sample
from kdmaps.selection.plan import FitSpec


@dataclass(frozen=True, eq=False)
class Isolated:
    """Samples of a fit, without the rows that are left out."""

    source: Source
    fit: FitSpec
    weight: np.ndarray | None
    trajectories: Any  # the argument `groups` of a fit
    rows: np.ndarray | None = None  # their numbers in X; None for all rows
    groups: tuple[RareGroup, ...] = ()  # of the rows that are left out
    warned: bool = False  # whether there are detached rows

    def in_full(self, rows: np.ndarray) -> np.ndarray:
        """Return row numbers in X."""
        return rows if self.rows is None else self.rows[rows]


def isolate(source: Source, fit: FitSpec, weight: np.ndarray | None, trajectories: Any) -> Isolated:
    """Leave out detached rows, and warn of them.

    Only rows in memory are examined: a subsample of a file lacks groups of a few rows. With a lag, the passages of a
    trajectory show the time scale of exchange across a gap, and no frame can be left out.
    """
    everything = Isolated(source, fit, weight, trajectories)
    if fit.isolated == "keep" or fit.lag is not None:
        return everything
    if not isinstance(source, ArraySource) or not source.many_passes:
        return everything
    X = source.array
    source.read(slice(0))  # raises an error for NaN
    n = len(X)
    found = find_groups(X, weight)
    if not found:
        return everything
    if fit.isolated == "drop":
        found = tuple(replace(group, is_state=False) for group in found)
    warn(detached_check(found, of_fit=True))
    out = left_out(found)
    if not out.size:
        return replace(everything, warned=True)
    rows = np.delete(np.arange(n), out)
    kept = ArraySource(X[rows], checked=True)
    kept.feature_names = source.feature_names
    return Isolated(
        source=kept,
        fit=replace(fit, diffusion=at_rows(fit.diffusion, rows, n), cv=_folds_at(fit.cv, rows, n)),
        weight=None if weight is None else weight[rows],
        trajectories=None if trajectories is None else np.asarray(trajectories)[rows],
        rows=rows,
        groups=tuple(group for group in found if not group.is_fitted),
        warned=True,
    )


def at_rows(diffusion: Any, rows: np.ndarray, n: int) -> Any:
    """Return an argument `diffusion` for some of n rows; tensors of another number of samples are unchanged."""
    if not is_per_sample(diffusion):
        return diffusion
    tensors = diffusion.array if isinstance(diffusion, Factor) else np.asarray(diffusion)
    if len(tensors) != n:
        return diffusion
    return Factor(tensors[rows]) if isinstance(diffusion, Factor) else tensors[rows]


def _folds_at(cv: Any, rows: np.ndarray, n: int) -> Any:
    """Return folds for some of n rows: lists of row numbers, and labels of rows, refer to all of them."""
    if isinstance(cv, PredefinedSplit):
        return PredefinedSplit(cv.test_fold[rows])
    if not isinstance(cv, Sequence) or isinstance(cv, str):
        return cv
    place = np.full(n, -1)
    place[rows] = np.arange(len(rows))
    return [tuple(place[part][place[part] >= 0] for part in split) for split in cv]


def outside(groups: Sequence[RareGroup], X: np.ndarray) -> np.ndarray:
    """Return True for points that belong to none of some groups."""
    inside = np.zeros(len(X), dtype=bool)
    for group in groups:
        inside |= group.indicator(X) > 0
    return ~inside


@dataclass(eq=False, repr=False)
class ConfinedModes(ModeBasis):
    """Modes of the other rows, which are 0 in groups that are states of their own.

    Exchange between disconnected sets has the rate 0, and each mode of one of them vanishes in the others.
    """

    groups: tuple[RareGroup, ...] = ()

    def features(self, X: np.ndarray, n_rows: float | None = None) -> np.ndarray:
        values = super().features(X, n_rows)
        values[~outside(self.groups, X)] = 0
        return values

    def gradient(self, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        slopes = super().gradient(X, coefficients)
        slopes[~outside(self.groups, X)] = 0
        return slopes

    def step(
        self, state: Any, X: np.ndarray, root_weight: np.ndarray, tensor: TensorRows, constant: np.ndarray | None
    ) -> None:
        super().step(state, X, root_weight * outside(self.groups, X), tensor, constant)
