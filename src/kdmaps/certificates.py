"""Bounds with their constants and assumptions: errors of modes and of the choice of a kernel."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.generators import Generator

__all__ = ["Certificate", "certify_modes", "cv_consistency", "residual_gap"]

#: Meaning of the value of a certificate, by the label of its theorem.
STATEMENTS = {
    "thm:cv-consistency": "probability that the search missed the best candidate",
    "thm:residual-gap": "distance of a mode from the exact one",
}
#: Relative distance below which exact rates are treated as degenerate.
EXACT_RESOLUTION = 1e-6


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

    @property
    def statement(self) -> str:
        """The bounded quantity in words, or the label of the theorem."""
        return STATEMENTS.get(self.theorem, self.theorem)


def residual_gap(
    residual: float, rate: float, rates: ArrayLike, cluster: Sequence[int], *, mean: float = 0.0, exact: bool = True
) -> Certificate:
    """Bound the distance of a mode φ of unit norm from the space E_I of a cluster of true modes (thm:residual-gap).

    With φ = Σ_j c_j e_j and any λ, ‖(𝒢+λ)φ‖² = Σ_j (λ-λ_j)² c_j² ≥ γ² Σ_{j∉I} c_j², so that

        dist(φ, E_I) ≤ ‖(𝒢+λ)φ‖/γ,    γ = min_{j∉I} |λ_j - λ|.

    λ may be the Rayleigh estimate, because γ is measured from the λ of the residual (in the paper, between
    eigenvalues). The constant, of rate 0, is not among the modes; its share c_0 = E φ is known, and
    dist² ≤ c_0² + (‖(𝒢+λ)φ‖² - λ²c_0²)/γ².

    Parameters
    ----------
    residual, rate : float
        ‖(𝒢+λ)φ‖/‖φ‖ in the stationary law, and the λ of this residual.
    rates : array-like of float
        The smallest rates λ_j, ascending and complete, the constant not counted; the last must lie beyond the cluster.
    cluster : sequence of int
        Indices I of the cluster in `rates`; [m] for a single mode.
    mean : float, default=0
        c_0 = E φ/‖φ‖.
    exact : bool, default=True
        Whether `rates` are exact rather than estimated.

    Returns
    -------
    Certificate
        `value` is the bound on the distance, at most 1.
    """
    known = np.asarray(rates, dtype=np.float64)
    others = np.delete(known, list(cluster))
    violations = []
    if np.any(np.diff(known) < 0):
        violations.append("The rates are not ascending.")
    if len(known) - 1 in cluster or rate > known[-1]:
        violations.append("The next rate beyond the cluster is unknown: give one more rate (or fit one more mode).")
    gap = float(np.min(np.abs(others - rate), initial=np.inf))
    if gap == 0:
        violations.append("The gap is zero: the cluster must contain all modes of its rate.")
    assumptions = [
        "the generator is self-adjoint in the stationary law (reversible dynamics) and its spectrum is discrete",
        "residual and mean are averages over the stationary law; averages over samples have a sampling error",
    ]
    if not exact:
        assumptions.append("the estimated rates equal the true ones")
    value = 1.0
    if not violations:
        value = min(1.0, float(np.sqrt(mean**2 + max(residual**2 - (rate * mean) ** 2, 0.0) / gap**2)))
    constants = {"residual": residual, "λ": rate, "γ": gap, "c_0": mean}
    return Certificate("thm:residual-gap", value, constants, tuple(assumptions), tuple(violations), trivial=1.0)


def certify_modes(
    generator: Generator,
    estimator: Any,
    X: np.ndarray,
    rates: ArrayLike | None = None,
    sample_weight: np.ndarray | None = None,
) -> list[Certificate]:
    """Apply `residual_gap` to every mode of a fitted estimator, with the cluster of the known rate nearest to its own.

    Parameters
    ----------
    generator : Generator
        The known dynamics.
    estimator : fitted estimator
        Anything with `basis_`, `coefficients_`, `modes_` and `rates_`.
    X : ndarray of shape (n, d)
        Samples of the stationary law, preferably not the training samples.
    rates : array-like of float, optional
        True rates, ascending, at least one more than there are modes. By default the estimator's own `rates_`, which
        give no bound for the last cluster.
    sample_weight : ndarray of shape (n,), optional
        Weights of the samples.

    Returns
    -------
    list of Certificate
        One for each mode.
    """
    found = generator.residuals(estimator, X, sample_weight)
    known = np.sort(estimator.rates_) if rates is None else np.asarray(rates, dtype=np.float64)
    resolution = estimator.modes_.resolution if rates is None else EXACT_RESOLUTION

    def certify(residual: float, rate: float, mean: float) -> Certificate:
        nearest = known[np.argmin(np.abs(known - rate))]
        cluster = np.flatnonzero(np.abs(known - nearest) <= resolution * nearest)
        return residual_gap(residual, rate, known, cluster.tolist(), mean=mean, exact=rates is not None)

    return [certify(*row) for row in np.column_stack([found.norms, found.rates, found.means]).tolist()]


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
