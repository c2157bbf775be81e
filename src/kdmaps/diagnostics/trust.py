"""Checks of the rate of every mode: numbers, their limits, and warnings with a remedy."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kdmaps.diagnostics.evidence import Evidence
from kdmaps.exceptions import UnreliableModesWarning
from kdmaps.spectrum.modes import Check, or_fewer
from kdmaps.utils.frames import aligned
from kdmaps.utils.notebook import card
from kdmaps.utils.numbers import rounded

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
#: Description of the number of each check, its limit, whether this is the smallest allowed value, and the warning.
CHECKS: dict[str, tuple[str, float, bool, str]] = {
    "energy samples": (
        "samples that carry the energy, n_E",
        MIN_SAMPLES,
        True,
        "Too few samples carry the energy of {modes}: {worst:.1f} (limit {limit:g}), so the rate may be off by more "
        "than a factor of 2. Sample the transition more often, for example {remedy}.",
    ),
    "variance samples": (
        "samples that carry the variance, n_V",
        MIN_ROWS,
        True,
        "Too few rows of X carry the variance of {modes}: {worst:.1f} (limit {limit:g}), and row {row} (counted from "
        "0) alone carries {share:.0%}. Remove such rows if they are outliers, or add samples like them.",
    ),
    "transition samples": (
        "samples over which the mode changes, n_T",
        MIN_TRANSITION,
        True,
        "Too few samples lie in the transition of {modes}: {worst:.1f} (limit {limit:g}), so the rate depends on how "
        "the kernel interpolates. Add samples of the transition, for example from a biased simulation with weights.",
    ),
    "independent samples": (
        "independent samples",
        MIN_INDEPENDENT,
        True,
        "Too few independent samples for {modes}: {worst:.1f} (limit {limit:g}), given their {why}correlation in time. "
        "Use more samples, or a longer trajectory if they are frames{weaker}.",
    ),
    "mismatch": (
        "misplaced part of the energy",
        MAX_MISMATCH,
        False,
        "The kernel or the regularization over-smooths {modes}: {worst:.0%} of the energy is misplaced (limit "
        "{limit:.0%}), and the rate is usually too large. Use more samples or less regularization; if the kernel was "
        "set by hand, use AdaptiveDiffusionMap.",
    ),
    "held-out factor": (
        "factor between the rates on held-out and on training samples",
        MAX_RATIO,
        False,
        "Overfitting of {modes}: on held-out samples the rate differs {by}. Use more samples{fewer}.",
    ),
    "kernel factor": (
        "factor between the rates of kernels with equally good scores",
        MAX_SPREAD,
        False,
        "Kernels with equally good scores disagree on the rate of {modes} {by}: the samples do not determine which is "
        "right. Use more samples{fewer}.",
    ),
    "feature factor": (
        "factor between the rates of different random features",
        MAX_SPREAD,
        False,
        "Too few random features: another draw changes the rate of {modes} {by}. Increase n_features.",
    ),
    "drift": (
        "drift along runs, in standard errors",
        MAX_DRIFT,
        False,
        "The frames are not in equilibrium: {modes} drift{s} along the runs, by {worst:.1f} standard errors (limit "
        "{limit:g}), and time scales are probably too short. Leave out the beginning of every run, or fit many runs "
        "from chosen starting points with the weights of kdmaps.dynamics.equilibrium_weights.",
    ),
    "asymmetry": (
        "asymmetry of lagged correlations in time, in standard errors",
        MAX_ASYMMETRY,
        False,
        "The system is driven: correlations of {modes} over one lag differ between forward and backward time by "
        "{worst:.0f} standard errors (limit {limit:g}). A reversible fit ignores this, and its rates can be several "
        "times too large. Fit with reversible=False, and use kdmaps.dynamics.koopman for complex rates.",
    ),
}


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
        return Check(f"{self.what}, mode {worst + 1}", rounded(self.values[worst], 3), f"{side} {self.limit:g}", found)


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
        found, weighted = self.evidence, self.weighted
        heaviest = int(np.argmin(found.variance_samples))
        row, share = int(found.heaviest[heaviest]), found.heaviest_shares[heaviest]
        # Pairs of frames of a biased simulation follow the biased dynamics and would not help.
        pairs = np.isnan(found.transition_samples).all()
        remedy = "in a longer trajectory" if pairs else "in a biased simulation with weights"
        why = {"why": "weights and their " if weighted else "", "weaker": ", or a weaker bias" if weighted else ""}
        checks = [
            _check("energy samples", found.energy_samples, remedy=remedy),
            _check("variance samples", found.variance_samples, row=row, share=share),
            _check("transition samples", found.transition_samples),
            _check("independent samples", found.independent_samples, **why),
            _check("mismatch", found.mismatch),
        ]
        if self.held_out is not None:
            training = self.rates if self.training is None else self.training
            checks.append(_check("held-out factor", ratio(self.held_out[None], training)))
        if len(self.candidates):
            checks.append(_check("kernel factor", ratio(self.candidates, self.rates)))
        if len(self.features):
            checks.append(_check("feature factor", ratio(self.features, self.rates)))
        if self.equilibrium is not None:
            drifts = _check("drift", self.equilibrium.drift)
            # Runs that relax from their starting points are asymmetric in time: one cause, one warning.
            checks += [drifts] if drifts.failed.any() else [drifts, _check("asymmetry", self.equilibrium.asymmetry)]
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

    def warnings(self) -> list[UnreliableModesWarning]:
        """Return one warning for each failed check."""
        return [check.warning for check in self.checks if check.failed.any()]

    def __repr__(self) -> str:
        names, *columns = self._lines()  # a column for each mode: few modes, many checks
        names = [name.ljust(max(map(len, names))) for name in names]
        lines = aligned(list(zip(names, *columns, strict=True)))
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
            cells = [rounded(check.values[k], 3) + ("!" if check.failed[k] else "") for check in checks]
            lines.append([str(k + 1), rounded(rate), *cells, "ok" if ok[k] else "not to be trusted"])
        limits = [f"{'≥' if check.least else '≤'} {check.limit:g}" for check in checks]
        return [*lines, ["", "limit", *limits, ""]]

    def _repr_html_(self) -> str:
        names, *columns = self._lines()
        rows = list(zip(names, *columns, strict=True))
        return card(f"{int(self.ok.sum())} of {len(self.rates)} modes pass all checks", rows[0], rows[1:])


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


def _check(name: str, values: np.ndarray, **details: Any) -> ModeCheck:
    """Return the check of this name; `details` are further words of its warning."""
    what, limit, least, text = CHECKS[name]
    with np.errstate(invalid="ignore"):
        failed, worst = (values < limit, values.min()) if least else (values > limit, values.max())
    # The factor between two rates is infinite if one of them is 0.
    by = f"by a factor of {worst:.2g} (limit {limit:g})" if worst < np.inf else f"by more than {limit:g} times"
    words = {"modes": _named(failed), "worst": worst, "limit": limit, "by": by, "s": "s" if failed.sum() == 1 else ""}
    words["fewer"] = or_fewer(int(np.argmax(failed)) if failed.any() else 0)  # modes before the first that fails
    return ModeCheck(name, what, values, limit, least, UnreliableModesWarning(text.format(**words, **details)))
