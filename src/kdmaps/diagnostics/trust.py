"""Checks of the rate of every mode: numbers, their limits, and warnings with a remedy."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kdmaps.diagnostics.evidence import Evidence
from kdmaps.exceptions import UnreliableModesWarning
from kdmaps.spectrum.modes import Check, or_fewer
from kdmaps.utils.frames import aligned
from kdmaps.utils.notebook import card

#: A rate whose energy is carried by n samples has a relative error of about 1/√n. With 14 its 99 % interval spans a
#: factor of 2 to either side, e^{2.58/√14} = 2: at most one in a hundred rates that pass should be further off.
MIN_SAMPLES = 14
#: With 8 the 95 % interval does, e^{2/√8} = 2; fewer samples do not bound a rate.
MIN_BOUNDING = 8
#: The same for the parts between neighbouring values: spacings vary, which halves the count, (Σs)²/Σs² = n/2.
MIN_TRANSITION, MIN_BOUNDING_TRANSITION = MIN_SAMPLES / 2, MIN_BOUNDING / 2
#: With fewer rows, a mode describes these rows alone; even in the tails of Gaussian samples there are more.
MIN_ROWS = 5
#: A variance of n independent values has a relative error of about √(2/n): a third at 20.
MIN_INDEPENDENT = 20
#: Among 600 modes with rates correct to 30 %, 1 % exceeded 0.05; a rate 1.7 times too large had 0.3.
MAX_MISMATCH = 0.15
#: Largest factor between the rates on held-out and on training samples.
MAX_RATIO = 2.0
#: Largest factor between the rates of kernels with equally good scores, or of other random features; intervals include
#: these rates.
MAX_SPREAD = 3.0
#: Largest asymmetry in time and largest drift, in standard errors corrected for the number of comparisons. Driven
#: systems exceed the first by far, and one in a thousand reversible systems does; one in fifty stationary systems
#: exceeds the second, which is small because 20 runs of one relaxation time show a drift of only 2.5 standard errors.
MAX_ASYMMETRY, MAX_DRIFT = 3.29, 2.33


class Equilibrium(NamedTuple):
    """Deviations of pairs of frames from equilibrium, in standard errors (`kdmaps.diagnostics.equilibrium`)."""

    asymmetry: np.ndarray  #: (r,): of lagged correlations forward and backward in time.
    drift: np.ndarray  #: (r,): at the starts of ten runs or more, or between the halves of fewer.


@dataclass(frozen=True, eq=False)
class ModeCheck:
    """A number for each mode, with its limit."""

    name: str  #: Name in `Trust.reasons`.
    what: str  #: Description of the number.
    values: np.ndarray  #: (r,): NaN if unknown.
    limit: float  #: Smallest or largest allowed value.
    least: bool  #: True if the limit is the smallest allowed value.
    warning: UnreliableModesWarning  #: The warning about the modes that fail, with a remedy.

    @property
    def failed(self) -> np.ndarray:
        """True for modes beyond the limit; (r,)."""
        with np.errstate(invalid="ignore"):
            return self.values < self.limit if self.least else self.values > self.limit

    def summary(self) -> Check:
        """Return the check of the worst mode, for tables."""
        worst = int((np.nanargmin if self.least else np.nanargmax)(self.values))
        side = "at least" if self.least else "at most"
        found = self.warning if self.failed.any() else None
        return Check(f"{self.what}, mode {worst + 1}", f"{self.values[worst]:.3g}", f"{side} {self.limit:g}", found)


@dataclass(frozen=True, eq=False)
class Trust:
    """Checks of the rate of every mode.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    >>> model = kdmaps.KernelDiffusionMap(2, random_state=0).fit(X)
    >>> model.trust_.ok
    array([ True,  True])
    """

    evidence: Evidence  #: Numbers of samples that determine each mode.
    rates: np.ndarray  #: (r,): the rates to be checked.
    held_out: np.ndarray | None = None  #: (r,): rates on samples that the modes were not fitted to.
    #: (m, r): rates of kernels whose scores are as good within the standard error.
    candidates: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    features: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))  #: (m, r): with other random features.
    weighted: bool = False  #: Whether samples have different weights, which leave fewer independent samples.
    #: (r,): standard errors of log rate of the modes whose rates were estimated from held-out samples, since the rates
    #: on the training samples are significantly smaller; 0 for the other modes. None if no rate was corrected.
    corrected: np.ndarray | None = None
    training: np.ndarray | None = None  #: (r,): rates on the training samples, if some were corrected.
    equilibrium: Equilibrium | None = None  #: Tests of pairs of frames that are fitted as reversible.
    #: Mean squared cosine between each Koopman eigenfunction and its counterparts in the folds of a search, for
    #: reversible=False. Eigenfunctions differ from modes, so that `ok` does not contain them.
    eigenfunctions: np.ndarray | None = None
    #: Held-out E|ψ(y) - λψ(x)|² of each Koopman eigenfunction ψ in excess of 1 - |λ|², relative to |λ|².
    overfit: np.ndarray | None = None

    @property
    def checks(self) -> tuple[ModeCheck, ...]:
        """The checks for which numbers are available."""
        found = self.evidence
        checks = [
            _energy(found.energy_samples, local=not np.isnan(found.transition_samples).all()),
            _variance(found),
            _transition(found.transition_samples),
            _independent(found.independent_samples, self.weighted),
            _mismatch(found.mismatch),
        ]
        if self.held_out is not None:
            checks.append(_held_out(ratio(self.held_out[None], self.rates if self.training is None else self.training)))
        if len(self.candidates):
            checks.append(_candidates(ratio(self.candidates, self.rates)))
        if len(self.features):
            checks.append(_features(ratio(self.features, self.rates)))
        if self.equilibrium is not None:
            drifts = _drift(self.equilibrium.drift)
            # Runs that relax from their starting points are asymmetric in time: one cause, one warning.
            checks += [drifts] if drifts.failed.any() else [drifts, _asymmetry(self.equilibrium.asymmetry)]
        return tuple(check for check in checks if not np.isnan(check.values).all())

    @property
    def alternatives(self) -> np.ndarray:
        """Rates of equally good kernels and of other random features; (m, r)."""
        return np.vstack([some.reshape(-1, len(self.rates)) for some in (self.candidates, self.features)])

    @property
    def ok(self) -> np.ndarray:
        """True for modes that pass all checks; (r,)."""
        return ~np.any([check.failed for check in self.checks], axis=0)

    @property
    def reasons(self) -> tuple[tuple[str, ...], ...]:
        """The names of the checks that each mode fails."""
        failed = [(check.name, check.failed) for check in self.checks]
        return tuple(tuple(name for name, modes in failed if modes[k]) for k in range(len(self.rates)))

    @property
    def unbounded_below(self) -> np.ndarray:
        """True for rates without a lower bound: too few samples carry the energy, the variance or the transition."""
        return (self.evidence.energy_samples < MIN_BOUNDING) | self.unbounded_above

    @property
    def unbounded_above(self) -> np.ndarray:
        """True for rates without an upper bound: too few samples carry the variance or the transition."""
        few = self.evidence.transition_samples < MIN_BOUNDING_TRANSITION
        return few | (self.evidence.variance_samples < MIN_ROWS)

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data per mode, for example for `pandas.DataFrame`."""
        checks = self.checks
        return [
            {
                "mode": k + 1,
                "ok": not reasons,
                "rate": float(self.rates[k]),
                **{check.name: float(check.values[k]) for check in checks},
                "reasons": ", ".join(reasons),
            }
            for k, reasons in enumerate(self.reasons)
        ]

    def summaries(self) -> list[Check]:
        """Return the worst mode of every check, for tables."""
        return [check.summary() for check in self.checks]

    def warnings(self) -> list[UnreliableModesWarning]:
        """Return one warning for each failed check."""
        return [check.warning for check in self.checks if check.failed.any()]

    def __repr__(self) -> str:
        lines = aligned(self._lines())
        if self.eigenfunctions is not None:
            lines.append(f"Koopman eigenfunctions, agreement of folds: {np.round(self.eigenfunctions, 2).tolist()}")
        if self.overfit is not None:
            lines.append(f"Koopman eigenfunctions, excess of held-out errors: {np.round(self.overfit, 2).tolist()}")
        return "\n".join(lines)

    def _lines(self) -> list[list[str]]:
        """Return titles, a line for each mode, and the limits; numbers beyond their limit have an exclamation mark."""
        checks, ok = self.checks, self.ok
        lines = [["mode", "rate", *(check.name for check in checks), ""]]
        for k, rate in enumerate(self.rates):
            cells = [f"{check.values[k]:.3g}{'!' if check.failed[k] else ''}" for check in checks]
            lines.append([str(k + 1), f"{rate:.4g}", *cells, "ok" if ok[k] else "not to be trusted"])
        limits = [f"{'≥' if check.least else '≤'} {check.limit:g}" for check in checks]
        return [*lines, ["", "limit", *limits, ""]]

    def _repr_html_(self) -> str:
        titles, *rows = self._lines()
        return card(f"{int(self.ok.sum())} of {len(self.rates)} modes pass all checks", titles, rows)


