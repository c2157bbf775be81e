"""One fit: sums over a source, the eigenproblem, and how reliable its modes are. `fit_modes` returns a `Fit`."""

from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.bases import Basis, BasisSpec, LandmarkBasis
from kdmaps.checks import Check, Checks, Subject, rules, warn_of
from kdmaps.clocks.clock import BurstClock
from kdmaps.data.check import warn_of_data, warn_of_preview
from kdmaps.data.detached import RareGroup
from kdmaps.data.distances import Support, resolve_bandwidth
from kdmaps.data.pairs import Tail, check_steps, time_step_check
from kdmaps.data.sources import PREVIEW_SAMPLES, Sample, Source
from kdmaps.diagnostics.trust import Trust
from kdmaps.estimators.isolation import Isolated, isolate
from kdmaps.estimators.reliability import evidence_of_fit, gaps_between_samples, is_readable
from kdmaps.exceptions import Undetermined
from kdmaps.forms.energy import EnergyForm
from kdmaps.forms.lagged import LaggedForm
from kdmaps.forms.moments import Moments, add_exactly
from kdmaps.forms.tangent import TangentSpaces
from kdmaps.kernels import Kernel, make_kernel
from kdmaps.propagation.propagator import Propagator
from kdmaps.selection.cross_fit import cross_fit
from kdmaps.selection.evaluation import FoldedMoments
from kdmaps.selection.folds import check_groups, make_folds, make_splits
from kdmaps.selection.lag import ImpliedTimescales, choose_lag
from kdmaps.selection.plan import FitSpec
from kdmaps.spectrum.directed import modes_of
from kdmaps.spectrum.modes import Modes
from kdmaps.spectrum.pencil import fewer_modes, single_precision_check
from kdmaps.utils.types import RandomStateLike
from kdmaps.utils.validation import check_positive_number, seed_of

#: Slowest time scale in lags below which frames show no order: an autocorrelation of e^-2 = 0.14 after the lag.
SHORTEST = 0.5
#: For lag="auto", at most this many time scales have to be flat: later ones are often shorter than any lag.
MOST_FLAT = 2


@dataclass(frozen=True)
class ModelSpec:
    """Settings of a model with one kernel; the fields are parameters of `KernelDiffusionMap`."""

    kernel: str | Kernel
    bandwidth: Any
    regularization: float
    basis: BasisSpec
    fit: FitSpec
    seed: int

    def check(self) -> None:
        """Raise a ValueError for settings that are invalid for any data."""
        self.fit.check()
        check_positive_number("regularization", self.regularization)
        self.basis.check(self.fit.n_components)
        if self.fit.rates == "cross-fitted" and self.basis.basis == "full":
            raise ValueError("basis='full' leaves no sample to test on; use another basis or rates='ritz'.")


class Columns(NamedTuple):
    """Number and names of the columns of X."""

    n_features: int
    names: np.ndarray | None


@dataclass(frozen=True, eq=False)
class PartialState:
    """Everything that `partial_fit` needs of the chunks before."""

    carry: Moments | None = None  # rounding error of the sums
    tail: Tail | None = None  # frames whose partners may be in the next chunk


