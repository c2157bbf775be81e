"""Consistency of the cross-validated choice."""

from __future__ import annotations

import numpy as np

from kdmaps.analysis.certificates._certificate import Certificate


def cv_consistency_bound(
    margin: float, n_candidates: int, n_modes: int, fold_size: float, concentration: float
) -> float:
    """Bound on the probability that cross-validation misses the best candidate (thm:cv-consistency), at most 1.

    P(miss) ≤ 2 M r exp(-c N_f Δ²/(4r²)) for M candidates, r modes, folds of N_f samples and a margin Δ between the best
    and the second-best population score, if every fold eigenvalue satisfies P(|μ̂ - μ| > t) ≤ 2 exp(-c N_f t²).

    The theorem assumes a fixed finite set of candidates, bounded C² kernels, independent samples, a positive margin and
    that concentration inequality; `margin` and `concentration` are usually estimates, and the bound is then one too.
    """
    exponent = -concentration * fold_size * max(margin, 0.0) ** 2 / (4 * n_modes**2)
    return float(min(1.0, 2 * n_candidates * n_modes * np.exp(exponent)))


def cv_consistency(
    margin: float, n_candidates: int, n_modes: int, n_folds: int, fold_size: float, concentration: float
) -> Certificate:
    """Bound on the probability that cross-validation misses the best candidate (thm:cv-consistency).

    P(miss) ≤ 2 M r F exp(-c N_f Δ²/(4r²)); see `cv_consistency_bound`. The union bound runs over all M·r·F fold
    eigenvalues: the factor F of the number of folds, which the paper's statement leaves out, belongs to it.
    """
    value = cv_consistency_bound(margin, n_candidates * n_folds, n_modes, fold_size, concentration)
    violations = []
    if not margin > 0:
        violations.append("The margin is not positive: two candidates are equally good, and either choice is right.")
    if not concentration > 0:
        violations.append("The concentration constant c is not positive.")
    return Certificate(
        "thm:cv-consistency",
        1.0 if violations else value,
        {"Δ": margin, "M": n_candidates, "r": n_modes, "F": n_folds, "N_f": fold_size, "c": concentration},
        (
            "the candidates are fixed before the samples are seen, bounded and C²",
            "samples are independent",
            "every fold eigenvalue satisfies P(|μ̂ - μ| > t) ≤ 2 exp(-c N_f t²)",
            "the margin Δ and c are those of the population, not estimates",
        ),
        tuple(violations),
    )
