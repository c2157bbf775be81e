"""How far to trust the rate of every mode: a few numbers for each, their limits, and what to do beyond them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kdmaps.diagnostics.evidence import Evidence
from kdmaps.exceptions import UnreliableModesWarning
from kdmaps.spectrum.checks import Check, or_fewer
from kdmaps.utils.columns import aligned

#: A rate that rests on n samples has a relative error of about 1/√n. With 14 its 99 % interval spans a factor of 2 to
#: either side, e^{2.58/√14} = 2: of rates that are not flagged, at most one in a hundred should be further off.
MIN_SAMPLES = 14
#: With 8 its 95 % interval does, e^{2/√8} = 2; fewer do not bound a rate.
MIN_BOUNDING = 8
#: The same for the parts between neighbouring values: spacings vary, which halves the count, (Σs)²/Σs² = n/2.
MIN_TRANSITION, MIN_BOUNDING_TRANSITION = MIN_SAMPLES / 2, MIN_BOUNDING / 2
#: A mode with the variance of fewer rows than these is a mode of these rows; tails of Gaussian samples have more.
MIN_ROWS = 5
#: A variance of n independent values has a relative error of about √(2/n): a third at 20.
MIN_INDEPENDENT = 20
#: Of 600 modes with rates that were right within 30 %, 1 % exceeded 0.05; a rate 1.7 times too large had 0.3.
MAX_MISMATCH = 0.15
#: The rate on held-out samples may differ by this factor.
MAX_RATIO = 2.0
#: Rates by kernels that score alike, or with other features, may differ by this factor; intervals contain them.
MAX_SPREAD = 3.0


@dataclass(frozen=True, eq=False)
class ModeCheck:
    """A number for each mode, and the limit that it should keep.

    Attributes
    ----------
    name : str
        What `Trust.reasons` calls it.
    what : str
        What the number is.
    values : ndarray of shape (r,)
        NaN where it is not known.
    limit : float
    least : bool
        Whether the limit is the smallest value, or the largest one.
    warning : UnreliableModesWarning
        What is wrong with the modes that fail, and what to do about it.
    """

    name: str
    what: str
    values: np.ndarray
    limit: float
    least: bool
    warning: UnreliableModesWarning

    @property
    def failed(self) -> np.ndarray:
        """Which modes do not keep the limit; (r,) of bool."""
        with np.errstate(invalid="ignore"):
            return self.values < self.limit if self.least else self.values > self.limit

    def summary(self) -> Check:
        """Return the check of the worst mode, for tables."""
        worst = _worst(self.values, self.least)
        side = "at least" if self.least else "at most"
        found = self.warning if self.failed.any() else None
        return Check(f"{self.what}, mode {worst + 1}", f"{self.values[worst]:.3g}", f"{side} {self.limit:g}", found)


@dataclass(frozen=True, eq=False)
class Trust:
    """How far to trust the rate of every mode.

    Attributes
    ----------
    evidence : Evidence
        How many samples stand behind each mode.
    rates : ndarray of shape (r,)
        The rates that are judged.
    held_out : ndarray of shape (r,) or None
        Rates on samples that the modes were not fitted to.
    candidates : ndarray of shape (m, r)
        Rates by kernels that score as well, within the standard error.
    features : ndarray of shape (m, r)
        Rates with other random features.
    weighted : bool
        Whether samples have different weights, which cost independent samples.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    >>> model = kdmaps.KernelDiffusionMap(2, random_state=0).fit(X)
    >>> model.trust_.ok
    array([ True,  True])
    """

    evidence: Evidence
    rates: np.ndarray
    held_out: np.ndarray | None = None
    candidates: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    features: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    weighted: bool = False

    @property
    def checks(self) -> tuple[ModeCheck, ...]:
        """What is known of every mode, with its limits."""
        found = self.evidence
        checks = [
            _energy(found.energy_samples, local=not np.isnan(found.transition_samples).all()),
            _variance(found),
            _transition(found.transition_samples),
            _independent(found.independent_samples, self.weighted),
            _mismatch(found.mismatch),
        ]
        if self.held_out is not None:
            checks.append(_held_out(ratio(self.held_out[None], self.rates)))
        if len(self.candidates):
            checks.append(_candidates(ratio(self.candidates, self.rates)))
        if len(self.features):
            checks.append(_features(ratio(self.features, self.rates)))
        return tuple(check for check in checks if not np.isnan(check.values).all())

    @property
    def alternatives(self) -> np.ndarray:
        """Rates by other choices that are as good; (m, r)."""
        return np.vstack([some.reshape(-1, len(self.rates)) for some in (self.candidates, self.features)])

    @property
    def ok(self) -> np.ndarray:
        """Which modes keep all limits; (r,) of bool."""
        return ~np.any([check.failed for check in self.checks], axis=0)

    @property
    def reasons(self) -> tuple[tuple[str, ...], ...]:
        """The names of the checks that each mode fails."""
        return tuple(tuple(c.name for c in self.checks if c.failed[k]) for k in range(len(self.rates)))

    @property
    def unbounded_below(self) -> np.ndarray:
        """Which rates may be 0 as far as the samples tell: without the few that carry its energy or its change."""
        few = (self.evidence.energy_samples < MIN_BOUNDING) | (self.evidence.variance_samples < MIN_ROWS)
        return few | (self.evidence.transition_samples < MIN_BOUNDING_TRANSITION)

    @property
    def unbounded_above(self) -> np.ndarray:
        """Which rates may be any larger: of modes that change, or have their variance, where hardly a sample is."""
        few = self.evidence.transition_samples < MIN_BOUNDING_TRANSITION
        return few | (self.evidence.variance_samples < MIN_ROWS)

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data per mode, for example for `pandas.DataFrame`."""
        return [
            {
                "mode": k + 1,
                "ok": bool(self.ok[k]),
                "rate": float(self.rates[k]),
                **{check.name: float(check.values[k]) for check in self.checks},
                "reasons": ", ".join(self.reasons[k]),
            }
            for k in range(len(self.rates))
        ]

    def summaries(self) -> list[Check]:
        """Return every check of its worst mode, for tables."""
        return [check.summary() for check in self.checks]

    def warnings(self) -> list[UnreliableModesWarning]:
        """Return one warning for each check that a mode fails."""
        return [check.warning for check in self.checks if check.failed.any()]

    def __repr__(self) -> str:
        names = [check.name for check in self.checks]
        lines = [["mode", "rate", *names, ""]]
        for k, row in enumerate(self.table()):
            cells = [
                f"{row[name]:.3g}{'!' if check.failed[k] else ''}"
                for name, check in zip(names, self.checks, strict=True)
            ]
            lines.append([str(k + 1), f"{row['rate']:.4g}", *cells, "ok" if row["ok"] else "not to be trusted"])
        limits = [f"{'≥' if check.least else '≤'} {check.limit:g}" for check in self.checks]
        lines.append(["", "limit", *limits, ""])
        return "\n".join(aligned(lines))


