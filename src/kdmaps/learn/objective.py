"""What is minimised: a weighted sum of named terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from numbers import Real
from typing import NamedTuple

import numpy as np

from kdmaps.learn.statistics import Statistics
from kdmaps.selection.rules import CAUTION

#: The terms by name; each is a function of `kdmaps.learn._terms`, "heldout" of `kdmaps.learn._heldout`.
TERMS = ("eig", "sub", "rkhs", "pde", "entropy", "gini", "spread", "dirichlet", "anchor", "heldout")
#: Terms that look at single modes, not only at their space.
SINGLE_VECTOR_TERMS = frozenset({"pde", "spread"})

#: Weights of eq:total-objective: τ (eig), α (sub), γ (rkhs), ζ (pde), ρ (entropy or gini). The paper names which are
#: positive in each ablation, and prints a value only for the γ of VarRFF; the others are 1 here.
PRESETS: dict[str, dict[str, float]] = {
    "eig-only": {"eig": 1.0},
    "sub-only": {"sub": 1.0},
    "combined": {"eig": 1.0, "sub": 1.0, "rkhs": 1e-3},
    "varrff": {"eig": 1.0, "rkhs": 1e-3},
    "heldout": {"heldout": 1.0},
}


class Loss(NamedTuple):
    """What some terms of an objective say of the statistics.

    Attributes
    ----------
    value : float
        Their weighted sum.
    terms : dict of str to float
    eigenvalues : ndarray of shape (r,)
        μ of all samples.
    gap : float
        μ_r/μ_{r+1}.
    adjoint : callable
        Returns the derivatives of `value` by the statistics (a `Statistics`) and by log λ.
    """

    value: float
    terms: dict[str, float]
    eigenvalues: np.ndarray
    gap: float
    adjoint: Callable[[], tuple[Statistics, float]]


@dataclass(frozen=True)
class Objective:
    """J = Σ weight · term (eq:total-objective).

    Attributes
    ----------
    terms : tuple of str
    weights : tuple of float
        Not compared, so that objectives that differ in nothing else share one compiled program.
    n_components : int
        r.
    center : bool
        Whether the covariance is centred.
    eta : float
        η of eq:anchor-loss. (The modes of the eigenproblem are orthogonal: it multiplies zero.)
    power : float
        p of the held-out score Σ_k t_k^p: 1 is the timescale score, ½ what `KernelSearchCV` selects by.
    caution : float
        How many jackknife standard errors over the folds are subtracted from the held-out score; the default is that
        of `KernelSearchCV`.
    """

    terms: tuple[str, ...]
    weights: tuple[float, ...] = field(compare=False)
    n_components: int
    center: bool = True
    eta: float = 1.0
    power: float = 0.5
    caution: float = CAUTION

    def weight_of(self, term: str) -> float:
        """Weight of a term."""
        return self.weights[self.terms.index(term)]

    def without(self, term: str) -> Objective:
        """Return the objective without a term."""
        kept = [(name, weight) for name, weight in zip(self.terms, self.weights, strict=True) if name != term]
        return replace(self, terms=tuple(name for name, _ in kept), weights=tuple(weight for _, weight in kept))

    @property
    def single_vectors(self) -> bool:
        """Whether a term looks at single modes."""
        return not SINGLE_VECTOR_TERMS.isdisjoint(self.terms)


def make_objective(
    objective: str | Mapping[str, float],
    n_components: int,
    center: bool = True,
    power: float = 0.5,
    caution: float = CAUTION,
) -> Objective:
    """Return the preset of that name, or the weights themselves; terms of weight 0 are left out."""
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
        raise ValueError(f"objective must give every term a finite number for a weight, got {dict(objective)!r}.")
    terms = tuple(name for name in TERMS if objective.get(name, 0.0) != 0.0)
    if not terms:
        raise ValueError("objective must give at least one term a weight other than 0.")
    weights = tuple(float(objective[name]) for name in terms)
    return Objective(terms, weights, n_components, center, power=float(power), caution=float(caution))
