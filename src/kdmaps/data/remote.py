"""Samples that are worked on where they are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kdmaps.data.sources import Source


class RemoteSource(Source):
    """Samples that are worked on where they are: only sums and modes of them travel."""

    n_samples: int

    @property
    @abstractmethod
    def at_once(self) -> int:
        """How many callers of `moments` keep all workers busy."""

    @abstractmethod
    def moments(self, basis, sample_weight, diffusion, labels=None, sets=(None,), *, engine, memory_limit=None) -> list:
        """Moments of several sets of samples, from one pass.

        A set is a pair (j, c), the samples with `labels[:, j] == c`, or None for all samples.
        """

    @abstractmethod
    def project(self, basis, factors: np.ndarray) -> Any:
        """Features of a basis at all samples, its columns multiplied by `factors`; not computed before it is needed."""

    @abstractmethod
    def fetch(self, values: Any) -> Iterator[np.ndarray]:
        """What `project` returned, in consecutive parts."""

    @abstractmethod
    def rowwise(self, function: Callable, *arguments) -> np.ndarray:
        """`function(rows, *arguments)`, one entry per row, of all samples."""

    @abstractmethod
    def subset(self, X: np.ndarray) -> RemoteSource:
        """These samples, handed out to the same workers."""
