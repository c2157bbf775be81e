"""KernelSearchCV: kernel family, bandwidth and regularization by held-out samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from kdmaps.data.check import warn_of_array, warn_of_time_step, warn_of_weighted_pairs
from kdmaps.data.inputs import join_trajectories
from kdmaps.diagnostics.relevance import Relevance, relevance_at
from kdmaps.estimators.fitting import (
    basis_spec,
    check_folds,
    choose_lag_for,
    fit_source,
    fit_spec,
    fit_sums,
    fit_warnings,
)
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.estimators.transformer import ModeTransformer, checked_source, copy_columns, copy_modes
from kdmaps.estimators.verdict import judge_search
from kdmaps.exceptions import UnresolvedModesWarning
from kdmaps.forms.tangent import DiffusionLike
from kdmaps.kernels import FAMILIES, Kernel
from kdmaps.selection.candidate import Candidate
from kdmaps.selection.grid import BANDWIDTH_RANGE
from kdmaps.selection.judging import FoldedMoments
from kdmaps.selection.plan import SearchPlan
from kdmaps.selection.result import SearchResult
from kdmaps.selection.rules import chosen_scoring
from kdmaps.selection.scores import FoldFit
from kdmaps.selection.search import search
from kdmaps.spectrum.checks import agreement_check
from kdmaps.utils.progress import reporting, stage
from kdmaps.utils.types import PathLike, RandomStateLike, SamplesLike
from kdmaps.utils.validation import all_or_nothing, checked_weight
from kdmaps.utils.warn import warn

#: Parameters that a search hands to the model that it fits.
SHARED = (
    *("n_components", "basis", "n_features", "sampling", "landmarks", "center", "diffusion", "rates", "cv"),
    *("dtype", "engine", "memory_limit", "lag", "time_step", "reversible"),
)


class KernelSearchCV(ModeTransformer):
    """Find slow modes with the kernel chosen by cross-validation; no ground truth is needed.

    Every candidate (basis, family, bandwidth, regularization) is fitted on training folds and judged by the time scales
    that its modes show on the held-out folds. Held-out time scales exceed the true ones only by sampling noise, so the
    candidate with the largest score is the best one. By default candidates race: a coarse set on a few folds, then the
    best of them, their neighbours and a finer set of regularizations on all folds, the last two solved exactly.

    Parameters
    ----------
    n_components : int, default=4
        Number r of modes.
    families : sequence of str or Kernel, default=all six names
        Names are combined with every bandwidth; a Kernel (a mixture, for example) is tried as it is.
    bandwidths : "auto", int or array-like, default="auto"
        "auto" races, from a tenth of the median pairwise distance (or what the spacing of the samples supports) to 50
        times the median. Otherwise a whole grid is tried: that many bandwidths, spread evenly in the logarithm over
        `bandwidth_range`, or the bandwidths themselves.
    bandwidth_range : (float, float), default=(1.5, 30)
        Ends of the grid of a number of bandwidths in units of the median pairwise distance.
    regularizations : "auto" or array-like, default="auto"
        λ, which has the unit of a rate. In a race, "auto" goes from 1e-10 to 1e3 times the slowest rate, which a pilot
        estimates. In a grid these are seven from 1e-4 to 1e-1, times the power of 1000 that is nearest to the mean
        diffusion over the squared median distance: 1 for data of ordinary size.
    max_extensions : int, default=3
        Number of times that a grid may grow when the best candidate lies on its edge.
    scoring : "auto", {"timescale", "rayleigh", "eigsum", "gap", "vamp1", "vamp2", "vampe"} or callable, default="auto"
        "timescale" is Σ_k √t_k of the pooled held-out time scales t_k minus one standard error
        (`kdmaps.selection.rules.select_by_timescale`): the default for samples. For pairs of frames t_k is 1/(1-ν_k),
        and the default is "vamp2", Σ_k ν_k² of the autocorrelations ν_k after the lag, likewise; "vamp1" is Σ_k ν_k,
        and "vampe" the part of the transfer operator that the modes explain. A callable gets a
        `kdmaps.selection.scores.FoldFit` and returns a number; its mean over the folds is maximised.
    max_search_samples : int or None, default=None
        Candidates are judged on a random subsample of at most this size; the best one is fitted on all samples. None
        is all samples of an array in memory or of Dask data, and 20,000 of other data that are read in chunks. Pairs of
        frames are drawn in runs of up to 100 consecutive ones.
    basis : {"auto", "fourier", "landmarks", "random-phase"}, default="auto"
        As in `KernelDiffusionMap`. "auto" races Fourier features and landmarks; in a grid it is "fourier". Landmarks
        are chosen once for all candidates, at most a quarter as many as there are samples, and no sample that is tested
        is a landmark. "full" is not possible: it would leave none.
    n_features, sampling, landmarks, center, diffusion, lag, time_step, reversible, rates :
        As in `KernelDiffusionMap`. Kernels are judged by pairs in both directions of time, whatever `reversible` is.
    cv : "auto", int or scikit-learn splitter, default="auto"
        A number is that many random folds, drawn twice; with `groups`, that many folds of whole groups. "auto" is 3,
        unless rows depend on rows nearby: then five blocks with a gap of the correlation time
        (`kdmaps.BlockedKFold`), or whole walkers if their frames take turns, with a `DataWarning` that says so.
    dtype, engine, memory_limit :
        As in `KernelDiffusionMap`; the limit is that of the fit on all samples.
    random_state : int, RandomState instance or None, default=None
        The same integer draws the same frequencies, landmarks and folds in all estimators.
    n_jobs : int or None, default=-1
        Number of threads; -1 is one per core, None is 1 as in scikit-learn. Each uses one BLAS thread.
    checkpoint : path, optional
        File for finished candidates; an interrupted search with the same data and settings resumes from it.
    progress : bool, default=False
        If True, show progress with the best candidate so far.

    Attributes
    ----------
    best_params_ : dict
        Arguments of `KernelDiffusionMap`.
    best_index_ : int
        Place of the chosen candidate in `cv_results_`.
    best_score_ : float
        Its `mean_test_score`.
    best_selection_score_ : float
        Its `selection_score`.
    best_estimator_ : KernelDiffusionMap
        The best candidate fitted on all samples; `timescales_`, `rates_`, `transform`, … are taken from it.
    cv_results_ : dict of arrays
        One entry per candidate. As in scikit-learn: `params` and `param_*`; `split*_test_score`, `mean_test_score`,
        `std_test_score` and `rank_test_score`, the plain scores of the folds (for "timescale" the sum of time scales,
        as in `KernelDiffusionMap.score`); `mean_fit_time`, `mean_score_time` and their `std_*`, in seconds for one
        fold. Beside them `selection_score`, which is maximised, its `selection_error` and `rank_selection_score` (a
        candidate beyond the grid may have rank 1 and not be chosen, see `extensions_`); `fold_agreement`,
        `condition_number`, `timescales`; `judged`, how closely a candidate was looked at (a race compares only those
        that were judged alike); and `rejected`, why a candidate has no score.
    search_result_ : kdmaps.selection.result.SearchResult
        The same as objects, with the folds and the sums of the best kernel.
    trust_ : kdmaps.diagnostics.trust.Trust
        How far to trust the rate of each mode: by the samples behind it (`energy_samples_`, `variance_samples_`), by
        held-out samples, by kernels that score alike and by other random features.
    fold_agreement_ : float
        Mean squared cosine between the mode spaces of the folds and of all samples, for the chosen kernel.
    suggested_n_components_ : int or None
        Where the largest spectral gap lies among those that the folds agree on.
    certainty_ : dict
        Margin to the runner-up of another kernel, also in standard errors of the difference, and the bound of
        thm:cv-consistency with its constants estimated from the folds (it is 1 unless the margin is large).
    extensions_ : list of str
        How the grid was extended.
    relevance_ : ndarray of shape (d,)
        How much the modes depend on each input: shares that sum to 1 (`kdmaps.relevance`).
    relevance_details_ : kdmaps.diagnostics.relevance.Relevance
        The same for each mode, and the combinations of inputs that matter (`kdmaps.plotting.plot_relevance`).
    edges_ : list of str
        On which ends of what a race tries the chosen candidate lies; empty if it lies inside.

    See Also
    --------
    AdaptiveDiffusionMap : The same, in a metric that the modes define.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(300, random_state=0)
    >>> s = kdmaps.KernelSearchCV(n_components=2, families=["gaussian"], bandwidths=4, random_state=0).fit(X)
    >>> sorted(s.best_params_)
    ['bandwidth', 'basis', 'kernel', 'regularization']
    """

    lag_: int | None
    best_estimator_: KernelDiffusionMap
    best_params_: dict[str, Any]
    fold_agreement_: float
    suggested_n_components_: int | None
    relevance_details_: Relevance
    relevance_: np.ndarray
    cv_results_: dict[str, Any]
    best_index_: int
    best_score_: float
    best_selection_score_: float
    certainty_: dict[str, float]
    extensions_: list[str]
    edges_: list[str]

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
        max_search_samples: int | None = None,
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
        self.max_search_samples: Any = max_search_samples
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

    def fit(
        self, X: SamplesLike, y: Any = None, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Try all candidates and fit the best one on all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), list of such arrays, path, stream of chunks
            Anything that `kdmaps.data.as_source` takes. A list of arrays is several trajectories, which are the groups
            of the folds. Data that are not in memory are searched on a subsample, Dask
            data by their workers.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            The trajectory of each sample, for example: folds keep groups together.

        Returns
        -------
        self
        """
        plan = self._plan()
        plan.check()
        X, groups, _ = join_trajectories(X, groups, sample_weight)
        with all_or_nothing(self), reporting(self.progress):
            source = checked_source(self, X, reset=True)
            check_folds(source, plan.fit)
            weight = checked_weight(sample_weight, source)
            warn_of_array(source, weight, groups, lag=self.lag)
            warn_of_weighted_pairs(weight, self.lag)
            warn_of_time_step(self.time_step, self.lag)
            self.lag_ = choose_lag_for(self, source, weight, groups)
            plan = replace(plan, fit=replace(plan.fit, lag=self.lag_))
            source, weight, groups = plan.fit.observations(source, weight, groups)
            result = search(source, weight, groups, plan)
            self._report(result)
            chosen, moments = self._choose(result)
            self.best_params_, self.fold_agreement_ = chosen.params, chosen.agreement
            self.suggested_n_components_ = result.data.suggest_n_components(moments, chosen.regularization)
            data = result.data
            shared = {name: getattr(self, name) for name in SHARED}
            shared |= {
                "landmarks": data.spec(chosen.basis).landmarks,
                "random_state": data.seed,
                "cv": data.fit.cv,
                "lag": self.lag_,
            }
            model = KernelDiffusionMap(**shared).set_params(**self.best_params_)
            copy_columns(self, model)
            # The sums of the search know no limit, and no direction of time.
            if data.complete and self.memory_limit is None and self.reversible:
                fit_sums(model, moments, data.whole_form.spaces)
            else:
                fit_source(model, source, data.whole_form, weight, groups)
            with stage("checks of the modes", self.progress):
                judge_search(model, source, result, chosen, moments, groups)
            self.best_estimator_ = model
            copy_modes(model, self)
            self.relevance_details_ = relevance_at(model, *data.typical)
            self.relevance_ = self.relevance_details_.overall
        disagreement = agreement_check(chosen.agreement, self.suggested_n_components_).warning
        # The estimate of what the samples resolve is for fits without folds; here the folds have measured it.
        found = [w for w in fit_warnings(model, model.trust_) if not isinstance(w, UnresolvedModesWarning)]
        for warning in filter(None, [disagreement, result.flatness(), *found]):
            warn(warning)
        return self

    def _plan(self) -> SearchPlan:
        return SearchPlan(
            basis=basis_spec(self),
            fit=replace(fit_spec(self), lag=self.lag),
            families=self.families,
            bandwidths=self.bandwidths,
            bandwidth_range=self.bandwidth_range,
            regularizations=self.regularizations,
            scoring=chosen_scoring(self.scoring, self.lag),
            max_extensions=self.max_extensions,
            metric_rounds=0,
            max_search_samples=self.max_search_samples,
            n_jobs=self.n_jobs,
            checkpoint=self.checkpoint,
            progress=self.progress,
            random_state=self.random_state,
        )

    def _report(self, result: SearchResult) -> None:
        """Set the attributes that tell about the search."""
        self.search_result_ = result
        self.cv_results_, self.best_index_ = result.table(), result.best_index
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.best_selection_score_ = result.best.value
        self.certainty_ = result.certainty
        self.extensions_, self.edges_ = list(result.extensions), list(result.edges)

    def _choose(self, result: SearchResult) -> tuple[Candidate, FoldedMoments]:
        """Return the candidate to fit, and its sums over the samples searched."""
        return result.best, result.moments
