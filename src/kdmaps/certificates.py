"""The paper's theorems as numbers."""

from __future__ import annotations

import numpy as np


def cv_consistency_bound(
    margin: float, n_candidates: int, n_modes: int, fold_size: float, concentration: float
) -> float:
    """Bound on the probability that cross-validation misses the best candidate (thm:cv-consistency), at most 1.

    P(miss) ≤ 2 M r exp(-c N_f Δ²/(4r²)) for M candidates, r modes, folds of N_f samples and a margin Δ between the best
    and the second-best population score, if every fold eigenvalue satisfies P(|μ̂ - μ| > t) ≤ 2 exp(-c N_f t²).

    The theorem assumes a fixed finite set of candidates, bounded C² kernels, independent samples, a positive margin and
    that concentration inequality; `margin` and `concentration` are usually estimates, and the bound is then one too.
    """
    exponent = -concentration * fold_size * margin**2 / (4 * n_modes**2)
    return float(min(1.0, 2 * n_candidates * n_modes * np.exp(exponent)))
