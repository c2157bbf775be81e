"""From the residual of a mode to its distance from the true one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.certificates._certificate import Certificate
from kdmaps.generators import Generator

#: Relative distance below which rates count as one cluster, where they are exact.
EXACT_RESOLUTION = 1e-6


def residual_gap(
    residual: float,
    rate: float,
    rates: Sequence[float] | np.ndarray,
    cluster: Sequence[int],
    *,
    mean: float = 0.0,
    exact: bool = True,
) -> Certificate:
    """Bound on the distance of a mode φ of unit norm from the space E_I of a cluster of true modes (thm:residual-gap).

    With φ = Σ_j c_j e_j and any λ, ‖(𝒢+λ)φ‖² = Σ_j (λ-λ_j)² c_j² ≥ γ² Σ_{j∉I} c_j², so that

        dist(φ, E_I) ≤ ‖(𝒢+λ)φ‖/γ,    γ = min_{j∉I} |λ_j - λ|.

    λ may be the Rayleigh estimate: γ is measured from the λ of the residual. (Measured between eigenvalues, as in the
    paper, the bound needs a λ within the cluster.) The constant, of rate 0, is not among the modes; its share c_0 = E φ
    is known, and dist² ≤ c_0² + (‖(𝒢+λ)φ‖² - λ²c_0²)/γ².

    Parameters
    ----------
    residual : float
        ‖(𝒢+λ)φ‖/‖φ‖ in the stationary law.
    rate : float
        The λ of the residual.
    rates : array-like of float
        The smallest rates λ_j, ascending and complete, the constant not counted; the last must lie beyond the cluster.
    cluster : sequence of int
        Indices I of the cluster in `rates`; [m] for a single mode.
    mean : float, default=0
        c_0 = E φ/‖φ‖.
    exact : bool, default=True
        Whether `rates` are the true ones.
    """
    known = np.asarray(rates, dtype=np.float64)
    others = np.delete(known, list(cluster))
    violations = []
    if np.any(np.diff(known) < 0):
        violations.append("The rates are not ascending.")
    if len(known) - 1 in cluster or rate > known[-1]:
        violations.append("The next rate beyond the cluster is not known: give one more rate (or fit one more mode).")
    gap = float(np.min(np.abs(others - rate), initial=np.inf))
    if gap == 0:
        violations.append("The gap is zero: the cluster must contain all modes of its rate.")
    assumptions = [
        "the generator is self-adjoint in the stationary law (reversible dynamics) and its spectrum is discrete",
        "residual and mean are those of the stationary law; averages over samples have a sampling error",
    ]
    if not exact:
        assumptions.append("the estimated rates stand for the true ones")
    value = 1.0
    if not violations:
        value = min(1.0, float(np.sqrt(mean**2 + max(residual**2 - (rate * mean) ** 2, 0.0) / gap**2)))
    return Certificate(
        "thm:residual-gap",
        value,
        {"residual": residual, "λ": rate, "γ": gap, "c_0": mean},
        tuple(assumptions),
        tuple(violations),
        trivial=1.0,
    )


def certify_modes(
    generator: Generator,
    estimator: Any,
    X: np.ndarray,
    rates: ArrayLike | None = None,
    sample_weight: np.ndarray | None = None,
) -> list[Certificate]:
    """`residual_gap` for every mode of a fitted estimator, with the cluster of the rate nearest to its own.

    Parameters
    ----------
    generator : Generator
        The known dynamics.
    estimator : fitted estimator
    X : ndarray of shape (n, d)
        Samples of the stationary law, best fresh ones.
    rates : array-like of float, optional
        True rates, ascending, at least one more than there are modes. By default the estimator's own `rates_`, which
        leave the last cluster without a certificate.
    sample_weight : ndarray of shape (n,), optional
    """
    found = generator.residuals(estimator, X, sample_weight)
    known = np.sort(estimator.rates_) if rates is None else np.asarray(rates, dtype=np.float64)
    resolution = estimator.modes_.resolution if rates is None else EXACT_RESOLUTION

    def certify(residual: float, rate: float, mean: float) -> Certificate:
        nearest = known[np.argmin(np.abs(known - rate))]
        cluster = np.flatnonzero(np.abs(known - nearest) <= resolution * nearest)
        return residual_gap(residual, rate, known, cluster.tolist(), mean=mean, exact=rates is not None)

    columns = (column.tolist() for column in (found.norms, found.rates, found.means))
    return [certify(*numbers) for numbers in zip(*columns, strict=True)]
