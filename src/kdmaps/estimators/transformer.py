"""Methods of fitted modes, which all estimators share."""

from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kdmaps.bases import ModeBasis
from kdmaps.checks import Check, Checks, collected, rules, warn, warn_of
from kdmaps.data.distances import Support
from kdmaps.data.given_pairs import Pairs
from kdmaps.data.inputs import as_source, check_columns, is_array_like, join_trajectories
from kdmaps.data.pairs import make_pairs, time_step_check
from kdmaps.data.sources import ArraySource, Source, gather
from kdmaps.estimators.fit import Columns, Fit, PartialState
from kdmaps.estimators.forecast import Fitted, Forecast, checked_steps, forecaster_of
from kdmaps.estimators.isolation import ConfinedModes, outside
from kdmaps.estimators.model_files import write_model
from kdmaps.estimators.prediction import Predictions
from kdmaps.estimators.real_time import GivenBursts, clock_of_modes, fit_with_bursts
from kdmaps.exceptions import ArgumentError
from kdmaps.forms.diffusion import is_per_sample
from kdmaps.forms.energy import EnergyForm
from kdmaps.forms.lagged import LaggedForm
from kdmaps.forms.moments import chunk_rows
from kdmaps.forms.tangent import DiffusionLike, checked_tensor
from kdmaps.selection.scores import timescale_score, vamp_score
from kdmaps.spectrum.directed import directed_score
from kdmaps.summary import FittedModel, NotebookDisplay
from kdmaps.utils.content import content_digest
from kdmaps.utils.files import as_path, replacing
from kdmaps.utils.frames import check_rows, row_times, split_rows
from kdmaps.utils.threads import at_most, map_reduce, n_workers_of, one_blas_thread, slices
from kdmaps.utils.types import PathLike, SamplesLike
from kdmaps.utils.validation import (
    check_nonnegative_number,
    checked_samples,
    checked_values,
    checked_weight,
    unit_weight,
)

#: Parameters that the sums over samples depend on.
SUMMED = {"kernel", "bandwidth", "diffusion", "lag", "reversible"}
SUMMED |= {"basis", "n_features", "sampling", "landmarks", "dtype"}


class FittedEstimator(NotebookDisplay, BaseEstimator):
    """An estimator whose fitted attributes, which end in "_", are set in one place."""

    n_features_in_: int
    feature_names_in_: np.ndarray
    support_: Support | None

    @one_blas_thread()
    def extrapolates(self, X: SamplesLike) -> np.ndarray:
        """Return True for points far from all samples of the fit, where the result is extrapolated and unreliable.

        Distances are measured to the nearest of a thousand samples that the model keeps. A point is far if its distance
        is more than three times the distance that 99 % of the samples do not exceed. `transform` and `predict` warn
        only of points that leave the range of the samples by more than a quarter of it, which takes less time but
        ignores gaps.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), path, stream of chunks

        Returns
        -------
        far : ndarray of shape (n_samples,) of bool
        """
        check_is_fitted(self)
        source = checked_source(self, join_trajectories(X)[0])
        if self.support_ is None:
            raise ValueError("This model was read from an older file, without the range of its samples; fit it again.")
        return source.rowwise(self.support_.far)

    def save(self, path: PathLike) -> None:
        """Write the fitted model to `path` as plain data (.npz, no pickle); `kdmaps.load` reads it back.

        The file appears whole or not at all; an existing one is replaced.

        Parameters
        ----------
        path : path-like
        """
        check_is_fitted(self)
        with replacing(as_path("path", path)) as (file,):
            write_model(self, file)

    def _warn_of_extrapolation(self, source: Source) -> None:
        """Warn of rows of an array in memory that lie far outside the samples of the fit."""
        if self.support_ is None or not (isinstance(source, ArraySource) and source.many_passes):
            return
        rows = self.support_.outside(source.array)
        if rows.size:  # the fit has warned of the rows that it left out
            rows = rows[outside(getattr(self, "rare_groups_", ()), source.array[rows])]
        if rows.size:
            words = {"count": len(source.array), "row": int(rows[0])}
            warn(Check(rules.EXTRAPOLATION, rows.size, words=words))

    def _set_attributes(self, columns: Columns, attributes: dict[str, Any]) -> None:
        """Replace all fitted attributes: the only place that sets them."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self.n_features_in_ = columns.n_features
        if columns.names is not None:
            self.feature_names_in_ = columns.names
        for name, value in attributes.items():
            setattr(self, name, value)

    @property
    def _columns(self) -> Columns:
        return Columns(self.n_features_in_, getattr(self, "feature_names_in_", None))


class ArrayTransformer(FittedModel, FittedEstimator, TransformerMixin, BaseEstimator):
    """Evaluation of fitted modes at the rows of one array or source."""

    _partial: PartialState
    _raised: tuple[Check, ...]
    _summed: dict[str, str]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the modes, "mode1", "mode2", ….

        Parameters
        ----------
        input_features : ignored
        """
        check_is_fitted(self)
        return np.array([f"mode{k + 1}" for k in range(self.coefficients_.shape[1])], dtype=object)

    @one_blas_thread()
    def transform(self, X: SamplesLike, *, time: float = 0.0, end: str = "first", out: PathLike | None = None) -> Any:
        """Evaluate the modes at the rows of one array or source, as `ModeTransformer.transform`."""
        check_is_fitted(self)
        time = check_nonnegative_number("time", time)
        decay = np.exp(-self.rates_ * time) if time else np.ones_like(self.rates_)  # a rate may be infinite
        source = checked_source(self, X)
        self._warn_of_extrapolation(source)
        size = chunk_rows(self.basis_, 0, self._memory_limit)
        return source.project(self._mode_basis(end), decay, size, out)

    def _mode_basis(self, end: str = "first") -> ModeBasis:
        if end not in ("first", "second"):
            raise ValueError(f"end must be 'first' or 'second', got {end!r}.")
        right = self.right_modes_ if end == "second" else None
        modes = self.modes_ if right is None else right
        states = tuple(group for group in self.rare_groups_ if group.is_state)
        if states:
            return ConfinedModes(self.basis_, modes.coefficients, modes.offset, states)
        return ModeBasis(self.basis_, modes.coefficients, modes.offset)

    @property
    def _memory_limit(self) -> float | None:
        return self.get_params(deep=False).get("memory_limit")


