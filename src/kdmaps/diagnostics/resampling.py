"""Resampling of approximately independent blocks, and the intervals that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from scipy import stats

from kdmaps.utils.types import RandomStateLike
from kdmaps.utils.validation import checked_random_state

#: Smallest number of resamples from which quantiles can be estimated.
MIN_RESAMPLES = 20


@dataclass(frozen=True)
class Resampling:
    """Arguments of a block bootstrap; a ValueError if they make no sense.

    Attributes
    ----------
    n_resamples : int
    confidence : float
    random_state : int, RandomState instance or None
    """

    n_resamples: int
    confidence: float
    random_state: RandomStateLike

    def __post_init__(self) -> None:
        if not isinstance(self.n_resamples, Integral) or self.n_resamples < MIN_RESAMPLES:
            raise ValueError(f"n_resamples must be an integer of at least {MIN_RESAMPLES}, got {self.n_resamples!r}.")
        if not isinstance(self.confidence, Real) or not 0 < float(self.confidence) < 1:
            raise ValueError(f"confidence must be a number between 0 and 1, got {self.confidence!r}.")

    def counts(self, n_blocks: int) -> np.ndarray:
        """Return how often each block is drawn, one row for each resample."""
        rng = checked_random_state(self.random_state)
        return rng.multinomial(n_blocks, np.full(n_blocks, 1 / n_blocks), size=self.n_resamples)


def basic_intervals(estimate: np.ndarray, samples: np.ndarray, confidence: float, n_blocks: int) -> np.ndarray:
    """Return basic bootstrap intervals [2θ̂ - q_high, 2θ̂ - q_low], on a last axis, for quantiles q of the resamples.

    Two corrections for small numbers, without which the intervals are too narrow. Of n resamples, the quantile p is the
    one number (n + 1)p in their order, beyond which another value falls with just this probability. And the means of
    resamples of B blocks vary by √((B - 1)/B) of what means of B blocks do, with a spread that is known to B - 1
    degrees of freedom: distances from the median of the resamples are multiplied by √(B/(B - 1)) t/z, for the quantiles
    t of Student's and z of the normal law.
    """
    upper = (1 + confidence) / 2
    factor = np.sqrt(n_blocks / (n_blocks - 1)) * stats.t.ppf(upper, n_blocks - 1) / stats.norm.ppf(upper)
    centre, ends = np.median(samples, axis=0), np.quantile(samples, [upper, 1 - upper], axis=0, method="weibull")
    return np.stack([2 * estimate - (centre + factor * (end - centre)) for end in ends], axis=-1)


def joint_intervals(estimates: np.ndarray, samples: np.ndarray, confidence: float, n_blocks: int) -> np.ndarray:
    """Return basic bootstrap intervals that all hold at once with the given confidence, shape (n, 2).

    With medians m_j of the resamples θ*_j and root mean square deviations s_j from them, the largest |θ*_j - m_j|/s_j
    of a resample exceeds its quantile q with the probability 1 - confidence, and intervals 2θ̂_j - m_j ± q s_j miss
    together as often. Estimates that vary together, as those of neighbouring lags do, cost little, unlike with
    Bonferroni. As in `basic_intervals`, q becomes √(B/(B - 1)) times the quantile of Student's law with B - 1 degrees
    of freedom whose tail is that of q in the normal law.

    Parameters
    ----------
    estimates : ndarray of shape (n,)
    samples : ndarray of shape (n_resamples, n)
        Values that are not finite, of resamples that know nothing of an estimate, are left out.
    confidence : float
    n_blocks : int
    """
    centre = np.median(samples, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = np.where(np.isfinite(samples), samples - centre, np.nan)
        known = np.maximum(np.isfinite(deviations).sum(axis=0) - 1, 1)
        spread = np.sqrt(np.nansum(deviations**2, axis=0) / known)
        largest = np.fmax.reduce(np.abs(deviations) / spread, axis=1, initial=0.0)
    q = np.quantile(largest, confidence, method="weibull")
    reach = np.sqrt(n_blocks / (n_blocks - 1)) * stats.t.isf(stats.norm.sf(q), n_blocks - 1) * spread
    reflected = 2 * estimates - centre
    return np.stack([reflected - reach, reflected + reach], axis=-1)


def optimistic_intervals(estimate: np.ndarray, samples: np.ndarray, confidence: float, n_blocks: int) -> np.ndarray:
    """Return basic bootstrap intervals for any bias of the estimate between none and that of the resamples.

    Slowest modes are found anew in every resample, and what is found in samples is slower there than in truth. A
    resample holds 63 % of the blocks, some of them several times, and is more optimistic than the fit of all: what it
    shows is an upper limit of the optimism that the reflection removes. Where it is larger than the spread, the
    reflected interval alone would lie beside its own estimate; this one always contains it.
    """
    reflected = basic_intervals(estimate, samples, confidence, n_blocks)
    optimism = np.median(samples, axis=0) - estimate
    return reflected + np.stack([np.minimum(optimism, 0), np.maximum(optimism, 0)], axis=-1)
