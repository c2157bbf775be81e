"""Fits in real time: the diffusion tensor from bursts, a fit as ever, and the clock of its modes or its committor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from kdmaps.bases import ModeBasis
from kdmaps.checks import warn_of
from kdmaps.clocks.clock import BurstClock, Bursts, FrameEnergies, measure_clock
from kdmaps.clocks.factors import MIN_FRAMES
from kdmaps.clocks.runs import Runs
from kdmaps.clocks.tensor import learn_diffusion
from kdmaps.data.inputs import join_trajectories
from kdmaps.data.sources import ArraySource, gather
from kdmaps.diagnostics.evidence import evaluated_at
from kdmaps.exceptions import ArgumentError, NotApplicable
from kdmaps.forms.tangent import checked_tensor
from kdmaps.utils.validation import checked_weight

if TYPE_CHECKING:
    from kdmaps.estimators.committor_fit import CommittorFit
    from kdmaps.estimators.fit import Fit

#: Largest part of the error of a flux, in its logarithm, from the difference of training and held-out energies.
MOST_GAP = 0.3


@dataclass(frozen=True, eq=False)
class GivenBursts:
    """The arguments of `fit` about bursts."""

    bursts: Any = None
    burst_start: Any = None
    burst_weight: Any = None

    def __bool__(self) -> bool:
        if self.bursts is None and not (self.burst_start is None and self.burst_weight is None):
            raise ArgumentError("{burst_start} and {burst_weight} need {bursts}: the runs that start there.")
        return self.bursts is not None


@dataclass(frozen=True, eq=False)
class TimedFit:
    """A fitted copy of an estimator, with the tensor that bursts show, and what its clock is measured on."""

    estimator: Any
    bursts: Bursts
    diffusion: Any  # learned from the bursts; None if it was given

    def tensor(self) -> Any:
        """Return the diffusion tensor of the energies, as a function of any points."""
        given = self.estimator.diffusion
        return checked_tensor(given, ArraySource(self.bursts.X, checked=True), spaces=self.estimator.tangents_)


def fit_with_bursts(
    estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any, given: GivenBursts, columns_of: Any
) -> TimedFit:
    """Fit a copy of an estimator with the diffusion tensor that bursts show.

    `columns_of` returns the source and the columns of X for an estimator.
    """
    if getattr(estimator, "lag", None) is not None:
        raise NotApplicable(
            "{bursts} are for samples without a lag: pairs of frames have a clock of their own. Leave out {bursts} or "
            "{lag}."
        )
    if "time_step" not in estimator.get_params(deep=False):
        raise NotApplicable("{estimator} has no clock; use AdaptiveDiffusionMap.", estimator=type(estimator).__name__)
    joined, joined_groups, _ = join_trajectories(X, groups, sample_weight)
    source, columns = columns_of(estimator, joined)
    runs = Runs.read(
        given.bursts,
        estimator.time_step,
        n_columns=columns.n_features,
        columns=columns.names,
        min_frames=MIN_FRAMES,
    )
    rows = np.asarray(gather(source), dtype=np.float64)
    weight = checked_weight(sample_weight, source)
    bursts = Bursts.of(runs, rows, weight, given.burst_start, given.burst_weight)
    learned = None
    settings: dict[str, Any] = {"time_step": None}
    if estimator.diffusion is None:
        learned = learn_diffusion(runs)
        settings["diffusion"] = learned
    elif np.ndim(getattr(estimator.diffusion, "array", estimator.diffusion)) == 3:
        raise NotApplicable(
            "{diffusion} per sample is unknown along bursts; give a constant tensor or a function, or leave it out: "
            "bursts show it."
        )
    inner = clone(estimator).set_params(**settings)
    arguments = (joined,) if y is None else (joined, y)
    inner.fit(*arguments, sample_weight=sample_weight, groups=joined_groups)
    return TimedFit(inner, bursts, learned)


def clock_of_modes(timed: TimedFit, fitted: Fit) -> BurstClock:
    """Measure the clock of fitted modes."""
    modes = fitted.modes
    functions = ModeBasis(fitted.basis, modes.coefficients, modes.offset)
    errors = np.zeros(len(modes.rates))
    if fitted.trust is not None:
        errors = np.nan_to_num(fitted.trust.evidence.errors)
        if fitted.trust.held_out is not None:
            gap = np.log(np.maximum(fitted.trust.held_out / modes.rates, 1.0))
            errors = np.hypot(errors, np.where(np.isfinite(gap), gap, np.inf))
    frames = FrameEnergies(modes.rates, errors)
    clock = measure_clock(functions, fitted.basis.kernel, timed.tensor(), timed.bursts, frames, timed.diffusion)
    warn_of(clock.checks)
    return clock


def clock_of_committor(timed: TimedFit, fitted: CommittorFit) -> CommittorFit:
    """Return a committor with flux and rates in real time; their intervals include the errors of the clock."""
    functions = ModeBasis(fitted.basis, fitted.coefficients, fitted.offset)
    flux = fitted.quantities[:1]
    gap = min(abs(np.log(max(fitted.trust.optimism, 1e-3))) / 2, MOST_GAP)
    frames = FrameEnergies(flux, np.array([gap]))
    options: dict[str, Any] = {"centred": False, "clip": (0.0, 1.0)}
    clock = measure_clock(
        functions, fitted.basis.kernel, timed.tensor(), timed.bursts, frames, timed.diffusion, **options
    )
    warn_of(clock.checks)
    factor = float(clock.factor[0])
    half = 1.96 * float(clock.errors[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        below, above = np.log(fitted.intervals / fitted.quantities[:, None]).T
    widened = np.stack([-np.hypot(below, half), np.hypot(above, half)], axis=1)
    quantities = fitted.quantities * factor
    return replace(fitted, quantities=quantities, intervals=quantities[:, None] * np.exp(widened), clock=clock)


def energy_densities(model: Any, X: np.ndarray) -> np.ndarray:
    """Return ∇φᵀa∇φ of the modes, or of a committor between its sets, at the rows of X, (n_samples, r)."""
    check_is_fitted(model)
    if getattr(model, "lag_", None) is not None:
        raise NotApplicable(
            "The model was fitted to pairs of frames, which have a clock of their own; fit samples without {lag}."
        )
    clock = getattr(model, "clock_", None)
    diffusion = model.diffusion if clock is None or clock.diffusion is None else clock.diffusion
    tensor = checked_tensor(diffusion, ArraySource(X, checked=True), spaces=model.tangents_)
    offset = model.offset_ if hasattr(model, "offset_") else model.modes_.offset
    functions = ModeBasis(model.basis_, model.coefficients_, offset)
    values, densities = evaluated_at(functions, X, tensor, np.arange(len(X)))
    if hasattr(model, "offset_"):
        densities[(values <= 0) | (values >= 1)] = 0
    return densities
