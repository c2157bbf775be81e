"""What is left of a chunk of frames until the next one comes (`partial_fit` with a lag)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kdmaps.data.pairs import paired_rows
from kdmaps.data.sources import ArraySource, Source


@dataclass(frozen=True)
class Tail:
    """Frames of an array that still wait for the second frame of their pair, which a later array may hold.

    Attributes
    ----------
    frames : ndarray of shape (n, d)
    weight : ndarray of shape (n,) or None
    groups : ndarray of shape (n,) or None
    """

    frames: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray | None

    @classmethod
    def of(cls, source: Source, lag: int, weight: np.ndarray | None, groups: Any) -> Tail | None:
        """Return the tail of an array: the last `lag` frames of each of its trajectories."""
        if not isinstance(source, ArraySource):
            return None
        labels = None if groups is None else np.asarray(groups)
        waiting = np.ones(len(source.array), dtype=bool)
        waiting[paired_rows(len(source.array), lag, labels)[0]] = False
        of_each = [None if given is None else given[waiting] for given in (weight, labels)]
        return cls(np.array(source.array[waiting]), *of_each)

    def before(self, source: Source, weight: np.ndarray | None, groups: Any) -> tuple[Source, Any, Any]:
        """Return the array with the frames that wait for it put before it.

        Without groups, it goes on where the one before ended; with groups, each of its trajectories does.
        """
        if not isinstance(source, ArraySource) or (groups is None) != (self.groups is None):
            return source, weight, groups
        going_on: Any = slice(None)
        if self.groups is not None:
            going_on = np.isin(self.groups, groups)
            groups = np.concatenate([self.groups[going_on], groups])
        frames = self.frames[going_on]
        if weight is not None or self.weight is not None:
            own = np.ones(source.n_samples or 0) if weight is None else weight
            weight = np.concatenate([np.ones(len(frames)) if self.weight is None else self.weight[going_on], own])
        return ArraySource(np.concatenate([frames, source.array]), checked=True), weight, groups
