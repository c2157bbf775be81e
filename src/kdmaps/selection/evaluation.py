"""Evaluation of candidates: samples, folds and settings, which are the same for all, and the score of each."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from kdmaps.bases import Basis, BasisSpec
from kdmaps.data.check import warn_of_preview
from kdmaps.data.sources import PREVIEW_SAMPLES, ArraySource, Sample, Source
from kdmaps.diagnostics.evidence import rests_on_few_rows
from kdmaps.exceptions import Undetermined
from kdmaps.forms.diffusion import mean_diffusion
from kdmaps.forms.energy import EnergyForm
from kdmaps.forms.lagged import LaggedForm
from kdmaps.forms.moments import Moments
from kdmaps.kernels import Kernel, Metric
from kdmaps.selection.candidate import MIN_AGREEMENT, SCREENING_FEATURES, Axes, Candidate, Recipe, Stage, Trial
from kdmaps.selection.cross_fit import CrossFit, cross_fit, rough_cross_fit, seen_frame
from kdmaps.selection.folds import Folds, is_free, make_folds, splits_at, united
from kdmaps.selection.grid import rate_unit
from kdmaps.selection.plan import FitSpec, SearchPlan
from kdmaps.selection.scores import Score, held_out_quotients, pooled_ritz_timescales
from kdmaps.selection.training import KernelOf, Training, fit_by_fold
from kdmaps.spectrum.directed import modes_of
from kdmaps.spectrum.iteration import CLOSE_STEPS, LAGGED_BOUND, LAGGED_STEPS
from kdmaps.spectrum.modes import Modes
from kdmaps.utils.content import content_digest

#: Samples that are searched, unless more are asked for, if a pass over the data is expensive.
SEARCH_SAMPLES = 20_000

Scoring = Callable[[CrossFit], Score]


class FoldedMoments(NamedTuple):
    """The sums of one basis: over all samples, and over the training and test samples of every fold."""

    basis: Basis
    whole: Moments
    parts: list[tuple[Moments, Moments]]


@dataclass(frozen=True)
class SearchData:
    """Samples, folds and settings, which are the same for all candidates."""

    source: Source  # the samples on which candidates are evaluated
    rows: np.ndarray  # their numbers among all samples
    n_all: int  # number of all samples
    weight: np.ndarray | None
    form: EnergyForm | LaggedForm  # at these samples
    whole_form: EnergyForm | LaggedForm  # at all samples
    preview: Sample  # samples that determine the median distance, the landmarks and the origin
    median: float  # median distance of the preview
    folds: Folds
    basis: BasisSpec  # with the landmarks, which are the same for all candidates
    second_basis: BasisSpec | None  # landmarks, if two bases are compared
    fit: FitSpec  # with cv="auto" replaced by folds
    seed: int
    bases: tuple[BasisSpec, ...]  # with the method by which landmarks are selected
    everything: Training  # all samples of the search
    guarded: bool  # whether modes that rest on a few rows come last

    @classmethod
    def gather(cls, source: Source, weight: np.ndarray | None, groups: Any, plan: SearchPlan, seed: int) -> Self:
        """Draw the samples for the evaluation from all samples, and split them."""
        most, searched, own_weight = plan.max_search_samples, source, weight
        if most is None and not source.many_passes:
            most = SEARCH_SAMPLES
        if source.many_passes and (most is None or (source.n_samples or 0) <= most):
            rows = np.arange(source.n_samples or 0)
        else:
            rows, searched, own_weight = source.thinned(most, np.random.RandomState(seed), weight)
        # After the draw, when the length of a stream is known.
        whole_form = plan.fit.form(source, weight)
        form, weight = whole_form, own_weight
        preview = searched.sample(PREVIEW_SAMPLES, np.random.RandomState(seed), weight)
        n_components = plan.fit.n_components
        used, _ = preview.counted(n_components)
        warn_of_preview(source, preview)
        if isinstance(searched, ArraySource) and isinstance(form, EnergyForm):
            form = form.at(searched.array, rows)
        fit = plan.fit.with_folds(source, groups, preview)
        whole = np.ones((searched.n_samples or 0, 1), dtype=np.int8)
        everything = Training(searched, form, weight, whole, preview, fit, plan.bases, seed)
        median = everything.median  # raises an error for samples that are equal, before their landmarks are selected
        spec, *others = (everything.spec(b.basis) for b in plan.bases)
        second = others[0] if others else None
        if second is not None:  # landmarks that are samples would test their own functions
            landmarks = second.landmarks[is_free(second.landmarks, used)]
            second = replace(second, landmarks=landmarks) if len(landmarks) > n_components else None
        splits = splits_at(fit.splitter, source, groups, rows, n_components, seed)
        chosen = spec.landmarks if spec.basis == "landmarks" else None
        folds = make_folds(splits, searched, weight, n_components, chosen)
        settings = (folds, spec, second, fit, seed, plan.bases, everything, plan.guarded)
        n_all = source.n_samples or 0
        return cls(searched, rows, n_all, weight, form, whole_form, preview, median, *settings)

    @property
    def complete(self) -> bool:
        """True if all samples are searched."""
        return len(self.rows) == self.n_all

    def spec(self, basis: str) -> BasisSpec:
        """Return the settings of a basis by its name."""
        return next(b for b in (self.basis, self.second_basis) if b is not None and b.basis == basis)

    @property
    def is_small(self) -> bool:
        """True if the samples fit in the memory of this process."""
        return isinstance(self.source, ArraySource) or len(self.rows) <= SEARCH_SAMPLES

    @cached_property
    def local(self) -> Sample:
        """The samples themselves, in this process."""
        return self.source.sample(None, np.random.RandomState(self.seed), self.weight)

    @property
    def rate_unit(self) -> float:
        """The unit of λ: of the order of the quotients, which for pairs of frames are fractions of the variance."""
        if isinstance(self.form, LaggedForm):
            return 1.0
        return rate_unit(self.median, mean_diffusion(self.form.tensor, self.preview.X, self.preview.rows))

    def fingerprint(self) -> str:
        """Return a digest of data and settings that identifies the checkpoint of this search."""
        X, rows = self.source.content(self.preview)
        basis, fit, second = self.basis, self.fit, self.second_basis
        of_basis = (basis.basis, basis.n_features, basis.sampling, str(np.dtype(basis.dtype)))
        settings = (*of_basis, fit.n_components, fit.center, fit.lag, fit.reversible, self.seed)
        landmarks = [spec.landmarks for spec in (basis, second) if spec is not None and spec.basis == "landmarks"]
        arrays = (X, rows, self.weight, *landmarks, self.folds.assignment)  # of pairs, rows are their first frames
        # A callable tensor is identified by its values at these samples.
        blocks = self.form.tensor.content(X, rows) if isinstance(self.form, EnergyForm) else ()
        tensor = [content_digest(block) for block in blocks]
        return content_digest(self.source.shape, settings, arrays, tensor)

    def make_basis(self, kernel: Kernel, basis: str | None = None, n_features: int | None = None) -> Basis:
        """Make the basis of a kernel, of all samples of the search."""
        name = self.basis.basis if basis is None else basis
        return self.everything.with_features(n_features).basis(kernel, name, part=1.0)

    def fold(self, kernel: Kernel, basis: str | None = None, n_features: int | None = None) -> FoldedMoments:
        """Sum over the samples for one kernel: one pass."""
        made = self.make_basis(kernel, basis, n_features)
        sums = self.folds.moments(self.source, self.form, made, self.weight)
        return FoldedMoments(made, *sums)

    def fit_folds(self, folded: FoldedMoments, lambdas: Iterable[float]) -> list[CrossFit | None]:
        """Fit the modes of every fold, and of all samples, at every λ."""
        fit = self.fit
        return cross_fit(folded.whole, folded.parts, folded.basis.ridge, fit.n_components, lambdas, fit.center)

    def modes(self, folded: FoldedMoments, regularization: float) -> Modes | None:
        """Return the modes of all samples; None if rounding leaves fewer than requested."""
        fit = self.fit
        try:
            return modes_of(folded.whole, folded.basis.ridge, fit.n_components, regularization, fit.center)[0]
        except Undetermined:
            return None

    def fit_more(self, folded: FoldedMoments, regularization: float, n_components: int) -> CrossFit | None:
        """Fit more modes than requested, by subspace iteration on the folds that test every sample once."""
        if n_components > folded.basis.n_features:
            return None
        trains, tests = zip(*folded.parts[: len(self.folds.first)], strict=True)
        sums, settings = [folded.whole, *trains, *tests], (n_components, [regularization], self.fit.center)
        iteration = {**self._iteration, "steps": CLOSE_STEPS}
        members = np.eye(len(sums), dtype=bool)
        frame = seen_frame(united(sums, members[0]), folded.basis.ridge)
        sums = sums if frame is None else [part.reduced(frame) for part in sums]
        return rough_cross_fit(sums, members, folded.basis.ridge, *settings, **iteration)[0]

    @property
    def _iteration(self) -> dict[str, Any]:
        """Options of `rough_cross_fit`."""
        return {} if self.fit.lag is None else {"steps": LAGGED_STEPS, "bound": LAGGED_BOUND}

    def suggest_n_components(self, folded: FoldedMoments, regularization: float) -> int | None:
        """Return the position of the largest spectral gap among mode spaces on which the folds agree, if any."""
        most = min(2 * self.fit.n_components + 2, self.folds.smallest - 1)
        fit = self.fit_more(folded, regularization, most) if most > 1 else None
        if fit is None:
            return None
        times = np.sort(pooled_ritz_timescales(fit))[::-1]
        agreed = [k for k in range(1, most) if fit.agreement(k) >= MIN_AGREEMENT and times[k] > 0]
        return max(agreed, key=lambda k: times[k - 1] / times[k], default=None)

    def evaluate(self, trial: Trial, scoring: Scoring, folded: FoldedMoments | None = None) -> list[Candidate]:
        """Return the candidates of one trial, one for each λ; `folded` has the sums of its kernel, if known."""
        start = time.perf_counter()
        if trial.stage is not Stage.SCREENED and (trial.basis == "landmarks" or trial.origin is not None):
            return self.evaluate_by_fold(trial, scoring)
        if trial.stage is not Stage.EXACT:
            return self._evaluate_roughly(trial, scoring)
        folded = folded or self.fold(trial.kernel, trial.basis)
        return self.evaluate_sums(trial, folded, scoring, time.perf_counter() - start)

    @cached_property
    def trainings(self) -> list[Training]:
        """The training samples of every fold."""
        preview, found = self.preview, []
        for labels in np.split(self.folds.assignment, len(self.folds), axis=1):
            drawn = preview.take(labels[preview.rows, 0] == 1)
            settings = (self.fit, self.bases, self.seed)
            found.append(Training(self.source, self.form, self.weight, labels, drawn, *settings))
        return found

    def evaluate_by_fold(
        self,
        trial: Trial,
        scoring: Scoring,
        kernel_of: KernelOf | None = None,
        n_folds: int | None = None,
        n_features: int | None = None,
    ) -> list[Candidate]:
        """Evaluate a kernel that every fold, or each of the first `n_folds`, makes from its training samples."""
        samples = (self.everything, *self.trainings[:n_folds])
        everything, *trainings = (some.with_features(n_features) for some in samples)
        own = kernel_of or remade(trial.kernel, trial.origin)
        iteration = None if trial.stage is Stage.EXACT else self._iteration
        fits = fit_by_fold(everything, trainings, trial, own, iteration)
        return self.candidates(trial, fits, scoring, everything.basis(trial.kernel, trial.basis))

    def _evaluate_roughly(self, trial: Trial, scoring: Scoring) -> list[Candidate]:
        """Evaluate by `rough_cross_fit`, in the directions with variance or energy."""
        start, spec, folds = time.perf_counter(), self.spec(trial.basis), self.folds
        if trial.stage == Stage.SCREENED:
            spec, folds = spec.at_most(SCREENING_FEATURES), folds.first
        basis = spec.make(trial.kernel, self.preview.X, self.preview.weight, self.seed)
        sums, members = folds.sums(self.source, self.form, basis, self.weight)
        frame = seen_frame(united(sums, members[0]), basis.ridge)
        sums = sums if frame is None else [part.reduced(frame) for part in sums]
        share = (time.perf_counter() - start) / (len(trial.lambdas) * len(folds))
        problem = (basis.ridge, self.fit.n_components, trial.lambdas, self.fit.center)
        fits = rough_cross_fit(sums, members, *problem, **self._iteration)
        return self.candidates(trial, fits, scoring, basis, share, frame, screened=True)

    def evaluate_sums(
        self, trial: Trial, folded: FoldedMoments, scoring: Scoring, seconds: float = 0.0
    ) -> list[Candidate]:
        """Return the candidates of a trial whose sums over the samples took `seconds`."""
        share = seconds / (len(trial.lambdas) * len(self.folds))
        return self.candidates(trial, self.fit_folds(folded, trial.lambdas), scoring, folded.basis, share)

    def candidates(
        self,
        trial: Trial,
        fits: Sequence[CrossFit | None],
        scoring: Scoring,
        basis: Basis,
        share: float = 0.0,
        frame: np.ndarray | None = None,
        screened: bool = False,
    ) -> list[Candidate]:
        """Return the fits of a trial with their scores, one for each λ.

        `basis` is the basis of the modes of all samples, `frame` the directions to which their coefficients refer, and
        `share` the time for the sums per fold. If `screened`, candidates are not final: held-out quotients are not
        computed, and modes on which the folds disagree, which are not reliable anyway, are not checked for few rows.
        """
        pairs = zip(trial.lambdas, fits, strict=True)
        found = [_scored(trial, lam, fit, scoring, share, screened) for lam, fit in pairs]
        if isinstance(self.form, EnergyForm) and self.guarded:
            checked = [i for i, c in enumerate(found) if (c.agreed if screened else not c.rejected)]
            modes = [fits[i].coefficients for i in checked]  # type: ignore[union-attr]
            modes = modes if frame is None else [frame @ own for own in modes]
            few = rests_on_few_rows(basis, modes, self.preview, self.form.tensor, self.n_all)
            for i, own in zip(checked, few, strict=True):
                found[i] = replace(found[i], few_rows=own)
        return found


def _scored(
    trial: Trial, lam: float, fit: CrossFit | None, scoring: Scoring, share: float, screened: bool
) -> Candidate:
    nothing = Score(-np.inf, np.empty(0), np.empty(0))
    origin, stage = trial.origin, trial.stage
    unscored = Candidate(trial.label, trial.kernel, lam, nothing, basis=trial.basis, stage=stage, origin=origin)
    if fit is None:
        return replace(unscored, rejected="the samples of a fold do not determine the modes")
    start = time.perf_counter()
    score = scoring(fit)
    if score.timescales is not None and not screened:
        score = replace(score, **held_out_quotients(fit))
    seconds = (time.perf_counter() - start) / len(fit.folds)
    finite = bool(np.isfinite(score.value))
    return replace(
        unscored,
        score=score if finite else replace(score, value=-np.inf),
        agreement=fit.agreement(),
        condition_number=fit.condition_number,
        timescales=tuple((1 / fit.rates).tolist()),
        fit_seconds=tuple(share + solve for solve in fit.seconds),
        score_seconds=(seconds,) * len(fit.folds),
        rejected="" if finite else "the score is not finite",
    )


def remade(kernel: Kernel, origin: Recipe | Axes | None) -> KernelOf:
    """Return the function that makes a kernel, in the metric of `origin`, of training samples."""
    inner = kernel.kernel if origin is not None and isinstance(kernel, Metric) else kernel
    return lambda training: training.kernel(inner, origin)