@dataclass(frozen=True, eq=False)
class Fit:
    """Fitted modes and everything that is known about them."""

    basis: Basis
    modes: Modes
    moments: Moments
    tangents: TangentSpaces | None = None
    right_modes: Modes | None = None  # at the second end of a lag, for reversible=False
    trust: Trust | None = None
    support: Support | None = None  # the range of the samples
    lag_choice: ImpliedTimescales | None = None  # time scales that determined the lag, for lag="auto"
    propagator: Propagator | None = None  # forecasts of the columns, for reversible=False
    raised: tuple[Check, ...] = ()  # checks of the data and of every step before the modes
    rare_groups: tuple[RareGroup, ...] = ()  # detached rows that are left out
    clock: BurstClock | None = None  # in which the rates are rates in real time
    partial: PartialState = field(default_factory=PartialState)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator."""
        evidence = None if self.trust is None else self.trust.evidence
        inner = ("partial", "raised")
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in inner}
        values |= {name: getattr(self.modes, name) for name in ("coefficients", "eigenvalues", "rates", "timescales")}
        values |= {name: getattr(evidence, name, None) for name in ("energy_samples", "variance_samples")}
        values |= {"kernel": self.basis.kernel, "lag": self.modes.clock.lag}
        if self.clock is not None:
            values |= {"rates": self.clock.rates, "timescales": 1 / self.clock.rates}
        return {f"{name}_": value for name, value in values.items()}

    @property
    def checks(self) -> Checks:
        """All checks of the fit: of the data, of the modes and of their rates."""
        return Checks([*self.raised, *self.of_modes])

    @property
    def of_modes(self) -> list[Check]:
        """Checks of the modes and of their rates."""
        checks = self.modes.checks
        lag = self.modes.clock.lag
        if lag is not None and self.right_modes is None:  # singular functions need not be slow
            slowest_in_lags = float(self.modes.timescales.max() / self.modes.clock.duration)
            checks.append(Check(rules.NO_MEMORY, slowest_in_lags, SHORTEST, words={"lag_frames": lag}))
        if self.basis.dtype == np.float32:
            checks.append(single_precision_check(self.moments, self.modes.coefficients))
        if self.trust is None:
            return checks
        if self.trust.held_out is not None:  # held-out samples have measured what a single fit estimates
            checks = [check for check in checks if check.rule.subject is not Subject.ESTIMATE]
        return [*checks, *self.trust.checks]


def spec_of(cls: Any, estimator: Any) -> Any:
    """Return a spec with the parameters of an estimator."""
    return cls(**{f.name: getattr(estimator, f.name) for f in fields(cls)})


def fit_modes(
    source: Source,
    spec: ModelSpec,
    weight: np.ndarray | None = None,
    groups: ArrayLike | None = None,
    before: Fit | None = None,
) -> Fit:
    """Fit the modes of a source by a checked spec; samples are added to the fit `before` of earlier chunks, if any."""
    check_folds(source, spec.fit)
    check_groups(groups, source.n_samples)  # before frames of earlier chunks are added
    tail, choice = None, None
    isolated = Isolated(source, spec.fit, weight, groups)
    if before is None:
        isolated = isolate(source, spec.fit, weight, groups)
        source, weight, groups = isolated.source, isolated.weight, isolated.trajectories
        spec = replace(spec, fit=isolated.fit)
        folds = spec.fit.rates == "cross-fitted"
        units = spec.fit.diffusion is not None
        warn_of_data(
            source,
            weight,
            groups,
            folds=folds,
            lag=spec.fit.lag,
            time_step=spec.fit.time_step,
            diffusion=units,
            detached=not isolated.warned,
        )
        fit, choice = with_lag(spec.fit, source, weight, groups, spec.seed)
    else:
        clock = before.modes.clock
        fit = replace(spec.fit, lag=clock.lag, time_step=spec.fit.time_step or clock.time_step)
        if before.partial.tail is not None:
            source, weight, groups = before.partial.tail.before(source, weight, groups)
        choice = before.lag_choice
    if fit.lag is not None:
        tail = Tail.of(source, fit.lag, weight, groups)
    source, weight, groups = fit.observations(source, weight, groups)
    form = fit.form(source, weight, spaces=None if before is None else before.tangents)
    fitted = fit_observations(source, replace(spec, fit=fit), form, weight, groups, before)
    fitted = with_rare_groups(fitted, isolated)
    if before is not None:
        fitted = replace(fitted, rare_groups=before.rare_groups)
    return replace(fitted, lag_choice=choice, partial=replace(fitted.partial, tail=tail))


def with_rare_groups(fitted: Fit, isolated: Isolated) -> Fit:
    """Return the fit of samples without detached rows, with row numbers of all samples."""
    if not isolated.groups:
        return fitted
    trust = fitted.trust
    if trust is not None:
        heaviest = isolated.in_full(trust.evidence.heaviest)
        trust = replace(trust, evidence=replace(trust.evidence, heaviest=heaviest))
    return replace(fitted, trust=trust, rare_groups=isolated.groups)


def check_folds(source: Source, spec: FitSpec) -> None:
    """Raise a ValueError if rates need folds but the samples cannot be cut into folds."""
    if spec.rates == "cross-fitted" and not source.has_rows:
        raise ValueError(
            "rates='cross-fitted' needs samples that can be cut into folds: an array, a .npy file or Dask data. For a "
            "stream use rates='ritz'."
        )


def with_lag(
    spec: FitSpec, source: Source, weight: np.ndarray | None, groups: ArrayLike | None, random_state: RandomStateLike
) -> tuple[FitSpec, ImpliedTimescales | None]:
    """Return the settings with numbers for `lag="auto"` and the time step, and the scan that determined the lag."""
    if spec.lag is not None and spec.time_step is None:
        spec = replace(spec, time_step=check_steps(source, groups))
    elif spec.lag is not None and spec.time_step is not None:
        warn_of([time_step_check(source, groups, float(spec.time_step))])
    if spec.lag != "auto":  # type: ignore[comparison-overlap]
        return spec, None
    try:
        choice = choose_lag(
            source,
            groups=groups,
            sample_weight=weight,
            n_components=min(spec.n_components, MOST_FLAT),
            time_step=spec.time_step,
            random_state=seed_of(random_state),
        )
    except np.linalg.LinAlgError as error:
        raise Undetermined("{lag:auto} finds no time scales in X; give {lag} a number of frames.") from error
    if not choice.timescales.resolved[:, 0].any():
        raise Undetermined(
            "{lag:auto} finds no time scale longer than a frame in X: rows are not in temporal order, or frames too "
            "far apart in time. Give frames in their order at shorter steps, leave out {lag} for independent samples, "
            "or give {lag} a number of frames."
        )
    return replace(spec, lag=choice.lag), choice.timescales


def fit_observations(
    source: Source,
    spec: ModelSpec,
    form: EnergyForm | LaggedForm,
    weight: np.ndarray | None,
    groups: ArrayLike | None,
    before: Fit | None = None,
    given: tuple[Basis, Sample] | None = None,
) -> Fit:
    """Fit the modes of samples, or of pairs of frames if there is a lag, which must be a number.

    A sample of the source determines the evidence, the support and, unless both are `given`, the basis.
    """
    if given is None:
        sample = _preview(source, spec, weight)
        check_groups(groups, source.n_samples)  # the length of a stream is known now
        basis = _make_basis(source, spec, sample) if before is None else before.basis
    else:
        basis, sample = given
    parts: list[tuple[Moments, Moments]] = []
    if spec.fit.rates == "cross-fitted":
        cv = spec.fit.with_folds(source, groups).splitter
        splits = make_splits(cv, source.rows_for_splitters, groups, spec.fit.n_components, spec.seed)
        landmarks = basis.landmarks if isinstance(basis, LandmarkBasis) else None
        folds = make_folds(splits, source, weight, spec.fit.n_components, landmarks)
        moments, parts = folds.moments(source, form, basis, weight, **spec.fit.summing)
    else:
        (moments,) = source.moments(form, basis, weight, **spec.fit.summing)
    earlier = (None, None) if before is None else (before.moments, before.partial.carry)
    total, carry = add_exactly(moments, *earlier)
    tangents = form.spaces if before is None else before.tangents
    fitted = fit_sums(spec, FoldedMoments(basis, total, parts), tangents)
    support = before.support if before is not None and before.support is not None else Support.of(sample.X, spec.seed)
    support = support.extended((sample.X.min(axis=0), sample.X.max(axis=0))).extended(source.bounds())
    fitted = replace(fitted, support=support, partial=PartialState(carry))
    # The samples of a later chunk are not representative of all samples.
    if before is not None or not is_readable(source, form, sample):
        return fitted
    known = {"right": fitted.right_modes, "cv": spec.fit.cv}
    settings = (source, sample, form, groups, spec.seed)
    modes, evidence, tests = evidence_of_fit(basis, fitted.modes, total, *settings, **known)
    trust = Trust(evidence, modes.rates, weighted=total.weighted, equilibrium=tests)
    gaps = gaps_between_samples(basis, modes, source, sample, form, spec.seed)
    return replace(fitted, modes=modes, trust=replace(trust, **gaps))


def fit_sums(spec: ModelSpec, folded: FoldedMoments, tangents: TangentSpaces | None) -> Fit:
    """Solve the eigenproblem of sums over samples; sums over folds are for cross-fitted rates."""
    basis, moments, parts = folded
    r, lam, center = spec.fit.n_components, spec.regularization, spec.fit.center
    modes, right = modes_of(moments, basis.ridge, r, lam, center, spec.fit.clock, fewer=True)
    if right is not None:
        warn_of([fewer_modes(len(modes.rates), r)])
        return Fit(basis, modes, moments, tangents, right)
    if spec.fit.rates == "cross-fitted":
        (fit,) = cross_fit(moments, parts, basis.ridge, r, [lam], center)
        if fit is None:
            raise Undetermined(
                "The samples of a fold do not determine {modes} mode(s), so that {rates:cross-fitted} has nothing to "
                "average; use {rates:ritz}, fewer modes, fewer folds or more samples.",
                modes=r,
            )
        modes = replace(modes, quotients=fit.held_out_quotients())
    return Fit(basis, modes.by_timescale(), moments, tangents)


def _preview(source: Source, spec: ModelSpec, weight: np.ndarray | None) -> Sample:
    """Draw the samples that determine the median distance, the landmarks and the origin."""
    needs_median = isinstance(spec.bandwidth, str) and not isinstance(spec.kernel, Kernel)
    # Given frequencies only need an origin, for which the first rows of a stream will do.
    typical = spec.basis.needs_typical_samples or needs_median
    most = None if spec.basis.basis == "full" else PREVIEW_SAMPLES
    return source.sample(most, np.random.RandomState(spec.seed), weight, typical)


def _make_basis(source: Source, spec: ModelSpec, sample: Sample) -> Basis:
    """Make the basis for samples like these."""
    X, weight = sample.counted(spec.fit.n_components)
    folds = spec.fit.rates == "cross-fitted"
    warn_of_preview(source, sample, folds=folds, diffusion=spec.fit.diffusion is not None)
    kernel = spec.kernel
    if not isinstance(kernel, Kernel):
        kernel = make_kernel(kernel, resolve_bandwidth(spec.bandwidth, X, weight, spec.seed))
    return spec.basis.make(kernel, X, weight, spec.seed)
