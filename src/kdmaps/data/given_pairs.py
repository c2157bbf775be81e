"""Pairs of states that are no trajectory: each is a trajectory of two frames."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.exceptions import ArgumentError
from kdmaps.utils.frames import column_names, like
from kdmaps.utils.validation import checked_samples


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs (x, y) of states, as `as_pairs` makes them; estimators with `lag=1` take them as X."""

    rows: Any  #: (2 n_pairs, d): x and y of each pair in turn, as an array or a data frame.

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.rows) // 2

    def joined(self, groups: ArrayLike | None, sample_weight: ArrayLike | None) -> tuple[Any, np.ndarray, None]:
        """Return the rows and the number of the pair of each, as `join_trajectories` does."""
        if groups is not None:
            raise ArgumentError("{groups} cannot be combined with pairs, each of which is a group; leave it out.")
        if sample_weight is not None and np.shape(sample_weight) != (2 * self.n_pairs,):
            raise ArgumentError(
                "{sample_weight} has shape {shape}, but X has {count} pairs; give weights to kdmaps.data.as_pairs, or "
                "one for each row.",
                shape=np.shape(sample_weight),
                count=self.n_pairs,
            )
        return self.rows, np.repeat(np.arange(self.n_pairs), 2), None


def as_pairs(x: Any, y: Any) -> Pairs:
    """Return pairs of states (x, y), y one lag after x, for estimators with `lag=1`.

    Pairs need not come from a trajectory. A reversible model uses each in both directions of time, as in equilibrium.

    Parameters
    ----------
    x, y : array-like of shape (n_pairs, d), or data frames with the same columns
        First and second states, row by row. Weights of pairs are given to `fit`, one for each row of x and y in turn:
        `np.repeat(weight, 2)`.

    Returns
    -------
    Pairs

    Examples
    --------
    >>> import numpy as np, kdmaps
    >>> random = np.random.default_rng(0)
    >>> x = random.normal(size=(2000, 1))
    >>> y = np.exp(-0.5) * x + np.sqrt(1 - np.exp(-1.0)) * random.normal(size=(2000, 1))  # time scale 2
    >>> m = kdmaps.KernelDiffusionMap(1, lag=1, random_state=0).fit(kdmaps.data.as_pairs(x, y))
    >>> bool(abs(m.timescales_[0] - 2) < 0.3)
    True
    """
    names = column_names(x)
    if names != column_names(y):
        raise ArgumentError("x and y have different columns; both must have the same, in the same order.")
    first, second = (checked_samples(None, states, reset=True) for states in (x, y))
    if first.shape != second.shape:
        raise ArgumentError(
            "x and y have the shapes {first} and {second}; both must have one row for each pair.",
            first=first.shape,
            second=second.shape,
        )
    rows = np.stack([first, second], axis=1).reshape(-1, first.shape[1])
    return Pairs(rows if names is None else like(x, rows, names))