class ModeTransformer(Predictions, ArrayTransformer, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Methods of fitted modes, which all estimators share.

    scikit-learn wraps `ArrayTransformer.transform` for `set_output`; the `transform` of this class, which is not
    wrapped, accepts lists of arrays, too.
    """

    n_jobs: int | None

    @one_blas_thread()
    def fit(
        self,
        X: SamplesLike,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        bursts: Any = None,
        burst_start: Any = None,
        burst_weight: Any = None,
    ) -> Self:
        """Find the modes of the samples X, after the kernel has been chosen or learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), list of such arrays, path, stream of chunks
            Anything that `kdmaps.data.as_source` takes (an array for `VariationalKernelMap`). A list of arrays is
            several trajectories. Data that are not in memory are read in chunks: once for the 10,000 random samples
            that set the median bandwidth, the landmarks and the origin, once for the sums. A search uses a subsample of
            them, or the workers of Dask data.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative; samples of another law are reweighted to π by π/law. With a lag, a pair has the weight of its
            first frame, which is correct for runs that start out of equilibrium, but not for runs under a bias.
        groups : array-like of shape (n_samples,), optional
            The trajectory of each sample, for example: folds keep groups together.
        bursts : list of runs, or array of shape (n_bursts, n_frames, d), optional
            Short unbiased runs, of at least 21 frames at equal steps of `time_step`, that start at samples of X:
            arrays, data frames, files, streams, Dask data. They show the diffusion tensor, unless `diffusion` is given,
            and the clock: `rates_` and `timescales_` are then in real time, also for samples of a biased simulation
            with weights and for systems with memory. Not with a lag.
        burst_start : kdmaps.clocks.weights.Starts or array-like of int of shape (n_bursts,), optional
            The result of `kdmaps.dynamics.where_to_start`, or the row of X at which each burst starts. A list of rows
            stands for random rows of X, all with the same probability.
        burst_weight : array-like of shape (n_bursts,), or list of one array for each burst, optional
            Weights of the starts, or of all frames of the bursts, for the stationary law, if starts were drawn in
            another way.

        Returns
        -------
        self
        """
        given = GivenBursts(bursts, burst_start, burst_weight)
        if given:
            return self._fit_in_real_time(X, sample_weight, groups, given)
        if isinstance(X, Pairs) and getattr(self, "lag", None) != 1:
            raise ArgumentError("X has pairs of states, which are one lag apart: fit them with {lag:1}.")
        with collected() as checks, at_most(n_workers_of(self.n_jobs)):
            of_modes = self._fit(X, sample_weight, groups)
            raised = tuple(checks)
            warn_of(of_modes)
        self._set_checks(raised, Checks(checks))
        return self

    def _fit_in_real_time(
        self, X: SamplesLike, sample_weight: ArrayLike | None, groups: ArrayLike | None, given: GivenBursts
    ) -> Self:
        """Fit a copy with the diffusion tensor of bursts, and publish its results with the clock of its modes."""
        timed = fit_with_bursts(self, X, None, sample_weight, groups, given, read_samples)
        inner = timed.estimator
        fitted = inner._fitted()
        clock = clock_of_modes(timed, fitted)
        fitted = replace(fitted, clock=clock)
        columns = inner._columns
        of_fit = {*fitted.attributes(), "n_features_in_", "feature_names_in_"}
        fitted_names = [name for name in vars(inner) if name.endswith("_") and not name.startswith("_")]
        others = {name: getattr(inner, name) for name in fitted_names if name not in of_fit}
        if "best_estimator_" in others:
            others["best_estimator_"]._publish(columns, fitted)
        self._publish(columns, fitted, **others)
        self._set_checks(inner._raised, inner.checks_ + clock.checks)
        return self

    def _set_checks(self, raised: tuple[Check, ...], checks: Checks) -> None:
        """Set the checks before the modes and all checks, also of the model that a search has chosen."""
        models: list[Any] = [self, getattr(self, "best_estimator_", self)]
        for model in models:
            model._raised = raised
            model.checks_ = checks

    @property
    def checks(self) -> Checks:
        """All checks of the data, of the choice and of the modes that the fit has made."""
        check_is_fitted(self)
        return self.checks_

    def _fit(self, X: SamplesLike, sample_weight: ArrayLike | None, groups: ArrayLike | None) -> list[Check]:
        """Fit and publish the modes; return the checks of the choice and of the modes."""
        raise NotImplementedError

    @one_blas_thread()
    def transform(self, X: SamplesLike, *, time: float = 0.0, end: str = "first", out: PathLike | None = None) -> Any:
        """Evaluate the modes at new points.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), list of such arrays, path, stream of chunks
            Anything that `kdmaps.data.as_source` takes.
        time : float, default=0
            If positive, mode k is multiplied by e^{-rate_k·time}: the coordinates in which the Euclidean distance is
            the diffusion distance after that time.
        end : {"first", "second"}, default="first"
            With `reversible=False`, the end of a lag at which the modes are evaluated; else they are the same.
        out : path, optional
            Write the modes to this `.npy` file, chunk by chunk and atomically.

        Returns
        -------
        modes : ndarray of shape (n_samples, n_components)
            In the floating type of X; with `out`, mapped from that file. For Dask data a Dask array, not yet computed;
            for a list of arrays a list.
        """
        X, _, lengths = join_trajectories(X)
        modes = super().transform(X, time=time, end=end, out=out)
        return modes if lengths is None else split_rows(modes, lengths)

    def _modes_at(self, X: SamplesLike) -> np.ndarray:
        """Return the modes as floats; the rows of several trajectories follow one another."""
        return np.asarray(ArrayTransformer.transform(self, join_trajectories(X)[0]), dtype=np.float64)

    @one_blas_thread()
    def gradient(self, X: ArrayLike) -> np.ndarray:
        """Evaluate the gradients ∇φ_k of the modes at any points, in closed form.

        Returns
        -------
        gradients : ndarray of shape (n_samples, n_components, d)
            For a list of arrays a list.
        """
        check_is_fitted(self)
        X, _, lengths = join_trajectories(X)
        X = checked_samples(self, X, reset=False)
        r, projected = self.coefficients_.shape[1], self._mode_basis()
        out, identity = np.empty((X.shape[0], r, X.shape[1]), dtype=X.dtype), np.eye(r)

        def step(_: None, part: slice) -> None:
            out[part] = projected.gradient(np.asarray(X[part], dtype=np.float64), identity)

        map_reduce(list(slices(X.shape[0], projected.chunk_rows)), lambda: None, step)
        return out if lengths is None else split_rows(out, lengths)  # type: ignore[return-value]

    def rare_states(self, X: SamplesLike) -> np.ndarray:
        """Return the detached group that each point belongs to, if it is a state of its own.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), list of such arrays

        Returns
        -------
        ndarray of int of shape (n_samples,)
            Numbers from 0 in the order of `rare_groups_`, and -1 for all other points.
        """
        check_is_fitted(self)
        rows = np.asarray(gather(checked_source(self, join_trajectories(X)[0])), dtype=np.float64)
        states = np.full(len(rows), -1)
        for number, group in enumerate(group for group in self.rare_groups_ if group.is_state):
            states[group.indicator(rows) > 0] = number
        return states

    @one_blas_thread()
    def predict_expectation(
        self,
        X: SamplesLike,
        values: ArrayLike,
        time: float,
        at: SamplesLike = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict E[f(X_t) | X_0 = x] for an observable f known at samples of the stationary law.

        The semigroup acts on the modes by e^{-rate·t}: E[f(X_t) | X_0 = x] ≈ E f + Σ_k ⟨f, φ_k⟩ e^{-rate_k t} φ_k(x).
        The part of f outside the modes is assumed to have decayed.

        With `reversible=False`, the Koopman operator of pairs of frames is applied once for each lag, on the modes or
        on all features, whichever predicts held-out blocks of X better. `kdmaps.dynamics.forecast` returns the same
        with error bars and the horizon.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Samples, e.g. the training samples; with `reversible=False` frames in temporal order.
        values : array-like of shape (n_samples,) or (n_samples, m)
            f at these samples.
        time : float
            t ≥ 0, in the units of the time scales; with `reversible=False` a multiple of the lag.
        at : array-like of shape (n_points, d), optional
            The points x; by default X.
        sample_weight : array-like of shape (n_samples,), optional
            Weights with which X represents the stationary law.
        groups : array-like of shape (n_samples,), optional
            Trajectory of each frame, for `reversible=False`.

        Returns
        -------
        expectation : ndarray of shape (n_points,) or (n_points, m)
        """
        check_is_fitted(self)
        check_rows(X, values=values, sample_weight=sample_weight)
        if self.right_modes_ is not None:
            return self._forecast(X, values, time, at, sample_weight, groups).values[0]
        phi = self._modes_at(X)
        values = checked_values(values, len(phi))
        weight = unit_weight(checked_weight(sample_weight, phi), len(phi))
        mean = weight @ values
        overlaps = (phi * weight[:, None]).T @ (values - mean)
        points = phi if at is None else self._modes_at(at)
        decay = np.exp(-self.rates_ * time) if check_nonnegative_number("time", time) else 1.0  # 0·∞ is not a number
        return mean + (points * decay) @ overlaps

    def _forecast(
        self,
        X: SamplesLike,
        values: ArrayLike,
        times: Any,
        at: SamplesLike = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Forecast:
        """Forecast observables at multiples of the lag, as `kdmaps.dynamics.forecast`."""
        clock = self.modes_.clock
        steps = checked_steps(times, clock)
        X, groups, _ = join_trajectories(X, groups, sample_weight)
        source = checked_source(self, X)
        warn_of([time_step_check(source, groups, float(clock.time_step))])
        frames, weight = gather(source), checked_weight(sample_weight, source)
        points = frames
        if at is not None:
            present = checked_source(self, join_trajectories(at)[0])
            self._warn_of_extrapolation(present)
            points = gather(present)
        fitted: Any = getattr(self, "best_estimator_", self)
        moments = None if self.right_modes_ is None else self.moments_
        model = Fitted(self.basis_, clock, len(self.rates_), fitted.regularization, moments)
        observables = checked_values(values, len(frames))
        return forecaster_of(self, model, frames, groups, weight).forecast(observables, steps, points)

    @one_blas_thread()
    def score(
        self,
        X: SamplesLike,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        diffusion: DiffusionLike = None,
    ) -> float:
        """Return the timescale score of the modes on X: tr[(VᵀLV)⁻¹VᵀΣV]; larger is better.

        On samples that the modes were not fitted to, its expectation is at most the sum of the longest time scales of
        the system. With a lag it is the VAMP-2 score, the sum of the squared autocorrelations of the modes after the
        lag, which is largest for the slowest modes.

        It is a sum over the modes and grows with their number: use it to compare kernels and settings for one
        `n_components`. To choose `n_components`, look at the gaps of `timescales_` or at
        `KernelSearchCV.suggested_n_components_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), path, stream of chunks
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            With a lag, the trajectory of each frame.
        diffusion : optional
            Diffusion tensor at these samples, needed if `fit` had one tensor per sample. By default the parameter of
            the estimator; for "tangent" the tangent spaces of the training samples (the first chunk of `partial_fit`).
        """
        check_is_fitted(self)
        X, groups, _ = join_trajectories(X, groups, sample_weight)
        source = checked_source(self, X)
        weight = checked_weight(sample_weight, source)
        if "lag" in self._changed_parameters():
            raise ValueError("lag was changed after the fit; set it back, or fit again.")
        lag, left, right = self.lag_, self.modes_, self.right_modes_
        modes: ModeBasis = self._mode_basis()
        form: EnergyForm | LaggedForm
        if right is not None:
            both = np.hstack([left.coefficients, right.coefficients]), np.concatenate([left.offset, right.offset])
            modes = ModeBasis(self.basis_, *both)
        if lag is None:
            given = (self._own_diffusion(), self.tangents_) if diffusion is None else (diffusion, None)
            form = EnergyForm(checked_tensor(given[0], source, weight, spaces=given[1]))
        else:
            source, weight, _ = make_pairs(source, lag, weight, groups)
            form = LaggedForm(lag, right is None)
        (found,) = source.moments(form, modes, weight, memory_limit=self._memory_limit)
        if right is not None:
            return directed_score(found)
        return (timescale_score if lag is None else vamp_score)(found.covariance(), found.mean_energy())

    def _publish(self, columns: Columns, fitted: Fit, summed: dict[str, str] | None = None, **others: Any) -> Self:
        """Replace all fitted attributes by a fit and `others`.

        `summed` has digests of the parameters of the sums, if they differ from the present parameters.
        """
        self._set_attributes(columns, {**fitted.attributes(), "checks_": fitted.checks, **others})
        self._raised = fitted.raised
        self._partial = fitted.partial
        self._summed = self._summed_parameters() if summed is None else summed
        return self

    def _fitted(self) -> Fit:
        """Return the published fit."""
        names = (
            "basis",
            "modes",
            "moments",
            "tangents",
            "right_modes",
            "trust",
            "support",
            "lag_choice",
            "rare_groups",
            "propagator",
            "clock",
        )
        values = {name: getattr(self, f"{name}_") for name in names}
        return Fit(**values, partial=self._partial, raised=self._raised)

    def _summed_parameters(self) -> dict[str, str]:
        """Return digests of the parameters that the sums over samples depend on."""
        found = {}
        for name in SUMMED & set(self._get_param_names()):
            value = getattr(self, name)
            try:
                found[name] = content_digest(value)
            except (ValueError, RecursionError):  # only the same object is equal
                found[name] = f"{type(value)} {id(value)}"
        return found

    def _changed_parameters(self) -> list[str]:
        """Return the parameters that the sums over samples depend on and that were changed since the fit."""
        now = self._summed_parameters()
        return sorted(name for name, digest in self._summed.items() if now[name] != digest)

    def _own_diffusion(self) -> DiffusionLike:
        """Return the diffusion tensor for samples that were not in `fit`."""
        clock = self.clock_
        if clock is not None and clock.diffusion is not None:
            return clock.diffusion
        model: ModeTransformer = getattr(self, "best_estimator_", None) or self
        given = model.get_params(deep=False)["diffusion"]
        if is_per_sample(given):
            raise ValueError(
                "diffusion was given per sample and belongs to the samples of fit; pass the tensors at these samples "
                "as diffusion=…, or give the estimator a callable."
            )
        if "diffusion" in self._changed_parameters():
            raise ValueError("diffusion was changed after the fit; pass it with these samples, or fit again.")
        return given

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def read_samples(estimator: FittedEstimator, X: SamplesLike, array: bool = False) -> tuple[Any, Columns]:
    """Return a source of the samples of a fit (with `array`, in memory), and their columns; keep the estimator."""
    record = type(estimator).__new__(type(estimator))  # scikit-learn records the columns on this object
    source = _array(record, X, reset=True) if array else checked_source(record, X, reset=True)
    return source, record._columns


def checked_source(estimator: FittedEstimator, X: SamplesLike, reset: bool = False) -> Source:
    """Return a source of X, which must have the same columns as the fit; `reset` sets the columns."""
    if is_array_like(X):
        return _array(estimator, X, reset)
    source = as_source(X)
    check_columns(estimator, source, reset)
    return source


def _array(estimator: FittedEstimator, X: Any, reset: bool) -> ArraySource:
    source = ArraySource(checked_samples(estimator, X, reset), checked=True)
    names = estimator._columns.names
    source.feature_names = None if names is None else list(names)
    source.times = partial(row_times, X)
    return source
