"""The paper's theorems as numbers for a fitted model: what follows, from which constants, and whether it applies."""

from kdmaps.certificates._certificate import Certificate
from kdmaps.certificates._constant import constant_mode, eigenvalue_sum_choice, wide_kernel_sum
from kdmaps.certificates._dictionary import (
    DictionaryOperators,
    lipschitz_covariance,
    lipschitz_energy,
    rkhs_mixture_norm,
    uniform_positive_definiteness,
)
from kdmaps.certificates._optimism import score_optimism
from kdmaps.certificates._projector import projector_continuity, projector_stability
from kdmaps.certificates._residual import certify_modes, residual_gap
from kdmaps.certificates._selection import (
    continuous_regret,
    cv_consistency,
    cv_consistency_bound,
    cv_consistency_continuous,
)

__all__ = [
    "Certificate",
    "DictionaryOperators",
    "certify_modes",
    "constant_mode",
    "continuous_regret",
    "cv_consistency",
    "cv_consistency_bound",
    "cv_consistency_continuous",
    "eigenvalue_sum_choice",
    "lipschitz_covariance",
    "lipschitz_energy",
    "projector_continuity",
    "projector_stability",
    "residual_gap",
    "rkhs_mixture_norm",
    "score_optimism",
    "uniform_positive_definiteness",
    "wide_kernel_sum",
]
