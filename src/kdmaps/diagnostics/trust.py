"""Checks of the rate of every mode: numbers, their limits, and warnings with a remedy."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kdmaps.checks import Check, Side, rules
from kdmaps.diagnostics.evidence import Evidence
from kdmaps.utils.frames import aligned
from kdmaps.utils.notebook import card
from kdmaps.utils.numbers import rounded

#: With 8 samples that carry the energy, the 95 % interval of the rate spans a factor of 2 to either side, e^{2/√8} = 2;
#: fewer do not bound it. In the transition, spacings of neighbouring values vary, which halves the number.
MIN_BOUNDING, MIN_BOUNDING_TRANSITION = 8, 4.0


class Equilibrium(NamedTuple):
    """Deviations of pairs of frames from equilibrium, in standard errors (`kdmaps.diagnostics.equilibrium`)."""

    asymmetry: np.ndarray  #: (r,): of lagged correlations forward and backward in time.
    drift: np.ndarray  #: (r,): at the starts of ten runs or more, or between the halves of fewer.


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
    #: How far the slowest modes are from the indicators of parts of the samples without a connection, from 0 to 1, and
    #: the shares of the parts; None if the samples are connected (`kdmaps.diagnostics.separation`).
    unseparated: float | None = None
    parts: np.ndarray | None = None

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks for which numbers are available."""
        evidence, weighted = self.evidence, self.weighted
        heaviest = int(np.argmin(evidence.variance_samples))
        row = {"row": int(evidence.heaviest[heaviest]), "share": float(evidence.heaviest_shares[heaviest])}
        # Pairs of frames of a biased simulation follow the biased dynamics and would not help.
        pairs = np.isnan(evidence.transition_samples).all()
        how = {"how": "in a longer trajectory" if pairs else "in a biased simulation with weights"}
        why = {"why": "weights and their " if weighted else "", "weaker": ", or a weaker bias" if weighted else ""}
        checks = []
        if self.unseparated is not None and self.parts is not None:
            shares = " and ".join(f"{share:.0%}" for share in self.parts)
            gap = {"parts": len(self.parts), "shares": shares}
            checks.append(Check(rules.EMPTY_GAP, np.full(len(self.rates), self.unseparated), words=gap))
        checks += [
            Check(rules.ENERGY_SAMPLES, evidence.energy_samples, words=how),
            Check(rules.VARIANCE_SAMPLES, evidence.variance_samples, words=row),
            Check(rules.TRANSITION_SAMPLES, evidence.transition_samples),
            Check(rules.INDEPENDENT_SAMPLES, evidence.independent_samples, words=why),
            Check(rules.MISMATCH, evidence.mismatch),
        ]
        if self.held_out is not None:
            training = self.rates if self.training is None else self.training
            checks.append(Check(rules.HELD_OUT_FACTOR, ratio(self.held_out[None], training)))
        if len(self.candidates):
            checks.append(Check(rules.KERNEL_FACTOR, ratio(self.candidates, self.rates)))
        if len(self.features):
            checks.append(Check(rules.FEATURE_FACTOR, ratio(self.features, self.rates)))
        if self.equilibrium is not None:
            drifts = Check(rules.DRIFT, self.equilibrium.drift)
            # Runs that relax from their starting points are asymmetric in time: one cause, one check.
            asymmetry = Check(rules.ASYMMETRY, self.equilibrium.asymmetry)
            checks += [drifts] if drifts.failed.any() else [drifts, asymmetry]
        return tuple(check for check in checks if check.known)

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
        return few | (self.evidence.variance_samples < rules.VARIANCE_SAMPLES.limit)

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data per mode, for example for `pandas.DataFrame`."""
        checks = self.checks
        return [
            {
                "mode": k + 1,
                "ok": not reasons,
                "rate": float(self.rates[k]),
                **{check.name: float(check.value[k]) for check in checks},
                "reasons": ", ".join(reasons),
            }
            for k, reasons in enumerate(self.reasons)
        ]

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
            cells = [rounded(check.value[k], 3) + ("!" if check.failed[k] else "") for check in checks]
            lines.append([str(k + 1), rounded(rate), *cells, "ok" if ok[k] else "not to be trusted"])
        limits = [f"{'≥' if check.rule.side is Side.LEAST else '≤'} {check.rule.limit:g}" for check in checks]
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
