"""Modes, the solutions of the eigenproblem, their rates, and checks of their reliability."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kdmaps.checks import Check, Phrase, or_fewer, rules

#: The 95 % quantile of √(x² + y²) for standard normal x and y: √(2 ln 20).
SPLITTING = 2.45
#: Two rates that differ by more than a third are not degenerate, however few the samples.
WIDE_GAP = 1.35


@dataclass(frozen=True)
class Clock:
    """Conversion between the quotients aᵀLa/aᵀΣa of modes and their rates."""

    lag: int | None = None  # in frames; None for the energy form, whose quotients are rates
    time_step: float = 1.0  # time between frames

    @property
    def duration(self) -> float:
        """The lag as a time."""
        return (self.lag or 0) * self.time_step

    def rates(self, quotients: np.ndarray) -> np.ndarray:
        """Return -ln ν/τ for the autocorrelations ν = 1 - quotient after a time τ; infinite where ν is not positive."""
        if self.lag is None:
            return quotients
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = -np.log1p(-quotients) / self.duration
        return np.where(quotients < 1, rates, np.inf)

    def quotients(self, rates: np.ndarray) -> np.ndarray:
        """Invert `rates`."""
        return rates if self.lag is None else -np.expm1(-rates * self.duration)

    def stretch(self, quotients: np.ndarray) -> np.ndarray:
        """Return d log rate/d log quotient, by which relative errors of quotients are multiplied in rates."""
        if self.lag is None:
            return np.ones_like(quotients)
        inside = np.clip(quotients, np.finfo(float).tiny, 1 - 1e-12)
        return -inside / ((1 - inside) * np.log1p(-inside))

    def inefficiency(self, quotients: np.ndarray) -> float:
        """Return pairs per independent pair, (1+ρ)/(1-ρ) with the autocorrelation ρ of the slowest mode per frame."""
        if self.lag is None:
            return 1.0
        step = np.clip(1 - np.min(quotients), 0, 1) ** (1 / self.lag)
        return float((1 + step) / max(1 - step, np.finfo(float).eps))


#: For samples in any order.
NO_LAG = Clock()


def rate_ratios(rates: np.ndarray) -> np.ndarray:
    """Return rate_{k+1}/rate_k; 1 between equal rates, even if both are infinite or 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rates[1:] == rates[:-1], 1.0, rates[1:] / rates[:-1])


def agreement_check(agreement: float, suggested: int | None = None) -> Check:
    """Check whether the modes of different folds span the same space; `suggested` modes agree better."""
    better = Phrase("") if suggested is None else Phrase("suggested", {"suggested": suggested})
    return Check(rules.FOLDS_DISAGREE, agreement, words={"suggested": better})


