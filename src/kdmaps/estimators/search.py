"""KernelSearchCV: kernel family, bandwidth and regularization by held-out samples."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from kdmaps.bases import BasisSpec
from kdmaps.checks import Check, Subject, muted, rules, warn
from kdmaps.data.check import warn_of_data
from kdmaps.data.distances import Support
from kdmaps.data.inputs import join_trajectories
from kdmaps.data.sources import Source
from kdmaps.diagnostics.relevance import Relevance, relevance_at
from kdmaps.estimators.coordinates import Scaled
from kdmaps.estimators.fit import Fit, check_folds, fit_observations, fit_sums, spec_of, with_lag, with_rare_groups
from kdmaps.estimators.isolation import isolate
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.estimators.prediction import plan_without_noise, propagator_of
from kdmaps.estimators.reliability import gaps_between_samples, is_readable, tests_of_eigenfunctions, trust_after_search
from kdmaps.estimators.span import Span
from kdmaps.estimators.transformer import ModeTransformer, read_samples
from kdmaps.exceptions import Undetermined
from kdmaps.forms.tangent import DiffusionLike
from kdmaps.kernels import FAMILIES, Kernel
from kdmaps.learn import Refinement
from kdmaps.selection.candidate import Candidate
from kdmaps.selection.cross_fit import FoldFit
from kdmaps.selection.evaluation import SearchData
from kdmaps.selection.grid import BANDWIDTH_RANGE
from kdmaps.selection.lag import ImpliedTimescales
from kdmaps.selection.plan import FitSpec, SearchPlan
from kdmaps.selection.result import Search, SearchResult
from kdmaps.selection.scores import chosen_scoring
from kdmaps.selection.search import search, with_fewer_landmarks, with_more_features
from kdmaps.spectrum.modes import agreement_check
from kdmaps.spectrum.pencil import fewer_modes
from kdmaps.summary import SearchedModel
from kdmaps.utils.progress import reporting, stage
from kdmaps.utils.types import PathLike, RandomStateLike, SamplesLike
from kdmaps.utils.validation import checked_weight

#: Refines the choice of a search; returns None, or the refinement and the search with the sums of the refined kernel.
Refine = Callable[[Search], tuple[Refinement, Search] | None]


@dataclass(frozen=True, eq=False)
class SearchFit:
    """The result of a search and the fit of its choice on all samples."""

    fit: Fit
    model: KernelDiffusionMap  # unfitted, with the parameters of the choice
    result: SearchResult
    chosen: Candidate  # the best candidate of the search, or the refined one
    refinement: Refinement | None
    suggested_n_components: int | None
    relevance: Relevance

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that are about the search."""
        result, table = self.result, self.result.table()
        return {
            "best_estimator_": self.model,
            "best_params_": self.chosen.params,
            "best_index_": result.best_index,
            "best_score_": float(table["mean_test_score"][result.best_index]),
            "best_selection_score_": result.best.value,
            "cv_results_": table,
            "search_result_": result,
            "refinement_": self.refinement,
            "certainty_": result.certainty,
            "extensions_": list(result.extensions),
            "edges_": list(result.edges),
            "fold_agreement_": self.chosen.agreement,
            "suggested_n_components_": self.suggested_n_components,
            "relevance_details_": self.relevance,
            "relevance_": self.relevance.overall,
        }

    @property
    def checks(self) -> list[Check]:
        """Checks of the choice and of the modes."""
        if self.fit.propagator is not None and self.fit.propagator.is_deterministic:
            return []  # without noise, all functions are predictable to rounding
        agreement = agreement_check(self.chosen.agreement, self.suggested_n_components)
        edges = Check(rules.EDGE, len(self.result.edges), words={"edges": "; ".join(self.result.edges)})
        # The folds have measured the resolution, which these checks estimate for fits without folds.
        of_fit = [check for check in self.fit.of_modes if check.rule.subject is not Subject.ESTIMATE]
        flatness = self.result.flatness
        return [agreement, *([] if flatness is None else [flatness]), edges, *of_fit]


