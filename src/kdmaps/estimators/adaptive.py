"""AdaptiveDiffusionMap: the default answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from kdmaps.estimators.search import KernelSearchCV
from kdmaps.forms.tangent import DiffusionLike
from kdmaps.kernels import FAMILIES, Gaussian, Kernel, Metric
from kdmaps.learn import Refinement, make_objective, refine
from kdmaps.selection.candidate import JUDGED, Candidate, Trial
from kdmaps.selection.grid import BANDWIDTH_RANGE, positive, rounded
from kdmaps.selection.judging import FoldedMoments
from kdmaps.selection.plan import SearchPlan
from kdmaps.selection.result import SearchResult
from kdmaps.selection.rules import chosen_scoring, select_by_timescale
from kdmaps.selection.scores import FoldFit
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import PathLike, RandomStateLike

#: The refinement starts from a Gaussian at least this wide, in median distances. One bandwidth for all coordinates
#: needs a rough or narrow kernel for the fastest of them; with one for each, a smooth one does better in the tails.
START_WIDTH = 3.0
#: Regularizations from which the refinement starts, in units of the slowest rate.
START_LAMBDAS = (1e-3, 1e-4, 1e-5)
#: Refined bandwidths stay above this many median distances: in narrower ones, modes jump between samples.
NARROWEST = 3.0


#: Samples, and pairs of frames, that are searched by default.
SEARCHED_SAMPLES, SEARCHED_PAIRS = 5_000, 20_000


class AdaptiveDiffusionMap(KernelSearchCV):
    """Find slow modes with everything chosen automatically: the recommended estimator.

    The kernel family, its bandwidth, the basis and the regularization are searched by cross-validation as in
    `KernelSearchCV`, on at most `max_search_samples` samples. The gradients of the modes that were found define a
    metric for the kernel, M = E Σ_k ∇φ_k ∇φ_kᵀ / rate_k, in which inputs that do not matter are shrunk; the search goes
    on in this metric, and again, as long as the held-out score rises by more than the standard error of the difference.
    Then every coordinate gets a bandwidth of its own, by gradient ascent of the same score (`kdmaps.learn.refine`) from
    the best wide Gaussian. This replaces the choice of the search only if its score is higher by more than the standard
    error of the difference, or not lower by more than that while the folds agree better on the modes (if one of these
    is another one: not lower at all). The result is fitted on all samples. Metric and bandwidths change the kernel
    only: the energy is that of the inputs.

    Parameters
    ----------
    n_components : int, default=4
        Number r of modes.
    families, bandwidths, bandwidth_range, regularizations, max_extensions, scoring :
        As in `KernelSearchCV`.
    max_search_samples : "auto", int or None, default="auto"
        Kernels are searched and refined on a random subsample of at most this size; the chosen one is fitted on all
        samples. "auto" is 5,000 samples, or 20,000 pairs of frames, in runs of consecutive ones; None is all.
    metric_rounds : int, default=5
        Most metrics that are tried one after the other; 0 for none. Needs `bandwidths="auto"` and more than one input.
    refine : bool, default=True
        If True, refine (Fourier features, more than one coordinate and the default `scoring` only).
    objective : str or mapping, default="heldout"
        What the refinement minimises: the score of the search, or an objective of the paper (`kdmaps.learn.PRESETS`).
    basis, n_features, sampling, landmarks, center, diffusion, rates, cv, dtype, engine, memory_limit :
        As in `KernelSearchCV`.
    random_state, n_jobs, checkpoint, progress :
        As in `KernelSearchCV`.

    Attributes
    ----------
    refinement_ : kdmaps.learn.Refinement or None
        What the refinement found; `refinement_.preferred` tells whether it was kept.
    best_params_ : dict
        The chosen arguments of `KernelDiffusionMap`.
    best_estimator_ : KernelDiffusionMap
        Fitted on all samples.
    search_result_, cv_results_, best_index_, best_score_, best_selection_score_, certainty_, extensions_, edges_ :
        The search, as in `KernelSearchCV`.
    fold_agreement_, suggested_n_components_, relevance_, relevance_details_ :
        As in `KernelSearchCV`.
    timescales_, rates_, eigenvalues_, coefficients_, kernel_, basis_, modes_, energy_samples_, variance_samples_ :
        Those of `best_estimator_`.
    trust_ : kdmaps.diagnostics.trust.Trust
        As in `KernelSearchCV`.

    See Also
    --------
    KernelSearchCV : The search alone.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(300, random_state=0)
    >>> modes = kdmaps.AdaptiveDiffusionMap(n_components=2, random_state=0).fit_transform(X)
    """

    refinement_: Refinement | None

    def __init__(
        self,
        n_components: int = 4,
        *,
        families: Sequence[str | Kernel] = tuple(FAMILIES),
        bandwidths: str | int | ArrayLike = "auto",
        bandwidth_range: ArrayLike = BANDWIDTH_RANGE,
        regularizations: str | ArrayLike = "auto",
        max_extensions: int = 3,
        scoring: str | Callable[[FoldFit], float] = "auto",
        max_search_samples: str | int | None = "auto",
        metric_rounds: int = 5,
        refine: bool = True,
        objective: str | Mapping[str, float] = "heldout",
        basis: str = "auto",
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
        n_jobs: int | None = -1,
        checkpoint: PathLike | None = None,
        progress: bool = False,
    ):
        self.n_components = n_components
        self.families = families
        self.bandwidths = bandwidths
        self.bandwidth_range = bandwidth_range
        self.regularizations = regularizations
        self.max_extensions = max_extensions
        self.scoring = scoring
        self.max_search_samples = max_search_samples
        self.metric_rounds = metric_rounds
        self.refine = refine
        self.objective = objective
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
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.progress = progress

    def _plan(self) -> SearchPlan:
        make_objective(self.objective, self.n_components)  # what the search does not use is checked before it
        most: Any = self.max_search_samples
        if isinstance(most, str) and most == "auto":
            most = SEARCHED_SAMPLES if self.lag is None else SEARCHED_PAIRS
        return replace(super()._plan(), metric_rounds=self.metric_rounds, max_search_samples=most)

    def _choose(self, result: SearchResult) -> tuple[Candidate, FoldedMoments]:
        """Refine the best kernel of the search, and return the better one of the two."""
        data = result.data
        scaled = all(hasattr(part, "bandwidth") for _, part in result.best.kernel.components())
        possible = data.basis.basis == "fourier" and self.n_features_in_ > 1 and scaled and data.is_small
        possible = possible and self.lag is None  # its gradients are those of the energy
        # What is refined by one score is not judged by another.
        wanted = self.refine and possible and chosen_scoring(self.scoring, self.lag) == "timescale"
        self.refinement_ = self._refined(result) if wanted else None
        if self.refinement_ is None or not self.refinement_.preferred:
            return super()._choose(result)
        return self.refinement_.candidate, self.refinement_.moments

    def _refined(self, result: SearchResult) -> Refinement | None:
        median = result.data.median
        with one_blas_thread():
            return refine(
                result.data,
                _start(result, START_WIDTH * median, self.regularizations),
                result.best,
                objective=self.objective,
                narrowest=NARROWEST * median,
                progress=self.progress,
                rival_moments=result.moments,
            )


def _start(result: SearchResult, width: float, regularizations: str | ArrayLike = "auto") -> Candidate:
    """Return the best of a few wide Gaussians in the metric of the search's choice, at regularizations of the user's.

    With a bandwidth for each coordinate a kernel can follow the samples more closely than the isotropic ones of the
    search, and needs more regularization than they do.
    """
    best = result.best
    slowest = 1 / max(best.timescales)
    lambdas = tuple(rounded(factor * slowest) for factor in START_LAMBDAS)
    if not isinstance(regularizations, str):
        lambdas = tuple(positive("regularizations", regularizations).tolist())
    kernels: list[Kernel] = [Gaussian(factor * width) for factor in (1.0, 2.0)]
    if isinstance(best.kernel, Metric):
        kernels = [Metric(kernel, best.kernel.root) for kernel in kernels]
    trials = (Trial("gaussian", kernel, "fourier", lambdas, JUDGED[1]) for kernel in kernels)
    found = [c for trial in trials for c in result.data.judge(trial, select_by_timescale)]
    start = max(found, key=lambda c: c.key)
    return start if np.isfinite(start.value) else best
