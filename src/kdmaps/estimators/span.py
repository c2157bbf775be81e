"""More columns than samples: a search in the span of the samples, and its result in the columns of X.

Distances of samples, and gradients and energies of radial kernels at landmarks with a scalar diffusion, are the same in
orthonormal coordinates of the span. Fourier features are not: their gradients at a sample leave the span, and without
that part a function of test samples would look slower than it is. Modes do not depend on the part of a point that is
orthogonal to the span: no sample shows how they would.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np

from kdmaps.data.sources import ArraySource, Source
from kdmaps.estimators.coordinates import Coordinates
from kdmaps.selection.plan import SearchPlan

#: Directions with a smaller part of the largest deviation are rounding errors.
ROUNDING = 1e-13


def _radial(plan: SearchPlan) -> tuple[Any, ...]:
    return tuple(family for family in plan.families if family != "laplacian")


class Span(Coordinates):
    """Coordinates of the span of some samples, ordered by their variance; the frame has orthonormal columns."""

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
        return cls(rows, source, origin, np.ascontiguousarray(right[kept].T), np.ascontiguousarray(right[kept]))

    @staticmethod
    def plan(plan: SearchPlan) -> SearchPlan:
        """Return the part of a plan that does not depend on the coordinates: radial kernels at landmarks."""
        return replace(plan, basis=replace(plan.basis, basis="landmarks"), families=_radial(plan), rotated=True)