def search_modes(
    source: Source,
    plan: SearchPlan,
    weight: np.ndarray | None = None,
    groups: ArrayLike | None = None,
    refine: Refine | None = None,
) -> SearchFit:
    """Search for a kernel by a checked plan, refine it, and fit the modes of all samples with it."""
    check_folds(source, plan.fit)
    isolated = isolate(source, plan.fit, weight, groups)
    plan = replace(plan, fit=isolated.fit)
    source, weight, groups = isolated.source, isolated.weight, isolated.trajectories
    units = plan.standardize or plan.fit.diffusion is not None
    warn_of_data(
        source,
        weight,
        groups,
        lag=plan.fit.lag,
        time_step=plan.fit.time_step,
        diffusion=units,
        detached=not isolated.warned,
    )
    frames = source
    names = source.feature_names
    scaled = Scaled.of(source, plan, weight)
    if scaled is not None:
        source, plan = scaled.source, scaled.plan(plan)
    span = Span.of(source, plan)
    if span is not None:
        source, plan = span.source, span.plan(plan)
    fit, choice = with_lag(plan.fit, source, weight, groups, plan.random_state)
    plan = replace(plan, fit=fit)
    with stage("forecasts", plan.progress):
        propagator = propagator_of(frames, fit, weight, groups)
    settings = (names, scaled, span, choice, refine)
    if propagator is None or not propagator.is_deterministic:
        found = _searched(plan, source, weight, groups, *settings)
        warn(fewer_modes(len(found.fit.modes.rates), fit.n_components))
    else:
        with muted(), np.errstate(all="ignore"):  # singular functions are the same to rounding
            quick = plan_without_noise(plan, fit.lag or 1, propagator.n_frame_pairs)
            found = _searched(quick, source, weight, groups, *settings)
    lag = found.fit.modes.clock.lag
    if propagator is not None and lag != fit.lag:
        propagator = propagator_of(frames, replace(fit, lag=lag), weight, groups)
    fitted = with_rare_groups(found.fit, isolated)
    return replace(found, fit=replace(fitted, propagator=propagator))


def _searched(
    plan: SearchPlan,
    source: Source,
    weight: np.ndarray | None,
    groups: ArrayLike | None,
    names: Any,
    scaled: Scaled | None,
    span: Span | None,
    choice: ImpliedTimescales | None,
    refine: Refine | None,
) -> SearchFit:
    """Search for a kernel with a lag that is a number, and fit the modes with it."""
    plan, (source, weight, groups), found = _search_of_lag(plan, source, weight, groups, choice)
    fit = plan.fit
    result, chosen, refinement = found.result, found.result.best, None
    refined = None if refine is None else refine(found)
    if refined is not None:
        refinement = refined[0]
        if refinement.preferred:
            chosen, found = refinement.kept, refined[1]
    with stage("number of features", plan.progress):
        found, chosen = (with_more_features if plan.more_features else with_fewer_landmarks)(found, chosen, plan)
    data, moments = found.data, found.moments
    landmarks = getattr(moments.basis, "landmarks", plan.basis.landmarks)
    model = _model(plan, data, chosen, landmarks)
    spec = model._spec()
    reusable = data.complete and fit.memory_limit is None  # the sums of the search ignore the limit
    # Cross-fitted rates need folds whose test samples are not landmarks.
    if reusable and not (fit.rates == "cross-fitted" and chosen.basis == "landmarks"):
        fitted = fit_sums(spec, moments, data.whole_form.spaces)
    else:
        fitted = fit_observations(source, spec, data.whole_form, weight, groups)
    with stage("checks of the modes", plan.progress):
        fitted = replace(fitted, support=Support.of(data.preview.X, data.seed).extended(source.bounds()))
        if is_readable(data.source, data.form, data.preview):
            of_fit = (fitted.basis, fitted.modes, fitted.moments)
            modes, trust = trust_after_search(*of_fit, found, chosen, groups, fitted.right_modes)
            if fitted.right_modes is not None:
                trust = replace(trust, **tests_of_eigenfunctions(found, chosen))
            gaps = gaps_between_samples(fitted.basis, modes, data.source, data.preview, data.form, data.seed)
            fitted = replace(fitted, modes=modes, trust=replace(trust, **gaps))
    few, frame = data.everything.typical, None if span is None else span.frame
    if scaled is not None and scaled.mixed:
        frame = scaled.of_columns if frame is None else scaled.of_columns @ frame
    relevance = relevance_at(fitted.basis, fitted.modes, few.X, few.weight, names, frame)
    suggested = data.suggest_n_components(moments, chosen.regularization)
    fitted = replace(fitted, lag_choice=choice)
    for coordinates in (span, scaled):
        if coordinates is not None:
            fitted, chosen = coordinates.fit(fitted), coordinates.candidate(chosen)
            landmarks = landmarks if isinstance(landmarks, str) else coordinates.points(landmarks)
            model = _model(plan, data, chosen, landmarks)
    if scaled is not None and fit.lag is None:  # pairs show the diffusion themselves
        model.set_params(diffusion=scaled.diffusion)
    return SearchFit(fitted, model, result, chosen, refinement, suggested, relevance)


