"""KernelDiffusionMap: one kernel, one fit."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from kdmaps.data.check import warn_of_array, warn_of_time_step, warn_of_weighted_pairs
from kdmaps.data.distances import resolve_bandwidth
from kdmaps.data.inputs import join_trajectories
from kdmaps.data.pairs import Tail
from kdmaps.estimators.fitting import basis_spec, check_folds, choose_lag_for, fit_source, fit_spec, fit_warnings
from kdmaps.estimators.summed import check_more_samples, own_diffusion
from kdmaps.estimators.transformer import ModeTransformer, checked_source
from kdmaps.forms.tangent import DiffusionLike
from kdmaps.kernels import Kernel, make_kernel
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import all_or_nothing, checked_weight
from kdmaps.utils.warn import warn


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
    lag : int or "auto", optional
        X is a trajectory (or several: `groups`, or a list of arrays) of frames at equal time steps; modes are those of
        the transfer operator, found from pairs of frames this many apart. "auto" is the smallest lag from which implied
        time scales are flat within their errors (`kdmaps.dynamics.choose_lag`). By default X is samples in any order.
    time_step : float, default=1
        Time between frames, in any unit: with a lag, the one of `timescales_`.
    reversible : bool, default=True
        Whether pairs count in both directions of time, as those of a system in equilibrium may. With False (data out of
        equilibrium) modes are the singular functions of the transfer operator, which differ at the two ends of a lag
        (`transform(X, end="second")`), and `timescales_` tell how fast predictability is lost.
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
    cv : "auto", int or scikit-learn splitter, default="auto"
        Folds of "cross-fitted", as in `KernelSearchCV`.
    random_state : int, RandomState instance or None, default=None
        The same integer draws the same frequencies, landmarks and folds in all estimators.

    Attributes
    ----------
    timescales_ : ndarray of shape (n_components,)
        Relaxation times 1/`rates_`, longest first.
    rates_ : ndarray of shape (n_components,)
        Generator eigenvalues E|∇φ|²/Var φ of the modes, free of λ.
    eigenvalues_ : ndarray of shape (n_components,)
        μ.
    coefficients_ : ndarray of shape (p, n_components)
    modes_ : kdmaps.spectrum.modes.Modes
        All of the above with diagnostics: gap, condition number, degenerate clusters, sampling error.
    energy_samples_, variance_samples_ : ndarray of shape (n_components,)
        How many samples carry the energy, and the variance, of each mode: (Σx)²/Σx² of the parts x.
    trust_ : kdmaps.diagnostics.trust.Trust
        How far to trust the rate of each mode: `trust_.ok`, `trust_.reasons`.
    kernel_ : Kernel
    basis_ : Basis
    moments_ : Moments
    tangents_ : TangentSpaces or None
        The tangent spaces found, for `diffusion="tangent"`.
    lag_ : int or None
        The lag, in frames.
    lag_choice_ : kdmaps.dynamics.ImpliedTimescales, only for `lag="auto"`
        What it was chosen by.
    right_modes_ : kdmaps.spectrum.modes.Modes or None
        The modes at the second end of a lag, for `reversible=False`.
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

    lag_: int | None

    def __init__(
        self,
        n_components: int = 4,
        *,
        kernel: str | Kernel = "gaussian",
        bandwidth: str | ArrayLike = "median",
        regularization: float = 1e-2,
        basis: str = "fourier",
        n_features: int = 300,
        sampling: str = "sobol",
        landmarks: str | ArrayLike = "kmeans",
        center: bool = True,
        diffusion: DiffusionLike = None,
        lag: int | str | None = None,
        time_step: float = 1.0,
        reversible: bool = True,
        rates: str = "ritz",
        cv: Any = "auto",
        dtype: DTypeLike = "float64",
        engine: str | None = None,
        memory_limit: float | None = None,
        random_state: RandomStateLike = None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.regularization = regularization
        self.basis = basis
        self.n_features = n_features
        self.sampling = sampling
        self.landmarks = landmarks
        self.center = center
        self.diffusion = diffusion
        self.lag: Any = lag
        self.time_step = time_step
        self.reversible = reversible
        self.rates = rates
        self.cv = cv
        self.dtype = dtype
        self.engine = engine
        self.memory_limit = memory_limit
        self.random_state = random_state

    def fit(
        self, X: SamplesLike, y: Any = None, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Find the modes of the samples X.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), path, stream of chunks
            Anything that `kdmaps.data.as_source` takes. What is not in memory is read chunk by chunk: once for the
            10,000 random samples that set the median bandwidth, the landmarks and the origin, once for the sums.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative; samples of another law are reweighted to π by π/law. With a lag, a pair has the weight of its
            first frame: right for runs of the system that begin out of equilibrium, wrong for runs under a bias.
        groups : array-like of shape (n_samples,), optional
            For a `cv` that needs them.

        Returns
        -------
        self
        """
        return self._accumulate(X, sample_weight, self.diffusion, groups, reset=True)

    def partial_fit(
        self,
        X: SamplesLike,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        diffusion: DiffusionLike = None,
    ) -> Self:
        """Add a chunk of samples and find the modes of all samples so far.

        The first chunk fixes the bandwidth "median", the landmarks and the origin, so it should be typical. After it,
        the result does not depend on how the samples are cut into chunks, beyond rounding. With a lag, a chunk goes on
        where the one before ended, or, with `groups`, each trajectory where it ended in the chunk before: frames across
        the border are paired too.

        Parameters that only the solve depends on may be changed between chunks (`n_components`, `regularization`,
        `center`, `rates`, `engine`, `memory_limit`); kernel, basis, dtype, diffusion and lag may not.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), path, stream of chunks
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            For a `cv` that needs them.
        diffusion : optional
            The diffusion tensor at these samples; needed after the first chunk where it is given per sample.

        Returns
        -------
        self
        """
        first = not hasattr(self, "moments_")
        if not first:
            check_more_samples(self, given=set() if diffusion is None else {"diffusion"})
        if diffusion is None:
            diffusion = self.diffusion if first else own_diffusion(self)
        return self._accumulate(X, sample_weight, diffusion, groups, reset=first)

    def _accumulate(
        self,
        X: SamplesLike,
        sample_weight: ArrayLike | None,
        diffusion: DiffusionLike,
        groups: ArrayLike | None = None,
        *,
        reset: bool,
    ) -> Self:
        self._check_parameters()
        X, groups, _ = join_trajectories(X, groups, sample_weight)
        with all_or_nothing(self):
            source = checked_source(self, X, reset)
            check_folds(source, fit_spec(self))
            weight = checked_weight(sample_weight, source)
            if reset:
                warn_of_array(source, weight, groups, folds=self.rates == "cross-fitted", lag=self.lag)
                warn_of_weighted_pairs(weight, self.lag)
                warn_of_time_step(self.time_step, self.lag)
                self.lag_ = choose_lag_for(self, source, weight, groups)
            spec = replace(fit_spec(self), diffusion=diffusion)
            tail = getattr(self, "_tail", None)
            if not reset and tail is not None:
                source, weight, groups = tail.before(source, weight, groups)
            self._tail = None if spec.lag is None else Tail.of(source, spec.lag, weight, groups)
            source, weight, groups = spec.observations(source, weight, groups)
            form = spec.form(source, weight, spaces=None if reset else self.tangents_)
            summed = getattr(self, "_summed", {})
            fit_source(self, source, form, weight, groups, reset)
            if not reset:  # the parameters of the first samples
                self._summed = summed
        for warning in fit_warnings(self, self.trust_):
            warn(warning)
        return self

    def _check_parameters(self) -> None:
        """Raise a ValueError for parameters that no data could make sense of."""
        replace(fit_spec(self), lag=self.lag).check()
        if not isinstance(self.regularization, Real) or not 0 < float(self.regularization) < np.inf:
            raise ValueError(f"regularization must be a positive number, got {self.regularization!r}.")
        basis_spec(self).check(self.n_components)
        if self.rates == "cross-fitted" and self.basis == "full":
            raise ValueError("basis='full' leaves no sample to test on; use another basis or rates='ritz'.")

    def _make_kernel(self, X: np.ndarray, weight: np.ndarray | None, seed: int) -> Kernel:
        """Return the kernel that the parameters describe, for samples like these."""
        if isinstance(self.kernel, Kernel):
            return self.kernel
        return make_kernel(self.kernel, resolve_bandwidth(self.bandwidth, X, weight, seed))
