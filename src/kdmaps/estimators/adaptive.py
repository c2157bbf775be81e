"""AdaptiveDiffusionMap: the default answer."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.checks import Check
from kdmaps.estimators.search import KernelSearchCV, SearchedModes
from kdmaps.forms.tangent import DiffusionLike
from kdmaps.kernels import Gaussian, Kernel, Metric
from kdmaps.learn import Refinement, make_objective, refine
from kdmaps.selection.candidate import Candidate, Stage, Trial
from kdmaps.selection.grid import positive, rounded
from kdmaps.selection.plan import SearchPlan
from kdmaps.selection.result import Search
from kdmaps.selection.scores import select_by_timescale
from kdmaps.utils.types import PathLike, RandomStateLike, SamplesLike

#: The refinement starts from a Gaussian at least this wide, in median distances. One bandwidth for all coordinates
#: requires a rough or narrow kernel for the fastest one; with one for each, a smooth kernel does better in the tails.
START_WIDTH = 3.0
#: Regularizations from which the refinement starts, in units of the slowest rate.
START_LAMBDAS = (1e-3, 1e-4, 1e-5)
#: Refined bandwidths stay above this many median distances: in narrower ones, modes jump between samples.
NARROWEST = 3.0
#: Samples, and pairs of frames, that are searched by default.
SEARCHED_SAMPLES, SEARCHED_PAIRS = 5_000, 20_000
#: Parameters that replace the parameters of `search`.
OWN = (
    *("n_components", "lag", "time_step", "reversible", "isolated", "diffusion", "basis", "n_features", "cv"),
    *("random_state", "n_jobs", "checkpoint", "progress", "standardize"),
)


@dataclass(eq=False, repr=False)
class AdaptiveDiffusionMap(SearchedModes):
    """Find slow modes with everything chosen automatically: the recommended estimator.

    The kernel family, its bandwidth, the basis and the regularization are found by cross-validation as in
    `KernelSearchCV`, on a subsample. The gradients of the modes define a metric for the kernel,
    M = E Σ_k ∇φ_k ∇φ_kᵀ / rate_k, in which inputs that do not matter are shrunk; the search continues in this metric,
    and again, as long as the held-out score rises by more than the standard error of the difference. Then every
    coordinate gets its own bandwidth, by gradient ascent of the same score (`kdmaps.learn.refine`) from the best wide
    Gaussian. The refined kernel replaces the choice of the search only if its score is higher by more than the standard
    error of the difference, or not lower by more than that while the folds agree better on the modes (if one of these
    was exchanged: not lower at all). The result is fitted on all samples. Metric and bandwidths change the kernel only:
    the energy is measured in the original inputs.

    Parameters
    ----------
    n_components : int, default=4
        Number r of modes, the constant not counted.
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
        (`transform(X, end="second")`).
    isolated : {"separate", "keep", "drop"}, default="separate"
        Treatment of a few rows behind an empty gap, as in `KernelSearchCV`: left out of the fit, and groups of three or
        more are states of their own; fitted with the others; or left out only.
    diffusion : None, float, array-like, callable, "tangent" or TangentDiffusion, default=None
        Diffusion tensor a of the energy E[∇fᵀ a ∇f]: identity, scalar, diagonal (d,), matrix (d, d), per sample
        (n, d, d), a factor (`kdmaps.Factor`), a callable of the samples, or the projector on the tangent spaces of a
        manifold (`kdmaps.TangentDiffusion`). Not with a lag.
    basis : {"auto", "fourier", "landmarks", "random-phase"}, default="auto"
        Basis functions; "auto" compares random Fourier features with kernel functions at landmarks.
    n_features : int or "auto", default=300
        Number p of basis functions. "auto" searches with 300 and doubles their number for the final fit as long as the
        held-out score of the chosen kernel rises by more than the standard error of the difference, up to a quarter of
        the samples searched; `best_params_` has the result. With more than 20,000 samples and `basis="auto"`, a fit at
        landmarks has half as many, if this lowers the score by less than its standard error.
    metric_rounds : int, default=5
        Maximum number of metric updates; 0 for none. Needs more than one input, and a search from coarse to fine.
    refine : bool, str or mapping, default=True
        If True, find one bandwidth per coordinate that maximises the held-out score. The name or the weights of an
        objective of the paper minimise this objective instead (`kdmaps.learn.PRESETS`). Needs more than one coordinate,
        Fourier features and the default score; not with a lag.
    cv : "auto", int or scikit-learn splitter, default="auto"
        Folds. A number is that many random folds, drawn twice; with `groups`, that many folds of whole groups. "auto"
        is 3, unless rows depend on rows nearby: then five blocks with gaps (`kdmaps.BlockedKFold`), with a warning.
    random_state : int, RandomState instance or None, default=None
        Seed of frequencies, landmarks, folds and subsamples.
    n_jobs : int or None, default=-1
        Number of threads of `fit`; -1 is one per core, None is 1.
    checkpoint : path, optional
        File for finished candidates; an interrupted search with the same data and settings resumes from it.
    progress : bool, default=False
        If True, show progress.
    search : KernelSearchCV, optional
        Settings of the search that are not listed above: families, bandwidths, regularizations, scoring, sampling,
        landmarks, centring, rates, precision, memory limit, and how many samples are searched
        (`max_search_samples`; "auto" is 5,000 samples or 20,000 pairs of frames).
    standardize : bool, default=False
        If True, divide the columns by their standard deviations, as for a table in different units (`KernelSearchCV`).

    Attributes
    ----------
    timescales_ : ndarray of shape (n_components,)
        Relaxation times 1/`rates_`, longest first.
    rates_ : ndarray of shape (n_components,)
        Relaxation rates of the modes, free of λ.
    trust_ : kdmaps.diagnostics.trust.Trust
        Reliability of the rate of each mode, as in `KernelSearchCV`.
    energy_samples_, variance_samples_ : ndarray of shape (n_components,)
        Number of samples that carry the energy and the variance of each mode.
    kernel_ : Kernel
        The chosen kernel.
    lag_ : int or None
        The lag, in frames.
    lag_choice_ : kdmaps.dynamics.ImpliedTimescales or None
        The time scales that determined the lag, for `lag="auto"`.
    best_score_ : float
        Held-out score of the best candidate of the search: the mean over the folds. Test samples are not part of what
        it is made of; they take part only in the choice among candidates. A refinement does not change it.
    best_params_ : dict
        Arguments of `KernelDiffusionMap` for the choice.
    best_estimator_ : KernelDiffusionMap
        The choice, fitted on all samples.
    refinement_ : kdmaps.learn.Refinement or None
        Result of the refinement; `refinement_.preferred` is True if it was kept. If the modes hardly change
        (`refinement_.exchanged` ≤ 0.15), its scores are those of the descent, which has used the test samples;
        otherwise the bandwidths were refined on the training samples of each fold.
    fold_agreement_ : float
        Mean squared cosine between the mode spaces of the folds and of all samples, for the choice. A
        refinement that hardly changes the modes does not change it.
    search_result_, cv_results_, best_index_, best_selection_score_, certainty_, extensions_, edges_ :
        The search, as in `KernelSearchCV`.
    rare_groups_ : tuple of kdmaps.data.RareGroup
        Groups of rows that are left out: their numbers, their share, the gap around them and their indicator.
    suggested_n_components_, relevance_, relevance_details_ :
        As in `KernelSearchCV`.
    eigenvalues_, coefficients_, basis_, modes_, right_modes_, moments_, tangents_ :
        As in `KernelDiffusionMap`.

    See Also
    --------
    KernelSearchCV : The search alone.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(300, random_state=0)
    >>> modes = kdmaps.AdaptiveDiffusionMap(n_components=2, random_state=0).fit_transform(X)
    """

    n_components: int = 4
    _: KW_ONLY
    lag: int | str | None = None
    time_step: float | None = None
    reversible: bool = True
    isolated: str = "separate"
    diffusion: DiffusionLike = None
    basis: str = "auto"
    n_features: int | str = 300
    metric_rounds: int = 5
    refine: bool | str | Mapping[str, float] = True
    cv: Any = "auto"
    random_state: RandomStateLike = None
    n_jobs: int | None = -1
    checkpoint: PathLike | None = None
    progress: bool = False
    search: KernelSearchCV | None = None
    standardize: bool = False

    def _fit(self, X: SamplesLike, sample_weight: ArrayLike | None, groups: ArrayLike | None) -> list[Check]:
        settings = self._search_settings()
        goal = "heldout" if isinstance(self.refine, bool) else self.refine
        make_objective(goal, self.n_components)  # an invalid objective is reported before the search
        refined = partial(_refined, goal, settings.regularizations, self.progress)
        plan = self._plan(settings)
        # The refinement maximises the default score of samples without a lag; it does not apply to other scores.
        wanted = self.refine is not False and self.lag is None and plan.scoring == "timescale"
        return self._fit_plan(plan, X, sample_weight, groups, refined if wanted else None)

    def _search_settings(self) -> KernelSearchCV:
        """Return the search with the parameters of this estimator."""
        if self.search is not None and not isinstance(self.search, KernelSearchCV):
            raise ValueError(f"search must be a KernelSearchCV or None, got {self.search!r}.")
        given = {} if self.search is None else self.search.get_params(deep=False)
        defaults = KernelSearchCV().get_params(deep=False)
        other = [name for name in OWN if name in given and given[name] is not defaults[name]]
        if doubled := [name for name in other if not np.isscalar(given[name]) or given[name] != defaults[name]]:
            raise ValueError(
                f"search has {', '.join(f'{name}={given[name]!r}' for name in doubled)}; give "
                f"{'it' if len(doubled) == 1 else 'them'} to AdaptiveDiffusionMap."
            )
        own = {name: getattr(self, name) for name in OWN}
        return KernelSearchCV(**{**given, **own})

    def _plan(self, settings: KernelSearchCV) -> SearchPlan:
        most: Any = settings.max_search_samples
        if isinstance(most, str) and most == "auto":
            most = SEARCHED_SAMPLES if self.lag is None else SEARCHED_PAIRS
        return replace(settings._plan(), metric_rounds=self.metric_rounds, max_search_samples=most)

    @property
    def _memory_limit(self) -> float | None:
        return None if self.search is None else self.search.memory_limit


def _refined(
    objective: str | Mapping[str, float], regularizations: str | ArrayLike, progress: bool, found: Search
) -> tuple[Refinement, Search] | None:
    """Refine the best kernel of a search, if it can be refined."""
    result, data = found.result, found.data
    scaled = all(hasattr(part, "bandwidth") for _, part in result.best.kernel.components())
    if not (data.basis.basis == "fourier" and data.source.n_features > 1 and scaled and data.is_small):
        return None
    refined = refine(
        data,
        _start(found, START_WIDTH * data.median, regularizations),
        result.best,
        objective=objective,
        narrowest=NARROWEST * data.median,
        progress=progress,
        rival_moments=found.moments,
    )
    return None if refined is None else (refined[0], found._replace(moments=refined[1]))


def _start(found: Search, width: float, regularizations: str | ArrayLike = "auto") -> Candidate:
    """Return the best of a few wide Gaussians in the metric of the search's choice.

    With one bandwidth per coordinate a kernel can follow the samples more closely than an isotropic one, and needs more
    regularization.
    """
    best = found.result.best
    slowest = 1 / max(best.timescales)
    lambdas = tuple(rounded(factor * slowest) for factor in START_LAMBDAS)
    if not isinstance(regularizations, str):
        lambdas = tuple(positive("regularizations", regularizations).tolist())
    kernels: list[Kernel] = [Gaussian(factor * width) for factor in (1.0, 2.0)]
    if isinstance(best.kernel, Metric):
        kernels = [Metric(kernel, best.kernel.root) for kernel in kernels]
    trials = (Trial("gaussian", kernel, "fourier", lambdas, Stage.ALL_FOLDS, best.origin) for kernel in kernels)
    candidates = [c for trial in trials for c in found.data.evaluate(trial, select_by_timescale)]
    start = max(candidates, key=lambda c: c.order)
    return start if np.isfinite(start.value) else best
