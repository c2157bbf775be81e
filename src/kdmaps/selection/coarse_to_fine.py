"""Search from coarse to fine over bandwidth, regularization, family and basis, then in metrics defined by the modes.

Every round is evaluated before the next one is set up, so the outcome does not depend on the number of threads.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from kdmaps.data.distances import nearest_distances
from kdmaps.kernels import Kernel, Metric, make_kernel
from kdmaps.selection.candidate import Axes, Candidate, Stage, Trial, trial_of
from kdmaps.selection.evaluation import SearchData
from kdmaps.selection.grid import regularization_grid, rounded
from kdmaps.selection.plan import SearchPlan

#: Bandwidths lie between these multiples of the median distance; sparse samples raise the lower end.
NARROWEST, WIDEST = 0.1, 50.0
#: A kernel narrower than this many nearest-neighbour distances resolves single samples.
NEIGHBOURS = 2.0
#: Kernels rougher than a Gaussian start from this many medians.
ROUGH = 0.5
#: Ratio of neighbouring bandwidths in the first round and in later ones.
COARSE_RATIO, FINE_RATIO = 2.5, 1.58
#: Regularizations of the first round, and the ends of the range, in units of the slowest rate.
COARSE_LAMBDAS, LAMBDA_ENDS = (1e-1, 1e-3, 1e-5, 1e-7), (1e-10, 1e3)
#: Regularizations around the best one of a kernel in later rounds.
FINE_LAMBDAS = tuple(10.0 ** (step / 2) for step in (2, 1, 0, -1, -2))
#: Families from the smoothest to the roughest.
SMOOTHNESS = ("gaussian", "rq5", "rq2", "matern52", "matern32", "laplacian")
#: Families of the first round, for each basis.
PILOTS = {"fourier": ("gaussian", "matern32", "laplacian"), "landmarks": ("gaussian", "matern32")}
#: Standard errors of the difference by which another metric has to be better.
METRIC_LEAD = 1.0
#: The same if the folds agree on the modes of the other metric only.
CLEAR_LEAD = 3.0
#: For more samples than these, sums over all of them take longer than the search.
MANY_SAMPLES = 20_000
#: Kernels evaluated on all folds, and how often neighbours of the best one are tried.
FINALISTS, CLIMBS = 3, 2
#: The same in a new metric, where later rounds are already neighbours of the best kernel.
METRIC_FINALISTS, METRIC_CLIMBS = 1, 0
#: From this number of inputs, metrics of functions of single inputs are tried.
MANY_INPUTS = 3
#: Bandwidths of the first round in a new metric, in medians.
METRIC_SIGMAS = (1.0, 2.5, 6.0)
_order = attrgetter("order")
#: Evaluates trials, given a label for the progress bar.
Run = Callable[[list[Trial], str], list[Candidate]]


@dataclass(frozen=True)
class SearchRange:
    """Families, bases, bandwidths and regularizations that may be tried."""

    families: tuple[str, ...]  # smoothest first
    given: tuple[tuple[str, Kernel], ...]  # kernels given by the user, with their labels
    bases: tuple[str, ...]
    sigmas: tuple[float, float]  # narrowest and widest bandwidth
    lambdas: tuple[float, float]  # smallest and largest regularization
    fixed_lambdas: tuple[float, ...]  # regularizations given by the user; empty if they are free
    slowest: float  # the slowest rate, to a power of ten

    @property
    def coarse_lambdas(self) -> tuple[float, ...]:
        """λ of a first round."""
        return self.fixed_lambdas or tuple(rounded(lam * self.slowest) for lam in COARSE_LAMBDAS)

    def fine_lambdas(self, lam: float, every: int = 1) -> tuple[float, ...]:
        """All λ around one of them, or every second."""
        low, high = self.lambdas
        near = {rounded(float(np.clip(lam * factor, low, high))) for factor in FINE_LAMBDAS}
        return self.fixed_lambdas or tuple(sorted(near, reverse=True)[::every])

    def finest_lambdas(self, lam: float) -> tuple[float, ...]:
        """λ next to one of them, and itself."""
        near = self.fine_lambdas(lam)
        place = int(np.argmin(np.abs(np.log(np.array(near) / lam))))
        return self.fixed_lambdas or near[max(place - 1, 0) : place + 2]

    def pilots(self, basis: str) -> tuple[str, ...]:
        """Families of a first round."""
        usual = tuple(family for family in PILOTS.get(basis, PILOTS["fourier"]) if family in self.families)
        return usual or self.families[:1]


def coarse_to_fine(data: SearchData, plan: SearchPlan, run: Run) -> tuple[Candidate, SearchRange]:
    """Return the best candidate, and the range that was searched."""
    limits = _search_range(data, plan, run)
    finalists = _refined_leaders(run(_first_round(limits, data.median), "kernels"), limits, run, FINALISTS, CLIMBS)
    leader, rounds = max(finalists, key=_order), []
    n_rounds = plan.metric_rounds if data.source.n_features > 1 and limits.families else 0
    if n_rounds and data.source.n_features >= MANY_INPUTS:
        challenger = _best_axes(data, plan, limits, leader, run)
        if challenger is not None:
            leader = challenger
            rounds.append(challenger)
    for number in range(n_rounds):
        root = data.everything.root(leader.recipe) if np.isfinite(leader.value) else None
        if root is None:
            break
        trials = _metric_round(limits, leader, root, data.median, first=number == 0)
        tried = run(trials, f"metric {number + 1}")
        challenger = _refined_leaders(tried, limits, run, METRIC_FINALISTS, METRIC_CLIMBS)[0]
        if not is_better(challenger, leader):
            break
        leader = challenger
        rounds.append(challenger)
    best = _final(finalists, rounds, limits, run)
    if not data.complete and best.basis == "landmarks" and "fourier" in limits.bases:
        best = _with_waves(best, limits, run, many=data.n_all > MANY_SAMPLES)
    return best, limits


def _final(finalists: list[Candidate], rounds: list[Candidate], limits: SearchRange, run: Run) -> Candidate:
    """Evaluate the finalists of every metric on all folds; a later metric has to be clearly better."""
    found = run([_on_all_folds(c, limits) for c in (*finalists, *rounds)], "finalists")

    def best_of(some: list[Candidate]) -> Candidate:
        kernels = {(c.kernel, c.basis) for c in some}
        return max((c for c in found if (c.kernel, c.basis) in kernels), key=_order)

    best = best_of(finalists)
    for challenger in (best_of([c]) for c in rounds):
        best = challenger if is_better(challenger, best) else best
    return best


def _with_waves(best: Candidate, limits: SearchRange, run: Run, many: bool) -> Candidate:
    """Return the same kernel with Fourier features, unless its score is clearly lower.

    Sums over all samples, of which the search used a part, take several times as long with landmarks. The score may be
    lower by the standard error of the difference, for `many` samples by its own, which is larger.
    """
    lambdas = limits.fine_lambdas(best.regularization)
    found = run([Trial(best.label, best.kernel, "fourier", lambdas, Stage.ALL_FOLDS, best.origin)], "Fourier features")
    other = max(found, key=_order)
    close = many and other.reliable and best.value - other.value < best.standard_error
    return best if is_better(best, other) and not close else other


def edges_of(best: Candidate, limits: SearchRange) -> tuple[str, ...]:
    """Return a sentence for each end of the search range on which a candidate lies."""
    found = []
    for axis, ends in (("bandwidth", limits.sigmas), ("regularization", limits.lambdas)):
        value = getattr(best, axis)
        for end, side in zip(ends, ("smallest", "largest"), strict=True):
            if value is not None and np.isclose(value, end, rtol=1e-2, atol=0):
                found.append(f"{axis} {value:.3g} is the {side} one that was tried")
    return tuple(found)


def _search_range(data: SearchData, plan: SearchPlan, run: Run) -> SearchRange:
    """Return the search range for these samples; one quick fit finds the slowest rate."""
    families = tuple(f for f in SMOOTHNESS if f in plan.families)
    given = tuple((repr(f), f) for f in plan.families if isinstance(f, Kernel))
    bases = tuple(basis.basis for basis in (data.basis, data.second_basis) if basis is not None)
    unit = data.rate_unit
    free = isinstance(plan.regularizations, str)
    fixed = () if free else tuple(regularization_grid(plan.regularizations, unit)[::-1].tolist())
    X = np.unique(data.everything.typical.X, axis=0)
    spacing = float(np.median(nearest_distances(X, X))) if len(X) > 1 else data.median
    narrowest = min(max(NARROWEST * data.median, NEIGHBOURS * spacing), data.median)
    sigmas = narrowest, WIDEST * data.median
    limits = SearchRange(families, given, bases, sigmas, (0.0, np.inf), fixed, unit)
    if free:
        label, kernel = (families[0], make_kernel(families[0], data.median)) if families else given[0]
        lambdas = tuple(unit * 10.0**step for step in (-1, -3, -5, -7, -9))
        pilot = max(run([Trial(label, kernel, bases[0], lambdas, Stage.SCREENED)], "pilot"), key=_order)
        slowest = 1 / max(pilot.timescales) if pilot.timescales else unit
        slowest = float(10.0 ** np.round(np.log10(slowest))) if 0 < slowest < np.inf else unit
        low, high = LAMBDA_ENDS
        limits = replace(limits, slowest=slowest, lambdas=(low * slowest, high * slowest))
    return limits


def _first_round(limits: SearchRange, median: float) -> list[Trial]:
    """Return the trials of the first round: every pilot family at coarsely spaced bandwidths."""
    low, high = limits.sigmas
    sigmas = np.geomspace(low, high, 1 + int(np.ceil(np.log(high / low) / np.log(COARSE_RATIO))))
    trials = []
    for basis in limits.bases:
        # Half as many bandwidths for the second basis.
        chosen = sigmas if basis == limits.bases[0] else sigmas[::2]
        kernels = [
            (f, make_kernel(f, float(s)))
            for f in limits.pilots(basis)
            # A kernel that is both rough and narrow resolves single samples.
            for s in (chosen if f == "gaussian" else chosen[chosen >= ROUGH * median])
        ]
        trials += [
            Trial(label, kernel, basis, limits.coarse_lambdas, Stage.SCREENED)
            for label, kernel in (*kernels, *limits.given)
        ]
    return trials


def _metric_round(limits: SearchRange, best: Candidate, root: np.ndarray, median: float, first: bool) -> list[Trial]:
    """Return the trials in a new metric: a wide range in the first, around the best kernel in later ones."""
    if first or best.bandwidth is None:
        families = {*limits.pilots(best.basis), best.label} & set(limits.families)
        sigmas, lambdas = [median * factor for factor in METRIC_SIGMAS], limits.coarse_lambdas
    else:
        families = {best.label}
        sigmas = [best.bandwidth / FINE_RATIO, best.bandwidth, best.bandwidth * FINE_RATIO]
        lambdas = limits.fine_lambdas(best.regularization, every=2)
    kernels = [(f, Metric(make_kernel(f, s), root)) for f in SMOOTHNESS if f in families for s in sigmas]
    return [Trial(label, kernel, best.basis, lambdas, Stage.SCREENED, best.recipe) for label, kernel in kernels]


def _best_axes(data: SearchData, plan: SearchPlan, limits: SearchRange, best: Candidate, run: Run) -> Candidate | None:
    """Return a better candidate in the metric of functions of single inputs or, if clearly better, of components.

    If both are better than the best one, they are compared on all folds: until then, principal components contain test
    samples.
    """
    family, better = limits.pilots(best.basis)[0], []
    for origin in [Axes(components) for components in ((True,) if plan.rotated else (False, True))]:
        root = data.everything.root(origin)
        if root is None:
            continue
        kernels = [Metric(make_kernel(family, data.median * factor), root) for factor in METRIC_SIGMAS]
        settings = (best.basis, limits.coarse_lambdas, Stage.SCREENED, origin)
        tried = run([Trial(family, kernel, *settings) for kernel in kernels], "single coordinates")
        leader = _refined_leaders(tried, limits, run, METRIC_FINALISTS, METRIC_CLIMBS)[0]
        if is_better(leader, best):
            better.append(leader)
    if len(better) < 2:
        return better[0] if better else None
    inputs, components = (max(run([_on_all_folds(c, limits)], "single coordinates"), key=_order) for c in better)
    return better[int(is_better(components, inputs))]


def _on_all_folds(candidate: Candidate, limits: SearchRange) -> Trial:
    """Return the trial of a candidate on all folds; λ may change once more: the first folds determine it poorly."""
    return trial_of(candidate, limits.finest_lambdas(candidate.regularization), Stage.ALL_FOLDS)


def _refined_leaders(tried: list[Candidate], limits: SearchRange, run: Run, n: int, climbs: int) -> list[Candidate]:
    """Return the best candidates after a round: of `n` kernels of the first basis, best first, and of the other basis.

    The best kernels of the round are evaluated at more regularizations, then neighbours of the best one of the first
    basis, then their neighbours. (Neighbours in the second basis would take twice the time.)
    """
    seen = {(c.kernel, c.basis) for c in tried}
    found = run(
        [trial_of(c, limits.fine_lambdas(c.regularization), Stage.SCREENED) for c in _leaders(tried, limits, n)],
        "regularizations",
    )
    for _ in range(climbs):
        best = _leaders(found, limits, 1)[0]
        near = [trial for trial in _neighbours(best, limits) if (trial.kernel, trial.basis) not in seen]
        new = run(near, "neighbours")
        seen |= {(trial.kernel, trial.basis) for trial in near}
        found += new
        if not new or max(c.order for c in new) <= best.order:
            break
    return _leaders(found, limits, n)


def _leaders(candidates: list[Candidate], limits: SearchRange, n: int) -> list[Candidate]:
    """Return the best candidates of the `n` best kernels in the first basis, best first, and the best of the other."""
    peaks: dict[tuple[Kernel, str], Candidate] = {}
    for c in candidates:
        own = (c.kernel, c.basis)
        if own not in peaks or c.order > peaks[own].order:
            peaks[own] = c
    main = next(basis for basis in limits.bases if any(c.basis == basis for c in candidates))
    ranked = sorted(peaks.values(), key=_order, reverse=True)
    return [*[c for c in ranked if c.basis == main][:n], *[c for c in ranked if c.basis != main][:1]]


def _neighbours(best: Candidate, limits: SearchRange) -> list[Trial]:
    """Return trials next to a candidate: a little wider or narrower, a little smoother or rougher."""
    if best.bandwidth is None:
        return []
    lambdas, (low, high) = limits.fine_lambdas(best.regularization, every=2), limits.sigmas

    def like(label: str, sigma: float) -> Trial:
        return Trial(label, make_kernel(label, sigma), best.basis, lambdas, Stage.SCREENED)

    widths = [best.bandwidth * FINE_RATIO, best.bandwidth / FINE_RATIO]
    # At landmarks, a kernel that is not radial is slow: it is summed coordinate by coordinate.
    known = [f for f in limits.families if best.basis != "landmarks" or f != "laplacian" or f == best.label]
    place = known.index(best.label)
    families = [known[i] for i in (place - 1, place + 1) if 0 <= i < len(known)]
    return [
        *(like(best.label, float(np.clip(s, low, high))) for s in widths),
        *(like(f, best.bandwidth) for f in families),
    ]


def is_better(challenger: Candidate, best: Candidate) -> bool:
    """Return True if a candidate of another metric, or with more features, replaces the best one.

    Its score has to be higher by more than the standard error of the difference: a metric was estimated from the
    samples of the evaluation, and more features take more time. If the folds agree on the modes of one of them only,
    the other one has to be better by several standard errors: scores of noise are lower than this.
    """
    if challenger.rejected or best.rejected:
        return not challenger.rejected
    if challenger.few_rows != best.few_rows:
        return best.few_rows
    lead = CLEAR_LEAD * (int(best.agreed) - int(challenger.agreed)) or METRIC_LEAD
    return bool(challenger.standardised_lead(best) > lead)