def ratio(others: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the largest factor, 1 or more, by which any of the others differs; infinite if one of them is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.abs(np.log(others / rates))
    return np.exp(np.where(np.isnan(factors), np.inf, factors).max(axis=0))


def _worst(values: np.ndarray, least: bool) -> int:
    return int(np.nanargmin(values) if least else np.nanargmax(values))


def _named(failed: np.ndarray) -> str:
    """Name modes: "mode 1", "modes 1 and 3"."""
    numbers = [str(k + 1) for k in np.flatnonzero(failed)]
    text = ", ".join(numbers[:-1]) + " and " + numbers[-1] if len(numbers) > 1 else "".join(numbers)
    return f"mode{'s' if len(numbers) > 1 else ''} {text}"


def _before(failed: np.ndarray) -> int:
    """Return how many modes come before the first that fails."""
    return int(np.argmax(failed)) if failed.any() else 0


def _energy(counts: np.ndarray, local: bool) -> ModeCheck:
    failed = counts < MIN_SAMPLES
    # The frames of a biased run follow one another as the bias wants, so that it shows no pairs of the system.
    remedy = "with a bias and weights" if local else "in a longer trajectory"
    warning = UnreliableModesWarning(
        f"The energy of {_named(failed)} rests on {counts.min():.1f} samples: the rate may be wrong by more than a "
        f"factor of 2. Sample the transition more often, for example {remedy}."
    )
    what = "samples that carry the energy, n_E"
    return ModeCheck("energy samples", what, counts, MIN_SAMPLES, True, warning)


def _variance(evidence: Evidence) -> ModeCheck:
    counts = evidence.variance_samples
    failed, worst = counts < MIN_ROWS, int(np.argmin(counts))
    share, row = evidence.heaviest_shares[worst], int(evidence.heaviest[worst])
    warning = UnreliableModesWarning(
        f"The variance of {_named(failed)} rests on {counts[worst]:.1f} rows of X, {share:.0%} of it on row "
        f"{row} (counted from 0). Remove such rows if they are outliers, or add "
        "samples like them."
    )
    what = "samples that carry the variance, n_V"
    return ModeCheck("variance samples", what, counts, MIN_ROWS, True, warning)


def _transition(counts: np.ndarray) -> ModeCheck:
    warning = UnreliableModesWarning(
        f"Hardly a sample lies in the transition of {_named(counts < MIN_TRANSITION)}: what the kernel makes of the "
        "space between the samples decides the rate. Add samples of the transition, for example with a bias and "
        "weights."
    )
    what = "samples over which the mode changes, n_T"
    return ModeCheck("transition samples", what, counts, MIN_TRANSITION, True, warning)


def _independent(counts: np.ndarray, weighted: bool) -> ModeCheck:
    why = "weights and their correlation in time" if weighted else "correlation in time"
    milder = ", or a milder bias" if weighted else ""
    warning = UnreliableModesWarning(
        f"The samples are worth {counts.min():.0f} independent ones for {_named(counts < MIN_INDEPENDENT)}, by their "
        f"{why}: too few for a rate. Use more samples, of a longer trajectory if they are frames{milder}."
    )
    what = "independent samples"
    return ModeCheck("independent samples", what, counts, MIN_INDEPENDENT, True, warning)


def _mismatch(values: np.ndarray) -> ModeCheck:
    warning = UnreliableModesWarning(
        f"The energy of {_named(values > MAX_MISMATCH)} does not lie where a mode of such values has it: the "
        "kernel or the regularization does not fit, and the rate is biased. Use more samples, or if the kernel "
        "was set by hand AdaptiveDiffusionMap."
    )
    what = "misplaced part of the energy"
    return ModeCheck("mismatch", what, values, MAX_MISMATCH, False, warning)


def _held_out(factors: np.ndarray) -> ModeCheck:
    warning = UnreliableModesWarning(
        f"On held-out samples the rate of {_named(factors > MAX_RATIO)} is another one, by a factor of "
        f"{factors.max():.2g}: the mode follows its training samples. Use more "
        f"samples{or_fewer(_before(factors > MAX_RATIO))}."
    )
    what = "factor between the rates on held-out and on training samples"
    return ModeCheck("held-out factor", what, factors, MAX_RATIO, False, warning)


def _candidates(factors: np.ndarray) -> ModeCheck:
    warning = UnreliableModesWarning(
        f"Kernels that score alike differ in the rate of {_named(factors > MAX_SPREAD)} by a factor of "
        f"{factors.max():.2g}: the samples do not tell which is right. Use more "
        f"samples{or_fewer(_before(factors > MAX_SPREAD))}."
    )
    what = "factor between the rates of kernels that score alike"
    return ModeCheck("kernel factor", what, factors, MAX_SPREAD, False, warning)


def _features(factors: np.ndarray) -> ModeCheck:
    warning = UnreliableModesWarning(
        f"Other random features change the rate of {_named(factors > MAX_SPREAD)} by a factor of {factors.max():.2g}. "
        "Increase n_features."
    )
    what = "factor between the rates of different random features"
    return ModeCheck("feature factor", what, factors, MAX_SPREAD, False, warning)
