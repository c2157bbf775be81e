"""The fit of a committor: its sets A and B, the choice of the kernel, flux, rates, intervals and reliability."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kdmaps.bases import Basis
from kdmaps.clocks.clock import BurstClock
from kdmaps.data.correlation import order_of, trajectories_of
from kdmaps.data.detached import RareGroup
from kdmaps.data.distances import Support
from kdmaps.diagnostics.committor import CommittorTrust, carriers, resampled_flux, unevenness
from kdmaps.diagnostics.evidence import values_at
from kdmaps.diagnostics.resampling import Resampling
from kdmaps.exceptions import ArgumentError
from kdmaps.forms.tangent import TangentSpaces
from kdmaps.language import Either
from kdmaps.selection.committor import (
    OUTSIDE,
    SOURCE,
    TARGET,
    TOLERANCE,
    BoundaryData,
    CommittorSearch,
    Evaluated,
    boundary_folds,
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
    rare_groups: tuple[RareGroup, ...] = ()  # detached rows that are left out
    clock: BurstClock | None = None  # in which flux and rates are in real time

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the estimator."""
        hidden = ("quantities", "intervals", "score")
        found: dict[str, Any] = {f"{name}_": value for name, value in vars(self).items() if name not in hidden}
        for name, value, ends in zip(QUANTITIES, self.quantities, self.intervals, strict=True):
            found |= {f"{name}_": float(value), f"{name}_interval_": ends}
        with np.errstate(divide="ignore"):
            times = 1 / np.array([found["rate_"], *found["rate_interval_"]])  # infinite without a flux
        found |= {"mean_first_passage_time_": float(times[0]), "mean_first_passage_time_interval_": times[:0:-1]}
        return {**found, "kernel_": self.basis.kernel, "best_score_": -self.score}


def boundary_sides(y: Any, X: np.ndarray, weight: np.ndarray | None = None, complete: bool = True) -> np.ndarray:
    """Return the side of each sample from labels, masks, functions or coarse states.

    Unless `complete` is False, A, B and the region outside of both must have samples of positive weight.
    """
    n = len(X)
    side = _labels(y, X)
    if side.shape != (n,):
        raise ValueError(f"y must hold one label for each of the {n} samples of X, got shape {side.shape}.")
    if side.dtype.kind not in "iuf" or not np.isin(side, (SOURCE, TARGET, OUTSIDE)).all():
        known = side[~np.isin(side, (SOURCE, TARGET, OUTSIDE))][:5] if side.dtype.kind in "iuf" else side[:5]
        raise ValueError(
            f"y must hold 0 in A, 1 in B and -1 elsewhere, got {', '.join(map(str, known.tolist()))}; for more than "
            "two states use kdmaps.dynamics.rate_matrix."
        )
    side = side.astype(np.int64)
    if not complete:
        return side
    names = {
        SOURCE: Either("in A (y = 0)", "in A (--from)"),
        TARGET: Either("in B (y = 1)", "in B (--to)"),
        OUTSIDE: Either("outside of A and B (y = -1)", "outside of A and B (neither --from nor --to)"),
    }
    for one, name in names.items():
        own = side == one
        if not own.any():
            remedy = "use smaller sets, or add samples between them" if one == OUTSIDE else "use larger sets"
            raise ArgumentError("No sample is {name}; {remedy}.", name=name, remedy=remedy)
        if weight is not None and not weight[own].any():
            raise ArgumentError(
                "{sample_weight} is 0 for all samples {name}; the committor needs their weights.", name=name
            )
    return side


def _labels(y: Any, X: np.ndarray) -> np.ndarray:
    """Return the labels that y stands for, unchecked."""
    if y is None:
        raise ValueError("y is missing: give labels 0 in A, 1 in B and -1 elsewhere, or two masks.")
    if hasattr(y, "cores"):  # CoarseStates
        if len(y.populations) != 2:
            raise ValueError(
                f"y has {len(y.populations)} coarse states, but a committor needs two; use "
                "kdmaps.dynamics.rate_matrix for all pairs, or labels of two of them."
            )
        return np.asarray(y.cores)
    if callable(y):
        return np.asarray(y(X))
    if isinstance(y, tuple | list) and len(y) == 2 and all(callable(part) or np.ndim(part) == 1 for part in y):
        masks = [np.asarray(part(X) if callable(part) else part) for part in y]
        if any(mask.dtype != bool or mask.shape != (len(X),) for mask in masks):
            raise ValueError(f"y must hold two masks (arrays of bool) with one entry for each of the {len(X)} samples.")
        if shared := np.count_nonzero(masks[0] & masks[1]):
            raise ArgumentError(
                "A {source} and B {target} overlap: {shared} samples are in both. Use disjoint sets, with a gap.",
                source=Either("(y = 0)", "(--from)"),
                target=Either("(y = 1)", "(--to)"),
                shared=shared,
            )
        return np.where(masks[0], SOURCE, np.where(masks[1], TARGET, OUTSIDE))
    labels = np.asarray(y)
    if labels.dtype == bool:
        raise ValueError("y is one mask; give two, y=(in_A, in_B), or labels 0 in A, 1 in B and -1 elsewhere.")
    return labels


def search_kernel(
    data: BoundaryData, groups: Any, most: int, n_features: int, basis: str, cv: Any, progress: bool
) -> tuple[CommittorSearch, tuple[Evaluated, list[Evaluated]]]:
    """Choose the kernel by at most `most` samples."""
    n = len(data.X)
    if n > most:
        rows = np.sort(np.random.RandomState(data.seed).permutation(n)[:most])
        X, side, share = data.X[rows], data.side[rows], data.share[rows]
        if min(np.count_nonzero(side == one) for one in (SOURCE, TARGET, OUTSIDE)) < 2:
            raise ValueError(f"max_search_samples={most} leaves fewer than 2 samples in A or B; increase it.")
        data = BoundaryData(X, share / share.sum(), side, data.tensor.at(X, rows), data.seed)
        groups = None if groups is None else groups[rows]
    search = CommittorSearch(data, boundary_folds(data.X, data.side, groups, data.seed, cv), n_features)
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
    function, deviation = search.fit(best.recipe, data=data)
    raw = values_at(function, data.X)[:, 0]
    values, energies = (part[:, 0] for part in data.evaluate(function, np.arange(len(data.X))))
    optimism = search.optimism(best)
    energies = energies * (1 + optimism) / 2
    outside = data.side == OUTSIDE
    excess = np.where(outside, np.maximum(-raw, raw - 1), -np.inf)
    between, carried = carriers(values, energies)
    trust = CommittorTrust(
        between=between,
        flux_samples=carried,
        optimism=optimism,
        deviation=deviation,
        tolerance=TOLERANCE,
        overshoot=max(float(excess.max()), 0.0),
        overshoot_row=int(np.argmax(excess)),
        unevenness=unevenness(values[outside], energies[outside]),
    )
    if groups is None and (order := order_of(data.X)).n_walkers > 1:
        groups = order.walker_of(len(data.X))
    trajectories = trajectories_of(groups, len(data.X))
    quantities, intervals = resampled_flux(values, energies, data.share, trajectories, resampling)
    return CommittorFit(
        basis=function.basis,
        coefficients=function.coefficients,
        offset=function.offset,
        tangents=getattr(data.tensor, "spaces", None),
        support=Support.of(data.X, data.seed),
        quantities=quantities,
        intervals=intervals,
        trust=trust,
        score=best.score,
        regularization=search.flux_scale * best.recipe.regularization,
        candidates=[one.row() for one in candidates],
    )
