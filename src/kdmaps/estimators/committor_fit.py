"""The fit of a committor: choice of the kernel, solution for all samples, flux, rates, intervals and reliability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kdmaps.bases import Basis
from kdmaps.data.correlation import order_of
from kdmaps.data.distances import Support
from kdmaps.diagnostics.committor import CommittorTrust, carriers, flux_and_rates, flux_intervals, unevenness
from kdmaps.diagnostics.evidence import values_at
from kdmaps.diagnostics.resampling import Resampling
from kdmaps.forms.tangent import TangentSpaces
from kdmaps.selection.committor import (
    OUTSIDE,
    SOURCE,
    TARGET,
    TOLERANCE,
    BoundaryData,
    CommittorSearch,
    Evaluated,
    Fitted,
    boundary_folds,
    mode_basis,
)

#: Confidence level of the intervals.
CONFIDENCE = 0.95
#: Names of the quantities that have intervals.
QUANTITIES = ("flux", "rate", "reverse_rate")


@dataclass(frozen=True, eq=False)
class CommittorFit:
    """Everything that a fit of a committor finds."""

    basis: Basis
    coefficients: np.ndarray  # (p, 1)
    offset: np.ndarray  # (1,)
    tangents: TangentSpaces | None
    support: Support
    quantities: np.ndarray  # (3,): flux, rate, reverse rate
    intervals: np.ndarray  # (3, 2)
    trust: CommittorTrust
    score: float  # held-out energy
    regularization: float
    candidates: list[dict[str, Any]]

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the estimator."""
        found: dict[str, Any] = {
            f"{name}_": float(value) for name, value in zip(QUANTITIES, self.quantities, strict=True)
        }
        found |= {f"{name}_interval_": own for name, own in zip(QUANTITIES, self.intervals, strict=True)}
        with np.errstate(divide="ignore"):
            times = 1 / np.array([found["rate_"], *found["rate_interval_"]])  # infinite without a flux
        return {
            **found,
            "mean_first_passage_time_": float(times[0]),
            "mean_first_passage_time_interval_": times[:0:-1],
            "basis_": self.basis,
            "kernel_": self.basis.kernel,
            "coefficients_": self.coefficients,
            "offset_": self.offset,
            "tangents_": self.tangents,
            "support_": self.support,
            "trust_": self.trust,
            "best_score_": -self.score,
            "regularization_": self.regularization,
            "candidates_": self.candidates,
        }


def search_kernel(
    data: BoundaryData, groups: Any, most: int, n_features: int, basis: str, cv: Any, progress: bool
) -> tuple[CommittorSearch, tuple[Evaluated, list[Evaluated]]]:
    """Choose the kernel by at most `most` samples."""
    n = len(data.X)
    rows = np.arange(n)
    if n > most:
        rows = np.sort(np.random.RandomState(data.seed).permutation(n)[:most])
        chosen = data.side[rows]
        if min(np.count_nonzero(chosen == side) for side in (SOURCE, TARGET, OUTSIDE)) < 2:
            raise ValueError(f"max_search_samples={most} leaves fewer than 2 samples in A or B; increase it.")
    some = data
    if len(rows) < n:
        share = data.share[rows] / data.share[rows].sum()
        some = BoundaryData(data.X[rows], share, data.side[rows], data.tensor.at(data.X[rows], rows), data.seed)
    own = None if groups is None else groups[rows]
    search = CommittorSearch(some, boundary_folds(some.X, some.side, own, data.seed, cv), n_features)
    return search, search.run(basis, progress)


def fit_committor(
    data: BoundaryData,
    search: CommittorSearch,
    found: tuple[Evaluated, list[Evaluated]],
    groups: Any,
    resampling: Resampling,
) -> CommittorFit:
    """Fit the choice to all samples."""
    best, candidates = found
    if not np.isfinite(best.score):
        raise ValueError("No kernel has a solution for X and y; check the scales of X and the weights.")
    everything = np.arange(len(data.X))
    fitted: Fitted = search.fit(best.recipe, data=data)
    raw = values_at(mode_basis(fitted.basis, fitted.solution), data.X)[:, 0]
    values, energies = (part[:, 0] for part in data.evaluate(fitted.basis, fitted.solution, everything))
    optimism = search.optimism(best)
    energies = energies * (1 + optimism) / 2
    outside = data.side == OUTSIDE
    excess = np.where(outside, np.maximum(-raw, raw - 1), -np.inf)
    between, carried = carriers(values, energies)
    trust = CommittorTrust(
        between=between,
        flux_samples=carried,
        optimism=optimism,
        deviation=fitted.deviation,
        tolerance=TOLERANCE,
        overshoot=max(float(excess.max()), 0.0),
        overshoot_row=int(np.argmax(excess)),
        unevenness=unevenness(values[outside], energies[outside]),
    )
    sums = np.array([energies.sum(), data.share @ values, data.share.sum()])
    return CommittorFit(
        basis=fitted.basis,
        coefficients=fitted.solution.coefficients,
        offset=-fitted.solution.constants,
        tangents=getattr(data.tensor, "spaces", None),
        support=Support.of(data.X, data.seed),
        quantities=flux_and_rates(sums),
        intervals=flux_intervals(values, energies, data.share, _trajectories(data.X, groups), resampling),
        trust=trust,
        score=best.score,
        regularization=search.flux_scale * best.recipe.regularization,
        candidates=[one.row() for one in candidates],
    )


def _trajectories(X: np.ndarray, groups: Any) -> list[np.ndarray]:
    """Return rows in the order of time, for blocks of resamples: groups, walkers, or all rows."""
    if groups is None:
        order = order_of(X)
        groups = order.walker_of(len(X)) if order.n_walkers > 1 else np.zeros(len(X))
    _, owner = np.unique(groups, return_inverse=True)
    return [np.flatnonzero(owner == k) for k in range(owner.max() + 1)]
