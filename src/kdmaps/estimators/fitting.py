"""The fit that all estimators end with: sums over a source, the eigenproblem, and how far to trust it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.bases import Basis, BasisSpec, LandmarkBasis
from kdmaps.data.check import warn_of_preview
from kdmaps.data.sources import PREVIEW_SAMPLES, Sample, Source
from kdmaps.diagnostics.trust import Trust
from kdmaps.estimators.transformer import set_modes
from kdmaps.estimators.verdict import judge_fit
from kdmaps.forms.energy import EnergyForm
from kdmaps.forms.lagged import LaggedForm
from kdmaps.forms.moments import Moments, add_exactly
from kdmaps.forms.tangent import TangentSpaces
from kdmaps.kernels import Kernel
from kdmaps.selection.cross_fit import cross_fitted_quotients
from kdmaps.selection.folds import make_folds, make_splits
from kdmaps.selection.judging import FoldedMoments
from kdmaps.selection.lag import choose_lag
from kdmaps.selection.plan import FitSpec
from kdmaps.spectrum.directed import find_directed_modes
from kdmaps.spectrum.modes import Modes
from kdmaps.spectrum.pencil import find_modes, single_precision_warnings
from kdmaps.utils.validation import check_samples, seed_of

#: Time scales that must be flat for a lag to be chosen, at most: later ones are often shorter than any lag.
MOST_FLAT = 2

FoldSums = list[tuple[Moments, Moments]]


def basis_spec(estimator: Any) -> BasisSpec:
    """Return the settings of the basis of an estimator."""
    return BasisSpec(estimator.basis, estimator.n_features, estimator.sampling, estimator.landmarks, estimator.dtype)


def fit_spec(estimator: Any) -> FitSpec:
    """Return the settings of the fit of an estimator."""
    names = (
        *("n_components", "center", "diffusion", "rates", "cv", "engine", "memory_limit"),
        *("lag", "time_step", "reversible"),
    )
    settings = {name: getattr(estimator, name) for name in names}
    return FitSpec(**settings | {"lag": getattr(estimator, "lag_", settings["lag"])})


def choose_lag_for(estimator: Any, source: Source, weight: np.ndarray | None, groups: ArrayLike | None) -> int | None:
    """Return the lag of an estimator; "auto" is found by implied time scales, which `lag_choice_` keeps."""
    if estimator.lag != "auto":
        return estimator.lag
    most = min(estimator.n_components, MOST_FLAT)
    settings = {"n_components": most, "time_step": estimator.time_step, "random_state": seed_of(estimator.random_state)}
    try:
        choice = choose_lag(source, groups=groups, sample_weight=weight, **settings)
    except np.linalg.LinAlgError as error:
        raise ValueError('lag="auto" finds no time scales in X; give lag a number of frames.') from error
    estimator.lag_choice_ = choice.timescales
    return choice.lag


def check_folds(source: Source, spec: FitSpec) -> None:
    """Raise a ValueError if rates need folds, and the samples cannot be cut into folds."""
    if spec.rates == "cross-fitted" and not source.has_rows:
        raise ValueError(
            "rates='cross-fitted' needs samples that can be cut into folds: an array, a .npy file or Dask data. For a "
            "stream fit a KernelDiffusionMap by partial_fit, chunk by chunk."
        )


def fit_source(
    model: Any,
    source: Source,
    form: EnergyForm | LaggedForm,
    weight: np.ndarray | None,
    groups: ArrayLike | None = None,
    reset: bool = True,
) -> None:
    """Sum over the samples of a source and fit the modes; without `reset`, of these and all samples before."""
    seed = seed_of(model.random_state)
    sample = _preview(model, source, weight, seed)
    basis = _make_basis(model, source, sample, seed) if reset else model.basis_
    spec, parts = fit_spec(model), None
    if spec.rates == "cross-fitted":
        if not reset and not hasattr(model, "_folds"):
            raise ValueError(
                "rates='cross-fitted' needs the folds of all samples, which a model that was loaded, or fitted with "
                "rates='ritz', does not keep; call set_params(rates='ritz') before partial_fit."
            )
        cv = spec.with_folds(source, groups).splitter if reset else getattr(model, "_splitter", spec.splitter)
        splits = make_splits(cv, source.rows_for_splitters, groups, spec.n_components, seed)
        model._splitter = cv  # the chunks of partial_fit are cut alike
        landmarks = basis.landmarks if isinstance(basis, LandmarkBasis) else None
        folds = make_folds(splits, source, weight, spec.n_components, landmarks)
        moments, parts = folds.moments(source, form, basis, weight, **spec.summing)
        if not reset and len(parts) != len(model._folds):
            raise ValueError(
                f"These samples are cut into {len(parts)} folds, those before into {len(model._folds)}; every chunk "
                "needs as many groups as cv has folds. Pass another cv or groups, or rates='ritz'."
            )
        if not reset:
            parts = [(a + c, b + d) for (a, b), (c, d) in zip(model._folds, parts, strict=True)]
    else:
        (moments,) = source.moments(form, basis, weight, **spec.summing)
    before = (None, None) if reset else (model.moments_, getattr(model, "_carry", None))
    total, carry = add_exactly(moments, *before)
    tangents = form.spaces if reset else model.tangents_
    fit_sums(model, FoldedMoments(basis, total, parts or []), tangents, carry)
    judge_fit(model, source, sample, form, groups, seed, reset)


def fit_sums(model: Any, folded: FoldedMoments, tangents: TangentSpaces | None, carry: Moments | None = None) -> None:
    """Fit the modes of samples that are summed already.

    Parameters
    ----------
    model : KernelDiffusionMap
    folded : FoldedMoments
        The sums; those of the folds are for cross-fitted rates.
    tangents : TangentSpaces or None
    carry : Moments, optional
        The rounding error of the sums, for the next `partial_fit`.
    """
    spec = fit_spec(model)
    right = None
    if spec.reversible:
        modes = solve_modes(*folded, model.regularization, spec)
    else:
        problem = (folded.whole, folded.basis.ridge, spec.n_components, model.regularization, spec.clock)
        modes, right = find_directed_modes(*problem)
    set_modes(model, folded.basis, modes, folded.whole, tangents, right)
    model._carry = carry
    if spec.rates == "cross-fitted":
        model._folds = folded.parts
    elif hasattr(model, "_folds"):
        del model._folds  # they would lack the samples of a later partial_fit


def solve_modes(basis: Basis, moments: Moments, parts: FoldSums, regularization: float, spec: FitSpec) -> Modes:
    """Return the modes of the samples behind `moments`, longest time scale first."""
    problem = (basis.ridge, spec.n_components, regularization, spec.center)
    modes = find_modes(moments, *problem, spec.clock)
    if spec.rates == "cross-fitted":
        modes = replace(modes, quotients=cross_fitted_quotients(moments, parts, *problem))
    return modes.by_timescale()


def fit_warnings(model: Any, trust: Trust | None) -> list[Warning]:
    """Return reasons not to trust the modes of a fit."""
    found: list[Warning] = list(model.modes_.warnings())
    if model.basis_.dtype == np.float32:
        found += single_precision_warnings(model.moments_, model.modes_.coefficients)
    return found if trust is None else [*found, *trust.warnings()]


def _preview(model: Any, source: Source, weight: np.ndarray | None, seed: int) -> Sample:
    """Draw the samples that decide the median, the landmarks and the origin."""
    spec = basis_spec(model)
    needs_median = isinstance(model.bandwidth, str) and not isinstance(model.kernel, Kernel)
    # Given frequencies only need an origin, for which the first rows of a stream will do.
    typical = spec.needs_typical_samples or needs_median
    most = None if spec.basis == "full" else PREVIEW_SAMPLES
    return source.sample(most, np.random.RandomState(seed), weight, typical)


def _make_basis(model: Any, source: Source, sample: Sample, seed: int) -> Basis:
    """Make the basis that the parameters describe, for samples like these."""
    spec, (_, X, weight) = basis_spec(model), sample
    if weight is not None:
        X, weight = X[weight > 0], weight[weight > 0]
    check_samples(X, model.n_components)
    warn_of_preview(source, sample, folds=model.rates == "cross-fitted")
    return spec.make(model._make_kernel(X, weight, seed), X, weight, seed)
