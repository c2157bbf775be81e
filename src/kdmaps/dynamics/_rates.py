"""Rates between several states from samples in any order."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.data.inputs import join_trajectories
from kdmaps.dynamics._states import CoarseStates
from kdmaps.estimators.committor import AdaptiveCommittor
from kdmaps.utils.frames import aligned, join_rows
from kdmaps.utils.types import SamplesLike


@dataclass(frozen=True)
class RateMatrix:
    """Rates between all pairs of states, the result of `rate_matrix`."""

    labels: np.ndarray  #: (m,): the states.
    rates: np.ndarray  #: (m, m): rate from state i to state j, by any route; 0 on the diagonal.
    intervals: np.ndarray  #: (m, m, 2): 95 % intervals.
    fluxes: np.ndarray  #: (m, m): reactive fluxes, symmetric.
    #: Committors from the first to the second of two labels; from the second to the first it is 1 - q.
    committors: dict[tuple[int, int], AdaptiveCommittor]

    def __repr__(self) -> str:
        head = ["from, to", *map(str, self.labels.tolist())]
        rows = [
            [str(name), *(f"{rate:.3g}" for rate in own)] for name, own in zip(self.labels, self.rates, strict=True)
        ]
        return "\n".join(aligned([head, *rows]))


def rate_matrix(
    X: SamplesLike,
    states: ArrayLike | CoarseStates,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    **settings: Any,
) -> RateMatrix:
    """Fit the committor of every pair of states, and return all rates.

    Parameters
    ----------
    X : array-like of shape (n_samples, d), or list of such arrays
    states : array-like of int of shape (n_samples,), or CoarseStates
        State of each sample, -1 outside of all states; for `CoarseStates`, the cores are used.
    sample_weight : array-like of shape (n_samples,), optional
    groups : array-like of shape (n_samples,), optional
    **settings
        Parameters of `AdaptiveCommittor`, such as `diffusion` and `random_state`.

    Returns
    -------
    RateMatrix
        A rate counts transitions from i to j by any route, also through other states.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("triplewell1d").sample(1000, random_state=0)
    >>> states = (abs(X[:, 0]) < 0.3) * 2 + (X[:, 0] < -1.3) + (X[:, 0] > 1.3) * 3 - 1
    >>> found = kdmaps.dynamics.rate_matrix(X, states, n_features=50, random_state=0)
    >>> found.rates.shape
    (3, 3)
    """
    X, groups, lengths = join_trajectories(X, groups, sample_weight)
    labels = states.cores if isinstance(states, CoarseStates) else np.asarray(join_rows("states", states, lengths))
    names = np.unique(labels[labels >= 0]) if labels.dtype.kind in "iu" else np.empty(0)
    if len(names) < 2:
        raise ValueError(f"states must contain at least two states (integers 0, 1, …), got {len(names)}.")
    m = len(names)
    rates, fluxes, intervals = np.zeros((m, m)), np.zeros((m, m)), np.zeros((m, m, 2))
    committors = {}
    for i, j in combinations(range(m), 2):
        y = np.where(labels == names[i], 0, np.where(labels == names[j], 1, -1))
        model = AdaptiveCommittor(**settings).fit(X, y, sample_weight, groups)
        committors[int(names[i]), int(names[j])] = model
        rates[i, j], rates[j, i] = model.rate_, model.reverse_rate_
        intervals[i, j], intervals[j, i] = model.rate_interval_, model.reverse_rate_interval_
        fluxes[i, j] = fluxes[j, i] = model.flux_
    return RateMatrix(names, rates, intervals, fluxes, committors)