@dataclass(frozen=True)
class Modes:
    """The leading eigenfunctions φ_k(x) = Σ_m a_mk (φ_m(x) - E φ_m), with diagnostics."""

    #: (p, r): a, scaled to unit variance of the modes; the modes are mutually orthogonal (eq:normalize-orth).
    coefficients: np.ndarray
    offset: np.ndarray  #: (r,): aᵀ E φ, subtracted from the modes; 0 if the covariance was not centred.
    eigenvalues: np.ndarray  #: (r,): μ, relaxation times shrunk by λ.
    next_eigenvalue: float  #: μ_{r+1}; NaN if there is none.
    quotients: np.ndarray  #: (r,): aᵀLa/aᵀΣa, free of λ: for the energy of samples the generator's eigenvalues.
    condition_number: float  #: Of L+λR, in the 1-norm.
    effective_rank: np.ndarray  #: (r,): tr[(L+λR)⁻¹Σ]/μ_k, number of functions with an eigenvalue of the order of μ_k.
    effective_count: float  #: Effective number of samples.
    clock: Clock = NO_LAG  #: Conversion of quotients to rates.
    next_quotient: float = np.nan  #: The quotient of mode r+1; NaN if it was not computed.
    next_coefficients: np.ndarray | None = None  #: (p,): coefficients of mode r+1.
    gap_error: float = np.nan  #: Standard error of log(rate_{r+1}/rate_r); NaN if it was not computed.

    @property
    def rates(self) -> np.ndarray:
        """Relaxation rates: the quotients, converted by the lag for pairs of frames."""
        return self.clock.rates(self.quotients)

    @property
    def timescales(self) -> np.ndarray:
        """1/rates."""
        with np.errstate(divide="ignore"):
            return 1 / self.rates

    @property
    def gap(self) -> float:
        """μ_r/μ_{r+1}: 1 means that the cut goes through a degenerate cluster."""
        return float(self.eigenvalues.min() / self.next_eigenvalue) if self.next_eigenvalue > 0 else np.inf

    @property
    def timescale_gap(self) -> float:
        """The smaller of rate_{r+1}/rate_r and `gap`: the gap that is checked and displayed.

        For pairs of frames always the former, since μ tends to 1 for all fast modes. Always the latter where λ, not
        the rate, has placed mode r+1 last, or where a mode decays within a lag.
        """
        following = float(self.clock.rates(np.array(self.next_quotient)))
        (ratio,) = rate_ratios(np.array([self.rates.max(), following]))
        if not 1 <= ratio < np.inf or np.isinf(following):
            return self.gap
        return ratio if self.clock.lag is not None else min(self.gap, ratio)

    @property
    def sampling_error(self) -> np.ndarray:
        """√(effective rank/n): the order of the relative error of each μ (Koltchinskii and Lounici 2017)."""
        return np.sqrt(self.effective_rank / self.effective_count)

    @property
    def ridge_share(self) -> np.ndarray:
        """λaᵀRa/aᵀLa = 1/(μ·quotient) - 1: regularization relative to the energy of each mode."""
        return 1 / (self.eigenvalues * self.quotients) - 1

    @property
    def resolution(self) -> float:
        """Relative difference below which this many samples do not distinguish two eigenvalues."""
        return max(4 / np.sqrt(self.effective_count), 1e-6)

    @property
    def smallest_gap(self) -> float:
        """95 % quantile of the gap that samples give to a degenerate pair.

        They split its log rates by √(x² + y²), for independent normal x and y of the standard error of the gap.
        """
        if not np.isfinite(self.gap_error):
            return min(1 + self.resolution, WIDE_GAP)
        # The minimum comes before exp: the error of a poorly determined gap may be thousands.
        return float(np.exp(min(SPLITTING * self.gap_error, np.log(WIDE_GAP))))

    @property
    def clusters(self) -> list[np.ndarray]:
        """Indices of modes grouped by eigenvalues that agree within `resolution`."""
        order = np.argsort(-self.eigenvalues, kind="stable")
        values = self.eigenvalues[order]
        apart = np.diff(-values) > self.resolution * values[:-1]
        return [np.sort(cluster) for cluster in np.split(order, np.flatnonzero(apart) + 1)]

    def by_timescale(self) -> Self:
        """Return the same modes, longest time scale first; the order of μ may differ because of λ."""
        return self.take(np.argsort(self.quotients, kind="stable"))

    def take(self, order: np.ndarray) -> Self:
        """Return the same modes in another order."""
        names = ("offset", "eigenvalues", "quotients", "effective_rank")
        ordered = {name: getattr(self, name)[order] for name in names}
        return replace(self, coefficients=self.coefficients[:, order], **ordered)

    @property
    def checks(self) -> list[Check]:
        """The checks of rounding, sampling error, regularization, gap and, for pairs, of time scales and lag."""
        conditioned = Check(rules.CONDITION, self.condition_number)
        found = [conditioned, self._resolved(), self._free_of_ridge(), self._separated()]
        return found if self.clock.lag is None else [*found, self._slower_than_the_lag()]

    def _resolved(self) -> Check:
        error = self.sampling_error
        unresolved = error > rules.UNRESOLVED.limit
        first = int(np.argmax(unresolved))
        words = {
            "samples": float(self.effective_count),
            "first": first + 1,
            "after": " and the modes after it" if first + 1 < len(error) else "",
            "error": float(error[first]),
        }
        return Check(rules.UNRESOLVED, error, words=words)

    def _free_of_ridge(self) -> Check:
        share = self.ridge_share.max()
        times = f"{share:.0f}" if share < 1e4 else f"{share:.1g}"
        return Check(rules.RIDGE, self.ridge_share, words={"times": times})

    def _slower_than_the_lag(self) -> Check:
        fast = self.timescales < self.clock.duration
        before = int(np.argmax(fast)) if fast.any() else 0
        shorter = self.clock.lag is not None and self.clock.lag > 1
        if before:
            advice = Phrase("shorter lag" if shorter else "shorter steps", {"fewer": or_fewer(before)})
        else:
            advice = Phrase("shorter lag or order" if shorter else "order")
        return Check(rules.WITHIN_LAG, self.timescales, self.clock.duration, words={"advice": advice})

    def _separated(self) -> Check:
        r, smallest = len(self.eigenvalues), self.smallest_gap
        separated = 1 + np.flatnonzero(rate_ratios(self.rates) > max(smallest, WIDE_GAP))
        words = {
            "last": r,
            "after": r + 1,
            "space": f"the space of the first {r} modes" if r > 1 else "mode 1",
            "better": f"{separated[-1]} or {r + 1}" if separated.size else str(r + 1),
            "samples": float(self.effective_count),
        }
        return Check(rules.NO_GAP, self.timescale_gap, smallest, words=words)
