"""From the folds of a candidate to the number by which candidates are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kdmaps import scores
from kdmaps.folds import CrossFit
from kdmaps.scores import FoldFit


@dataclass(frozen=True)
class CandidateScore:
    """What selection knows of a candidate.

    Attributes
    ----------
    value : float
        What selection maximises.
    standard_error : float
        Of the score, over the folds.
    fold_values : ndarray of shape (n_folds,)
        The score of each fold by itself.
    """

    value: float
    standard_error: float
    fold_values: np.ndarray


def pooled_timescale(fit: CrossFit, without: int | None = None) -> float:
    """tr[(Σ_f n_f VᵀL_fV)⁻¹ Σ_f n_f VᵀΣ_fV]: the timescale score of the modes of all folds on their test samples.

    The modes of every fold are turned towards those of all samples first, so that their r×r matrices may be added.
    Pooling keeps one fold with a nearly singular VᵀLV from deciding the score. `without` leaves out one fold.
    """
    covariance, energy = 0.0, 0.0
    for f, (fold, Q) in enumerate(zip(fit.folds, fit.rotations, strict=True)):
        if f != without:
            covariance = covariance + fold.test_weight * (Q.T @ fold.test_covariance @ Q)
            energy = energy + fold.test_weight * (Q.T @ fold.test_energy @ Q)
    return scores.timescale_score(np.asarray(covariance), np.asarray(energy))


def select_by_timescale(fit: CrossFit) -> CandidateScore:
    """The pooled timescale score minus one jackknife standard error over the folds: a lower confidence bound."""
    n = len(fit.folds)
    value = pooled_timescale(fit)
    left_out = np.array([pooled_timescale(fit, f) for f in range(n)])
    error = float(np.sqrt((n - 1) / n * np.sum((left_out - left_out.mean()) ** 2)))
    return CandidateScore(value - error, error, np.array([scores.timescale(fold) for fold in fit.folds]))


def mean_over_folds(score: Callable[[FoldFit], float]) -> Callable[[CrossFit], CandidateScore]:
    """Selection by the plain mean of a score over the folds."""

    def select(fit: CrossFit) -> CandidateScore:
        values = np.array([score(fold) for fold in fit.folds], dtype=np.float64)
        return CandidateScore(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))), values)

    return select


SCORINGS: dict[str, Callable[[CrossFit], CandidateScore]] = {
    "timescale": select_by_timescale,
    "rayleigh": mean_over_folds(scores.rayleigh),
    "eigsum": mean_over_folds(scores.eigsum),
    "gap": mean_over_folds(scores.gap),
}


def make_scoring(scoring) -> Callable[[CrossFit], CandidateScore]:
    """The scoring of that name; a callable of one `FoldFit` is averaged over the folds."""
    if callable(scoring):
        return mean_over_folds(scoring)
    if scoring not in SCORINGS:
        raise ValueError(f"Unknown scoring {scoring!r}; choose one of {', '.join(SCORINGS)}, or give a callable.")
    return SCORINGS[scoring]