def ratio(others: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the largest factor, at least 1, between any of the others and the rates; infinite if one of them is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.abs(np.log(others / rates))
    return np.exp(np.where(np.isnan(factors), np.inf, factors).max(axis=0))


def _named(failed: np.ndarray) -> str:
    """Name modes: "mode 1", "modes 1 and 3"."""
    numbers = [str(k + 1) for k in np.flatnonzero(failed)]
    text = ", ".join(numbers[:-1]) + " and " + numbers[-1] if len(numbers) > 1 else "".join(numbers)
    return f"mode{'s' if len(numbers) > 1 else ''} {text}"


def _by(factors: np.ndarray, limit: float) -> str:
    """Describe the largest factor, which is infinite if a rate is 0."""
    largest = factors.max()
    return f"by a factor of {largest:.2g} (limit {limit:g})" if largest < np.inf else f"by more than {limit:g} times"


def _or_fewer(failed: np.ndarray) -> str:
    """Suggest as many modes as there are before the first that fails."""
    return or_fewer(int(np.argmax(failed)) if failed.any() else 0)


def _energy(counts: np.ndarray, local: bool) -> ModeCheck:
    # Pairs of frames of a biased simulation follow the biased dynamics and would not help.
    remedy = "in a biased simulation with weights" if local else "in a longer trajectory"
    warning = UnreliableModesWarning(
        f"Too few samples carry the energy of {_named(counts < MIN_SAMPLES)}: {counts.min():.1f} (limit "
        f"{MIN_SAMPLES}), so the rate may be off by more than a factor of 2. Sample the transition more often, for "
        f"example {remedy}."
    )
    return ModeCheck("energy samples", "samples that carry the energy, n_E", counts, MIN_SAMPLES, True, warning)


def _variance(evidence: Evidence) -> ModeCheck:
    counts = evidence.variance_samples
    worst = int(np.argmin(counts))
    share, row = evidence.heaviest_shares[worst], int(evidence.heaviest[worst])
    warning = UnreliableModesWarning(
        f"Too few rows of X carry the variance of {_named(counts < MIN_ROWS)}: {counts[worst]:.1f} (limit {MIN_ROWS}), "
        f"and row {row} (counted from 0) alone carries {share:.0%}. Remove such rows if they are outliers, or add "
        "samples like them."
    )
    return ModeCheck("variance samples", "samples that carry the variance, n_V", counts, MIN_ROWS, True, warning)


def _transition(counts: np.ndarray) -> ModeCheck:
    warning = UnreliableModesWarning(
        f"Too few samples lie in the transition of {_named(counts < MIN_TRANSITION)}: {counts.min():.1f} (limit "
        f"{MIN_TRANSITION:g}), so the rate depends on how the kernel interpolates. Add samples of the transition, for "
        "example from a biased simulation with weights."
    )
    what = "samples over which the mode changes, n_T"
    return ModeCheck("transition samples", what, counts, MIN_TRANSITION, True, warning)


def _independent(counts: np.ndarray, weighted: bool) -> ModeCheck:
    why = "weights and their correlation in time" if weighted else "correlation in time"
    weaker = ", or a weaker bias" if weighted else ""
    warning = UnreliableModesWarning(
        f"Too few independent samples for {_named(counts < MIN_INDEPENDENT)}: {counts.min():.1f} (limit "
        f"{MIN_INDEPENDENT}), given their {why}. Use more samples, or a longer trajectory if they are frames{weaker}."
    )
    return ModeCheck("independent samples", "independent samples", counts, MIN_INDEPENDENT, True, warning)


def _mismatch(values: np.ndarray) -> ModeCheck:
    warning = UnreliableModesWarning(
        f"The kernel or the regularization over-smooths {_named(values > MAX_MISMATCH)}: {values.max():.0%} of the "
        f"energy is misplaced (limit {MAX_MISMATCH:.0%}), and the rate is usually too large. Use more samples or less "
        "regularization; if the kernel was set by hand, use AdaptiveDiffusionMap."
    )
    return ModeCheck("mismatch", "misplaced part of the energy", values, MAX_MISMATCH, False, warning)


def _held_out(factors: np.ndarray) -> ModeCheck:
    failed = factors > MAX_RATIO
    warning = UnreliableModesWarning(
        f"Overfitting of {_named(failed)}: on held-out samples the rate differs {_by(factors, MAX_RATIO)}. Use more "
        f"samples{_or_fewer(failed)}."
    )
    what = "factor between the rates on held-out and on training samples"
    return ModeCheck("held-out factor", what, factors, MAX_RATIO, False, warning)


def _candidates(factors: np.ndarray) -> ModeCheck:
    failed = factors > MAX_SPREAD
    warning = UnreliableModesWarning(
        f"Kernels with equally good scores disagree on the rate of {_named(failed)} {_by(factors, MAX_SPREAD)}: the "
        f"samples do not determine which is right. Use more samples{_or_fewer(failed)}."
    )
    what = "factor between the rates of kernels with equally good scores"
    return ModeCheck("kernel factor", what, factors, MAX_SPREAD, False, warning)


def _asymmetry(values: np.ndarray) -> ModeCheck:
    failed = values > MAX_ASYMMETRY
    warning = UnreliableModesWarning(
        f"The system is driven: correlations of {_named(failed)} over one lag differ between forward and backward time "
        f"by {values.max():.0f} standard errors (limit {MAX_ASYMMETRY:g}). A reversible fit ignores this, and its "
        "rates can be several times too large. Fit with reversible=False, and use kdmaps.dynamics.koopman for complex "
        "rates."
    )
    what = "asymmetry of lagged correlations in time, in standard errors"
    return ModeCheck("asymmetry", what, values, MAX_ASYMMETRY, False, warning)


def _drift(values: np.ndarray) -> ModeCheck:
    failed = values > MAX_DRIFT
    warning = UnreliableModesWarning(
        f"The frames are not in equilibrium: {_named(failed)} drift{'s' if failed.sum() == 1 else ''} along the runs, "
        f"by {values.max():.1f} standard errors (limit {MAX_DRIFT:g}), and time scales are probably too short. Leave "
        "out the beginning of every run, or fit many runs from chosen starting points with the weights of "
        "kdmaps.dynamics.equilibrium_weights."
    )
    what = "drift along runs, in standard errors"
    return ModeCheck("drift", what, values, MAX_DRIFT, False, warning)


def _features(factors: np.ndarray) -> ModeCheck:
    warning = UnreliableModesWarning(
        f"Too few random features: another draw changes the rate of {_named(factors > MAX_SPREAD)} "
        f"{_by(factors, MAX_SPREAD)}. Increase n_features."
    )
    what = "factor between the rates of different random features"
    return ModeCheck("feature factor", what, factors, MAX_SPREAD, False, warning)