def _search_of_lag(
    plan: SearchPlan, source: Source, weight: Any, groups: Any, choice: ImpliedTimescales | None
) -> tuple[SearchPlan, tuple[Source, Any, Any], Search]:
    """Search with the lag of the plan; a lag that a scan has chosen is halved until a mode is slower.

    If the direction of time matters, functions that the frames do not determine are left out.
    """
    first, halvings = plan.fit.lag, 0
    while True:
        observed = plan.fit.observations(source, weight, groups)
        try:
            found = search(*observed, plan)
        except Undetermined:
            if plan.fit.reversible or plan.fit.n_components == 1:
                raise
            plan = replace(plan, fit=replace(plan.fit, n_components=plan.fit.n_components - 1), checkpoint=None)
            continue
        lag = plan.fit.lag
        # A mode with the time scale of the lag has the autocorrelation 1/e after the lag.
        if choice is None or not lag or lag == 1 or 1 - 1 / max(found.result.best.timescales) > np.exp(-1):
            break
        plan = replace(plan, fit=replace(plan.fit, lag=lag // 2), checkpoint=None)  # it has candidates of one lag
        halvings += 1
    if lag != first:
        warn(Check(rules.LAG_HALVED, 0.5**halvings, words={"first": first, "used": lag}))
    return plan, observed, found


def _model(plan: SearchPlan, data: SearchData, chosen: Candidate, landmarks: Any) -> KernelDiffusionMap:
    """Return an estimator with the parameters of the chosen candidate."""
    found = {"landmarks": landmarks, "cv": data.fit.cv, "random_state": data.seed, **chosen.params}
    return KernelDiffusionMap(**vars(plan.basis) | vars(plan.fit) | found)


class SearchedModes(SearchedModel, ModeTransformer):
    """Modes whose kernel was found by a search."""

    def _fit_plan(
        self,
        plan: SearchPlan,
        X: SamplesLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        refine: Refine | None = None,
    ) -> list[Check]:
        """Run the search and publish its results; return the checks of the choice and of the modes."""
        plan.check()
        X, groups, _ = join_trajectories(X, groups, sample_weight)
        with reporting(plan.progress):
            source, columns = read_samples(self, X)
            found = search_modes(source, plan, checked_weight(sample_weight, source), groups, refine)
        found.model._publish(columns, found.fit)
        self._publish(columns, found.fit, **found.attributes())
        return found.checks


@dataclass(eq=False, repr=False)
class KernelSearchCV(SearchedModes):
    """Find slow modes with the kernel chosen by cross-validation; no ground truth is needed.

    Every candidate (basis, family, bandwidth, regularization) is fitted on training folds and scored by the time scales
    of its modes on the held-out folds. Held-out time scales exceed the true ones only by sampling noise, so the
    candidate with the largest score is the best one. By default the search goes from coarse to fine: a coarse set of
    candidates on a few folds, then neighbours of the best ones and more regularizations, then the best ones on all
    folds. The best candidate is solved to full precision.

    Samples in memory with more columns than rows are searched in the coordinates of their span, with radial kernels at
    landmarks, unless another basis, or diffusion, landmarks or kernels in the columns of X are given. The kernel is
    then a `Metric` of the directions of the span: modes do not depend on the part of a point that is orthogonal to all
    samples.

    Parameters
    ----------
    n_components : int, default=4
        Number r of modes, the constant not counted.
    families : sequence of str or Kernel, default=all six names
        Names are combined with every bandwidth; a Kernel (a mixture, for example) is tried with its own bandwidth.
    bandwidths : "auto", int or array-like, default="auto"
        "auto" searches from coarse to fine, between a tenth of the median pairwise distance (more if samples are
        sparse) and 50 times the median. Otherwise a grid is tried: this many bandwidths, evenly spaced in the logarithm
        over `bandwidth_range`, or these bandwidths.
    bandwidth_range : (float, float), default=(1.5, 30)
        Ends of the grid for a number of bandwidths, in units of the median pairwise distance.
    regularizations : "auto" or array-like, default="auto"
        λ, which has the unit of a rate. From coarse to fine, "auto" is the range from 1e-10 to 1e3 times the slowest
        rate of a first fit. In a grid it is seven values from 1e-4 to 1e-1, times the power of 1000 nearest to the mean
        diffusion over the squared median distance: 1 for data of ordinary size.
    max_extensions : int, default=3
        Maximum number of extensions of a grid, if the best candidate lies on its edge.
    scoring : "auto", {"timescale", "rayleigh", "eigsum", "gap", "vamp1", "vamp2", "vampe"} or callable, default="auto"
        "timescale", the default for samples, is Σ_k log t_k of the pooled held-out time scales t_k, minus one standard
        error (`kdmaps.selection.scores.select_by_timescale`); for pairs of frames t_k is 1/(1-ν_k) with the
        autocorrelations ν_k after the lag. "vamp2", the default for pairs of frames, is Σ_k ν_k² minus one standard
        error; "vamp1" is the same with Σ_k ν_k; "vampe" is the part of the transfer operator that the modes explain. A
        callable takes a `kdmaps.selection.cross_fit.FoldFit` and returns a number, whose mean over the folds is
        maximised.
    max_search_samples : "auto", int or None, default="auto"
        Candidates are evaluated on a random subsample of at most this size; the best one is fitted on all samples.
        "auto" and None are all samples of an array in memory or of Dask data, and 20,000 samples of data that are read
        in chunks. (Within an `AdaptiveDiffusionMap`, "auto" is 5,000 samples or 20,000 pairs of frames.) Pairs of
        frames are drawn in runs of up to 100 consecutive pairs.
    basis : {"auto", "fourier", "landmarks", "random-phase"}, default="auto"
        Random Fourier features in pairs, kernel functions at landmarks, or the paper's random-phase features. "auto"
        compares Fourier features with landmarks; in a grid it is "fourier". Landmarks are
        selected from the training samples of each fold, at most a quarter as many as samples; the final fit selects
        up to `n_features` of all samples.
    n_features : int or "auto", default=300
        Number p of basis functions. "auto" searches with 300 and doubles their number for the final fit as long as the
        held-out score of the chosen kernel rises by more than the standard error of the difference, up to a quarter of
        the samples searched; `best_params_` has the result. With more than 20,000 samples and `basis="auto"`, a fit at
        landmarks has half as many, if this lowers the score by less than its standard error.
    sampling : {"sobol", "orthogonal", "iid"}, default="sobol"
        Sampling of the frequencies of Fourier features.
    landmarks : {"kmeans", "uniform"} or array-like of shape (p, d), default="kmeans"
        Method that selects the landmarks, or the landmarks.
    center : bool, default=True
        If True, centre the covariance, which removes the constant; if False, the constant is a mode.
    diffusion : None, float, array-like, callable, "tangent" or TangentDiffusion, default=None
        Diffusion tensor of the energy, in the formats of `KernelDiffusionMap`. Not with a lag.
    lag : int or "auto", optional
        Number of frames between the two frames of a pair, for trajectories; "auto" is the smallest lag from which
        implied time scales are flat within their errors. By default X is samples in any order.
    time_step : float, optional
        Time between frames, in any unit, which becomes the unit of `timescales_`. Needs a lag or bursts. By default the
        step of the times in X (trajectories of mdtraj and MDAnalysis in ps, a column `time` of a file), otherwise 1.
    reversible : bool, default=True
        If True, use pairs of frames in both directions of time; if False, modes are the singular functions of the
        transfer operator. Candidates are always scored on pairs in both directions.
    isolated : {"separate", "keep", "drop"}, default="separate"
        Treatment of a few rows of X behind an empty gap, without a lag and in memory. A kernel would describe the gap
        in place of the system. "separate" leaves out fewer than 50 such rows, with a `DataWarning` that names them:
        groups of three or more are states of their own (`rare_groups_`), whose exchange with the others is too slow to
        be timed. Use "drop" if such rows can only be errors, so that they are no states, and "keep" if modes shall
        describe them, such as the tails of a heavy-tailed law, or the rows of a state that 'separate' leaves out.
    rates : {"ritz", "cross-fitted"}, default="ritz"
        Samples that the rates are estimated from: the training samples, or held-out samples of every fold.
    cv : "auto", int or scikit-learn splitter, default="auto"
        A number is that many random folds, drawn twice; with `groups`, that many folds of whole groups. "auto" is 3,
        unless rows depend on rows nearby: then five blocks with a gap of the correlation time
        (`kdmaps.BlockedKFold`), or whole walkers if their frames take turns, with a `DataWarning`.
    dtype : {"float64", "float32"}, default="float64"
        Type of Fourier features. "float32" is for large data; sums of chunks are added in float64.
    memory_limit : float, optional
        Megabytes for chunks, sums and the solve of the fit on all samples; it does not apply to the search.
    random_state : int, RandomState instance or None, default=None
        Seed of frequencies, landmarks and folds; the same integer gives the same draws in all estimators.
    n_jobs : int or None, default=-1
        Number of threads of `fit`; -1 is one per core, None is 1.
    checkpoint : path, optional
        File for finished candidates; an interrupted search with the same data and settings resumes from it.
    progress : bool, default=False
        If True, show progress with the best candidate so far.
    standardize : bool, default=False
        If True, divide the columns by their standard deviations, as for a table in different units. X must be in
        memory; `transform` and all other methods take the columns as they are. Without a lag, time scales are then in
        units of variances over D.

    Attributes
    ----------
    best_params_ : dict
        Arguments of `KernelDiffusionMap`.
    best_index_ : int
        Position of the chosen candidate in `cv_results_`.
    best_score_ : float
        Its `mean_test_score`, with `n_features="auto"` before the number of features is raised.
    best_selection_score_ : float
        Its `selection_score`.
    best_estimator_ : KernelDiffusionMap
        The best candidate fitted on all samples; `timescales_`, `rates_`, `transform`, … are taken from it.
    cv_results_ : dict of arrays
        One entry per candidate. As in scikit-learn: `params` and `param_*`; `split*_test_score`, `mean_test_score`,
        `std_test_score` and `rank_test_score`, the plain scores of the folds (for "timescale" the sum of time scales,
        as in `KernelDiffusionMap.score`); `mean_fit_time`, `mean_score_time` and their `std_*`, in seconds for one
        fold. In addition: `selection_score`, which is maximised, its `selection_error` and `rank_selection_score`
        (modes that rest on a few rows come last; a candidate beyond the grid may have rank 1 without being chosen:
        `extensions_`); `fold_agreement`,
        `condition_number` and `timescales`; `stage`, "screened", "all folds" or "exact" (only scores of the same stage
        are comparable); and `rejected`, the reason for a missing score.
    search_result_ : kdmaps.selection.result.SearchResult
        The candidates and the folds as objects.
    trust_ : kdmaps.diagnostics.trust.Trust
        Reliability of the rate of each mode, by the number of samples that carry it (`energy_samples_`,
        `variance_samples_`), by held-out samples, by kernels of equal score and by other random features.
    rare_groups_ : tuple of kdmaps.data.RareGroup
        Groups of rows that are left out: their numbers, their share, the gap around them and their indicator.
    fold_agreement_ : float
        Mean squared cosine between the mode spaces of the folds and of all samples, for the chosen kernel.
    suggested_n_components_ : int or None
        Position of the largest spectral gap among mode spaces on which the folds agree.
    certainty_ : dict
        Margin to the best candidate of another kernel, also in standard errors of the difference, and the bound of
        thm:cv-consistency with its constants estimated from the folds (it is 1 unless the margin is large).
    extensions_ : list of str
        Extensions of the grid.
    relevance_ : ndarray of shape (d,)
        Dependence of the modes on each input: shares that sum to 1 (`kdmaps.relevance`).
    relevance_details_ : kdmaps.diagnostics.relevance.Relevance
        The same for each mode, and the combinations of inputs that matter (`kdmaps.plotting.plot_relevance`).
    edges_ : list of str
        Ends of the search range on which the chosen candidate lies.

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

    n_components: int = 4
    _: KW_ONLY
    families: Sequence[str | Kernel] = tuple(FAMILIES)
    bandwidths: str | int | ArrayLike = "auto"
    bandwidth_range: ArrayLike = BANDWIDTH_RANGE
    regularizations: str | ArrayLike = "auto"
    max_extensions: int = 3
    scoring: str | Callable[[FoldFit], float] = "auto"
    max_search_samples: str | int | None = "auto"
    basis: str = "auto"
    n_features: int | str = 300
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
    checkpoint: PathLike | None = None
    progress: bool = False
    standardize: bool = False

    def _fit(self, X: SamplesLike, sample_weight: ArrayLike | None, groups: ArrayLike | None) -> list[Check]:
        return self._fit_plan(self._plan(), X, sample_weight, groups)

    def _plan(self) -> SearchPlan:
        auto, basis = isinstance(self.n_features, str) and self.n_features == "auto", spec_of(BasisSpec, self)
        most: Any = self.max_search_samples
        names = ["families", "bandwidths", "bandwidth_range", "regularizations", "max_extensions"]
        names += ["n_jobs", "checkpoint", "progress", "random_state", "standardize"]
        return SearchPlan(
            basis=replace(basis, n_features=BasisSpec.n_features) if auto else basis,
            fit=spec_of(FitSpec, self),
            **{name: getattr(self, name) for name in names},
            scoring=chosen_scoring(self.scoring, self.lag),
            metric_rounds=0,
            max_search_samples=None if most == "auto" else most,
            more_features=auto,
        )
