"""The boundary value problem of a committor in the span of a basis: one linear solve from additive sums.

For a reversible diffusion with the stationary law π and the diffusion tensor a, the committor q of two sets A and B
minimises the energy E[∇qᵀa∇q] outside of A and B among the functions with q = 0 in A and q = 1 in B. The
minimum is the reactive flux ν, and ν/E[1 - q] is the rate from A to B. In the span of a basis with a constant,
f = c₀ + Σ_m c_m φ_m minimises

    cᵀLc + λ cᵀRc + κ (mean over A of f² + mean over B of (1 - f)²).

The constant is not penalised, so that the exchange of A and B gives 1 - f.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from kdmaps.bases import Basis, ModeBasis
from kdmaps.forms.moments import Moments


@dataclass(frozen=True)
class BoundarySums:
    """Sums over samples outside of the sets, in A and in B; they add up like Moments."""

    outside: Moments  #: With the weights of the stationary law.
    source: Moments  #: In A, where every sample counts once.
    target: Moments  #: In B, where every sample counts once.
    masses: np.ndarray  #: (2,): weight of the stationary law in A and in B.

    def __add__(self, other: BoundarySums) -> BoundarySums:
        return BoundarySums(*map(operator.add, vars(self).values(), vars(other).values()))

    @property
    def weight(self) -> float:
        """Weight of all samples."""
        return self.outside.weight + float(self.masses.sum())

    def energy(self) -> np.ndarray:
        """Return L = E[∇φ a ∇φᵀ; outside of A and B]; (p, p)."""
        return self.outside.energy / self.weight

    def solve(self, basis: Basis, lambdas: Sequence[float] | np.ndarray, penalty: float) -> ModeBasis:
        """Return the functions f of least penalised energy at every λ; NaN if a matrix is singular to rounding."""
        both = self.source.mean + self.target.mean
        matrix = self.energy() - penalty / 2 * np.outer(both, both)
        for part in (self.source, self.target):
            matrix += penalty / part.weight * part.gram
        right, found = penalty / 2 * (self.target.mean - self.source.mean), np.full((len(both), len(lambdas)), np.nan)
        for k, regularization in enumerate(lambdas):
            shift = regularization * (np.eye(len(both)) if basis.ridge is None else basis.ridge)
            with suppress(np.linalg.LinAlgError):
                found[:, k] = linalg.cho_solve(linalg.cho_factor(matrix + shift, lower=True), right)
        return ModeBasis(basis, found, (both @ found - 1) / 2)  # with the offset -c₀
