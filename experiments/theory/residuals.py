"""The paper's bound on the distance of a mode from the exact one, by its residual and the gap (thm:residual-gap)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.certificates import Certificate
from kdmaps.generators import Generator

#: Relative distance below which exact rates are treated as degenerate.
EXACT_RESOLUTION = 1e-6


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
        True if `rates` are exact, False if they are estimated.

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
