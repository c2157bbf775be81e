"""Scores of candidates: functions of modes fitted on training samples and of held-out samples."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from kdmaps.selection.cross_fit import CrossFit, FoldFit


@dataclass(frozen=True, eq=False)
class Score:
    """A score of held-out samples."""

    value: float  # the quantity that is maximised
    replicates: np.ndarray  # the score without each fold in turn, for `jackknife_error`
    fold_values: np.ndarray  # the score of each fold alone
    plain: float = -np.inf  # the score before a standard error is subtracted, which a few folds determine poorly
    timescales: np.ndarray | None = None  # on the test samples of all folds, for scores of time scales
    quotients: np.ndarray | None = None  # of each mode, on the test samples of all folds; not after screening
    quotient_replicates: np.ndarray | None = None  # jackknife replicates of their logarithms; (F, r)


def jackknife_error(replicates: np.ndarray) -> float:
    """Return the standard error √((F-1)/F Σ_f (θ_f - θ̄)²) of a score from its values θ_f without fold f.

    Of the difference of two candidates' replicates, it is the standard error of the difference of their scores.
    """
    n = len(replicates)
    if n == 0:
        return np.nan
    with np.errstate(invalid="ignore"):  # NaN for scores that are not finite
        return float(np.sqrt((n - 1) / n * np.sum((replicates - np.mean(replicates)) ** 2)))


def jackknife_replicates(left_out: np.ndarray, coverage: float) -> np.ndarray:
    """Return the jackknife replicates from the scores without each fold, if every sample is tested `coverage` times.

    If every sample is tested c times, leaving out a fold removes only 1/c of the contribution of its samples, and F
    folds are worth F/c independent ones: deviations are √c too small.
    """
    mean = left_out.mean()
    return mean + (left_out - mean) * np.sqrt(max(coverage, 1.0))


def ritz_pairs(
    covariance: np.ndarray, energy: np.ndarray, smallest_quotient: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Solve Pw = tEw with wᵀEw = 1 for stacks of matrices; (n, r) and (n, r, r).

    Return time scales t, ascending and at least 0, and directions w; t = -inf where E is not positive definite. With a
    positive `smallest_quotient`, an energy below this fraction of the variance is rounding, and stands for it: the
    functions of deterministic systems may have no energy at all.
    """
    try:
        root = np.linalg.inv(np.linalg.cholesky(energy))
    except np.linalg.LinAlgError:
        if len(energy) > 1:  # one by one, since any of them spoils the whole stack
            pairs = [ritz_pairs(P[None], E[None], smallest_quotient) for P, E in zip(covariance, energy, strict=True)]
            times, directions = (np.concatenate(part) for part in zip(*pairs, strict=True))
            return times, directions
        clipped = _clipped_pairs(covariance[0], energy[0], smallest_quotient) if smallest_quotient else None
        if clipped is not None:
            return clipped
        return np.full(energy.shape[:-1], -np.inf), np.full_like(energy, np.nan)
    transposed = np.swapaxes(root, 1, 2)
    times, turn = np.linalg.eigh(root @ covariance @ transposed)
    return np.maximum(times, 0), transposed @ turn


