"""KernelSearchCV: kernel family, bandwidth and regularization by held-out samples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from kdmaps.analysis.certificates import cv_consistency
from kdmaps.bases import select_landmarks
from kdmaps.data import PREVIEW_SAMPLES, ArraySource, Source
from kdmaps.data.distances import median_distance
from kdmaps.data.remote import RemoteSource
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.estimators.transformer import ModeTransformer, adopt
from kdmaps.exceptions import UnreliableModesWarning, UnresolvedModesWarning
from kdmaps.forms.diffusion import mean_diffusion, tensors_of
from kdmaps.forms.tangent import checked_tensor
from kdmaps.kernels import FAMILIES, Gaussian, Kernel, make_kernel
from kdmaps.selection.folds import make_folds, splits_of
from kdmaps.selection.grid import BANDWIDTH_RANGE, bandwidth_grid, edge_of, make_trials, rate_unit, regularization_grid
from kdmaps.selection.rules import make_scoring, pooled_ritz_timescales
from kdmaps.selection.sweep import Candidate, Sweep, SweepData, Trial, search_seed
from kdmaps.spectrum.checks import agreement_check
from kdmaps.utils.validation import all_or_nothing, checked_weight

#: Samples on which data that are not in memory are searched, unless more are asked for.
SEARCH_SAMPLES = 20_000
#: A gap counts for the number of modes if the folds agree on the space below it to this mean squared cosine.
MIN_GAP_AGREEMENT = 0.9


class KernelSearchCV(ModeTransformer):
    """Slow modes with the kernel chosen by cross-validation; no ground truth is needed.

    Every candidate (family, bandwidth, regularization) is fitted on training folds and judged by the time scales that
    its modes show on the held-out folds: no function space can show longer ones than the true slow modes, beyond
    chance, so the largest held-out score is the best candidate.

    Parameters
    ----------
    n_components : int, default=4
        Number r of modes.
    families : sequence of str or Kernel, default=all six names
        Names are combined with every bandwidth; a Kernel (a mixture, for example) is tried as it is.
    bandwidths : int or array-like, default=10
        How many, spread evenly in the logarithm over `bandwidth_range`; or the bandwidths themselves.
    regularizations : "auto" or array-like, default="auto"
        λ, which has the unit of a rate. "auto" are seven from 1e-4 to 1e-1, times the power of 1000 that is nearest to
        the mean diffusion over the squared median distance: 1 for data of ordinary size.
    scoring : {"timescale", "rayleigh", "eigsum", "gap"} or callable, default="timescale"
        "timescale" is Σ_k √t_k of the pooled held-out time scales t_k minus one standard error
        (`kdmaps.selection.rules.select_by_timescale`). A callable
        gets a `kdmaps.selection.scores.FoldFit` and returns a number; its mean over the folds is maximised.
    cv : int or scikit-learn splitter, default=3
        A number is that many random folds, drawn twice. For correlated trajectories use `kdmaps.BlockedKFold`, or
        `GroupKFold` with `groups`.
    basis, n_features, center, diffusion, sampling, landmarks, rates :
        As in `KernelDiffusionMap`. Landmarks are chosen once for all candidates, at most a quarter as many as there are
        samples, and samples that are landmarks are left out of the test sets. "full" is not possible: it would leave
        none.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int or None, default=None
        Threads; None is one per core.
    bandwidth_range : (float, float), default=(1.5, 30)
        Ends of the default grid in units of the median pairwise distance.
    max_extensions : int, default=3
        How often the grid may grow when the best candidate lies on its edge.
    max_search_samples : int or None, default=None
        Candidates are judged on a random subsample of at most this size; the best one is fitted on all samples. None
        is all samples of an array in memory or of Dask data, and 20,000 of other data that are read in chunks.
    dtype, engine, memory_limit :
        As in `KernelDiffusionMap`; the limit is that of the fit on all samples.
    checkpoint : path, optional
        File for finished candidates; an interrupted search with the same data and settings resumes from it.
    progress : bool, default=False
        Whether to show a progress bar with the best candidate so far.

    Attributes
    ----------
    best_params_ : dict
        Arguments of `KernelDiffusionMap`.
    best_score_ : float
        Selection score of the best candidate.
    best_index_ : int
    best_estimator_ : KernelDiffusionMap
        The best candidate fitted on all samples; `timescales_`, `rates_`, `transform`, ... are its.
    cv_results_ : dict of arrays
        One entry per candidate: `param_family`, `param_bandwidth`, `param_regularization`, `params`; `score`, which
        is maximised, with its `standard_error` and `rank_test_score`; `split*_test_score` and `mean_test_score`, the
        plain scores of the folds (for "timescale" the sum of time scales, as in `KernelDiffusionMap.score`);
        `fold_agreement`, `condition_number`, `timescales`, `time`. A candidate beyond the grid may have rank 1 and not
        be chosen, see `extensions_`.
    suggested_n_components_ : int or None
        Where the largest spectral gap lies among those that the folds agree on.
    certainty_ : dict
        Margin to the runner-up of another kernel, also in standard errors of the difference, and the bound of
        thm:cv-consistency with its constants estimated from the folds (it is 1 unless the margin is large).
    extensions_ : list of str
        How the grid was extended.
    interrupted_ : bool
        Whether the search ended early, by Ctrl-C.
    folds_ : FoldMoments
        The folds by which the candidates were judged.

    See Also
    --------
    AdaptiveDiffusionMap : The same with settings for any size of data.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(300, random_state=0)
    >>> s = kdmaps.KernelSearchCV(n_components=2, families=["gaussian"], bandwidths=4, random_state=0).fit(X)
    >>> sorted(s.best_params_)
    ['bandwidth', 'kernel', 'regularization']
    """

    def __init__(
        self,
        n_components=4,
        families=tuple(FAMILIES),
        bandwidths=10,
        regularizations="auto",
        scoring="timescale",
        cv=3,
        basis="fourier",
        n_features=300,
        random_state=None,
        n_jobs=None,
        *,
        center=True,
        diffusion=None,
        sampling="sobol",
        landmarks="kmeans",
        rates="ritz",
        bandwidth_range=BANDWIDTH_RANGE,
        max_extensions=3,
        max_search_samples=None,
        dtype="float64",
        engine=None,
        memory_limit=None,
        checkpoint=None,
        progress=False,
    ):
        self.n_components = n_components
        self.families = families
        self.bandwidths = bandwidths
        self.regularizations = regularizations
        self.scoring = scoring
        self.cv = cv
        self.basis = basis
        self.n_features = n_features
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.center = center
        self.diffusion = diffusion
        self.sampling = sampling
        self.landmarks = landmarks
        self.rates = rates
        self.bandwidth_range = bandwidth_range
        self.max_extensions = max_extensions
        self.max_search_samples = max_search_samples
        self.dtype = dtype
        self.engine = engine
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.progress = progress

    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Try all candidates and fit the best one on all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), path, stream of chunks
            Anything that `kdmaps.data.as_source` takes; data that are not in memory are searched on a subsample, Dask
            data by their workers.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            For splitters that need them, e.g. the trajectory of each sample.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            source = self._source(X, reset=True, fitting=True)
            weight = checked_weight(sample_weight, source)
            seed = search_seed(self.random_state, self.checkpoint)
            template = self._template(seed)
            data = self._data(template, source, weight, groups, seed)
            sweep, preview = self._sweep(data), data.preview
            median = median_distance(preview.X, preview.weight, seed)
            unit = rate_unit(median, mean_diffusion(data.tensor, preview.X, preview.rows))
            sigmas = bandwidth_grid(self.bandwidths, self.bandwidth_range, median)
            sweep.run(make_trials(self.families, sigmas), regularization_grid(self.regularizations, unit))
            if sweep.best.value == -np.inf:
                raise ValueError(
                    f"No candidate has a finite score: the samples do not determine n_components={self.n_components} "
                    "modes (use fewer modes or more samples), or scoring returns no numbers."
                )
            best = self._extended(sweep)
            self._summarise(sweep, best)
            self.folds_, self.interrupted_ = data.folds, sweep.interrupted
            with warnings.catch_warnings():
                # The estimate of what the samples resolve is for fits without folds; here the folds have measured it.
                warnings.simplefilter("ignore", UnresolvedModesWarning)
                template.set_params(**best.params)
                self.best_estimator_ = template.fit(source, sample_weight=weight, groups=groups)
            adopt(self, self.best_estimator_)
        return self

    def _sweep(self, data: SweepData) -> Sweep:
        if self.scoring == "timescale" and not self.center:
            raise ValueError(
                "scoring='timescale' needs center=True: the constant, a mode if nothing is centred, has an unbounded "
                "time scale."
            )
        name = self.scoring if isinstance(self.scoring, str) else getattr(self.scoring, "__qualname__", "callable")
        return Sweep(data, make_scoring(self.scoring), name, self.n_jobs, self.checkpoint, self.progress)

    # --- the grid -----------------------------------------------------------------------------------------------------
    def _template(self, seed: int) -> KernelDiffusionMap:
        shared = (
            *("n_components", "basis", "n_features", "center", "diffusion", "sampling", "landmarks"),
            *("dtype", "engine", "memory_limit", "rates", "cv"),
        )
        template = KernelDiffusionMap(random_state=seed, **{name: getattr(self, name) for name in shared})
        template.check_parameters()
        if not isinstance(self.max_extensions, Integral) or self.max_extensions < 0:
            raise ValueError(f"max_extensions must be a whole number, 0 or more, got {self.max_extensions!r}.")
        if self.n_jobs is not None and (not isinstance(self.n_jobs, Integral) or self.n_jobs == 0):
            raise ValueError(f"n_jobs must be None or a whole number of threads, -1 for all, got {self.n_jobs!r}.")
        return template

    def _most(self, source: Source) -> int | None:
        most = self.max_search_samples
        if most is None:
            return None if source.in_memory or isinstance(source, RemoteSource) else SEARCH_SAMPLES
        if not isinstance(most, Integral) or most < 2:
            raise ValueError(f"max_search_samples must be None or a whole number of at least 2, got {most!r}.")
        return int(most)

    def _searched(self, source: Source, weight, seed: int):
        """Row numbers, rows (an ArraySource or RemoteSource) and weights of the samples that judge the candidates."""
        most = self._most(source)
        if isinstance(source, RemoteSource) and (most is None or source.n_samples <= most):
            return np.arange(source.n_samples), source, weight
        rows, X, weight = source.sample(most, check_random_state(seed), weight)
        searched = source.subset(X) if isinstance(source, RemoteSource) else ArraySource(X, checked=True)
        return rows, searched, weight

    def _data(self, template: KernelDiffusionMap, source: Source, weight, groups, seed: int) -> SweepData:
        rows, searched, weight = self._searched(source, weight, seed)
        preview = searched.sample(PREVIEW_SAMPLES, check_random_state(seed), weight)
        X = searched.array if isinstance(searched, ArraySource) else searched
        cv = splits_of(self.cv, source, groups, rows, self.n_components)
        tensors = tensors_of(self.diffusion, rows, source.n_samples)
        if self.basis == "full":
            raise ValueError("basis='full' leaves no sample to test on; use basis='landmarks' or 'fourier'.")
        if self.basis == "landmarks":
            used = preview.X if preview.weight is None else preview.X[preview.weight > 0]
            # A quarter of the samples at most: the others have to test what is fitted at these.
            n_landmarks = min(self.n_features, max(self.n_components + 1, len(used) // 4))
            kernel = Gaussian(median_distance(used, random_state=seed))
            template.landmarks = select_landmarks(used, n_landmarks, self.landmarks, kernel, seed)
        chosen = template.landmarks if self.basis == "landmarks" else None
        return SweepData(
            X=X,
            preview=preview,
            weight=weight,
            tensor=checked_tensor(tensors, X, weight, keep=X is not searched),
            folds=make_folds(cv, X, weight, None, self.n_components, seed, chosen),
            n_components=self.n_components,
            basis=self.basis,
            n_features=self.n_features,
            sampling=self.sampling,
            landmarks=template.landmarks,
            center=self.center,
            dtype=self.dtype,
            engine=self.engine,
            seed=seed,
        )

    def _extended(self, sweep: Sweep) -> Candidate:
        """The best candidate, after the grid has grown beyond every edge on which it lay.

        Beyond the grid a candidate has to be better by more than the standard error of the difference: that far out
        the held-out score is noisier, and a landscape that has merely levelled off is no reason to go on.
        """
        best = sweep.best
        self.extensions_: list[str] = []
        tried: set[tuple[str, float]] = set()  # ends of axes beyond which nothing better was found
        while not sweep.interrupted and len(self.extensions_) < self.max_extensions:
            family = [c for c in sweep.candidates if c.family == best.family]
            axis, beyond = edge_of(family, best, tried)
            if axis is None:
                break
            tried.add((axis, getattr(best, axis)))
            if axis == "bandwidth":
                trials = [Trial(best.family, sigma, make_kernel(best.family, sigma)) for sigma in beyond]
                lambdas = sorted({c.regularization for c in family})
            else:
                trials = [
                    Trial(best.family, sigma, kernel)
                    for kernel, sigma in {c.kernel: c.bandwidth for c in family}.items()
                ]
                lambdas = beyond
            challenger = max(sweep.run(trials, lambdas), key=lambda c: c.value, default=best)
            better = np.isfinite(challenger.value) and challenger.gain(best) > 1
            self.extensions_.append(
                f"the best candidate ({best.family}) lay on the edge {axis}={getattr(best, axis):.3g}; continued to "
                f"{beyond[-1]:.3g}, {'with' if better else 'without'} a better one"
            )
            best = challenger if better else best
        return best

    # --- what was found -----------------------------------------------------------------------------------------------
    def _summarise(self, sweep: Sweep, best: Candidate) -> None:
        candidates = sweep.candidates
        self.best_index_ = candidates.index(best)
        self.best_params_, self.best_score_ = best.params, best.value
        self.cv_results_ = _table(candidates)
        self.certainty_ = self._certainty(sweep, best)
        self.suggested_n_components_ = self._suggest(sweep, best)
        agreement = agreement_check(best.agreement, self.suggested_n_components_)
        if agreement.warning is not None:
            warnings.warn(agreement.warning, stacklevel=3)
        peaks: dict[Kernel, float] = {}
        for c in candidates:
            if np.isfinite(c.value):
                peaks[c.kernel] = max(c.value, peaks.get(c.kernel, -np.inf))
        if len(peaks) > 2 and max(peaks.values()) - min(peaks.values()) <= best.standard_error:
            warnings.warn(
                "The score landscape is flat: at its best regularization every kernel scores the same within the "
                "standard error. Either any kernel will do, or the samples show no slow mode: look at fold_agreement.",
                UnreliableModesWarning,
                stacklevel=3,
            )

    def _certainty(self, sweep: Sweep, best: Candidate) -> dict:
        others = [c for c in sweep.candidates if c.kernel != best.kernel and np.isfinite(c.value)]
        second = max(others, key=lambda c: c.value, default=None)
        margin = best.value - second.value if second else np.inf
        # A score of standard error s over independent folds of N_f of N samples has the variance s² N/N_f in one fold.
        # A sub-Gaussian law of that variance has c N_f = N_f/(2 N s²) for the sum of r terms, r² as much for each.
        n_samples, fold_size = sweep.data.X.shape[0], sweep.data.folds.mean_test_size
        variance = max(best.standard_error**2, np.finfo(float).tiny) * n_samples / fold_size
        concentration = self.n_components**2 / (2 * variance * fold_size)
        sizes = (len(sweep.candidates), self.n_components, len(best.fold_values))
        bound = cv_consistency(margin, *sizes, fold_size, concentration).value
        return {
            "margin": margin,
            "margin_in_standard_errors": best.gain(second) if second else np.inf,
            "bound": bound,
            "fold_size": fold_size,
            "concentration": concentration,
        }

    def _suggest(self, sweep: Sweep, best: Candidate) -> int | None:
        data = sweep.data
        most = min(2 * self.n_components + 2, data.folds.smallest - 1)
        fit = data.cross_fit(best.kernel, [best.regularization], most)[0] if most > 1 else None
        if fit is None:
            return None
        times = np.sort(pooled_ritz_timescales(fit))[::-1]
        agreed = [k for k in range(1, most) if fit.agreement(k) >= MIN_GAP_AGREEMENT and times[k] > 0]
        return max(agreed, key=lambda k: times[k - 1] / times[k], default=None)


def _table(candidates: Sequence[Candidate]) -> dict[str, np.ndarray | list]:
    """scikit-learn's `cv_results_`."""
    n_folds = max(len(c.fold_values) for c in candidates)
    folds = np.array([c.fold_values or [np.nan] * n_folds for c in candidates])
    value = np.array([c.value for c in candidates])
    order = np.argsort(-value, kind="stable")
    rank = np.empty(len(order), dtype=int)
    rank[order] = np.arange(1, len(order) + 1)
    return {
        "param_family": np.array([c.family for c in candidates]),
        "param_bandwidth": np.array([np.nan if c.bandwidth is None else c.bandwidth for c in candidates]),
        "param_regularization": np.array([c.regularization for c in candidates]),
        "params": [c.params for c in candidates],
        "score": value,
        **{f"split{f}_test_score": folds[:, f] for f in range(n_folds)},
        "mean_test_score": folds.mean(axis=1),
        "standard_error": np.array([c.standard_error for c in candidates]),
        "rank_test_score": rank,
        "fold_agreement": np.array([c.agreement for c in candidates]),
        "condition_number": np.array([c.condition_number for c in candidates]),
        "timescales": [c.timescales for c in candidates],
        "time": np.array([c.seconds for c in candidates]),
    }
