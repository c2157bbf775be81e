"""A search in other linear coordinates of the samples, and its result in the columns of X.

Columns in different units are divided by their standard deviations (`standardize`), or, if the diffusion tensor is
given, transformed so that it becomes the identity. The search then does not depend on the units of the columns.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from kdmaps.bases import Basis, FourierBasis, LandmarkBasis, RandomPhaseBasis
from kdmaps.data.distances import Support
from kdmaps.data.sources import ArraySource, Source
from kdmaps.estimators.fit import Fit
from kdmaps.exceptions import ArgumentError
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.kernels import Kernel, Metric
from kdmaps.selection.candidate import Candidate
from kdmaps.selection.plan import SearchPlan
from kdmaps.utils.validation import unit_weight


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Coordinates y = (x - origin) frame of the samples x, and the way back, x = origin + y inverse."""

    source: ArraySource  # the samples in these coordinates
    original: Source
    origin: np.ndarray  # (d,)
    frame: np.ndarray  # (d, q)
    inverse: np.ndarray  # (q, d)

    def points(self, Y: np.ndarray) -> np.ndarray:
        """Return points in the columns of X."""
        return self.origin + Y @ self.inverse

    def candidate(self, candidate: Candidate) -> Candidate:
        """Return a candidate with its kernel as a function of the columns of X."""
        return replace(candidate, kernel=self._kernel(candidate.kernel))

    def _kernel(self, kernel: Kernel) -> Metric:
        if isinstance(kernel, Metric):
            return Metric(kernel.kernel, self.frame @ kernel.root)
        return Metric(kernel, self.frame)

    def fit(self, fit: Fit) -> Fit:
        """Return the same modes as functions of the columns of X."""
        support = None
        if fit.support is not None:
            samples = self.points(fit.support.samples)
            ends = Support(samples, samples.min(axis=0), samples.max(axis=0))
            support = ends.extended(self.original.bounds())
        return replace(fit, basis=self._basis(fit.basis), support=support)

    def _basis(self, basis: Any) -> Basis:
        kernel, origin = self._kernel(basis.kernel), self.points(basis.origin)
        if isinstance(basis, LandmarkBasis):
            return LandmarkBasis(kernel, self.points(basis.landmarks), origin)
        arguments = (kernel, basis.frequencies @ self.frame.T, basis.weights, origin)
        if isinstance(basis, RandomPhaseBasis):
            return RandomPhaseBasis(*arguments, basis.phases).astype(basis.dtype)
        return FourierBasis(*arguments).astype(basis.dtype)


@dataclass(frozen=True, eq=False)
class Scaled(Coordinates):
    """Coordinates in which the diffusion tensor is the identity."""

    diffusion: np.ndarray  # in the columns of X, (d,) or (d, d)

    @classmethod
    def of(cls, source: Source, plan: SearchPlan, weight: np.ndarray | None) -> Self | None:
        """Return scaled coordinates of columns that are standardized, or that have a constant diffusion tensor.

        None for other data, for a tensor that is a number, and if kernels or bandwidths are given in the columns of X.
        """
        if plan.standardize:
            return cls._make(_in_memory(source, plan), _variances(source, weight))
        free = plan.adaptive and all(isinstance(family, str) for family in plan.families)
        given = plan.fit.diffusion
        constant = given is not None and not isinstance(given, str) and not callable(given) and np.ndim(given) in (1, 2)
        if not (free and constant and isinstance(source, ArraySource) and isinstance(plan.basis.landmarks, str)):
            return None
        tensor = DiffusionTensor(given, source.n_features).constant
        if tensor is None or tensor.ndim == 0 or np.linalg.eigvalsh(tensor)[0] <= 0:
            return None
        diagonal = np.diag(tensor)
        return cls._make(source, diagonal if np.array_equal(tensor, np.diag(diagonal)) else tensor)

    @classmethod
    def _make(cls, source: ArraySource, diffusion: np.ndarray) -> Self:
        # Scaled columns scale the rows of the Cholesky factor, so that y does not depend on their units.
        factor = np.diag(np.sqrt(diffusion)) if diffusion.ndim == 1 else np.linalg.cholesky(diffusion)
        X = np.asarray(source.read(slice(None))[1], dtype=np.float64)
        origin, inverse = X.mean(axis=0), factor.T
        frame = np.linalg.inv(inverse)
        scaled = ArraySource(np.ascontiguousarray((X - origin) @ frame), checked=True)
        scaled.times, scaled.time_unit, scaled.gap = source.times, source.time_unit, source.gap
        return cls(scaled, source, origin, frame, inverse, diffusion)

    def plan(self, plan: SearchPlan) -> SearchPlan:
        """Return the plan in these coordinates."""
        return replace(plan, fit=replace(plan.fit, diffusion=None))

    @property
    def mixed(self) -> bool:
        """Whether coordinates are combinations of several columns."""
        return self.diffusion.ndim == 2

    @property
    def of_columns(self) -> np.ndarray:
        """The frame with every column of X in units of its own diffusion, for derivatives by columns; (d, d)."""
        units = np.sqrt(self.diffusion if self.diffusion.ndim == 1 else np.diag(self.diffusion))
        return units[:, None] * self.frame


def _in_memory(source: Source, plan: SearchPlan) -> ArraySource:
    """Return the source if its columns can be standardized."""
    if plan.fit.diffusion is not None:
        raise ArgumentError(
            "{standardize:True} cannot be combined with {diffusion}, which sets the units of the columns itself; leave "
            "out one of them."
        )
    own = [family for family in plan.families if not isinstance(family, str)]
    if own or not isinstance(plan.basis.landmarks, str):
        raise ArgumentError("{standardize:True} cannot be combined with kernels or landmarks in the columns of X.")
    if not isinstance(source, ArraySource):
        raise ArgumentError(
            "{standardize:True} needs X in memory; divide the columns of streams and Dask data by their standard "
            "deviations."
        )
    return source


def _variances(source: Source, weight: np.ndarray | None) -> np.ndarray:
    """Return the variances of the columns, 1 for constant ones."""
    X = np.asarray(source.read(slice(None))[1], dtype=np.float64)
    share = unit_weight(weight, len(X))
    deviations = X - share @ X
    variances = share @ deviations**2
    return np.where(variances > 0, variances, 1.0)
