"""KernelDiffusionMap: one kernel, one fit."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

from numpy.typing import ArrayLike, DTypeLike

from kdmaps.bases import BasisSpec
from kdmaps.checks import Check, collected, warn_of
from kdmaps.data.inputs import join_trajectories
from kdmaps.estimators.committor import AdaptiveCommittor
from kdmaps.estimators.fit import ModelSpec, fit_modes, spec_of
from kdmaps.estimators.model_files import COMMITTOR, opened, read_committor, read_model, stored_checks
from kdmaps.estimators.transformer import ModeTransformer, checked_source, read_samples
from kdmaps.exceptions import NotApplicable
from kdmaps.forms.tangent import DiffusionLike
from kdmaps.kernels import Kernel
from kdmaps.selection.plan import FitSpec
from kdmaps.utils.threads import at_most, n_workers_of, one_blas_thread
from kdmaps.utils.types import PathLike, RandomStateLike, SamplesLike
from kdmaps.utils.validation import checked_weight, seed_of


@dataclass(eq=False, repr=False)
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
        "gaussian", "laplacian", "matern32", "matern52", "rq2", "rq5", or a kernel of `kdmaps.kernels`, which includes
        its bandwidth.
    bandwidth : "median", float or array-like of shape (d,), default="median"
        σ; "median" is the median pairwise distance of X.
    regularization : float, default=1e-2
        λ > 0, the weight of the squared RKHS norm. It has the unit of a rate, diffusion/length²: 1e-2 suits typical
        distances of the order of 1; otherwise multiply it by the diffusion over the squared median distance.
    basis : {"fourier", "landmarks", "full", "random-phase"}, default="fourier"
        Random Fourier features in pairs; kernel functions at landmarks; kernel functions at all samples; the paper's
        random-phase features.
    n_features : int, default=300
        Number p of basis functions; ignored for "full".
    sampling : {"sobol", "orthogonal", "iid"}, default="sobol"
        Sampling of the frequencies of Fourier features.
    landmarks : {"kmeans", "uniform"} or array-like of shape (p, d), default="kmeans"
        Method that selects the landmarks, or the landmarks.
    center : bool, default=True
        If True, centre the covariance, which removes the constant. If False (as in the paper), the constant is a mode,
        and modes have unit second moment instead of unit variance.
    diffusion : None, float, array-like, callable, "tangent" or TangentDiffusion, default=None
        Diffusion tensor a of the energy E[∇fᵀ a ∇f]: identity, scalar, diagonal (d,), matrix (d, d), per sample
        (n, d, d), a factor (n, d, k) with a = F Fᵀ (`kdmaps.Factor`), a callable of the samples, or the projector on
        the tangent spaces of a manifold (`kdmaps.TangentDiffusion`). Not with a lag.
    lag : int or "auto", optional
        Number of frames between the two frames of a pair. X is then a trajectory (or several: `groups`, or a list of
        arrays) of frames at equal time steps, and the modes are the slow modes of the transfer operator. "auto" is the
        smallest lag from which implied time scales are flat within their errors (`kdmaps.dynamics.choose_lag`). By
        default X is samples in any order.
    time_step : float, optional
        Time between frames, in any unit, which becomes the unit of `timescales_`. Needs a lag or bursts. By default the
        step of the times in X (trajectories of mdtraj and MDAnalysis in ps, a column `time` of a file), otherwise 1.
    reversible : bool, default=True
        If True, use pairs of frames in both directions of time, as for a system in equilibrium. If False, modes are the
        singular functions of the transfer operator, which differ at the two ends of a lag
        (`transform(X, end="second")`), and `timescales_` measure the loss of predictability.
    isolated : {"separate", "keep", "drop"}, default="separate"
        Treatment of a few rows behind an empty gap, as in `KernelSearchCV`: left out of the fit, and groups of three or
        more are states of their own; fitted with the others; or left out only.
    rates : {"ritz", "cross-fitted"}, default="ritz"
        Samples that the rates are estimated from: the training samples, on which rates of many modes are too small; or
        held-out samples of every fold.
    cv : "auto", int or scikit-learn splitter, default="auto"
        Folds of cross-fitted rates. A number is that many random folds, drawn twice; with `groups`, that many folds of
        whole groups. "auto" is 3, or five blocks with gaps if rows depend on rows nearby, with a warning.
    dtype : {"float64", "float32"}, default="float64"
        Type of Fourier features. "float32" is for large data; sums of chunks are added in float64.
    memory_limit : float, optional
        Megabytes for chunks, sums and the solve. By default a chunk has 4 MB of features.
    random_state : int, RandomState instance or None, default=None
        Seed of frequencies, landmarks and folds; the same integer gives the same draws in all estimators.
    n_jobs : int or None, default=-1
        Number of threads of `fit`; -1 is one per core, None is 1.

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
        Effective number of samples (Σx)²/Σx² that carry the energy and the variance of each mode.
    trust_ : kdmaps.diagnostics.trust.Trust
        Reliability of the rate of each mode: `trust_.ok`, `trust_.reasons`.
    rare_groups_ : tuple of kdmaps.data.RareGroup
        Groups of rows that are left out: their numbers, their share, the gap around them and their indicator.
    kernel_ : Kernel
    basis_ : Basis
    moments_ : Moments
    tangents_ : TangentSpaces or None
        The tangent spaces found, for `diffusion="tangent"`.
    lag_ : int or None
        The lag, in frames.
    lag_choice_ : kdmaps.dynamics.ImpliedTimescales or None
        The time scales that determined the lag, for `lag="auto"`.
    right_modes_ : kdmaps.spectrum.modes.Modes or None
        The modes at the second end of a lag, for `reversible=False`.
    clock_ : kdmaps.clocks.clock.BurstClock or None
        The clock that `bursts` of `fit` show: all estimators with errors, the choice, checks.
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

    n_components: int = 4
    _: KW_ONLY
    kernel: str | Kernel = "gaussian"
    bandwidth: str | ArrayLike = "median"
    regularization: float = 1e-2
    basis: str = "fourier"
    n_features: int = 300
    sampling: str = "sobol"
    landmarks: str | ArrayLike = "kmeans"
    center: bool = True
    diffusion: DiffusionLike = None
    lag: int | str | None = None
    time_step: float | None = None
    reversible: bool = True
    isolated: str = "separate"
    rates: str = "ritz"
    cv: Any = "auto"
    dtype: DTypeLike = "float64"
    memory_limit: float | None = None
    random_state: RandomStateLike = None
    n_jobs: int | None = -1

    def _fit(self, X: SamplesLike, sample_weight: ArrayLike | None, groups: ArrayLike | None) -> list[Check]:
        spec = self._spec()
        X, groups, _ = join_trajectories(X, groups, sample_weight)
        source, columns = read_samples(self, X)
        fitted = fit_modes(source, spec, checked_weight(sample_weight, source), groups)
        self._publish(columns, fitted)
        return fitted.of_modes

    @one_blas_thread()
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
        the result does not depend on the size of the chunks, beyond rounding. With a lag, a chunk continues the
        trajectory of the chunk before (with `groups`, every trajectory): frames across the border are paired too.

        Parameters that only the solve depends on may be changed between chunks (`n_components`, `regularization`,
        `center`, `memory_limit`); kernel, basis, dtype, diffusion and lag may not. Cross-fitted rates need all
        samples at once.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), path, stream of chunks
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            With a lag, the trajectory of each frame.
        diffusion : optional
            The diffusion tensor at these samples; needed after the first chunk if it is given per sample.

        Returns
        -------
        self
        """
        if getattr(self, "clock_", None) is not None:
            raise NotApplicable("A model in real time cannot take more samples; fit all samples, with {bursts}.")
        if self.rates == "cross-fitted":
            raise ValueError("rates='cross-fitted' needs all samples at once; call fit, or set_params(rates='ritz').")
        X, groups, _ = join_trajectories(X, groups, sample_weight)
        if not hasattr(self, "moments_"):
            source, columns = read_samples(self, X)
            spec, before, summed = self._spec(diffusion), None, None
        else:
            changed = [name for name in self._changed_parameters() if diffusion is None or name != "diffusion"]
            if changed:
                raise ValueError(
                    f"{', '.join(changed)} changed after the first samples were summed; set it back, or fit all "
                    "samples again."
                )
            source, columns = checked_source(self, X), self._columns
            spec = self._spec(self._own_diffusion() if diffusion is None else diffusion)
            before, summed = self._fitted(), self._summed
        # A chunk has too few rows to tell a gap from a state that later chunks visit.
        spec = replace(spec, fit=replace(spec.fit, isolated="keep"))
        with collected() as raised, at_most(n_workers_of(self.n_jobs)):
            fitted = fit_modes(source, spec, checked_weight(sample_weight, source), groups, before)
        earlier = () if before is None else before.raised
        self._publish(columns, replace(fitted, raised=(*earlier, *raised)), summed)
        warn_of(fitted.of_modes)
        return self

    def _spec(self, diffusion: DiffusionLike = None) -> ModelSpec:
        """Return the checked settings; `diffusion` replaces the parameter."""
        fit, basis = spec_of(FitSpec, self), spec_of(BasisSpec, self)
        fit = fit if diffusion is None else replace(fit, diffusion=diffusion)
        spec = ModelSpec(self.kernel, self.bandwidth, self.regularization, basis, fit, seed_of(self.random_state))
        spec.check()
        return spec


