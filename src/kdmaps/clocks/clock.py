"""The clock of a model: rates in real time, from the energies of its functions and bursts of the system."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2
from scipy.stats import f as f_distribution

from kdmaps.bases import ModeBasis
from kdmaps.checks import Check, rules
from kdmaps.clocks.factors import EVERY, Factors, burst_sums
from kdmaps.clocks.runs import Runs
from kdmaps.clocks.tensor import LearnedDiffusion, whitening_of
from kdmaps.clocks.weights import checked_starts, weights_along
from kdmaps.diagnostics.evidence import effective_count, evaluated_at, values_at
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.kernels import Kernel, Metric
from kdmaps.utils.frames import aligned
from kdmaps.utils.notebook import TableCard
from kdmaps.utils.numbers import rounded
from kdmaps.utils.validation import unit_weight

#: Confidence level of intervals.
CONFIDENCE = 0.95
#: Weights at other points are interpolated from so many samples at most.
MOST_POINTS = 100_000


@dataclass(frozen=True, eq=False, repr=False)
class BurstClock(TableCard):
    """Rates in real time of r modes, or of the flux of a committor (r = 1)."""

    names: tuple[str, ...]  #: (k,): estimators, R for overdamped diffusions and G for any memory; lags in frames.
    factors: np.ndarray  #: (k, r): clock factors c by each estimator.
    factor_errors: np.ndarray  #: (k, r): standard errors of log c.
    choice: np.ndarray  #: (r,): number of the estimator that is used.
    memory: np.ndarray  #: (r,): largest difference of R1 from longer lags, in standard errors.
    energies: np.ndarray  #: (r,): energies of the functions at the frames; rates are energies times factors.
    errors: np.ndarray  #: (r,): standard errors of log rate, of bursts and frames.
    n_bursts: int  #: Number of bursts.
    time_step: float  #: Time between their frames.
    diffusion: LearnedDiffusion | None  #: The tensor of the energies; None if `diffusion` was given.
    checks: tuple[Check, ...] = ()  #: Checks of bursts, starts and lags.

    @property
    def chosen(self) -> list[str]:
        """Name of the estimator that is used, for each column."""
        return [self.names[number] for number in self.choice]

    @property
    def factor(self) -> np.ndarray:
        """Clock factors that are used, (r,); NaN if bursts show no decay."""
        factors = self.factors[self.choice, np.arange(len(self.choice))]
        return np.where(factors > 0, factors, np.nan)

    @property
    def burst_errors(self) -> np.ndarray:
        """Standard errors of the logarithms of the factors that are used, (r,)."""
        return self.factor_errors[self.choice, np.arange(len(self.choice))]

    @property
    def rates(self) -> np.ndarray:
        """Rates in real time, (r,)."""
        return self.energies * self.factor

    @property
    def intervals(self) -> np.ndarray:
        """95 % intervals of the rates, (r, 2)."""
        half = ndtri((1 + CONFIDENCE) / 2) * self.errors
        return self.rates[:, None] * np.exp(half[:, None] * np.array([-1.0, 1.0]))

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of a table of all estimators."""
        titles = ["", "rate", "95 % interval", *(f"c {name}" for name in self.names), "used"]
        rows = []
        for column, (low, high) in enumerate(self.intervals):
            estimates = zip(self.factors[:, column], self.factor_errors[:, column], strict=True)
            shown = [f"{value:.3g} ± {value * error:.1g}" for value, error in estimates]
            ends = f"{rounded(low)} – {rounded(high)}"
            rows.append([str(column + 1), rounded(self.rates[column]), ends, *shown, self.chosen[column]])
        return titles, rows

    def __repr__(self) -> str:
        titles, rows = self.cells()
        return "\n".join(
            [f"Clock of {self.n_bursts} bursts, frames every {self.time_step:g}", *aligned([titles, *rows])]
        )


@dataclass(frozen=True, eq=False)
class Bursts:
    """Bursts with the frames that they belong to."""

    runs: Runs
    X: np.ndarray  # (n_samples, d)
    weight: np.ndarray | None  # (n_samples,)
    rows: np.ndarray | None  # (n_runs,): rows of X at which they start
    probabilities: np.ndarray | None  # (n_samples,): of drawing each row as a start
    given: np.ndarray | None  # weights of the starts, or of all frames of the bursts

    @classmethod
    def of(cls, runs: Runs, X: np.ndarray, weight: np.ndarray | None, start: Any, burst_weight: Any) -> "Bursts":
        """Check that starts and weights belong to the runs and to X."""
        return cls(runs, X, weight, *checked_starts(start, burst_weight, runs, X))

    @property
    def share(self) -> np.ndarray:
        """The stationary law at the rows of X, of sum 1."""
        return unit_weight(self.weight, len(self.X))

    @property
    def density(self) -> np.ndarray:
        """The law of the starts at the rows of X, of sum 1; starts without probabilities are random rows."""
        n = len(self.X)
        return np.full(n, 1 / n) if self.probabilities is None else self.probabilities

    def weights(self, numbers: np.ndarray, root: np.ndarray) -> np.ndarray:
        """Return the weights (stationary law)/(law of the starts) at these frames of the runs, as (n_frames,)."""
        runs = self.runs
        if self.given is not None and len(self.given) == len(runs.frames):
            return self.given
        if self.given is not None:  # at other points, weights of starts nearby
            return weights_along(runs, numbers, runs.starts, self.given, self.given, root)
        known = self.share / np.maximum(self.density, np.finfo(float).tiny)
        kept = np.random.RandomState(0).permutation(len(self.X))[:MOST_POINTS]
        return weights_along(runs, numbers, self.X[kept], known[kept], known[self.rows], root)


