"""VariationalKernelMap: a kernel learned by minimising an objective of its modes."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.bases import Basis, BasisSpec, LandmarkBasis, check_basis
from kdmaps.checks import Check
from kdmaps.data.check import warn_of_data
from kdmaps.data.distances import resolve_bandwidth
from kdmaps.data.inputs import join_trajectories
from kdmaps.data.sources import PREVIEW_SAMPLES, ArraySource
from kdmaps.estimators.fit import fit_observations
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.estimators.transformer import ModeTransformer, read_samples
from kdmaps.forms.energy import EnergyForm
from kdmaps.forms.tangent import DiffusionLike, checked_tensor
from kdmaps.kernels import Gaussian, Kernel, Mixture, make_kernel
from kdmaps.learn import make_objective
from kdmaps.learn.optimiser import Settings, minimise
from kdmaps.learn.parametrisations import Anisotropy, Bandwidths, Dictionary, GeneratorAction, Parametrisation
from kdmaps.learn.problem import Problem
from kdmaps.learn.statistics import Samples
from kdmaps.selection.folds import make_folds, make_splits
from kdmaps.selection.plan import FitSpec
from kdmaps.summary import LearnedModel
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import check_count, check_positive_number, checked_weight, seed_of

#: Number of basis functions, as in the paper's experiments.
N_FEATURES = {"landmarks": 60, "fourier": 300}
#: Bandwidths of the five Gaussians that learning starts from by default, in units of `bandwidth`.
START_BANDWIDTHS = np.geomspace(0.5, 5.0, 5)


@dataclass(eq=False, repr=False)
class VariationalKernelMap(LearnedModel, ModeTransformer):
    """Slow modes with a kernel learned by gradient descent through the eigenproblem.

    By default five Gaussians at 60 k-means landmarks, whose weights and bandwidths minimise the combined objective
    (eq:total-objective): the paper's VMKL, but centred; its own has `center=False`. With `basis="fourier"` and
    `objective="varrff"` it is VarRFF-bounded: a bandwidth σ_j = σ·exp(c·tanh θ_j) for every coordinate.

    Parameters
    ----------
    n_components : int, default=4
        Number r of modes, the constant not counted.
    objective : str or mapping of term to weight, default="combined"
        "combined", "eig-only", "sub-only", "varrff", "heldout", or weights of the terms of `kdmaps.learn.TERMS`.
        All except "heldout" are functions of the training samples: Notes.
    kernels : None, or sequence of str or Kernel, default=None
        Kernels of the mixture; for Fourier features one kernel, whose bandwidths are scaled. None is five Gaussians for
        landmarks and Matérn-3/2 for Fourier features.
    bandwidth : "median", float or array-like of shape (d,), default="median"
        σ of kernels given by name; "median" is the median pairwise distance of X.
    regularization : float, default=1e-2
        λ, at the start if it is learned.
    learn_bandwidths : bool, default=True
        If True, learn bandwidths and weights of a mixture at landmarks; if False, only its weights. With weights only,
        any kernels can be mixed, and a step takes the same time for any number of samples.
    learn_regularization : bool, default=False
        If True, learn λ too, which needs the term "heldout".
    bound : float, default=1.0
        c, for Fourier features.
    floor : float, default=0.01
        The weight of each of L kernels is at least floor/L.
    adam_steps : int, default=100
        Number of steps of Adam. Without any steps the mixture stays uniform.
    lbfgs_steps : int, default=30
        Number of steps of L-BFGS from the best point of Adam.
    learning_rate : float, default=0.05
        Learning rate of Adam.
    generator : callable or None, default=None
        (kernel, X, Z) → array (n, p) of the generator applied to k(·, z_m) at x_i, for the term "pde"; needs landmarks
        and `learn_bandwidths=False`.
    basis : {"landmarks", "fourier"}, default="landmarks"
        Kernel functions at landmarks, or random Fourier features in pairs.
    n_features : int or None, default=None
        Number p of basis functions; None is 60 landmarks or 300 Fourier features.
    sampling : {"sobol", "orthogonal", "iid"}, default="sobol"
        Sampling of the frequencies of Fourier features.
    landmarks : {"kmeans", "uniform"} or array-like of shape (p, d), default="kmeans"
        Method that selects the landmarks, or the landmarks.
    center : bool, default=True
        If True, centre the covariance; the covariance of the paper is not centred.
    diffusion : None, float, array-like, callable, "tangent" or TangentDiffusion, default=None
        Diffusion tensor of the energy, in the formats of `KernelDiffusionMap`.
    rates : {"ritz", "cross-fitted"}, default="ritz"
        Samples that the rates are estimated from: the training samples, or held-out samples of every fold.
    cv : int or scikit-learn splitter, default=3
        Folds of the term "heldout" and of cross-fitted rates. A number is that many random folds, drawn twice.
    random_state : int, RandomState instance or None, default=None
        Seed of frequencies, landmarks and folds; the same integer gives the same draws in all estimators.
    n_jobs : int or None, default=-1
        Number of threads of `fit`; -1 is one per core, None is 1.
    progress : bool, default=False
        If True, show a progress bar.

    Attributes
    ----------
    kernel_ : Kernel
        The learned kernel.
    regularization_ : float
        λ.
    best_estimator_ : KernelDiffusionMap
        The learned kernel as a fitted `KernelDiffusionMap`, which `save` writes.
    best_loss_ : float
        The objective of the learned kernel.
    history_ : dict of str to ndarray
        One row per step: every term, the weights `beta`, the bandwidths `sigma`, the gap, the norm of the gradient.
    timescales_, rates_, eigenvalues_, coefficients_, basis_, modes_, moments_, trust_, energy_samples_ :
        As in `KernelDiffusionMap`.

    See Also
    --------
    kdmaps.KernelSearchCV : Chooses the kernel by held-out samples.

    Notes
    -----
    Objectives of the training samples can overfit. Without centring, as in the paper, "eig-only" measures how well a
    kernel represents a constant, and its bandwidth grows without limit; centred, "sub-only" and "combined" favour
    kernels far narrower than the distances of samples. "heldout" is the score of `KernelSearchCV`, on samples that the
    modes were not fitted to.

    Examples
    --------
    >>> import kdmaps
    >>> from kdmaps import VariationalKernelMap
    >>> X = kdmaps.problems.load("dw1d").sample(300, random_state=0)
    >>> m = VariationalKernelMap(n_components=2, adam_steps=5, lbfgs_steps=5, random_state=0).fit(X)
    >>> m.transform(X).shape
    (300, 2)
    """

    n_components: int = 4
    _: KW_ONLY
    objective: str | Mapping[str, float] = "combined"
    kernels: Sequence[str | Kernel] | None = None
    bandwidth: str | ArrayLike = "median"
    regularization: float = 1e-2
    learn_bandwidths: bool = True
    learn_regularization: bool = False
    bound: float = 1.0
    floor: float = 0.01
    adam_steps: int = 100
    lbfgs_steps: int = 30
    learning_rate: float = 0.05
    generator: GeneratorAction | None = None
    basis: str = "landmarks"
    n_features: int | None = None
    sampling: str = "sobol"
    landmarks: str | ArrayLike = "kmeans"
    center: bool = True
    diffusion: DiffusionLike = None
    rates: str = "ritz"
    cv: Any = 3
    random_state: RandomStateLike = None
    n_jobs: int | None = -1
    progress: bool = False

    def _fit(self, X: SamplesLike, sample_weight: ArrayLike | None, groups: ArrayLike | None) -> list[Check]:
        check_basis(self.basis, tuple(N_FEATURES))
        n_features = N_FEATURES[self.basis] if self.n_features is None else self.n_features
        spec = BasisSpec(self.basis, n_features, self.sampling, self.landmarks)
        fit = FitSpec(self.n_components, self.center, self.diffusion, self.rates, self.cv)
        self._check_parameters(spec, fit)
        X, groups, _ = join_trajectories(X, groups, sample_weight)
        source, columns = read_samples(self, X, array=True)
        weight = checked_weight(sample_weight, source)
        form = EnergyForm(checked_tensor(self.diffusion, source.array, weight).at(source.array, slice(None)))
        warn_of_data(source, weight, groups, folds=self.rates == "cross-fitted")
        seed = seed_of(self.random_state)
        problem = self._problem(spec, source, weight, groups, form, seed)
        settings = Settings(self.adam_steps, self.lbfgs_steps, self.learning_rate)
        theta, history = minimise(problem, settings, self.progress)
        basis = problem.parametrisation.basis(problem.split(theta)[0])
        regularization = problem.regularization(theta)
        model = self._model(basis, regularization)
        model_spec = replace(model._spec(), seed=seed)
        everything = source.sample(None, np.random.RandomState(0), weight)
        fitted = fit_observations(source, model_spec, form, weight, groups, given=(basis, everything))
        self._publish(
            columns,
            fitted,
            best_estimator_=model._publish(columns, fitted),
            regularization_=regularization,
            history_=history,
            best_loss_=float(history["best_loss"][-1]),
        )
        return fitted.of_modes

    def _model(self, basis: Basis, regularization: float) -> KernelDiffusionMap:
        """Return a `KernelDiffusionMap` with the learned kernel."""
        same = {name: getattr(self, name) for name in ("n_components", "basis", "center", "diffusion", "rates", "cv")}
        return KernelDiffusionMap(
            **same, kernel=basis.kernel, n_features=basis.n_features, regularization=regularization
        )

    def _problem(
        self, spec: BasisSpec, source: ArraySource, weight: np.ndarray | None, groups: Any, form: EnergyForm, seed: int
    ) -> Problem:
        """Return the problem of learning the kernel from the samples of a source."""
        r = self.n_components
        objective = make_objective(self.objective, r, self.center)
        preview = source.sample(PREVIEW_SAMPLES, np.random.RandomState(seed), weight)
        X, own = preview.counted(r)
        kernels = self._make_kernels(X, own, seed)
        basis = spec.make(kernels[0] if len(kernels) == 1 else Mixture(kernels), X, own, seed)
        folds = None
        if "heldout" in objective.terms:  # landmarks of the basis are not tested
            splits = make_splits(self.cv, source.array, groups, r, seed)
            folds = make_folds(splits, source, weight, r, getattr(basis, "landmarks", None))
        data = Samples.of(source.array, weight, form.tensor, folds)
        parametrisation: Parametrisation
        if isinstance(basis, LandmarkBasis):
            mixture = (data, kernels, basis.landmarks, basis.origin, self.floor)
            parametrisation = Bandwidths(*mixture) if self.learn_bandwidths else Dictionary(*mixture, self.generator)
        else:
            parametrisation = Anisotropy(data, basis, self.bound)  # type: ignore[arg-type]
        return Problem(parametrisation, objective, self.regularization, self.learn_regularization)

    def _check_parameters(self, spec: BasisSpec, fit: FitSpec) -> None:
        fit.check()
        spec.check(self.n_components)
        for name in ("adam_steps", "lbfgs_steps"):
            check_count(name, getattr(self, name))
        for name in ("regularization", "bound", "learning_rate"):
            check_positive_number(name, getattr(self, name))
        if not isinstance(self.floor, Real) or not 0 <= float(self.floor) < 1:
            raise ValueError(f"floor must be at least 0 and less than 1, got {self.floor!r}.")
        listed = isinstance(self.kernels, Sequence) and not isinstance(self.kernels, str) and len(self.kernels) > 0
        if self.kernels is not None and not listed:
            raise ValueError(f"kernels must be None or a non-empty list of names or kernels, got {self.kernels!r}.")
        if self.generator is not None and not callable(self.generator):
            raise ValueError(f"generator must be None or a callable of (kernel, X, Z), got {self.generator!r}.")

    def _make_kernels(self, X: np.ndarray, weight: np.ndarray | None, seed: int) -> list[Kernel]:
        sigma = resolve_bandwidth(self.bandwidth, X, weight, seed)
        if self.kernels is not None:
            return [make_kernel(kernel, sigma) for kernel in self.kernels]
        if self.basis == "fourier":
            return [make_kernel("matern32", sigma)]
        sigma = Gaussian(sigma).bandwidth
        return [Gaussian(sigma * factor) for factor in START_BANDWIDTHS]
