"""The paper's theorems as numbers for a fitted model: what follows, from which constants, and whether it applies."""

from kdmaps.analysis.certificates._certificate import Certificate
from kdmaps.analysis.certificates._dictionary import (
    DictionaryOperators,
    lipschitz_covariance,
    lipschitz_energy,
    rkhs_mixture_norm,
    uniform_positive_definiteness,
)
from kdmaps.analysis.certificates._projector import projector_continuity, projector_stability
from kdmaps.analysis.certificates._residual import certify_modes, residual_gap
from kdmaps.analysis.certificates._selection import cv_consistency, cv_consistency_bound

__all__ = [
    "Certificate",
    "DictionaryOperators",
    "certify_modes",
    "cv_consistency",
    "cv_consistency_bound",
    "lipschitz_covariance",
    "lipschitz_energy",
    "projector_continuity",
    "projector_stability",
    "residual_gap",
    "rkhs_mixture_norm",
    "uniform_positive_definiteness",
]
