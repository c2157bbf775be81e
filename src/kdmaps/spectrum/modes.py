"""Modes, the solutions of the eigenproblem, their rates, and checks of their reliability."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kdmaps.exceptions import UnreliableModesWarning, UnresolvedModesWarning

#: Beyond this condition number of L+λR the modes lose more than about four digits to rounding.
MAX_CONDITION = 1e12
#: The samples do not resolve modes whose relative `Modes.sampling_error` exceeds this.
MAX_SAMPLING_ERROR = 0.5
#: The 95 % quantile of √(x² + y²) for standard normal x and y: √(2 ln 20).
SPLITTING = 2.45
#: Two rates that differ by more than a third are not degenerate, however few the samples.
WIDE_GAP = 1.35
#: Beyond this ratio of regularization to energy (`Modes.ridge_share`), λ determines the mode.
MAX_RIDGE_SHARE = 3.0
#: Folds whose mode spaces have a mean squared cosine below this disagree.
MIN_AGREEMENT = 0.8


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


@dataclass(frozen=True)
class Check:
    """A number that measures the reliability of modes, and its limit."""

    what: str  #: Name of the number.
    value: str  #: The formatted number.
    limit: str  #: Its limit, such as "at most 0.5".
    warning: UnreliableModesWarning | None  #: The problem and its remedy; None if the number is within its limit.
    estimate: bool = False  #: True for an estimate that cross-validation replaces by a measurement.

    @property
    def passed(self) -> bool:
        """True if the number is within its limit."""
        return self.warning is None


def or_fewer(before: int) -> str:
    """Return the remedy "fewer modes" if `before`, the number of modes before the first that fails, is positive."""
    return f" or fewer n_components (at most {before})" if before > 0 else ""


def agreement_check(agreement: float, suggested: int | None = None) -> Check:
    """Check whether the modes of different folds span the same space; `suggested` modes agree better."""
    better = "" if suggested is None else f" (suggested: {suggested})"
    warning = UnreliableModesWarning(
        f"The folds disagree on the mode space (mean squared cosine {agreement:.2f}): use more samples or another "
        f"n_components{better}."
    )
    what, limit = "agreement of the folds on the modes, mean squared cosine", f"at least {MIN_AGREEMENT:g}"
    return Check(what, f"{agreement:.3f}", limit, None if agreement >= MIN_AGREEMENT else warning)


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

    def checks(self) -> list[Check]:
        """Return the checks of rounding, sampling error, regularization, gap and, for pairs, of time scales and lag."""
        found = [self._conditioned(), self._resolved(), self._free_of_ridge(), self._separated()]
        return found if self.clock.lag is None else [*found, self._slower_than_the_lag()]

    def warnings(self) -> list[UnreliableModesWarning]:
        """Return the reasons not to trust the modes, each with its remedy; empty if all checks pass."""
        return [check.warning for check in self.checks() if check.warning is not None]

    def _conditioned(self) -> Check:
        found = self.condition_number
        warning = UnreliableModesWarning(
            f"The condition number of L+λR is {found:.1e}: rounding spoils the modes. Increase regularization or use "
            "fewer features."
        )
        failed = warning if found > MAX_CONDITION else None
        return Check("condition number of L+λR", f"{found:.2g}", f"at most {MAX_CONDITION:.0g}", failed)

    def _resolved(self) -> Check:
        error, worst = self.sampling_error, int(np.argmax(self.sampling_error))
        unresolved = error > MAX_SAMPLING_ERROR
        first = int(np.argmax(unresolved))
        warning = UnresolvedModesWarning(
            f"{self.effective_count:.0f} effective samples do not resolve mode {first + 1}"
            f"{' and the modes after it' if first + 1 < len(error) else ''} (relative error of the eigenvalue about "
            f"{error[first]:.2f}). Use more regularization, a wider bandwidth, more samples{or_fewer(first)}."
        )
        what = f"relative sampling error of eigenvalue {worst + 1}, √(effective rank/n)"
        failed = warning if unresolved.any() else None
        return Check(what, f"{error[worst]:.3g}", f"at most {MAX_SAMPLING_ERROR:g}", failed, estimate=True)

    def _free_of_ridge(self) -> Check:
        heaviest = int(np.argmax(self.ridge_share))
        share = self.ridge_share[heaviest]
        times = f"{share:.0f}" if share < 1e4 else f"{share:.1g}"
        warning = UnresolvedModesWarning(
            f"The regularization weighs {times} times as much as the energy of mode {heaviest + 1}: λ "
            "determines this mode. Decrease regularization (a rate), or let KernelSearchCV choose it."
        )
        what = f"regularization relative to the energy of mode {heaviest + 1}"
        failed = warning if share > MAX_RIDGE_SHARE else None
        return Check(what, f"{share:.3g}", f"at most {MAX_RIDGE_SHARE:g}", failed, estimate=True)

    def _slower_than_the_lag(self) -> Check:
        fast = np.flatnonzero(self.timescales < self.clock.duration)
        named, first = ", ".join(str(k + 1) for k in fast), int(fast[0]) if fast.size else 0
        shorter = self.clock.lag is not None and self.clock.lag > 1
        if first:
            remedy = f"Use {'a shorter lag' if shorter else 'frames at shorter time steps'}{or_fewer(first)}."
        else:
            begin = "Use a shorter lag, or check" if shorter else "Check"
            remedy = f"{begin} that the rows are consecutive frames, close enough in time."
        warning = UnreliableModesWarning(
            f"Mode(s) {named} relax within one lag ({self.clock.duration:.4g}): their time scales are unreliable. "
            f"{remedy}"
        )
        what = f"shortest time scale, of mode {int(np.argmin(self.timescales)) + 1}"
        limit = f"at least one lag, {self.clock.duration:.4g}"
        return Check(what, f"{self.timescales.min():.4g}", limit, warning if fast.size else None)

    def _separated(self) -> Check:
        r, smallest = len(self.eigenvalues), self.smallest_gap
        gap, space = self.timescale_gap, f"the space of the first {r} modes" if r > 1 else "mode 1"
        below = rate_ratios(self.rates)
        separated = 1 + np.flatnonzero(below > max(smallest, WIDE_GAP))
        fewer = f"{separated[-1]} or " if separated.size else ""
        warning = UnreliableModesWarning(
            f"Modes {r} and {r + 1} have the same time scale within the sampling error (gap {gap:.3f}): {space} "
            f"is partly arbitrary. Use n_components={fewer}{r + 1}."
        )
        what = f"gap after the last mode, the smaller one of rate{r + 1}/rate{r} and μ{r}/μ{r + 1}"
        limit = f"at least {smallest:.4g} with {self.effective_count:,.0f} effective samples"
        return Check(what, f"{gap:.4g}", limit, warning if gap < smallest else None)
