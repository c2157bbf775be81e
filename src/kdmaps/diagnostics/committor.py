"""Reliability of a committor, and intervals of its flux and rates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdmaps.checks import Check, Checks, rules
from kdmaps.diagnostics.evidence import effective_count
from kdmaps.diagnostics.resampling import MAX_BLOCKS, Resampling, basic_intervals, independent_blocks
from kdmaps.utils.frames import aligned
from kdmaps.utils.notebook import TableCard

#: Values of a committor between the sets.
BETWEEN = (0.05, 0.95)
#: Kuiper's distance from the uniform distribution, in units of 1/√n, that 99.9 % of samples do not exceed, and a
#: distance that is no cause for concern.
KUIPER, UNEVEN = 2.3, 0.1


@dataclass(frozen=True, repr=False)
class CommittorTrust(TableCard):
    """Reliability of a committor."""

    between: int  #: Number of samples with a committor from 0.05 to 0.95.
    flux_samples: float  #: Effective number (Σe)²/Σe² of samples that carry the flux.
    optimism: float  #: Ratio of the energies on held-out samples and on training samples.
    deviation: float  #: Largest deviation from 0 in A and 1 in B before the function was stretched.
    tolerance: float  #: Deviations up to this are removed.
    overshoot: float  #: Largest excess over 1, or below 0, at a sample before clipping.
    overshoot_row: int  #: Row of X of this sample.
    #: Kuiper's distance of the energy from its exact distribution over the values of q, which is uniform.
    unevenness: float

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks of these numbers."""
        carrying = max(self.flux_samples, 1)
        # Kuiper's distance that 99.9 % of samples do not exceed is KUIPER/√n.
        most_uneven = float(UNEVEN + KUIPER / np.sqrt(carrying))
        few = {"few": f"Only {self.between}" if self.between else "No"}
        return (
            Check(rules.SETS_TOUCH, max(self.deviation, 0.0), self.tolerance),
            Check(rules.SAMPLES_BETWEEN, self.between, words=few),
            Check(rules.FLUX_SAMPLES, self.flux_samples, words={"error": 1 / np.sqrt(carrying)}),
            Check(rules.COMMITTOR_OPTIMISM, self.optimism),
            Check(rules.OVERSHOOT, self.overshoot, words={"row": self.overshoot_row}),
            Check(rules.UNEVEN_FLUX, self.unevenness, most_uneven),
        )

    @property
    def reasons(self) -> list[str]:
        """Why the flux and the rates are unreliable, in words; empty if all checks passed."""
        return [check.say() for check in Checks(self.checks).warnings]

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of a table of the checks."""
        return Checks(self.checks).cells()

    def __repr__(self) -> str:
        titles, rows = self.cells()
        return "\n".join([f"Committor: {Checks(self.checks).headline()}", *aligned([titles, *rows])])

    @property
    def ok(self) -> bool:
        """True if all checks passed."""
        return all(check.passed for check in self.checks)


def unevenness(values: np.ndarray, energies: np.ndarray) -> float:
    """Return Kuiper's distance between the distribution of energy over the values of q and the uniform distribution.

    The energy between two level sets s < t of a committor is ν(t - s): the flux through every level set is the same.
    """
    order = np.argsort(values, kind="stable")
    own = energies[order] / max(energies.sum(), np.finfo(float).tiny)
    difference = np.cumsum(own) - own / 2 - values[order]
    some = own > 0
    return float(np.ptp(difference[some])) if some.any() else 1.0


def carriers(values: np.ndarray, energies: np.ndarray) -> tuple[int, float]:
    """Return the numbers of samples between the sets and of samples that carry the flux."""
    between = int(np.count_nonzero((values > BETWEEN[0]) & (values < BETWEEN[1])))
    return between, float(effective_count(energies)) if energies.any() else 0.0


def flux_and_rates(parts: np.ndarray, counts: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return flux, rate from A to B and rate from B to A, (3,), and their block-bootstrap intervals, (3, 2).

    `parts` holds Σw e, Σw q and Σw of every block, with the energies e at samples of weight w and committor q; `counts`
    are the counts of `Resampling.all_and_counts`.
    """
    energy, inside, weight = (counts @ parts).T
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.stack([energy / weight, energy / (weight - inside), energy / inside], axis=-1)
        logs = np.log(found)
    known = logs[1:][np.all(np.isfinite(logs[1:]), axis=1)]
    if len(known) < 2:
        return found[0], np.full((3, 2), np.nan)
    return found[0], np.exp(basic_intervals(logs[0], known, confidence, len(parts)))


def resampled_flux(
    values: np.ndarray,
    energies: np.ndarray,
    share: np.ndarray,
    trajectories: Sequence[np.ndarray],
    resampling: Resampling,
) -> tuple[np.ndarray, np.ndarray]:
    """Return flux and rates with intervals, as `flux_and_rates` does.

    The flux is the minimum of the energy, so that its derivative by the function vanishes: to first order, a resample
    changes it as if the function stayed the same. Hence no resample needs another fit.
    """
    series = np.column_stack([values, energies / max(energies.mean(), np.finfo(float).tiny)])
    blocks, _, _ = independent_blocks(series, None, trajectories, "auto", MAX_BLOCKS)
    rows = np.column_stack([energies, share * values, share])
    parts = np.array([rows[block].sum(axis=0) for block in blocks])
    return flux_and_rates(parts, resampling.all_and_counts(len(blocks)), resampling.confidence)
