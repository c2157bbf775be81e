"""KernelDiffusionMap: one kernel, one fit."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real

import numpy as np

from kdmaps.bases import Basis, LandmarkBasis, make_basis
from kdmaps.bases._make import check_basis
from kdmaps.data import PREVIEW_SAMPLES, Source
from kdmaps.data.distances import resolve_bandwidth
from kdmaps.data.remote import RemoteSource
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.forms.engines import check_engine
from kdmaps.forms.moments import add_exactly, compute_moments
from kdmaps.forms.tangent import checked_tensor
from kdmaps.kernels import Kernel, make_kernel
from kdmaps.selection.folds import cross_fitted_rates, make_folds
from kdmaps.spectrum.pencil import find_modes, single_precision_warnings
from kdmaps.utils.validation import all_or_nothing, check_samples, checked_random_state, checked_weight

#: How rates are estimated.
RATES = ("ritz", "cross-fitted")


class KernelDiffusionMap(ModeTransformer):
    """Slow modes of a diffusion from samples of its stationary law, with a given kernel.

    For dX = -∇V dt + √2 dW with stationary law π, the modes minimise E|∇φ|²/Var φ: they are the eigenfunctions of the
    generator. They are searched in the span of a basis by solving Σa = μ(L+λR)a with the covariance Σ and the energy L
    of the basis functions, and come in the order of μ: their relaxation times, shrunk by λ.

    Parameters
    ----------
    n_components : int, default=4
        Number r of modes, the constant not counted.
    kernel : str or Kernel, default="gaussian"
        "gaussian", "laplacian", "matern32", "matern52", "rq2", "rq5", or a kernel of `kdmaps.kernels` (which has its
        own bandwidth).
    bandwidth : "median", float or array-like of shape (d,), default="median"
        σ; "median" is the median pairwise distance of X.
    basis : {"fourier", "landmarks", "full", "random-phase"}, default="fourier"
        Random Fourier features in pairs; kernel functions at landmarks; kernel functions at all samples; the paper's
        random-phase features.
    n_features : int, default=300
        Number p of basis functions (ignored by "full").
    regularization : float, default=1e-2
        λ > 0, the weight of the squared RKHS norm. It has the unit of a rate, diffusion/length²: 1e-2 suits samples
        whose typical distance is of the order of 1, and others want 1e-2 times the diffusion over its square.
    center : bool, default=True
        Whether the covariance is centred, which takes the constant out of the problem. With False (as in the paper)
        the constant is one of the modes, and modes have unit second moment instead of unit variance.
    diffusion : None, float, array-like, callable, "tangent" or TangentDiffusion, default=None
        The diffusion tensor a of the energy E[∇fᵀ a ∇f]: identity, scalar, diagonal (d,), matrix (d, d), per sample
        (n, d, d), a factor (n, d, k) with a = F Fᵀ (`kdmaps.Factor`), a callable of the samples, or the projector on
        the tangent spaces of a manifold that the samples lie on (`kdmaps.TangentDiffusion`).
    random_state : int, RandomState instance or None, default=None
    sampling : {"sobol", "orthogonal", "iid"}, default="sobol"
        How frequencies are drawn from the spectral law.
    landmarks : {"kmeans", "uniform", "greedy"} or array-like of shape (p, d), default="kmeans"
        How landmarks are chosen, or the landmarks.
    dtype : {"float64", "float32"}, default="float64"
        Type of the features. "float32" is for large data: sums of chunks are added in float64 all the same. Fourier
        features only.
    engine : {"numba", "jax"} or None, default=None
        What runs the sum over samples; None is JAX where it has an accelerator, else compiled code on all cores.
    memory_limit : float, optional
        Megabytes for chunks, sums and the solve; by default chunks of as many samples as make 4 MB of features.
    rates : {"ritz", "cross-fitted"}, default="ritz"
        Where the rates of the modes are read: on the samples that the modes were fitted to, which makes them too small
        where many modes compete; or on the held-out samples of every fold, for the modes of the others.
    cv : int or scikit-learn splitter, default=3
        Folds of "cross-fitted". A number is that many random folds, drawn twice; for correlated trajectories use
        `kdmaps.BlockedKFold`.

    Attributes
    ----------
    timescales_ : ndarray of shape (n_components,)
        Relaxation times 1/`rates_`.
    rates_ : ndarray of shape (n_components,)
        Generator eigenvalues E|∇φ|²/Var φ of the modes, free of λ.
    eigenvalues_ : ndarray of shape (n_components,)
        μ.
    coefficients_ : ndarray of shape (p, n_components)
    modes_ : kdmaps.spectrum.modes.Modes
        All of the above with diagnostics: gap, condition number, degenerate clusters, sampling error.
    kernel_ : Kernel
    basis_ : Basis
    moments_ : Moments
    tangents_ : TangentSpaces or None
        The tangent spaces found, for `diffusion="tangent"`.
    n_features_in_ : int
    feature_names_in_ : ndarray, only for data frames

    See Also
    --------
    kdmaps.baselines.DiffusionMap : Classical diffusion maps.

    Notes
    -----
    Costs one symmetric product of the N×p features, in chunks: memory does not grow with N.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(2000, random_state=0)
    >>> m = kdmaps.KernelDiffusionMap(n_components=2, random_state=0).fit(X)
    >>> m.transform(X).shape
    (2000, 2)
    """

    def __init__(
        self,
        n_components=4,
        kernel="gaussian",
        bandwidth="median",
        basis="fourier",
        n_features=300,
        regularization=1e-2,
        center=True,
        diffusion=None,
        random_state=None,
        *,
        sampling="sobol",
        landmarks="kmeans",
        dtype="float64",
        engine=None,
        memory_limit=None,
        rates="ritz",
        cv=3,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.basis = basis
        self.n_features = n_features
        self.regularization = regularization
        self.center = center
        self.diffusion = diffusion
        self.random_state = random_state
        self.sampling = sampling
        self.landmarks = landmarks
        self.dtype = dtype
        self.engine = engine
        self.memory_limit = memory_limit
        self.rates = rates
        self.cv = cv

    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Find the modes of the samples X.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), path, stream of chunks
            Anything that `kdmaps.data.as_source` takes. What is not in memory is read chunk by chunk: once for the
            10,000 random samples that set the median bandwidth, the landmarks and the origin, once for the sums.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative; samples of another law are reweighted to π by π/law.
        groups : array-like of shape (n_samples,), optional
            For a `cv` that needs them.

        Returns
        -------
        self
        """
        return self._accumulate(X, sample_weight, self.diffusion, groups, reset=True)

    def partial_fit(self, X, y=None, sample_weight=None, groups=None, *, diffusion=None):
        """Add a chunk of samples and find the modes of all samples so far.

        The first chunk fixes the bandwidth "median", the landmarks and the origin, so it should be typical. After it,
        the result does not depend on how the samples are cut into chunks, beyond rounding.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), path, stream of chunks
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            For a `cv` that needs them.
        diffusion : optional
            The diffusion tensor at these samples, where it is given per sample.

        Returns
        -------
        self
        """
        first = not hasattr(self, "moments_")
        diffusion = self.diffusion if diffusion is None else diffusion
        return self._accumulate(X, sample_weight, diffusion, groups, reset=first)

    def _accumulate(self, X, sample_weight, diffusion, groups=None, *, reset: bool):
        self.check_parameters()
        with all_or_nothing(self):
            source = self._source(X, reset=reset, fitting=True)
            weight = checked_weight(sample_weight, source)
            tensor = checked_tensor(diffusion, source, weight, spaces=None if reset else self.tangents_)
            if reset:
                self.tangents_ = getattr(tensor, "spaces", None)
            basis = self.build_basis(source, weight) if reset else self.basis_
            if self.rates == "cross-fitted":
                moments, self._folds = self._fold_moments(basis, source, weight, tensor, groups, reset)
            else:
                self.__dict__.pop("_folds", None)  # they would lack these samples
                moments = compute_moments(
                    basis, source, weight, tensor, engine=self.engine, memory_limit=self.memory_limit
                )
            before = (None, None) if reset else (self.moments_, getattr(self, "_carry", None))
            self.moments_, self._carry = add_exactly(moments, *before)
            problem = (basis.ridge, self.n_components, self.regularization, self.center)
            modes = find_modes(self.moments_, *problem)
            if self.rates == "cross-fitted":
                modes = replace(modes, rates=cross_fitted_rates(self.moments_, self._folds, *problem))
            self._set_modes(basis, modes)
        more = single_precision_warnings(self.moments_, modes.coefficients) if basis.dtype == np.float32 else []
        for warning in modes.warnings() + more:
            warnings.warn(warning, stacklevel=3)
        return self

    def _fold_moments(self, basis, source, weight, tensor, groups, reset):
        """Moments of these samples; and of the training and test samples of every fold, of all samples so far."""
        if not reset and not hasattr(self, "_folds"):
            raise ValueError(
                "rates='cross-fitted' needs the folds of all samples, which a model that was loaded, or fitted with "
                "rates='ritz', does not keep; call set_params(rates='ritz') before partial_fit."
            )
        landmarks = basis.landmarks if isinstance(basis, LandmarkBasis) else None
        seed = checked_random_state(self.random_state).randint(2**31)
        X = source if isinstance(source, RemoteSource) else source.array
        folds = make_folds(self.cv, X, weight, groups, self.n_components, seed, landmarks)
        moments, parts = folds.compute(basis, source, weight, tensor, self.engine, self.memory_limit)
        if not reset:
            parts = [(a + c, b + d) for (a, b), (c, d) in zip(self._folds, parts, strict=True)]
        return moments, parts

    def build_basis(self, source: Source, weight: np.ndarray | None) -> Basis:
        """The basis that the parameters describe, for samples like these."""
        rng = checked_random_state(self.random_state)
        # What is drawn to look at the samples leaves the frequencies alone: they are those that a search has judged.
        looking = np.random.RandomState()
        looking.set_state(rng.get_state())
        # Given frequencies only need an origin, for which the first rows of a stream will do.
        typical = self.basis not in ("fourier", "random-phase") or self._needs_median()
        most = None if self.basis == "full" else PREVIEW_SAMPLES
        _, X, weight = source.sample(most, looking, weight, typical)
        used = X if weight is None else X[weight > 0]
        check_samples(used, self.n_components, getattr(self, "feature_names_in_", None))
        used_weight = None if weight is None else weight[weight > 0]
        kernel = self._make_kernel(used, used_weight, looking)
        return make_basis(
            self.basis,
            kernel,
            used,
            self.n_features,
            sampling=self.sampling,
            landmarks=self.landmarks,
            random_state=rng,
            sample_weight=used_weight,
        ).astype(self.dtype)

    def _needs_median(self) -> bool:
        return isinstance(self.bandwidth, str) and not isinstance(self.kernel, Kernel)

    def _make_kernel(self, X, weight, rng):
        if isinstance(self.kernel, Kernel):
            return self.kernel
        return make_kernel(self.kernel, resolve_bandwidth(self.bandwidth, X, weight, rng))

    def check_parameters(self) -> None:
        """Raise a ValueError for parameters that no data could make sense of."""
        for name in ("n_components", "n_features"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be a positive whole number, got {value!r}.")
        if not isinstance(self.regularization, Real) or not 0 < float(self.regularization) < np.inf:
            raise ValueError(f"regularization must be a positive number, got {self.regularization!r}.")
        if self.basis != "full" and self.n_components > self.n_features:
            raise ValueError(
                f"n_components={self.n_components} exceeds n_features={self.n_features}; increase n_features."
            )
        check_engine(self.dtype, self.engine, self.memory_limit)
        if self.rates not in RATES:
            raise ValueError(f"rates must be one of {', '.join(RATES)}, got {self.rates!r}.")
        if self.rates == "cross-fitted" and self.basis == "full":
            raise ValueError("basis='full' leaves no sample to test on; use another basis or rates='ritz'.")
        check_basis(self.basis)
