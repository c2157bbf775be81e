"""Block bootstrap: approximately independent blocks of samples, resamples of them, and intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from numbers import Integral, Real

import numpy as np
from scipy import stats

from kdmaps.bases import Basis
from kdmaps.checks import Check, rules, warn
from kdmaps.data.correlation import integrated_correlation_time
from kdmaps.exceptions import Undetermined
from kdmaps.utils.types import RandomStateLike
from kdmaps.utils.validation import checked_random_state

#: Default maximum number of blocks. B blocks give a standard error to a relative accuracy of about 1/√(2B); more blocks
#: cost memory and time without a visible improvement of the intervals.
MAX_BLOCKS = 50
#: With fewer blocks the intervals are unreliable.
MIN_BLOCKS = 10
#: Memory in bytes for the moments of all blocks; many features mean fewer blocks (but not below twice MIN_BLOCKS).
BLOCK_BYTES = 2**28
#: Number of integrated correlation times g = 1 + 2 Σ |ρ_t| in a block. For ρ_t = e^{-t/τ}, g ≈ 2τ and the variance
#: between blocks of length b underestimates the true one by a relative τ/b = 1/10.
CORRELATION_TIMES_PER_BLOCK = 5
#: Smallest number of resamples from which quantiles can be estimated.
MIN_RESAMPLES = 20


def independent_blocks(
    modes: np.ndarray, weight: np.ndarray | None, trajectories: Sequence[np.ndarray], block_length: int | str, most: int
) -> tuple[list[np.ndarray], int, float]:
    """Return approximately independent blocks of samples, their length and the correlation time used."""
    n = len(modes)
    # Weights that vary from sample to sample lower the correlations, but not the time over which samples are dependent;
    # correlated weights add to it.
    weighted = iter(()) if weight is None else (weight * series for series in modes.T)
    correlation_time = max(integrated_correlation_time(series, trajectories) for series in chain(modes.T, weighted))
    length = _block_length(block_length, most, correlation_time, n)
    blocks = cut_blocks(trajectories, length)
    if len(blocks) < 2:
        raise Undetermined(
            "block_length={length} leaves {blocks} block of {count} samples; pass a smaller one.",
            length=length,
            blocks=len(blocks),
            count=n,
        )
    correlated = block_length == "auto" and CORRELATION_TIMES_PER_BLOCK * correlation_time > n // MIN_BLOCKS
    if len(blocks) < MIN_BLOCKS and not correlated:  # otherwise there is a warning already
        warn(Check(rules.FEW_BLOCKS, len(blocks), MIN_BLOCKS, words={"length": length}))
    return blocks, length, correlation_time


def cut_blocks(trajectories: Sequence[np.ndarray], length: int) -> list[np.ndarray]:
    """Cut trajectories into blocks of at least `length` consecutive samples; shorter trajectories are joined."""
    blocks: list[np.ndarray] = []
    gathered: list[np.ndarray] = []
    for rows in trajectories:
        for piece in np.array_split(rows, max(1, len(rows) // length)):
            gathered.append(piece)
            if sum(map(len, gathered)) >= length:
                blocks.append(gathered[0] if len(gathered) == 1 else np.concatenate(gathered))
                gathered = []
    if gathered:
        blocks[-1:] = [np.concatenate([*blocks[-1:], *gathered])]
    return blocks


def most_blocks(basis: Basis) -> int:
    """Return the default maximum number of blocks, limited by memory."""
    fitting = BLOCK_BYTES // (8 * basis.n_features * (basis.n_features + 1))
    return min(MAX_BLOCKS, max(2 * MIN_BLOCKS, fitting))


def _block_length(block_length: int | str, max_blocks: int, correlation_time: float, n_samples: int) -> int:
    least = ceil(n_samples / max_blocks)
    if isinstance(block_length, str) and block_length == "auto":
        wanted = ceil(CORRELATION_TIMES_PER_BLOCK * correlation_time)
        longest = n_samples // MIN_BLOCKS
        if wanted > longest:
            longest_time = n_samples / (MIN_BLOCKS * CORRELATION_TIMES_PER_BLOCK)
            warn(Check(rules.CORRELATION_TIME, correlation_time, longest_time, words={"count": n_samples}))
        return max(1, least, min(wanted, longest))
    if not isinstance(block_length, Integral) or block_length < 1:
        raise ValueError(f'block_length must be "auto" or a positive integer, got {block_length!r}.')
    return max(int(block_length), least)


@dataclass(frozen=True)
class Resampling:
    """Arguments of a block bootstrap; raises a ValueError if they are invalid."""

    n_resamples: int
    confidence: float
    random_state: RandomStateLike

    def __post_init__(self) -> None:
        if not isinstance(self.n_resamples, Integral) or self.n_resamples < MIN_RESAMPLES:
            raise ValueError(f"n_resamples must be an integer of at least {MIN_RESAMPLES}, got {self.n_resamples!r}.")
        if not isinstance(self.confidence, Real) or not 0 < float(self.confidence) < 1:
            raise ValueError(f"confidence must be a number between 0 and 1, got {self.confidence!r}.")

    def all_and_counts(self, n_blocks: int) -> np.ndarray:
        """Return rows of counts: every block once, then `counts`."""
        return np.vstack([np.ones(n_blocks), self.counts(n_blocks)])

    def counts(self, n_blocks: int) -> np.ndarray:
        """Return the number of times each block is drawn, one row per resample."""
        rng = checked_random_state(self.random_state)
        return rng.multinomial(n_blocks, np.full(n_blocks, 1 / n_blocks), size=self.n_resamples)


def basic_intervals(estimate: np.ndarray, samples: np.ndarray, confidence: float, n_blocks: int) -> np.ndarray:
    """Return basic bootstrap intervals [2θ̂ - q_high, 2θ̂ - q_low], on a last axis, for quantiles q of the resamples.

    Two corrections for small numbers: the quantile p of n resamples is the value at rank (n + 1)p, and distances from
    the median are multiplied by √(B/(B - 1)) t/z, for the quantiles t of Student's law with B - 1 degrees of freedom
    and z of the normal law, because means of resamples of B blocks vary by √((B - 1)/B) of the means of B blocks.
    """
    upper = (1 + confidence) / 2
    factor = np.sqrt(n_blocks / (n_blocks - 1)) * stats.t.ppf(upper, n_blocks - 1) / stats.norm.ppf(upper)
    centre, ends = np.median(samples, axis=0), np.quantile(samples, [upper, 1 - upper], axis=0, method="weibull")
    return np.stack([2 * estimate - (centre + factor * (end - centre)) for end in ends], axis=-1)


def joint_intervals(estimates: np.ndarray, samples: np.ndarray, confidence: float, n_blocks: int) -> np.ndarray:
    """Return basic bootstrap intervals that hold simultaneously with the given confidence, shape (n, 2).

    The intervals are 2θ̂_j - m_j ± q s_j with medians m_j of the resamples θ*_j, root mean square deviations s_j and
    the quantile q of the largest |θ*_j - m_j|/s_j, corrected as in `basic_intervals`. Samples that are not finite are
    left out. Correlated estimates widen the intervals little, unlike with Bonferroni.
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
    """Return basic bootstrap intervals for any bias of the estimate between zero and the bias of the resamples.

    Modes look slower on the samples they were fitted to, more so in a resample, which contains 63 % of the blocks: the
    reflection removes an upper limit of this optimism. The reflected interval alone may not contain its own estimate.
    """
    reflected = basic_intervals(estimate, samples, confidence, n_blocks)
    optimism = np.median(samples, axis=0) - estimate
    return reflected + np.stack([np.minimum(optimism, 0), np.maximum(optimism, 0)], axis=-1)