def load(path: PathLike) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    estimator : KernelDiffusionMap or AdaptiveCommittor
        Fitted, with the same functions, gradients and scores as the saved model; `partial_fit` adds samples to modes.

    Raises
    ------
    ValueError
        If the file is truncated, damaged, of a newer version or not a kdmaps model. Nothing in it is ever executed.

    Examples
    --------
    >>> import tempfile
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    >>> m = kdmaps.KernelDiffusionMap(n_components=2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     m.save(f"{folder}/model.npz")
    ...     same = kdmaps.load(f"{folder}/model.npz")
    >>> bool((same.transform(X) == m.transform(X)).all())
    True
    """
    with opened(path) as (header, arrays):
        if header.get("class") == COMMITTOR:
            parameters, columns, committor = read_committor(header, arrays)
            return AdaptiveCommittor(**parameters)._publish(columns, committor, stored_checks(header))
        parameters, columns, fitted, changed = read_model(header, arrays)
        checks = stored_checks(header)
        if unknown := set(parameters) - set(KernelDiffusionMap._get_param_names()):
            raise ValueError(f"{', '.join(sorted(unknown))} is not a parameter of KernelDiffusionMap.")
    model = KernelDiffusionMap(**parameters)
    summed = model._summed_parameters() | dict.fromkeys(changed, "as in the fit")
    return model._publish(columns, fitted, summed, checks_=checks if len(checks) else fitted.checks)
