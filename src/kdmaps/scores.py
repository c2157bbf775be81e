"""What cross-validation maximises."""

from __future__ import annotations

import numpy as np
from scipy import linalg


def timescale_score(covariance: np.ndarray, energy: np.ndarray) -> float:
    """tr[(VᵀLV)⁻¹VᵀΣV] for the r×r covariance VᵀΣV and energy VᵀLV of r fixed modes on samples they were not fitted to.

    By Ky Fan's theorem its population value is at most the sum of the r longest relaxation times of the system, with
    equality only for the true slow space. It is free of λ and invariant to the basis of the mode space, hence
    comparable across kernels, regularizations and bases.
    """
    try:
        factor = linalg.cho_factor(energy, lower=True)
    except np.linalg.LinAlgError:
        return -np.inf  # a mode without energy on the test samples is constant there: it has no time scale
    return float(np.trace(linalg.cho_solve(factor, covariance)))
