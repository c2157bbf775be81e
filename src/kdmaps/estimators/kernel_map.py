"""KernelDiffusionMap: one kernel, one fit."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from kdmaps.analysis.trust import Trust
from kdmaps.bases import Basis, BasisSpec, LandmarkBasis
from kdmaps.data.check import warn_of_array, warn_of_preview
from kdmaps.data.distances import resolve_bandwidth
from kdmaps.data.inputs import join_trajectories
from kdmaps.data.pairs import Tail
from kdmaps.data.sources import PREVIEW_SAMPLES, Sample, Source
from kdmaps.estimators.transformer import ModeTransformer, check_more_samples, checked_source, own_diffusion, set_modes
from kdmaps.estimators.verdict import judge_fit
from kdmaps.forms.energy import EnergyForm
from kdmaps.forms.lagged import LaggedForm
from kdmaps.forms.moments import Moments, add_exactly
from kdmaps.forms.tangent import DiffusionLike, TangentSpaces
from kdmaps.kernels import Kernel, make_kernel
from kdmaps.selection.cross_fit import cross_fitted_quotients
from kdmaps.selection.folds import make_folds, make_splits
from kdmaps.selection.judging import FoldedMoments
from kdmaps.selection.plan import FitSpec
from kdmaps.spectrum.directed import find_directed_modes
from kdmaps.spectrum.modes import Modes
from kdmaps.spectrum.pencil import find_modes, single_precision_warnings
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import all_or_nothing, check_samples, checked_weight, seed_of
from kdmaps.utils.warn import warn

FoldSums = list[tuple[Moments, Moments]]


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
    lag : int, optional
        X is a trajectory (or several: `groups`, or a list of arrays) of frames at equal time steps; modes are those of
        the transfer operator, found from pairs of frames this many apart. By default X is samples in any order.
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
    trust_ : kdmaps.analysis.trust.Trust
        How far to trust the rate of each mode: `trust_.ok`, `trust_.reasons`.
    kernel_ : Kernel
    basis_ : Basis
    moments_ : Moments
    tangents_ : TangentSpaces or None
        The tangent spaces found, for `diffusion="tangent"`.
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
        lag: int | None = None,
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
        self.lag = lag
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
            Non-negative; samples of another law are reweighted to π by π/law.
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
        X, groups, _ = join_trajectories(X, groups)
        with all_or_nothing(self):
            source = checked_source(self, X, reset)
            check_folds(source, fit_spec(self))
            weight = checked_weight(sample_weight, source)
            if reset:
                warn_of_array(source, weight, groups, folds=self.rates == "cross-fitted", lag=self.lag)
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
        # A later chunk alone says little about the samples behind a mode.
        for warning in fit_warnings(self, self.trust_ if reset else None):
            warn(warning)
        return self

    def _check_parameters(self) -> None:
        """Raise a ValueError for parameters that no data could make sense of."""
        fit_spec(self).check()
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


def basis_spec(estimator: Any) -> BasisSpec:
    """Return the settings of the basis of an estimator."""
    return BasisSpec(estimator.basis, estimator.n_features, estimator.sampling, estimator.landmarks, estimator.dtype)


def fit_spec(estimator: Any) -> FitSpec:
    """Return the settings of the fit of an estimator."""
    names = (
        *("n_components", "center", "diffusion", "rates", "cv", "engine", "memory_limit"),
        *("lag", "time_step", "reversible"),
    )
    return FitSpec(**{name: getattr(estimator, name) for name in names})


def check_folds(source: Source, spec: FitSpec) -> None:
    """Raise a ValueError if rates need folds, and the samples cannot be cut into folds."""
    if spec.rates == "cross-fitted" and not source.has_rows:
        raise ValueError(
            "rates='cross-fitted' needs samples that can be cut into folds: an array, a .npy file or Dask data. For a "
            "stream fit a KernelDiffusionMap by partial_fit, chunk by chunk."
        )


def fit_source(
    model: KernelDiffusionMap,
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


def fit_sums(
    model: KernelDiffusionMap, folded: FoldedMoments, tangents: TangentSpaces | None, carry: Moments | None = None
) -> None:
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


def _preview(model: KernelDiffusionMap, source: Source, weight: np.ndarray | None, seed: int) -> Sample:
    """Draw the samples that decide the median, the landmarks and the origin."""
    spec = basis_spec(model)
    needs_median = isinstance(model.bandwidth, str) and not isinstance(model.kernel, Kernel)
    # Given frequencies only need an origin, for which the first rows of a stream will do.
    typical = spec.needs_typical_samples or needs_median
    most = None if spec.basis == "full" else PREVIEW_SAMPLES
    return source.sample(most, np.random.RandomState(seed), weight, typical)


def _make_basis(model: KernelDiffusionMap, source: Source, sample: Sample, seed: int) -> Basis:
    """Make the basis that the parameters describe, for samples like these."""
    spec, (_, X, weight) = basis_spec(model), sample
    if weight is not None:
        X, weight = X[weight > 0], weight[weight > 0]
    check_samples(X, model.n_components)
    warn_of_preview(source, sample, folds=model.rates == "cross-fitted")
    return spec.make(model._make_kernel(X, weight, seed), X, weight, seed)