def _clipped_pairs(
    covariance: np.ndarray, energy: np.ndarray, smallest_quotient: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the stack of one pair of matrices of `ritz_pairs`, with no quotient below the smallest one."""
    variances, directions = np.linalg.eigh(covariance)
    if not variances[0] > smallest_quotient * variances[-1]:
        return None
    unit = directions / np.sqrt(variances)
    quotients, turn = np.linalg.eigh(unit.T @ energy @ unit)
    quotients = np.maximum(quotients, smallest_quotient)[::-1]  # time scales ascend
    return 1 / quotients[None], (unit @ turn[:, ::-1] / np.sqrt(quotients))[None]


#: Smallest quotient of energy and variance of pairs of frames that rounding leaves.
ROUNDED_QUOTIENT = 1e-12
#: Power of the time scales in the score; 0 stands for their logarithm.
POWER = 0.0
#: Number of standard errors subtracted from the score (measured by `python -m experiments.regret`).
CAUTION = 1.0


class PooledScore:
    """Σ_k t_k^p of the time scales t on the test samples of all folds, its jackknife, and their derivatives.

    The t are the eigenvalues of (Σ_f P_f, Σ_f E_f), P_f = n_f UᵀΣ_fU and E_f = n_f UᵀL_fU for the modes U of fold f and
    the operators of its n_f test samples. The modes of every fold are first turned towards the modes of all samples, so
    that the r×r matrices can be added. Pooling keeps a fold with a nearly singular UᵀL_fU from deciding the score.
    `covariances` and `energies` (F, r, r) are P_f and E_f, `coverage` is the mean number of times that a sample is
    tested, and `power` is p; 0 stands for Σ_k log t_k.
    """

    #: A mode without energy has no time scale.
    smallest_quotient: float = 0.0

    def __init__(self, covariances: np.ndarray, energies: np.ndarray, coverage: float, power: float = POWER):
        parts = np.stack([covariances, energies])
        sums = parts.sum(axis=1, keepdims=True)
        # Of all folds, of all but each one, and of each one alone.
        sets = np.concatenate([sums, sums - parts, parts], axis=1)
        self._times, self._directions = ritz_pairs(sets[0], sets[1], self.smallest_quotient)
        self._n = len(covariances)
        self.coverage: float = max(coverage, 1.0)
        self.power: float = power

    @property
    def timescales(self) -> np.ndarray:
        """Time scales of all folds, ascending; -inf without energy."""
        return self._times[0]

    @property
    def fold_timescales(self) -> np.ndarray:
        """Time scales of each fold alone; (F, r)."""
        return self._times[1 + self._n :]

    def _score(self, times: np.ndarray) -> np.ndarray:
        """Return the score of time scales, in the last axis; -inf without them."""
        known = np.all(times >= 0, axis=-1)
        with np.errstate(divide="ignore"):
            terms = np.maximum(times, 0) ** self.power if self.power else np.log(np.maximum(times, 0))
        return np.where(known, np.sum(terms, axis=-1), -np.inf)

    @cached_property
    def _scores(self) -> np.ndarray:
        """The score of all folds, of all but each one, and of each one alone; (1+2F,)."""
        return self._score(self._times)

    @property
    def left_out(self) -> np.ndarray:
        """The score without each fold; (F,)."""
        return self._scores[1 : 1 + self._n]

    @cached_property
    def replicates(self) -> np.ndarray:
        """Replicates for `jackknife_error`; (F,)."""
        known = np.all(np.isfinite(self.left_out))
        return jackknife_replicates(self.left_out, self.coverage) if known else self.left_out

    def score(self, fold_values: np.ndarray) -> Score:
        """Return the score minus `CAUTION` standard errors, with the scores of each fold alone."""
        return Score(self.lower_bound(CAUTION), self.replicates, fold_values, float(self._scores[0]), self.timescales)

    def lower_bound(self, caution: float) -> float:
        """Return the score minus `caution` jackknife standard errors; -inf without time scales."""
        value = float(self._scores[0])
        if caution == 0:
            return value
        return value - caution * jackknife_error(self.replicates) if np.all(np.isfinite(self.left_out)) else -np.inf

    def lower_bound_adjoint(self, caution: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of `lower_bound` by the P_f and the E_f, each of shape (F, r, r).

        dt_k = w_kᵀ(dP - t_k dE)w_k; the fold f is part of all sums but that without itself.
        """
        adjoint = self._score_adjoint(0)[:, None]
        if caution == 0:
            adjoint = np.repeat(adjoint, self._n, axis=1)
        else:
            n, deviations = len(self.left_out), self.left_out - self.left_out.mean()
            error = jackknife_error(self.replicates)
            slopes = caution * (n - 1) / n * self.coverage * deviations / error if error > 0 else np.zeros(n)
            parts = np.stack([slope * self._score_adjoint(1 + f) for f, slope in enumerate(slopes)])
            adjoint = adjoint - np.moveaxis(parts.sum(axis=0) - parts, 0, 1)
        return adjoint[0], adjoint[1]

    def _score_adjoint(self, i: int) -> np.ndarray:
        """Return the derivatives of Σ_k t_k^p by P and E, of the i-th of the pairs; (2, r, r)."""
        times, directions = self._times[i], self._directions[i]
        by_time = (self.power or 1.0) * times ** (self.power - 1)
        return np.stack([(directions * c) @ directions.T for c in (by_time, -by_time * times)])


class PooledAutocorrelations(PooledScore):
    """Σ_k ν_k^p of the autocorrelations ν = 1 - 1/t on the test pairs of all folds, and its jackknife."""

    smallest_quotient = ROUNDED_QUOTIENT

    def _score(self, times: np.ndarray) -> np.ndarray:
        # Negative autocorrelations are noise.
        values = np.sum((1 - 1 / np.maximum(times, 1)) ** self.power, axis=-1)
        return np.where(np.all(times >= 0, axis=-1), values, -np.inf)

    @property
    def fold_values(self) -> np.ndarray:
        """The score of each fold alone; (F,)."""
        return self._scores[1 + self._n :]


def pooled_parts(fit: CrossFit) -> tuple[np.ndarray, np.ndarray, float]:
    """Return P_f, E_f and the coverage of `PooledScore`, with the modes of the folds turned as described there."""
    weight = np.array([fold.test_weight for fold in fit.folds])[:, None, None]
    turned = np.swapaxes(fit.rotations, 1, 2)
    covariances, energies = (
        weight * (turned @ np.stack([getattr(fold, name) for fold in fit.folds]) @ fit.rotations)
        for name in ("test_covariance", "test_energy")
    )
    return covariances, energies, fit.coverage


def held_out_quotients(fit: CrossFit) -> dict[str, Any]:
    """Return `CrossFit.held_out_quotients` and the jackknife replicates of their logarithms."""
    energy, variance = (np.maximum(part, np.finfo(float).tiny) for part in fit.test_parts())
    left_out = np.log((energy.sum(axis=0) - energy) / (variance.sum(axis=0) - variance))
    replicates = [jackknife_replicates(column, fit.coverage) for column in left_out.T]
    return {"quotients": fit.held_out_quotients(), "quotient_replicates": np.stack(replicates, axis=1)}


def pooled_score(fit: CrossFit, power: float = POWER) -> PooledScore:
    """Return the score of a cross-fit on its test samples."""
    return PooledScore(*pooled_parts(fit), power)


def pooled_ritz_timescales(fit: CrossFit) -> np.ndarray:
    """Return the time scales of the fold modes on the test samples of all folds."""
    return pooled_score(fit).timescales


def select_by_timescale(fit: CrossFit) -> Score:
    """Σ_k log t_k of the pooled held-out time scales t_k, minus one jackknife standard error.

    By Courant and Fischer, every t_k of a fixed function space is at most the k-th longest time scale of the system (in
    the population), so any increasing function of them is maximal for the true slow modes. With the logarithm every
    mode counts by its relative error, and no single one outweighs the others; of two similar candidates the lower bound
    prefers the one with smaller differences between folds.
    """
    pooled = pooled_score(fit)
    return pooled.score(pooled.fold_timescales.sum(axis=1))  # `timescale_score` of each fold


def select_by_autocorrelation(power: int) -> Callable[[CrossFit], Score]:
    """Select by Σ_k ν_k^power of the pooled held-out autocorrelations ν_k, minus one jackknife standard error.

    These are the VAMP scores of a reversible chain. By the variational principle every ν_k of a fixed function space
    is at most the k-th autocorrelation of the system after the lag (in the population), as for `select_by_timescale`.
    """

    def select(fit: CrossFit) -> Score:
        pooled = PooledAutocorrelations(*pooled_parts(fit), power)
        return pooled.score(pooled.fold_values)

    return select


def timescale_score(covariance: np.ndarray, energy: np.ndarray) -> float:
    """tr[(VᵀLV)⁻¹VᵀΣV] for the r×r covariance VᵀΣV and energy VᵀLV of r fixed modes on samples they were not fitted to.

    By Ky Fan's theorem its population value is at most the sum of the r longest relaxation times of the system, with
    equality only for the true slow space. It is free of λ and invariant to the basis of the mode space, hence
    comparable across kernels, regularizations and bases.
    """
    try:
        factor = linalg.cho_factor(energy, lower=True)
    except np.linalg.LinAlgError:
        return -np.inf  # a mode without energy on the test samples is constant there, without a time scale
    return float(np.trace(linalg.cho_solve(factor, covariance)))


def vamp_score(covariance: np.ndarray, energy: np.ndarray, power: int = 2) -> float:
    """Σ_k ν_k^power of the autocorrelations of r fixed modes on pairs of frames that they were not fitted to.

    The ν are the positive eigenvalues of (C_τ, C₀) = (VᵀΣV - VᵀLV, VᵀΣV). The population value is largest for the r
    slowest modes of the system.
    """
    try:
        correlations = linalg.eigh(covariance - energy, covariance, eigvals_only=True)
    except np.linalg.LinAlgError:
        return -np.inf  # a mode without variance on the test pairs
    return float(np.sum(np.maximum(correlations, 0) ** power))


def vampe(fold: FoldFit) -> float:
    """2 Σ_k ν_k (C_τ)_kk - Σ_kl ν_k ν_l (C₀)_kl² on the test pairs, with the autocorrelations ν of the training pairs.

    The part of the transfer operator that the modes explain, in the Hilbert–Schmidt norm (Wu and Noé 2020).
    """
    nu = 1 - np.diagonal(fold.train_energy)
    lagged = fold.test_covariance - fold.test_energy
    return float(2 * nu @ np.diagonal(lagged) - nu @ fold.test_covariance**2 @ nu)


def rayleigh(fold: FoldFit) -> float:
    """Σ_j V_jᵀΣV_j / V_jᵀ(L+λR)V_j of the training modes on the test samples (eq:rayleigh-cv)."""
    penalty = np.diagonal(fold.test_energy) + fold.regularization * np.diagonal(fold.test_ridge)
    return float(np.sum(np.diagonal(fold.test_covariance) / penalty))


def eigsum(fold: FoldFit) -> float:
    """Σ_j μ_j of the test samples' own eigenproblem (eq:emp-cv)."""
    return float(fold.test_eigenvalues[:-1].sum())


def gap(fold: FoldFit) -> float:
    """μ_r/μ_{r+1} of the test samples' own eigenproblem (rem:gap-cv-preferred)."""
    below = fold.test_eigenvalues[-1]
    return float(fold.test_eigenvalues[-2] / below) if below > 0 else -np.inf


def mean_over_folds(score: Callable[[FoldFit], float]) -> Callable[[CrossFit], Score]:
    """Select by the plain mean of a score over the folds."""

    def select(fit: CrossFit) -> Score:
        values = np.array([score(fold) for fold in fit.folds], dtype=np.float64)
        left_out = (values.sum() - values) / (len(values) - 1)
        mean = float(values.mean())
        return Score(mean, jackknife_replicates(left_out, fit.coverage), values, mean)

    return select


SCORINGS: dict[str, Callable[[CrossFit], Score]] = {
    "timescale": select_by_timescale,
    "rayleigh": mean_over_folds(rayleigh),
    "eigsum": mean_over_folds(eigsum),
    "gap": mean_over_folds(gap),
}
#: The scores of the paper, whose protocol has no other criterion.
PAPER_SCORINGS = ("rayleigh", "eigsum", "gap")
#: Scores of pairs of frames.
LAGGED_SCORINGS: dict[str, Callable[[CrossFit], Score]] = {
    "vamp1": select_by_autocorrelation(1),
    "vamp2": select_by_autocorrelation(2),
    "vampe": mean_over_folds(vampe),
}
#: Scorings of "auto" for samples and for pairs of frames.
DEFAULT_SCORING, DEFAULT_LAGGED_SCORING = "timescale", "vamp2"


def chosen_scoring(scoring: Any, lag: int | str | None) -> Any:
    """Return the parameter `scoring` of an estimator, with "auto" replaced by a name."""
    if not isinstance(scoring, str) or scoring != "auto":
        return scoring
    return DEFAULT_SCORING if lag is None else DEFAULT_LAGGED_SCORING


def make_scoring(scoring: str | Callable[[FoldFit], float], lag: int | None = None) -> Callable[[CrossFit], Score]:
    """Return the scoring of that name; a callable of one `FoldFit` is averaged over the folds."""
    if callable(scoring):
        return mean_over_folds(scoring)
    known = SCORINGS if lag is None else SCORINGS | LAGGED_SCORINGS
    if isinstance(scoring, str) and scoring in known:
        return known[scoring]
    if isinstance(scoring, str) and scoring in LAGGED_SCORINGS:
        raise ValueError(f"scoring={scoring!r} is a score of pairs of frames; give a lag, or use 'timescale'.")
    raise ValueError(f"Unknown scoring {scoring!r}; choose one of auto, {', '.join(known)}, or give a callable.")