@dataclass(frozen=True, eq=False)
class FrameEnergies:
    """Energies of r functions at the frames of a fit."""

    energies: np.ndarray  #: (r,)
    errors: np.ndarray  #: (r,): standard errors of log rate from the frames, and from the choice of functions.


def measure_clock(
    functions: ModeBasis,
    kernel: Kernel,
    tensor: DiffusionTensor,
    bursts: Bursts,
    frames: FrameEnergies,
    diffusion: LearnedDiffusion | None,
    centred: bool = True,
    clip: tuple[float, float] | None = None,
) -> BurstClock:
    """Measure how fast functions decay along bursts.

    `centred` functions have the mean 0 under the stationary law, by which the starts are tested. Functions that are
    clipped to a range do not change outside of it.
    """
    runs = bursts.runs
    sparse = np.flatnonzero((np.arange(len(runs.frames)) - np.repeat(runs.first, runs.lengths)) % EVERY == 0)
    ends = runs.first + runs.lengths - 1
    values = values_at(functions, runs.frames)
    densities = np.zeros_like(values)
    densities[sparse] = evaluated_at(functions, runs.frames[sparse], tensor, sparse)[1]
    if clip is not None:
        densities[(values <= clip[0]) | (values >= clip[1])] = 0
        values = np.clip(values, *clip)
    weights = bursts.weights(np.union1d(sparse, ends), _metric(kernel, runs).T)
    sums = burst_sums(runs, values, densities, weights)
    factors = Factors.of(sums)
    choice = factors.choice()
    columns = np.arange(len(choice))
    burst_errors = factors.errors[choice, columns]
    clock = BurstClock(
        names=factors.names,
        factors=factors.values,
        factor_errors=factors.errors,
        choice=choice,
        memory=factors.memory,
        energies=frames.energies,
        errors=np.hypot(frames.errors, burst_errors),
        n_bursts=len(runs),
        time_step=runs.time_step,
        diffusion=diffusion,
    )
    along = sums.energies[sums.names.index("R1")]
    at_start = weights[runs.first][:, None] * densities[runs.first]
    checks = _checks_of_energies(at_start, along, weights[runs.first], bursts, frames.energies)
    checks += _checks_of_lags(clock, factors)
    if centred:
        checks.append(_check_of_starts(functions, values[runs.first], weights[runs.first], bursts))
    return replace(clock, checks=tuple(checks))


def _metric(kernel: Kernel, runs: Runs) -> np.ndarray:
    """Return a root of the metric in which points are near each other, (d, k)."""
    if isinstance(kernel, Metric):
        return kernel.root
    return whitening_of(runs.displacements(1)[1])


def _checks_of_energies(
    at_start: np.ndarray, along: np.ndarray, weights: np.ndarray, bursts: Bursts, energies: np.ndarray
) -> list[Check]:
    """Check how many bursts carry the energy, whether they cover it, and whether it is the same off the frames."""
    total = len(weights) if bursts.given is None else max(weights.sum(), np.finfo(float).tiny)
    coverage = at_start.sum(axis=0) / total / energies
    growth = along.sum(axis=0) / np.maximum(at_start.sum(axis=0), np.finfo(float).tiny)
    return [
        Check(rules.CLOCK_BURSTS, effective_count(at_start)),
        Check(rules.CLOCK_COVERAGE, coverage, words={"least": rules.CLOCK_COVERAGE.least}),
        Check(rules.CLOCK_RESOLUTION, growth),
    ]


def _checks_of_lags(clock: BurstClock, factors: Factors) -> list[Check]:
    """Check for memory, and whether any lag is long enough."""
    longest = factors.delayed[-1]
    unsettled = np.array([name == longest for name in clock.chosen])
    chosen = sorted({name for name in clock.chosen if name != "R1"})
    return [
        Check(rules.CLOCK_MEMORY, clock.memory, words={"chosen": ", ".join(chosen)}),
        Check(rules.CLOCK_LAGS, np.where(unsettled, factors.disagreement, 0.0)),
    ]


def _check_of_starts(functions: ModeBasis, values: np.ndarray, weights: np.ndarray, bursts: Bursts) -> Check:
    """Test whether the weighted starts have the means of the modes over the frames, all modes at once.

    The covariance under this hypothesis is known if the rows and their probabilities are; given weights leave only the
    starts themselves to estimate it from.
    """
    n = len(weights)
    if bursts.given is None:
        deviations = weights[:, None] * values
        all_values = values_at(functions, bursts.X)
        scaled = bursts.share / np.sqrt(np.maximum(bursts.density, np.finfo(float).tiny))
        covariance = (scaled[:, None] * all_values).T @ (scaled[:, None] * all_values) / n
        probability = chi2.sf(_squared(deviations.mean(axis=0), covariance), values.shape[1])
    else:
        share = weights / weights.sum()
        effective = float(effective_count(share))
        mean = share @ values
        deviations = share[:, None] * (values - mean)
        statistic = _squared(mean, deviations.T @ deviations)
        r = values.shape[1]
        freedom = max(effective - r, 1.0)
        probability = f_distribution.sf(statistic * freedom / (r * max(effective - 1, 1.0)), r, freedom)
    return Check(rules.CLOCK_STARTS, float(-ndtri(max(probability, 1e-300) / 2)))


def _squared(mean: np.ndarray, covariance: np.ndarray) -> float:
    """Return meanᵀ covariance⁻¹ mean."""
    ridge = 1e-12 * np.trace(covariance) * np.eye(len(mean))
    return float(mean @ np.linalg.solve(covariance + ridge, mean))
