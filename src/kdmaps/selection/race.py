"""The race: bandwidth, regularization, family and basis from coarse to fine, then in metrics that the modes define.

Every heat is judged before the next one is drawn up, so that the outcome does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from kdmaps.kernels import Kernel, Metric, make_kernel
from kdmaps.selection.candidate import JUDGED, Candidate, Trial
from kdmaps.selection.grid import regularization_grid, rounded
from kdmaps.selection.judging import SearchData
from kdmaps.selection.metric import metric_of
from kdmaps.selection.plan import SearchPlan

#: Bandwidths lie between these multiples of the median distance; the lower end rises to what the samples resolve.
NARROWEST, WIDEST = 0.1, 50.0
#: A kernel narrower than this many distances of nearest neighbours sees single samples.
NEIGHBOURS = 2.0
#: Kernels rougher than a Gaussian start from this many medians.
ROUGH = 0.5
#: Ratio of neighbouring bandwidths in the first heat, and in the later ones.
COARSE_RATIO, FINE_RATIO = 2.5, 1.58
#: Regularizations of the first heat, and the ends of the path, in units of the slowest rate.
COARSE_LAMBDAS, LAMBDA_ENDS = (1e-1, 1e-3, 1e-5, 1e-7), (1e-10, 1e3)
#: Regularizations around the best one of a kernel in later heats.
FINE_LAMBDAS = tuple(10.0 ** (step / 2) for step in (2, 1, 0, -1, -2))
#: Families from the smoothest to the roughest: neighbours are tried last.
SMOOTHNESS = ("gaussian", "rq5", "rq2", "matern52", "matern32", "laplacian")
#: Those of the first heat, for each basis.
PILOTS = {"fourier": ("gaussian", "matern32", "laplacian"), "landmarks": ("gaussian", "matern32")}
#: Standard errors of the difference by which another metric has to be better.
METRIC_LEAD = 1.0
#: Kernels that reach the finals, and how often neighbours of the best one are tried.
FINALISTS, CLIMBS = 3, 2
#: The same in a new metric, whose later heats are neighbours of the best kernel already.
METRIC_FINALISTS, METRIC_CLIMBS = 1, 0
#: Bandwidths of the first heat in a new metric, in medians.
METRIC_SIGMAS = (1.0, 2.5, 6.0)
#: Judges trials, given the name of the stage that they belong to.
Run = Callable[[list[Trial], str], list[Candidate]]


@dataclass(frozen=True)
class Course:
    """Where a race may go.

    Attributes
    ----------
    families : tuple of str
        Named families, smoothest first.
    given : tuple of (str, Kernel)
        Kernels that the user gave, with their labels.
    bases : tuple of str
    sigmas : (float, float)
        Narrowest and widest bandwidth.
    lambdas : (float, float)
        Ends of the regularizations.
    fixed_lambdas : tuple of float
        Regularizations that the user gave; empty if they are free.
    slowest : float
        The slowest rate, to a power of ten.
    """

    families: tuple[str, ...]
    given: tuple[tuple[str, Kernel], ...]
    bases: tuple[str, ...]
    sigmas: tuple[float, float]
    lambdas: tuple[float, float]
    fixed_lambdas: tuple[float, ...]
    slowest: float

    @property
    def coarse_lambdas(self) -> tuple[float, ...]:
        """λ of a first heat."""
        return self.fixed_lambdas or tuple(rounded(lam * self.slowest) for lam in COARSE_LAMBDAS)

    def fine_lambdas(self, lam: float) -> tuple[float, ...]:
        """λ around one of them."""
        low, high = self.lambdas
        near = {rounded(float(np.clip(lam * factor, low, high))) for factor in FINE_LAMBDAS}
        return self.fixed_lambdas or tuple(sorted(near, reverse=True))

    def finest_lambdas(self, lam: float) -> tuple[float, ...]:
        """λ next to one of them."""
        return self.fixed_lambdas or self.fine_lambdas(lam)[1:-1] or (lam,)

    def pilots(self, basis: str) -> tuple[str, ...]:
        """Families of a first heat."""
        usual = tuple(family for family in PILOTS.get(basis, PILOTS["fourier"]) if family in self.families)
        return usual or self.families[:1]


def race(data: SearchData, plan: SearchPlan, run: Run) -> tuple[Candidate, tuple[str, ...]]:
    """Return the best candidate, and a sentence for each end of the course on which it lies.

    Parameters
    ----------
    data : SearchData
    plan : SearchPlan
    run : callable
        Judges trials of a stage and returns their candidates.
    """
    course = _course(data, plan, run)
    finalists = _climbed(run(_first_heat(course, data.median), "kernels"), course, run, FINALISTS, CLIMBS)
    leader, rounds = max(finalists, key=_key), []
    for number in range(plan.metric_rounds if data.source.n_features > 1 and course.families else 0):
        root = metric_of(data, leader) if np.isfinite(leader.value) else None
        if root is None:
            break
        heat = run(_metric_heat(course, leader, root, data.median, first=number == 0), f"metric {number + 1}")
        challenger = _climbed(heat, course, run, METRIC_FINALISTS, METRIC_CLIMBS)[0]
        if not _is_better(challenger, leader):
            break
        leader = challenger
        rounds.append(challenger)
    best = _final(finalists, rounds, course, run)
    return best, _edges(best, course)


def _final(finalists: list[Candidate], rounds: list[Candidate], course: Course, run: Run) -> Candidate:
    """Judge the finalists, and those of each metric, on all folds; a later metric has to be clearly better.

    A few folds do not tell the best λ well: it may move.
    """
    found = run(
        [_trial(c, course.finest_lambdas(c.regularization), JUDGED[1]) for c in (*finalists, *rounds)], "finalists"
    )

    def best_of(some: list[Candidate]) -> Candidate:
        kernels = {(c.kernel, c.basis) for c in some}
        return max((c for c in found if (c.kernel, c.basis) in kernels), key=_key)

    best = best_of(finalists)
    for challenger in (best_of([c]) for c in rounds):
        best = challenger if _is_better(challenger, best) else best
    return best


def _edges(best: Candidate, course: Course) -> tuple[str, ...]:
    """Return a sentence for each end of the course on which a candidate lies."""
    found = []
    for axis, ends in (("bandwidth", course.sigmas), ("regularization", course.lambdas)):
        value = getattr(best, axis)
        for end, side in zip(ends, ("smallest", "largest"), strict=True):
            if value is not None and np.isclose(value, end, rtol=1e-2, atol=0):
                found.append(f"{axis} {value:.3g} is the {side} one that was tried")
    return tuple(found)


def _course(data: SearchData, plan: SearchPlan, run: Run) -> Course:
    """Return the course for these samples; a pilot finds the slowest rate."""
    families = tuple(f for f in SMOOTHNESS if f in plan.families)
    given = tuple((repr(f), f) for f in plan.families if isinstance(f, Kernel))
    bases = tuple(basis.basis for basis in (data.basis, data.rival_basis) if basis is not None)
    unit = data.rate_unit
    free = isinstance(plan.regularizations, str)
    fixed = () if free else tuple(regularization_grid(plan.regularizations, unit)[::-1].tolist())
    sigmas = _bandwidth_ends(data)
    course = Course(families, given, bases, sigmas, (0.0, np.inf), fixed, unit)
    if free:
        label, kernel = (families[0], make_kernel(families[0], data.median)) if families else given[0]
        lambdas = tuple(unit * 10.0**step for step in (-1, -3, -5, -7, -9))
        pilot = max(run([Trial(label, kernel, bases[0], lambdas, JUDGED[0])], "pilot"), key=_key)
        slowest = 1 / max(pilot.timescales) if pilot.timescales else unit
        slowest = float(10.0 ** np.round(np.log10(slowest))) if 0 < slowest < np.inf else unit
        low, high = LAMBDA_ENDS
        course = replace(course, slowest=slowest, lambdas=(low * slowest, high * slowest))
    return course


def _bandwidth_ends(data: SearchData) -> tuple[float, float]:
    """Return the narrowest and the widest bandwidth that make sense for these samples."""
    X = np.unique(data.typical[0], axis=0)
    spacing = float(np.median(cKDTree(X).query(X, k=2)[0][:, 1])) if len(X) > 1 else data.median
    narrowest = min(max(NARROWEST * data.median, NEIGHBOURS * spacing), data.median)
    return narrowest, WIDEST * data.median


def _first_heat(course: Course, median: float) -> list[Trial]:
    """Return the trials of the first heat: every pilot family at bandwidths of a coarse ratio."""
    low, high = course.sigmas
    sigmas = np.geomspace(low, high, 1 + int(np.ceil(np.log(high / low) / np.log(COARSE_RATIO))))
    trials = []
    for basis in course.bases:
        # Landmarks are the second opinion: half as many.
        chosen = sigmas if basis == course.bases[0] else sigmas[::2]
        kernels = [
            (f, make_kernel(f, float(s)))
            for f in course.pilots(basis)
            # A rough kernel that is narrow, too, sees single samples.
            for s in (chosen if f == "gaussian" else chosen[chosen >= ROUGH * median])
        ]
        trials += [
            Trial(label, kernel, basis, course.coarse_lambdas, JUDGED[0]) for label, kernel in (*kernels, *course.given)
        ]
    return trials


def _metric_heat(course: Course, best: Candidate, root: np.ndarray, median: float, first: bool) -> list[Trial]:
    """Return the trials of a heat in a new metric: wide in the first one, around the best kernel in later ones."""
    if first or best.bandwidth is None:
        families = {*course.pilots(best.basis), best.label} & set(course.families)
        sigmas, lambdas = [median * factor for factor in METRIC_SIGMAS], course.coarse_lambdas
    else:
        families = {best.label}
        sigmas = [best.bandwidth / FINE_RATIO, best.bandwidth, best.bandwidth * FINE_RATIO]
        lambdas = course.fine_lambdas(best.regularization)[::2]
    kernels = [(f, Metric(make_kernel(f, s), root)) for f in SMOOTHNESS if f in families for s in sigmas]
    return [Trial(label, kernel, best.basis, lambdas, JUDGED[0]) for label, kernel in kernels]


def _climbed(heat: list[Candidate], course: Course, run: Run, n: int, climbs: int) -> list[Candidate]:
    """Return the best candidates after a heat, one for each of `n` kernels, the best one first.

    The best kernels of the heat are looked at on a finer path, then neighbours of the best one, then neighbours of
    these.
    """
    seen = {(c.kernel, c.basis) for c in heat}
    found = run(
        [_trial(c, course.fine_lambdas(c.regularization), JUDGED[0]) for c in _leaders(heat, course, n)], "closer look"
    )
    for _ in range(climbs):
        best = _leaders(found, course, 1)[0]
        near = [trial for trial in _neighbours(best, course) if (trial.kernel, trial.basis) not in seen]
        new = run(near, "neighbours")
        seen |= {(trial.kernel, trial.basis) for trial in near}
        found += new
        if not new or max(c.key for c in new) <= best.key:
            break
    return _leaders(found, course, n)


def _leaders(candidates: list[Candidate], course: Course, n: int) -> list[Candidate]:
    """Return the best candidates of the `n` best kernels of the main basis, best first, and of the best rival."""
    peaks: dict[tuple[Kernel, str], Candidate] = {}
    for c in candidates:
        own = (c.kernel, c.basis)
        if own not in peaks or c.key > peaks[own].key:
            peaks[own] = c
    ranked, main = sorted(peaks.values(), key=_key, reverse=True), _main_basis(candidates, course)
    return [*[c for c in ranked if c.basis == main][:n], *[c for c in ranked if c.basis != main][:1]]


def _main_basis(candidates: list[Candidate], course: Course) -> str:
    """Return the first basis of the course that was tried."""
    return next(basis for basis in course.bases if any(c.basis == basis for c in candidates))


def _trial(candidate: Candidate, lambdas: Iterable[float], judged: str) -> Trial:
    """Return a closer look at the kernel of a candidate."""
    return Trial(candidate.label, candidate.kernel, candidate.basis, tuple(lambdas), judged)


def _neighbours(best: Candidate, course: Course) -> list[Trial]:
    """Return trials next to a candidate: a little wider or narrower, a little smoother or rougher."""
    if best.bandwidth is None:
        return []
    lambdas, (low, high) = course.fine_lambdas(best.regularization)[::2], course.sigmas
    if isinstance(best.kernel, Metric):  # fewer directions count in it, so that samples are closer
        low *= NARROWEST

    def like(label: str, sigma: float) -> Trial:
        kernel = make_kernel(label, sigma)
        kernel = Metric(kernel, best.kernel.root) if isinstance(best.kernel, Metric) else kernel
        return Trial(label, kernel, best.basis, lambdas, JUDGED[0])

    widths = [best.bandwidth * FINE_RATIO, best.bandwidth / FINE_RATIO]
    # At landmarks, a kernel that is not radial is summed coordinate by coordinate.
    known = [f for f in course.families if best.basis != "landmarks" or f != "laplacian" or f == best.label]
    place = known.index(best.label)
    families = [known[i] for i in (place - 1, place + 1) if 0 <= i < len(known)]
    return [
        *(like(best.label, float(np.clip(s, low, high))) for s in widths),
        *(like(f, best.bandwidth) for f in families),
    ]


def _is_better(challenger: Candidate, best: Candidate) -> bool:
    """Whether a candidate of another metric replaces the best one.

    It has to score higher by more than the standard error of the difference: the metric is made of the samples that
    judge it, and a landscape that has levelled off is no reason to go on.
    """
    if challenger.rejected or best.rejected:
        return not challenger.rejected
    if challenger.agreed != best.agreed:
        return challenger.agreed
    return bool(challenger.standardised_lead(best) > METRIC_LEAD)


def _key(candidate: Candidate) -> tuple[bool, float]:
    return candidate.key
