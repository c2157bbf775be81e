"""Reliability of a committor, and intervals of its flux and rates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdmaps.diagnostics.evidence import effective_count
from kdmaps.diagnostics.resampling import MAX_BLOCKS, Resampling, basic_intervals, independent_blocks
from kdmaps.utils.frames import aligned
from kdmaps.utils.notebook import TableCard

#: With fewer samples between the sets, or fewer that carry the flux, their number decides the result.
FEW_BETWEEN, FEW_CARRIERS = 20, 20
#: Values of a committor between the sets.
BETWEEN = (0.05, 0.95)
#: Largest ratio of held-out to training energy of a resolved committor.
MOST_OPTIMISTIC = 1.5
#: Largest overshoot of a committor beyond 0 and 1 at a sample. Behind A and B, clipping makes it harmless.
OVERSHOOT = 0.25
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
    def most_uneven(self) -> float:
        """Largest unevenness that is no cause for concern."""
        return float(UNEVEN + KUIPER / np.sqrt(max(self.flux_samples, 1)))

    @property
    def reasons(self) -> list[str]:
        """Why the flux and the rates are unreliable; empty if nothing was found."""
        found = []
        if self.deviation > self.tolerance:
            found.append(
                f"q misses its value in A or B by {self.deviation:.2f} at a sample: the sets touch, or a sample of one "
                "lies in the other. Leave a gap between the sets."
            )
        if self.between < FEW_BETWEEN:  # the cause of everything else
            return [
                *found,
                f"{f'Only {self.between}' if self.between else 'No'} samples lie between A and B (q from "
                f"{BETWEEN[0]:g} to {BETWEEN[1]:g}), so the flux and the rates are guesses. Add samples near the "
                "transition state, for example from a run that is biased along q.",
            ]
        if self.flux_samples < FEW_CARRIERS:
            found.append(
                f"The flux rests on {self.flux_samples:.0f} samples, so its error is of the order of "
                f"{1 / np.sqrt(max(self.flux_samples, 1)):.0%}. Add samples where |∇q|² is large, with weights."
            )
        if self.optimism > MOST_OPTIMISTIC:
            found.append(
                f"The energy of q is {self.optimism:.2g} times as large on held-out samples as on training samples: "
                "the samples do not determine q. Add samples, or leave out columns that do not matter."
            )
        if self.overshoot > OVERSHOOT:
            found.append(
                f"q exceeds the range from 0 to 1 by {self.overshoot:.2f} at row {self.overshoot_row} of X before "
                "clipping, in a region with few samples or small weights. Add samples there."
            )
        if self.unevenness > self.most_uneven:
            found.append(
                "The energy of q is not evenly distributed over its values, as the energy of a committor is (Kuiper's "
                f"distance {self.unevenness:.2f}): q is too smooth, or weights are wrong. Add samples, check weights."
            )
        return found

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of a table of the numbers on which the reasons are based, with their limits."""
        rows = [
            ["samples with q from {:g} to {:g}".format(*BETWEEN), str(self.between), f"at least {FEW_BETWEEN}"],
            ["effective number of samples that carry the flux", f"{self.flux_samples:.0f}", f"at least {FEW_CARRIERS}"],
            ["energy on held-out over training samples", f"{self.optimism:.3f}", f"at most {MOST_OPTIMISTIC:g}"],
            ["deviation in A and B before stretching", f"{max(self.deviation, 0):.2g}", f"at most {self.tolerance:g}"],
            ["excess over [0, 1] before clipping", f"{self.overshoot:.2g}", f"at most {OVERSHOOT:g}"],
            ["uneven energy over q (Kuiper's distance)", f"{self.unevenness:.2g}", f"at most {self.most_uneven:.2g}"],
        ]
        return ["check", "value", "limit"], rows

    def __repr__(self) -> str:
        titles, rows = self.cells()
        outcome = f"{len(self.reasons)} reasons for doubt" if self.reasons else "all checks passed"
        return "\n".join([f"Committor: {outcome}", *aligned([titles, *rows])])

    @property
    def ok(self) -> bool:
        """True if there is no reason to doubt the flux."""
        return not self.reasons


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
