"""Objectives: weighted sums of named terms."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from numbers import Real
from typing import NamedTuple, Self

import numpy as np

from kdmaps.learn.statistics import Statistics
from kdmaps.selection.scores import CAUTION, POWER

#: The terms by name: functions of `kdmaps.learn._variational`, and "heldout" of `kdmaps.learn._heldout`.
TERMS = ("eig", "sub", "rkhs", "pde", "entropy", "gini", "spread", "dirichlet", "anchor", "heldout")
#: Terms that depend on single modes, not only on their space.
SINGLE_VECTOR_TERMS = frozenset({"pde", "spread"})

#: Weights of eq:total-objective: τ (eig), α (sub), γ (rkhs), ζ (pde), ρ (entropy or gini). The paper lists which are
#: positive in each ablation, and prints a value only for the γ of VarRFF; the others are 1 here.
PRESETS: dict[str, dict[str, float]] = {
    "eig-only": {"eig": 1.0},
    "sub-only": {"sub": 1.0},
    "combined": {"eig": 1.0, "sub": 1.0, "rkhs": 1e-3},
    "varrff": {"eig": 1.0, "rkhs": 1e-3},
    "heldout": {"heldout": 1.0},
}


class Loss(NamedTuple):
    """Some terms of an objective at given statistics."""

    value: float  #: Their weighted sum.
    terms: dict[str, float]
    eigenvalues: np.ndarray  #: (r,): μ of all samples.
    gap: float  #: μ_r/μ_{r+1}.
    adjoint: Callable[[], tuple[Statistics, float]]  #: Returns the derivatives of `value` by the statistics and log λ.


@dataclass(frozen=True)
class Objective:
    """J = Σ weight · term (eq:total-objective)."""

    terms: tuple[str, ...]
    #: Not compared, so that objectives with the same terms share one compiled program.
    weights: tuple[float, ...] = field(compare=False)
    n_components: int  #: r.
    center: bool = True  #: True for a centred covariance.
    eta: float = 1.0  #: η of eq:anchor-loss. (The modes of the eigenproblem are orthogonal: it multiplies zero.)
    #: p of the held-out score Σ_k t_k^p: 1 is the timescale score; 0 stands for Σ_k log t_k, the score of
    #: `KernelSearchCV`.
    power: float = POWER
    #: Number of jackknife standard errors over the folds that are subtracted from the held-out score; by default as in
    #: `KernelSearchCV`.
    caution: float = CAUTION

    def without(self, term: str) -> Self:
        """Return the objective without a term."""
        kept = [(name, weight) for name, weight in zip(self.terms, self.weights, strict=True) if name != term]
        return replace(self, terms=tuple(name for name, _ in kept), weights=tuple(weight for _, weight in kept))

    @property
    def single_vectors(self) -> bool:
        """True if a term depends on single modes."""
        return not SINGLE_VECTOR_TERMS.isdisjoint(self.terms)


def make_objective(objective: str | Mapping[str, float], n_components: int, center: bool = True) -> Objective:
    """Return the objective of a preset or of given weights, without terms of weight 0."""
    if isinstance(objective, str):
        if objective not in PRESETS:
            raise ValueError(f"Unknown objective {objective!r}; choose one of {', '.join(PRESETS)}, or give weights.")
        objective = PRESETS[objective]
    if not isinstance(objective, Mapping):
        names = ", ".join(PRESETS)
        raise ValueError(f"objective must be one of {names}, or a mapping of term to weight, got {objective!r}.")
    unknown = set(objective) - set(TERMS)
    if unknown:
        raise ValueError(
            f"Unknown term(s) {', '.join(sorted(map(str, unknown)))} of objective; choose from {', '.join(TERMS)}."
        )
    if not all(isinstance(weight, Real) and isfinite(weight) for weight in objective.values()):
        raise ValueError(f"objective must give every term a finite number as its weight, got {dict(objective)!r}.")
    terms = tuple(name for name in TERMS if objective.get(name, 0.0) != 0.0)
    if not terms:
        raise ValueError("objective must give at least one term a weight other than 0.")
    return Objective(terms, tuple(float(objective[name]) for name in terms), n_components, center)
