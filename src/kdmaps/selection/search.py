"""The search: (samples, plan) → `Search`. Every candidate is evaluated once."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from kdmaps.bases import Basis
from kdmaps.checks import rules
from kdmaps.data.sources import Source
from kdmaps.exceptions import MemoryLimitError, Undetermined
from kdmaps.forms.moments import chunk_rows
from kdmaps.kernels import Gaussian, Kernel, make_kernel
from kdmaps.language import Either
from kdmaps.selection.candidate import Candidate, Trial, trial_of
from kdmaps.selection.checkpoint import Checkpoint
from kdmaps.selection.coarse_to_fine import MANY_SAMPLES, coarse_to_fine, edges_of, is_better
from kdmaps.selection.evaluation import FoldedMoments, SearchData
from kdmaps.selection.grid import bandwidth_grid, edge_of, kernels_of, regularization_grid, rounded
from kdmaps.selection.plan import FitSpec, SearchPlan
from kdmaps.selection.result import Search, SearchResult
from kdmaps.selection.scores import make_scoring
from kdmaps.utils.progress import track
from kdmaps.utils.threads import map_unordered, n_workers_of
from kdmaps.utils.validation import seed_of

#: If rounding spoils the best candidate, another may replace it that is worse by less than this many standard errors.
FORGIVEN = 2.0
#: Samples of the search for each feature, at least.
SAMPLES_PER_FEATURE = 4
#: Regularizations tried in that case, relative to the regularization of the best candidate.
FIRMER = (1e1, 1e2, 1e3)


def search(source: Source, weight: np.ndarray | None, groups: Any, plan: SearchPlan) -> Search:
    """Evaluate every candidate of a checked plan on held-out samples.

    Raises
    ------
    ValueError
        If no candidate has a finite score.
    KeyboardInterrupt
        On Ctrl-C; finished candidates are in the checkpoint, if there is one.
    """
    checkpoint = Checkpoint(plan.checkpoint)
    resumed = plan.random_state is None and checkpoint.seed is not None
    seed: int = checkpoint.seed if resumed else seed_of(plan.random_state)  # type: ignore[assignment]
    data = SearchData.gather(source, weight, groups, plan, seed)
    sweep = _Sweep(data, plan, checkpoint)
    if plan.fit.memory_limit is not None:  # applies to the final fit only; checked before the search
        basis = data.basis.make(Gaussian(data.median), data.preview.X, data.preview.weight, data.seed)
        chunk_rows(basis, basis.n_features, plan.fit.memory_limit)
    if plan.adaptive:
        best, limits = coarse_to_fine(data, plan, sweep.run)
        _check_found(best, plan)
        best, moments = sweep.confirmed(best)
        return sweep.finished(best, moments, edges=edges_of(best, limits))
    sigmas = bandwidth_grid(plan.bandwidths, plan.bandwidth_range, data.median)
    lambdas = regularization_grid(plan.regularizations, data.rate_unit)
    sweep.grid(kernels_of(plan.families, sigmas), lambdas)
    _check_found(sweep.best, plan)
    best, extensions = _extend(sweep, plan.max_extensions)
    best, moments = sweep.determined(best)
    return sweep.finished(best, moments, extensions=tuple(extensions))


def _check_found(best: Candidate, plan: SearchPlan) -> None:
    """Raise a ValueError if the best candidate was rejected."""
    if best.value == -np.inf:
        raise Undetermined(
            "No candidate has a finite score: the samples do not determine {modes} mode(s) (use fewer modes or more "
            "samples){scoring}.",
            modes=plan.fit.n_components,
            scoring=Either(", or scoring returns no numbers", ""),
        )


class _Sweep:
    """Candidates evaluated so far, in the order of the requests."""

    def __init__(self, data: SearchData, plan: SearchPlan, checkpoint: Checkpoint):
        self.data, self._plan, self._checkpoint = data, plan, checkpoint
        self._scoring = make_scoring(plan.scoring, plan.fit.lag)
        self.candidates: list[Candidate] = []
        self._found: dict[Trial, list[Candidate]] = {}
        checkpoint.begin(data.seed, data.fingerprint, plan.scoring)

    def finished(
        self, best: Candidate, moments: FoldedMoments, extensions: tuple[str, ...] = (), edges: tuple[str, ...] = ()
    ) -> Search:
        """Return the finished search."""
        data, fit = self.data, self.data.fit
        found = (tuple(self.candidates), best, extensions, edges)
        return Search(SearchResult(*found, data.folds.assignment, fit.n_components, fit.clock), data, moments)

    @property
    def best(self) -> Candidate:
        """The best candidate of a grid; the first of equals."""
        return max(self.candidates, key=lambda candidate: candidate.grid_order)

    def confirmed(self, best: Candidate) -> tuple[Candidate, FoldedMoments]:
        """Solve the best candidate to full precision, or the next best one that rounding does not spoil.

        Candidates qualify as next best if they are worse by less than `FORGIVEN` standard errors of the difference; all
        do if rounding leaves the best one too few modes.
        """
        chosen: tuple[Candidate, FoldedMoments] | None = None
        for candidate in self._in_order(best):
            worse = candidate.kernel == best.kernel and candidate.regularization < best.regularization
            spoiled = chosen is not None and not chosen[0].rejected  # usable, but ill-conditioned
            if spoiled and (worse or not best.standardised_lead(candidate) < FORGIVEN):
                continue
            moments = self.data.fold(candidate.kernel, candidate.basis)
            trial = trial_of(candidate, (candidate.regularization,))
            (exact,) = self.data.evaluate(trial, self._scoring, moments)
            sound = not exact.rejected and self._is_sound(moments, candidate.regularization)
            if sound or chosen is None or chosen[0].rejected:
                chosen = exact, moments
            if sound:
                break
        exact, moments = chosen  # type: ignore[misc]
        self.candidates.append(exact)
        _check_found(exact, self._plan)
        return exact, moments

    def _in_order(self, best: Candidate) -> Iterator[Candidate]:
        """Yield the best candidate, then the others of its stage and the same kernel with more regularization."""
        yield best
        if isinstance(self._plan.regularizations, str):
            lambdas = tuple(rounded(factor * best.regularization) for factor in FIRMER)
            self.run([trial_of(best, lambdas, best.stage)], "more regularization")
        scored = (c for c in self.candidates if c.stage == best.stage and not c.rejected and c is not best)
        yield from sorted(scored, key=lambda c: c.order, reverse=True)

    def determined(self, best: Candidate) -> tuple[Candidate, FoldedMoments]:
        """Return the best candidate for which rounding leaves enough modes, with its sums."""
        scored = (c for c in self.candidates if c is not best and not c.rejected)
        for candidate in (best, *sorted(scored, key=lambda c: c.grid_order, reverse=True)):
            moments = self.data.fold(candidate.kernel)
            if self.data.modes(moments, candidate.regularization) is not None:
                return candidate, moments
        return best, self.data.fold(best.kernel)  # its fit raises the error

    def _is_sound(self, moments: FoldedMoments, regularization: float) -> bool:
        """Return True if a fit with all samples is well conditioned."""
        modes = self.data.modes(moments, regularization)
        return modes is not None and modes.condition_number <= rules.CONDITION.limit

    def grid(self, kernels: Sequence[tuple[str, Kernel]], regularizations: Iterable[float]) -> list[Candidate]:
        """Evaluate every kernel at every λ and return the new candidates."""
        lambdas, basis = tuple(float(lam) for lam in regularizations), self.data.basis.basis
        return self.run([Trial(label, kernel, basis, lambdas) for label, kernel in kernels])

    def run(self, trials: Sequence[Trial], stage: str = "grid") -> list[Candidate]:
        """Evaluate trials and return their candidates, in the order of the trials; none is evaluated twice."""
        new = [trial for trial in dict.fromkeys(trials) if trial not in self._found]
        for trial in new:
            stored = self._checkpoint.finished(trial)
            if stored is not None:
                self._found[trial] = stored
        missing = [trial for trial in new if trial not in self._found]
        jobs = self._plan.n_jobs
        workers = self.data.source.n_callers if jobs == -1 else n_workers_of(jobs)
        leader = sorted(self.candidates, key=lambda candidate: candidate.value)  # the best so far comes last

        def evaluate(trial: Trial) -> list[Candidate]:
            return self.data.evaluate(trial, self._scoring)

        with closing(map_unordered(missing, evaluate, workers)) as finished:
            for number, found in track(finished, len(missing), lambda: _label(stage, leader), self._plan.progress):
                self._found[missing[number]] = found
                self._checkpoint.record(missing[number], found)
                leader[:] = [max(leader + found, key=lambda candidate: candidate.value)]
        # In the order of the trials, whichever thread was first, so that ties are always broken the same way.
        self.candidates += [candidate for trial in new for candidate in self._found[trial]]
        return [candidate for trial in trials for candidate in self._found[trial]]


def _label(stage: str, leader: list[Candidate]) -> str:
    """Name a stage of the search and describe the best candidate so far."""
    if not leader:
        return f"search ({stage})"
    best = leader[-1]
    width = "" if best.bandwidth is None else f" σ={best.bandwidth:.3g}"
    return f"search ({stage}): {best.label}{width} λ={best.regularization:.1g}, score {best.value:.4g}"


def _extend(sweep: _Sweep, most: int) -> tuple[Candidate, list[str]]:
    """Extend the grid beyond edges on which the best candidate lies; return the best one and what was done.

    A candidate beyond the grid has to be better by more than the standard error of the difference: the held-out score
    is noisier there, and the search should not continue along a plateau.
    """
    best = sweep.best
    extensions: list[str] = []
    tried: set[tuple[str, float]] = set()  # ends of axes that were extended already
    while len(extensions) < most:
        family = [c for c in sweep.candidates if c.label == best.label]
        axis, beyond = edge_of(family, best, tried)
        if axis is None:
            break
        tried.add((axis, getattr(best, axis)))
        if axis == "bandwidth":
            kernels = [(best.label, make_kernel(best.label, sigma)) for sigma in beyond]
            new = sweep.grid(kernels, sorted({c.regularization for c in family}))
        else:
            new = sweep.grid([(best.label, kernel) for kernel in dict.fromkeys(c.kernel for c in family)], beyond)
        challenger = max(new, key=lambda c: c.grid_order)
        better = bool(np.isfinite(challenger.value)) and challenger.standardised_lead(best) > 1
        if challenger.few_rows != best.few_rows:
            better = best.few_rows
        extensions.append(
            f"the best candidate ({best.label}) lay on the edge {axis}={getattr(best, axis):.3g}; continued to "
            f"{beyond[-1]:.3g}, {'with' if better else 'without'} a better one"
        )
        best = challenger if better else best
    return best, extensions


def with_more_features(found: Search, chosen: Candidate, plan: SearchPlan) -> tuple[Search, Candidate]:
    """Double the number of features of the chosen candidate as long as this raises its held-out score.

    The score has to rise by more than the standard error of the difference. Kernel and λ stay the same, also the metric
    of every fold; landmarks are selected from the training samples of each fold.
    """
    data, p, best = found.data, plan.basis.n_features, None
    while SAMPLES_PER_FEATURE * 2 * p <= len(data.rows):
        if not _fits_memory(data.make_basis(chosen.kernel, chosen.basis, 2 * p), plan.fit):
            break
        best = best or _with_features(data, chosen, plan, p)
        other = _with_features(data, chosen, plan, 2 * p)
        if not is_better(other, best):
            break
        best, p = other, 2 * p
    if best is None or p == plan.basis.n_features:
        return found, replace(chosen, n_features=p)
    return found._replace(moments=data.fold(best.kernel, best.basis, p)), best


def with_fewer_landmarks(found: Search, chosen: Candidate, plan: SearchPlan) -> tuple[Search, Candidate]:
    """Halve the number of landmarks for many samples, unless the held-out score falls by more than its standard error.

    Sums over all samples take longer than the search, and with half as many landmarks a quarter of the time.
    """
    data, p = found.data, plan.basis.n_features // 2
    free = plan.basis.basis == "auto" and isinstance(plan.basis.landmarks, str) and p > plan.fit.n_components
    if not free or chosen.basis != "landmarks" or data.complete or data.n_all <= MANY_SAMPLES:
        return found, chosen
    other = _with_features(data, chosen, plan, p)
    if not other.reliable or chosen.value - other.value > chosen.standard_error:
        return found, chosen
    return found._replace(moments=data.fold(other.kernel, other.basis, p)), other


def _with_features(data: SearchData, chosen: Candidate, plan: SearchPlan, n_features: int) -> Candidate:
    """Evaluate a candidate with another number of features."""
    trial, scoring = trial_of(chosen, (chosen.regularization,)), make_scoring(plan.scoring, plan.fit.lag)
    (found,) = data.evaluate_by_fold(trial, scoring, n_features=n_features)
    return replace(found, n_features=n_features)


def _fits_memory(basis: Basis, fit: FitSpec) -> bool:
    """Return whether the final fit stays within the memory limit."""
    try:
        chunk_rows(basis, basis.n_features, fit.memory_limit)
    except MemoryLimitError:
        return False
    return True
