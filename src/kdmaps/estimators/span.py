"""More columns than samples: a search in the span of the samples, and its result in the columns of X.

Distances of samples, and gradients and energies of radial kernels at landmarks with a scalar diffusion, are the same in
orthonormal coordinates of the span. Fourier features are not: their gradients at a sample leave the span, and without
that part a function of test samples would look slower than it is. Modes do not depend on the part of a point that is
orthogonal to the span: no sample shows how they would.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from kdmaps.bases import Basis, FourierBasis, LandmarkBasis, RandomPhaseBasis
from kdmaps.data.distances import Support
from kdmaps.data.sources import ArraySource, Source
from kdmaps.estimators.fit import Fit
from kdmaps.kernels import Kernel, Metric
from kdmaps.selection.candidate import Candidate
from kdmaps.selection.plan import SearchPlan

#: Directions with a smaller part of the largest deviation are rounding errors.
ROUNDING = 1e-13


def _radial(plan: SearchPlan) -> tuple[Any, ...]:
    return tuple(family for family in plan.families if family != "laplacian")


@dataclass(frozen=True, eq=False)
class Span:
    """Coordinates y = (x - origin)V of the span of some samples, ordered by their variance."""

    source: ArraySource  # the samples in these coordinates
    original: Source
    origin: np.ndarray  # (d,)
    frame: np.ndarray  # V, (d, q), with orthonormal columns

    @classmethod
    def of(cls, source: Source, plan: SearchPlan) -> Self | None:
        """Return the span of samples with more columns than rows; None if it would change the search.

        A tensor, landmarks or kernels given by the user are in the columns of X.
        """
        n, d = source.shape
        if not (any(spec.basis == "landmarks" for spec in plan.bases) and _radial(plan)):
            return None
        own = (plan.fit.diffusion is None or np.isscalar(plan.fit.diffusion)) and isinstance(plan.basis.landmarks, str)
        own = own and not isinstance(plan.fit.diffusion, str) and all(isinstance(f, str) for f in plan.families)
        if not (own and isinstance(source, ArraySource) and source.many_passes and n is not None and d > n):
            return None
        X = np.asarray(source.read(slice(None))[1], dtype=np.float64)
        origin = X.mean(axis=0)
        left, deviations, right = np.linalg.svd(X - origin, full_matrices=False)
        kept = deviations > ROUNDING * deviations[0]
        if not kept.any():  # equal samples, which the search reports
            return None
        rows = ArraySource(np.ascontiguousarray(left[:, kept] * deviations[kept]), checked=True)
        return cls(rows, source, origin, np.ascontiguousarray(right[kept].T))

    @staticmethod
    def plan(plan: SearchPlan) -> SearchPlan:
        """Return the part of a plan that does not depend on the coordinates: radial kernels at landmarks."""
        return replace(plan, basis=replace(plan.basis, basis="landmarks"), families=_radial(plan), rotated=True)

    def points(self, Y: np.ndarray) -> np.ndarray:
        """Return points of the span in the columns of X."""
        return self.origin + Y @ self.frame.T

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
