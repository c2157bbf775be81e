"""Bounds with their constants and assumptions, and the bound for the choice of a kernel."""

import math
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Certificate", "cv_consistency"]


@dataclass(frozen=True)
class Certificate:
    """A bound with its constants and assumptions."""

    theorem: str  #: Label in the paper.
    value: float  #: The bound; the trivial one, such as 1 for a distance between unit vectors, if an assumption fails.
    constants: dict[str, float] = field(default_factory=dict)  #: The numbers in the formula of the bound, by name.
    assumptions: tuple[str, ...] = ()  #: Assumptions that were not checked.
    violations: tuple[str, ...] = ()  #: Assumptions that fail, with a remedy.
    trivial: float = math.inf  #: The bound that holds without any computation, such as 1 for a probability.

    @property
    def holds(self) -> bool:
        """Whether no assumption is known to fail."""
        return not self.violations

    @property
    def informative(self) -> bool:
        """Whether the bound applies and is below the trivial one."""
        return self.holds and self.value < self.trivial


def cv_consistency(
    margin: float, n_candidates: int, n_modes: int, n_folds: int, fold_size: float, concentration: float
) -> Certificate:
    """Bound the probability that cross-validation misses the best candidate (thm:cv-consistency).

    P(miss) ≤ 2 M r F exp(-c N_f Δ²/(4r²)), a union bound over all M·r·F fold eigenvalues. The paper's statement omits
    the factor F.

    Parameters
    ----------
    margin : float
        Δ, difference between the best and the second-best population score.
    n_candidates, n_modes, n_folds : int
        M, r and F.
    fold_size : float
        N_f, number of samples in a fold.
    concentration : float
        c, such that P(|μ̂ - μ| > t) ≤ 2 exp(-c N_f t²) for every fold eigenvalue.

    Returns
    -------
    Certificate
        `value` is the bound on the probability, at most 1.
    """
    exponent = -concentration * fold_size * max(margin, 0.0) ** 2 / (4 * n_modes**2)
    value = float(min(1.0, 2 * n_candidates * n_folds * n_modes * np.exp(exponent)))
    violations = []
    if not margin > 0:
        violations.append("The margin is not positive: two candidates are equally good, and either choice is right.")
    if not concentration > 0:
        violations.append("The concentration constant c is not positive.")
    constants = {"Δ": margin, "M": n_candidates, "r": n_modes, "F": n_folds, "N_f": fold_size, "c": concentration}
    assumptions = (
        "the candidates are bounded, C² and chosen independently of the samples",
        "samples are independent",
        "every fold eigenvalue satisfies P(|μ̂ - μ| > t) ≤ 2 exp(-c N_f t²)",
        "the margin Δ and c are population values, not estimates",
    )
    value = 1.0 if violations else value
    return Certificate("thm:cv-consistency", value, constants, assumptions, tuple(violations), trivial=1.0)
