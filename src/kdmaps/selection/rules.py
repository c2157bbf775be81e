"""From the folds of a candidate to the number by which candidates are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from kdmaps.selection import scores
from kdmaps.selection.cross_fit import CrossFit
from kdmaps.selection.scores import FoldFit


@dataclass(frozen=True, eq=False)
class Score:
    """A score of held-out samples.

    Attributes
    ----------
    value : float
        What selection maximises.
    replicates : ndarray of shape (n_folds,)
        The score without each fold in turn, for `jackknife_error`.
    fold_values : ndarray of shape (n_folds,)
        The score of each fold by itself.
    """

    value: float
    replicates: np.ndarray
    fold_values: np.ndarray


def jackknife_error(replicates: np.ndarray) -> float:
    """Standard error √((F-1)/F Σ_f (θ_f - θ̄)²) of a score from its values θ_f without fold f.

    Of the difference of two candidates' replicates, it is the standard error of the difference of their scores.
    """
    n = len(replicates)
    if n == 0:
        return np.nan
    return float(np.sqrt((n - 1) / n * np.sum((replicates - np.mean(replicates)) ** 2)))


def _replicates(left_out: np.ndarray, fit: CrossFit) -> np.ndarray:
    """Jackknife replicates from the scores without each fold.

    If every sample is tested c times, a fold left out takes away only 1/c of what its samples contribute, and F folds
    are worth F/c independent ones: deviations are √c too small.
    """
    mean = left_out.mean()
    return mean + (left_out - mean) * np.sqrt(max(fit.coverage, 1.0))


def pooled_ritz_timescales(fit: CrossFit, without: int | None = None) -> np.ndarray:
    """Time scales of the fold modes on the test samples of all folds: eigenvalues of (Σ_f n_f VᵀΣ_fV, Σ_f n_f VᵀL_fV).

    The modes of every fold are turned towards those of all samples first, so that their r×r matrices may be added.
    Pooling keeps one fold with a nearly singular VᵀLV from deciding the score. `without` leaves out one fold.
    """
    kept = [f for f in range(len(fit.folds)) if f != without]
    covariance, energy = (
        sum(
            fit.folds[f].test_weight * (fit.rotations[f].T @ getattr(fit.folds[f], name) @ fit.rotations[f])
            for f in kept
        )
        for name in ("test_covariance", "test_energy")
    )
    try:
        return np.maximum(linalg.eigh(covariance, energy, eigvals_only=True, check_finite=False), 0)
    except np.linalg.LinAlgError:
        return np.full(len(fit.eigenvalues), -np.inf)  # no energy on the test samples: no time scale


#: How many standard errors are subtracted from the score; see `python -m kdmaps.experiments.regret`.
CAUTION = 1.0


def select_by_timescale(fit: CrossFit) -> Score:
    """Σ_k √t_k of the pooled held-out time scales t_k, minus one jackknife standard error.

    By Courant and Fischer, every t_k of a fixed function space is at most the k-th longest time scale of the system (in
    the population), so any increasing function of them is maximal for the true slow modes. The square root keeps the
    sampling fluctuation of the slowest mode, which all candidates share, from drowning the differences in the others;
    the lower bound prefers, of two candidates that look alike, the one that the folds agree on.
    """

    def score(without: int | None = None) -> float:
        times = pooled_ritz_timescales(fit, without)
        return float(np.sum(np.sqrt(times))) if np.all(times >= 0) else -np.inf

    left_out = np.array([score(f) for f in range(len(fit.folds))])
    fold_values = np.array([scores.timescale(fold) for fold in fit.folds])
    if not np.all(np.isfinite(left_out)):
        return Score(-np.inf, left_out, fold_values)
    replicates = _replicates(left_out, fit)
    return Score(score() - CAUTION * jackknife_error(replicates), replicates, fold_values)


def mean_over_folds(score: Callable[[FoldFit], float]) -> Callable[[CrossFit], Score]:
    """Selection by the plain mean of a score over the folds."""

    def select(fit: CrossFit) -> Score:
        values = np.array([score(fold) for fold in fit.folds], dtype=np.float64)
        left_out = (values.sum() - values) / (len(values) - 1)
        return Score(float(values.mean()), _replicates(left_out, fit), values)

    return select


SCORINGS: dict[str, Callable[[CrossFit], Score]] = {
    "timescale": select_by_timescale,
    "rayleigh": mean_over_folds(scores.rayleigh),
    "eigsum": mean_over_folds(scores.eigsum),
    "gap": mean_over_folds(scores.gap),
}


def make_scoring(scoring) -> Callable[[CrossFit], Score]:
    """The scoring of that name; a callable of one `FoldFit` is averaged over the folds."""
    if callable(scoring):
        return mean_over_folds(scoring)
    if not isinstance(scoring, str) or scoring not in SCORINGS:
        raise ValueError(f"Unknown scoring {scoring!r}; choose one of {', '.join(SCORINGS)}, or give a callable.")
    return SCORINGS[scoring]
