"""What every fitted set of modes can do, whichever estimator found them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kdmaps.bases import Basis, ModeBasis
from kdmaps.data.distances import Support
from kdmaps.data.inputs import as_source, check_columns, is_array_like, join_trajectories
from kdmaps.data.pairs import make_pairs
from kdmaps.data.sources import ArraySource, Source
from kdmaps.diagnostics.trust import Trust
from kdmaps.estimators.summed import changed_parameters, own_diffusion, summed_parameters
from kdmaps.exceptions import UnreliableModesWarning
from kdmaps.forms.energy import make_form
from kdmaps.forms.engines import chunk_rows
from kdmaps.forms.lagged import LaggedForm
from kdmaps.forms.moments import Moments
from kdmaps.forms.tangent import DiffusionLike, TangentSpaces
from kdmaps.kernels import Kernel
from kdmaps.selection.scores import timescale_score, vamp_score
from kdmaps.spectrum.directed import directed_score
from kdmaps.spectrum.modes import Modes
from kdmaps.summary import NotebookDisplay
from kdmaps.utils.frames import split_rows
from kdmaps.utils.threads import map_reduce, slices
from kdmaps.utils.types import PathLike, SamplesLike
from kdmaps.utils.validation import checked_samples, checked_time, checked_values, checked_weight
from kdmaps.utils.warn import warn


class ModeTransformer(NotebookDisplay, TransformerMixin, BaseEstimator):
    """What every fitted set of modes can do, whichever estimator found them.

    Subclasses fit `basis_`, `modes_`, the public attributes that derive from them, and `tangents_`.
    """

    basis_: Basis
    kernel_: Kernel
    modes_: Modes
    coefficients_: np.ndarray
    eigenvalues_: np.ndarray
    rates_: np.ndarray
    timescales_: np.ndarray
    moments_: Moments
    tangents_: TangentSpaces | None = None
    trust_: Trust | None = None
    energy_samples_: np.ndarray | None = None
    variance_samples_: np.ndarray | None = None
    support_: Support | None = None
    right_modes_: Modes | None = None
    lag_: int | None
    _summed: dict[str, str]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the modes, "mode1", "mode2", ….

        Parameters
        ----------
        input_features : ignored
        """
        check_is_fitted(self)
        return np.array(mode_names(self.coefficients_.shape[1]), dtype=object)

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
        check_is_fitted(self)
        time = checked_time(time)
        decay = np.exp(-self.rates_ * time) if time else np.ones_like(self.rates_)  # a rate may be infinite
        source = checked_source(self, X)
        self._warn_of_extrapolation(source)
        size = chunk_rows(self.basis_, 0, getattr(self, "memory_limit", None))
        return source.project(self._mode_basis(end), decay, size, out)

    def extrapolates(self, X: SamplesLike) -> np.ndarray:
        """Tell which points lie far from all samples of the fit, where modes are what the kernel makes of them.

        A point is far if its nearest sample (of a thousand that the model keeps) is more than three times as far as
        those of 99 % of the samples are. `transform` warns of points that leave the range of the samples by more than a
        quarter of it, which costs less; it does not see gaps inside.

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
            raise ValueError("This model does not know where its samples were, as older files do not; fit it again.")
        return source.rowwise(self.support_.far)

    def _warn_of_extrapolation(self, source: Source) -> None:
        """Warn of rows of an array in memory that lie far outside the samples of the fit."""
        if self.support_ is None or not (isinstance(source, ArraySource) and source.many_passes):
            return
        rows = self.support_.outside(source.array)
        if rows.size:
            warn(
                f"{rows.size} of {len(source.array)} rows of X lie far outside the samples of the fit, such as row "
                f"{rows[0]} (counted from 0): modes there are what the kernel makes of them. See extrapolates.",
                UnreliableModesWarning,
            )

    def _modes_at(self, X: SamplesLike) -> np.ndarray:
        """Return the modes as floats, those of several trajectories below one another."""
        return np.asarray(ModeTransformer.transform(self, join_trajectories(X)[0]), dtype=np.float64)

    def _mode_basis(self, end: str = "first") -> ModeBasis:
        if end not in ("first", "second"):
            raise ValueError(f"end must be 'first' or 'second', got {end!r}.")
        right = self.right_modes_ if end == "second" else None
        modes = self.modes_ if right is None else right
        return ModeBasis(self.basis_, modes.coefficients, modes.offset)

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

    def predict_expectation(
        self,
        X: SamplesLike,
        values: ArrayLike,
        time: float,
        at: SamplesLike = None,
        sample_weight: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict E[f(X_t) | X_0 = x] for an observable f known at samples of the stationary law.

        The semigroup acts on the modes by e^{-rate·t}: E[f(X_t) | X_0 = x] ≈ E f + Σ_k ⟨f, φ_k⟩ e^{-rate_k t} φ_k(x).
        Whatever of f lies outside the modes is taken to have decayed.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Samples, e.g. the training samples.
        values : array-like of shape (n_samples,) or (n_samples, m)
            f at these samples.
        time : float
            t ≥ 0, in the units of the time scales.
        at : array-like of shape (n_points, d), optional
            The points x; by default X.
        sample_weight : array-like of shape (n_samples,), optional
            Where X needs weights to represent the stationary law.

        Returns
        -------
        expectation : ndarray of shape (n_points,) or (n_points, m)
        """
        phi = self._modes_at(X)
        values = checked_values(values, len(phi))
        weight = checked_weight(sample_weight, phi)
        weight = np.ones(len(phi)) / len(phi) if weight is None else weight / weight.sum()
        mean = weight @ values
        overlaps = (phi * weight[:, None]).T @ (values - mean)
        points = (
            phi
            if at is None
            else np.asarray(ModeTransformer.transform(self, join_trajectories(at)[0]), dtype=np.float64)
        )
        return mean + (points * np.exp(-self.rates_ * checked_time(time))) @ overlaps

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
        the system. With a lag it is the VAMP-2 score, the sum of the squared autocorrelations of the modes after it,
        at most that of the slowest modes.

        It is a sum over the modes, so that more modes always score more: it compares kernels and settings for one
        `n_components`. A `GridSearchCV` over `n_components` chooses the largest of them; look at the gaps of
        `timescales_` instead, or at `KernelSearchCV.suggested_n_components_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), path, stream of chunks
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            With a lag, the trajectory of each frame.
        diffusion : optional
            The diffusion tensor at these samples, needed where `fit` had one given per sample, which belongs to the
            samples of `fit` alone; by default the estimator's own. For "tangent" these are the tangent spaces of the
            training samples (the first chunk of `partial_fit`), at the points X.
        """
        check_is_fitted(self)
        X, groups, _ = join_trajectories(X, groups, sample_weight)
        source = checked_source(self, X)
        weight = checked_weight(sample_weight, source)
        lag, limit = getattr(self, "lag_", None), getattr(self, "memory_limit", None)
        if "lag" in changed_parameters(self):
            raise ValueError("lag is not that of the fit any more; set it back, or fit again.")
        if lag is not None:
            source, weight, _ = make_pairs(source, lag, weight, groups)
            return self._lagged_score(source, weight, LaggedForm(lag, self.right_modes_ is None), limit)
        if diffusion is None:
            form = make_form(own_diffusion(self), source, weight, spaces=self.tangents_)
        else:
            form = make_form(diffusion, source, weight)
        (held_out,) = source.moments(form, self._mode_basis(), weight, memory_limit=limit)
        return timescale_score(held_out.covariance(), held_out.mean_energy())

    def _lagged_score(self, source: Source, weight: np.ndarray | None, form: LaggedForm, limit: float | None) -> float:
        left, right = self.modes_, self.right_modes_
        if right is None:
            (pairs,) = source.moments(form, self._mode_basis(), weight, memory_limit=limit)
            return vamp_score(pairs.covariance(), pairs.mean_energy())
        both = (np.hstack([m.coefficients for m in (left, right)]), np.concatenate([left.offset, right.offset]))
        (pairs,) = source.moments(form, ModeBasis(self.basis_, *both), weight, memory_limit=limit)
        return directed_score(pairs)

    def save(self, path: PathLike) -> None:
        """Write the fitted model to `path` as plain data (.npz, no pickle); `kdmaps.load` reads it back."""
        from kdmaps.estimators.model_files import save_model

        check_is_fitted(self)
        save_model(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _for_lists(transform: Callable[..., Any]) -> Callable[..., Any]:
    """Make a `transform` one that takes a list of arrays or data frames, too, and returns a list.

    scikit-learn wraps the method itself for `set_output`, which knows no lists; this goes around that.
    """

    @functools.wraps(transform)
    def run(self: ModeTransformer, X: SamplesLike, **options: Any) -> Any:
        X, _, lengths = join_trajectories(X)
        modes = transform(self, X, **options)
        return modes if lengths is None else split_rows(modes, lengths)

    return run


ModeTransformer.transform = _for_lists(ModeTransformer.transform)  # type: ignore[method-assign]


def mode_names(n: int) -> list[str]:
    """Return the names of modes in data frames, files and tables."""
    return [f"mode{k + 1}" for k in range(n)]


def checked_source(estimator: ModeTransformer, X: SamplesLike, reset: bool = False) -> Source:
    """Return a source of X, whose columns are those of `estimator`; with `reset` they become them."""
    if is_array_like(X):
        array = ArraySource(checked_samples(estimator, X, reset), checked=True)
        names = getattr(estimator, "feature_names_in_", None)
        array.feature_names = None if names is None else list(names)
        return array
    source = as_source(X)
    check_columns(estimator, source, reset)
    return source


def set_modes(
    estimator: ModeTransformer,
    basis: Basis,
    modes: Modes,
    moments: Moments,
    tangents: TangentSpaces | None,
    right: Modes | None = None,
) -> None:
    """Set the fitted attributes that all estimators share."""
    estimator.basis_, estimator.kernel_, estimator.modes_ = basis, basis.kernel, modes
    estimator.coefficients_ = modes.coefficients
    estimator.eigenvalues_ = modes.eigenvalues
    estimator.rates_ = modes.rates
    estimator.timescales_ = modes.timescales
    estimator.moments_, estimator.tangents_, estimator.right_modes_ = moments, tangents, right
    estimator.lag_ = modes.clock.lag
    estimator._summed = summed_parameters(estimator)


def set_trust(estimator: ModeTransformer, trust: Trust | None) -> None:
    """Set the attributes that tell how far to trust modes; None for modes of which no samples are at hand."""
    if trust is not None:
        trust = replace(trust, weighted=estimator.moments_.weighted)
    estimator.trust_ = trust
    estimator.energy_samples_ = None if trust is None else trust.evidence.energy_samples
    estimator.variance_samples_ = None if trust is None else trust.evidence.variance_samples


def copy_modes(fitted: ModeTransformer, target: ModeTransformer) -> None:
    """Copy the fitted modes of one estimator to another."""
    set_modes(target, fitted.basis_, fitted.modes_, fitted.moments_, fitted.tangents_, fitted.right_modes_)
    both = target._summed.keys() & fitted._summed.keys() & {"diffusion", "lag"}
    target._summed |= {name: fitted._summed[name] for name in both}  # those of the fit, whatever they are now
    set_trust(target, fitted.trust_)
    target.support_ = fitted.support_


def copy_columns(fitted: ModeTransformer, target: ModeTransformer) -> None:
    """Copy the number and the names of the columns of one estimator to another."""
    target.n_features_in_ = fitted.n_features_in_
    if hasattr(fitted, "feature_names_in_"):
        target.feature_names_in_ = fitted.feature_names_in_
