"""What every fitted set of modes can do, whichever estimator found them."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kdmaps.bases import ModeBasis
from kdmaps.data import ArraySource, Source, as_source
from kdmaps.data.formats.arrays import write_rows
from kdmaps.data.remote import RemoteSource
from kdmaps.data.sources import check_columns, is_array_like
from kdmaps.forms.engines import chunk_rows
from kdmaps.forms.moments import Moments, compute_moments
from kdmaps.forms.tangent import TangentSpaces, checked_tensor
from kdmaps.output.notebook import NotebookDisplay
from kdmaps.selection.scores import timescale_score
from kdmaps.utils.threads import map_ordered, map_reduce, slices
from kdmaps.utils.validation import checked_samples, checked_time, checked_values, checked_weight


class ModeTransformer(NotebookDisplay, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What every fitted set of modes can do, whichever estimator found them.

    Subclasses fit `basis_`, `modes_`, the public attributes that derive from them, and `tangents_`.
    """

    moments_: Moments
    tangents_: TangentSpaces | None = None

    def _set_modes(self, basis, modes) -> None:
        self.basis_, self.kernel_, self.modes_ = basis, basis.kernel, modes
        self.coefficients_ = modes.coefficients
        self.eigenvalues_ = modes.eigenvalues
        self.rates_ = modes.rates
        self.timescales_ = modes.timescales

    @property
    def _n_features_out(self) -> int:
        return self.coefficients_.shape[1]

    def _validated(self, X, reset: bool = False) -> np.ndarray:
        return checked_samples(self, X, reset)

    def _source(self, X, reset: bool = False, fitting: bool = False) -> Source:
        if is_array_like(X):
            return ArraySource(self._validated(X, reset), checked=True)
        source = as_source(X)
        if fitting and self.rates == "cross-fitted" and not isinstance(source, ArraySource | RemoteSource):
            raise ValueError(
                "rates='cross-fitted' needs samples that can be cut into folds: an array, a .npy file or Dask data. "
                "For a stream fit a KernelDiffusionMap by partial_fit, chunk by chunk."
            )
        check_columns(self, source, reset)
        return source

    def transform(self, X, *, time: float = 0.0, out=None):
        """Modes at new points.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), path, stream of chunks
            Anything that `kdmaps.data.as_source` takes.
        time : float, default=0
            If positive, mode k is multiplied by e^{-rate_k·time}: the coordinates in which the Euclidean distance is
            the diffusion distance after that time.
        out : path, optional
            Write the modes to this `.npy` file, chunk by chunk; it appears when it is complete.

        Returns
        -------
        modes : ndarray of shape (n_samples, n_components)
            In the floating type of X; with `out`, mapped from that file. For Dask data a Dask array, not yet computed.
        """
        check_is_fitted(self)
        decay = np.exp(-self.rates_ * checked_time(time))
        source = self._source(X)
        projected = ModeBasis(self.basis_, self.coefficients_, self.modes_.offset)

        if isinstance(source, RemoteSource):
            modes = source.project(projected, decay)
            return modes if out is None else write_rows(out, source.fetch(modes))

        def work(part):
            _, chunk = source.read(part)
            values = projected.features(np.asarray(chunk, dtype=np.float64)) * decay
            return values.astype(chunk.dtype if chunk.dtype.kind == "f" else np.float64, copy=False)

        size = chunk_rows(self.basis_, 0, getattr(self, "memory_limit", None))
        parts = map_ordered(source.parts(size), work)
        return np.concatenate(list(parts)) if out is None else write_rows(out, parts)

    def gradient(self, X) -> np.ndarray:
        """Gradients ∇φ_k of the modes at any points, in closed form.

        Returns
        -------
        gradients : ndarray of shape (n_samples, n_components, d)
        """
        check_is_fitted(self)
        X = self._validated(X)
        out = np.empty((X.shape[0], self._n_features_out, X.shape[1]), dtype=X.dtype)
        projected = ModeBasis(self.basis_, self.coefficients_, self.modes_.offset)
        identity = np.eye(self._n_features_out)

        def step(_, part):
            out[part] = projected.gradient(np.asarray(X[part], dtype=np.float64), identity)

        map_reduce(list(slices(X.shape[0], projected.chunk_rows)), lambda: None, step)
        return out

    def predict_expectation(self, X, values, time: float, at=None, sample_weight=None) -> np.ndarray:
        """E[f(X_t) | X_0 = x] for an observable f known at samples of the stationary law.

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
        phi = np.asarray(ModeTransformer.transform(self, X), dtype=np.float64)
        values = checked_values(values, len(phi))
        weight = checked_weight(sample_weight, phi)
        weight = np.ones(len(phi)) / len(phi) if weight is None else weight / weight.sum()
        mean = weight @ values
        overlaps = (phi * weight[:, None]).T @ (values - mean)
        points = phi if at is None else np.asarray(ModeTransformer.transform(self, at), dtype=np.float64)
        return mean + (points * np.exp(-self.rates_ * checked_time(time))) @ overlaps

    def score(self, X, y=None, sample_weight=None, *, diffusion=None) -> float:
        """Timescale score of the modes on X: tr[(VᵀLV)⁻¹VᵀΣV]; larger is better (see `kdmaps.selection.scores`).

        On samples that the modes were not fitted to, its expectation is at most the sum of the longest time scales of
        the system.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), path, stream of chunks
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
        diffusion : optional
            The diffusion tensor at these samples, needed where `fit` had one given per sample; by default the
            estimator's own. For "tangent" these are the tangent spaces of the training samples (the first chunk of
            `partial_fit`), at the points X.
        """
        check_is_fitted(self)
        X = self._source(X)
        weight = checked_weight(sample_weight, X)
        if diffusion is None:
            tensor = checked_tensor(self.diffusion, X, weight, spaces=self.tangents_)
        else:
            tensor = checked_tensor(diffusion, X, weight)
        projected = ModeBasis(self.basis_, self.coefficients_, self.modes_.offset)
        limit = getattr(self, "memory_limit", None)
        held_out = compute_moments(projected, X, weight, tensor, memory_limit=limit)
        return timescale_score(held_out.covariance(), held_out.mean_energy())

    def save(self, path) -> None:
        """Write the fitted model to `path` as plain data (.npz, no pickle); `kdmaps.load` reads it back."""
        from kdmaps.output.model_files import save_model

        check_is_fitted(self)
        save_model(self, path)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def adopt(estimator: ModeTransformer, chosen: ModeTransformer) -> None:
    """Let an estimator that chose a model show that model's modes, and the model the names of the columns."""
    estimator._set_modes(chosen.basis_, chosen.modes_)
    estimator.tangents_ = chosen.tangents_
    if hasattr(estimator, "feature_names_in_"):
        chosen.feature_names_in_ = estimator.feature_names_in_
