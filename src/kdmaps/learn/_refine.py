"""Refinement of the kernel of a search: one bandwidth per coordinate, within bounds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from kdmaps.bases import ModeBasis, TensorRows, times
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.forms.energy import EnergyForm
from kdmaps.kernels import Kernel, Metric
from kdmaps.learn.objectives import make_objective
from kdmaps.learn.optimiser import Settings, minimise
from kdmaps.learn.parametrisations import Anisotropy
from kdmaps.learn.problem import Evaluation, Problem
from kdmaps.learn.statistics import Samples
from kdmaps.selection.candidate import Candidate, Trial, trial_of
from kdmaps.selection.evaluation import FoldedMoments, SearchData, remade
from kdmaps.selection.folds import Folds
from kdmaps.selection.scores import select_by_timescale
from kdmaps.selection.training import Training
from kdmaps.utils.threads import one_blas_thread, single_thread
from kdmaps.utils.types import Index

#: c of σ_j = σ·exp(c·tanh θ_j).
BOUND = 2.0
#: Descent starts from the best of these isotropic θ: it cannot leave a kernel that is too smooth for a mode.
START_SHIFTS = (0.0, -0.6, -0.3, 0.3, 0.6)
#: If `Refinement.exchanged` is larger, one of the modes has been replaced.
MOST_EXCHANGED = 0.4
#: If it is smaller, the modes are the same: a refinement that fits noise exchanges .2 to 1.8 modes of two.
SAME_MODES = 0.15
#: Maximum number of steps of the descents by fold, and their tolerance relative to the descent on all samples.
FOLD_STEPS, FOLD_TOLERANCE = 6, 3.0
#: Starts closer than this count as one.
SAME_START = 0.05
#: Descent uses at most this many features; the score of the refined kernel uses all.
DESCENT_FEATURES = 100
#: Descent ends when each of `PATIENCE` steps gains less than this fraction of the standard error of the score.
SMALLEST_GAIN, PATIENCE = 0.005, 3
#: Length of the first step in θ: where the score is flat, the gradient is short but the minimum may be far away.
FIRST_STEP = 0.5
#: A start is not refined if its score is lower than the rival's by more than this many standard errors of the
#: difference, and of its own score: a refinement rarely gains more than one of the latter.
HOPELESS = (3.0, 2.0)


@dataclass(frozen=True, eq=False)
class Refinement:
    """A refined kernel and the candidate that it is compared with, scored on the same folds."""

    candidate: Candidate  #: After the refinement.
    rival: Candidate  #: The choice of the search.
    #: Σ_k sin²θ_k of the principal angles between the two mode spaces: about the number of modes that were replaced.
    exchanged: float
    history: dict[str, np.ndarray]  #: One row per step of the optimiser.

    @property
    def score_difference(self) -> float:
        """Score of the refined kernel minus the score of its rival."""
        return self.candidate.value - self.rival.value

    @property
    def difference_standard_error(self) -> float:
        """Standard error of that difference, smaller than of either score, since both use the same samples."""
        if self.candidate.rejected:
            return np.nan
        return self.candidate.lead_error(self.rival)

    @property
    def kept(self) -> Candidate:
        """The refined candidate; if it has the same modes as its rival, it is as optimistic as the rival.

        The descent has used all samples, and a metric may be made of them; folds of the rival make their own. So the
        agreement of the folds and the ratios of held-out and training quotients are taken from the rival.
        """
        own, other = self.candidate, self.rival
        if self.exchanged > SAME_MODES or other.score.quotients is None or other.score.timescales is None:
            return own
        change = np.array(own.timescales) / np.array(other.timescales)
        score = replace(
            own.score,
            timescales=other.score.timescales * np.sort(own.timescales) / np.sort(other.timescales),
            quotients=other.score.quotients / change,
            quotient_replicates=other.score.quotient_replicates,
        )
        return replace(own, agreement=other.agreement, score=score)

    @property
    def preferred(self) -> bool:
        """True if the refinement is kept.

        Its score has to be higher by more than the standard error of the difference, or not lower by more than that
        if the folds agree better on its modes: the score alone prefers modes that level off in the tails, where a fold
        has few samples. Better agreement on a mode that was replaced does not show that the new one is slower: then
        the score has to be higher, too.
        """
        allowed = 1
        if self.candidate.agreement > self.rival.agreement:
            allowed = -1 if self.exchanged <= MOST_EXCHANGED else 0
        return bool(self.score_difference > allowed * self.difference_standard_error)


@one_blas_thread()
def refine(
    data: SearchData,
    start: Candidate,
    rival: Candidate,
    *,
    objective: str | Mapping[str, float] = "heldout",
    narrowest: float | None = None,
    max_steps: int = 15,
    progress: bool = False,
    rival_moments: FoldedMoments | None = None,
) -> tuple[Refinement, FoldedMoments] | None:
    """Give every coordinate its own bandwidth σ_j = σ·exp(c·tanh θ_j), to raise the score on held-out samples.

    Only the bandwidths of the kernel change, never the metric of the energy, which would change the generator. For a
    `Metric` these are the bandwidths in its coordinates y = xH. Descent uses the folds of the first draw and few
    features; the refined kernel is scored with all folds and all features.

    Parameters
    ----------
    data : SearchData
        Samples, folds and settings of the search, with Fourier features.
    start : Candidate
        The kernel to refine.
    rival : Candidate
        The choice of the search, with which the result is compared.
    objective : str or mapping
        The objective of the descent, as in `kdmaps.learn.PRESETS`. The scores are held-out time scales in any case.
    narrowest : float, optional
        Lower bound of σ_j (or σ, if that is smaller): modes of a narrower kernel jump between samples, where no sample
        measures their energy.
    max_steps : int
        Maximum number of steps of L-BFGS.
    progress : bool
        Show a progress bar.
    rival_moments : FoldedMoments, optional
        The sums of the rival, if they have been computed.

    Returns
    -------
    refinement : Refinement
    moments : FoldedMoments
        The sums of the refined kernel.

    None is returned instead if the samples do not determine the modes at any start, or if the score of the best start
    is far below the rival's (`HOPELESS`).
    """
    goal = make_objective(objective, data.fit.n_components, data.fit.center)
    narrowing = BOUND  # the largest decrease of the logarithm of a bandwidth
    if narrowest is not None:
        widths = [np.min(part.bandwidth) for _, part in start.kernel.components()]  # type: ignore[attr-defined]
        narrowing = float(np.clip(np.log(min(widths) / narrowest), 1e-3, BOUND))
    lowest = -0.5 * narrowing / BOUND

    spec = replace(data.basis, n_features=min(data.basis.n_features, DESCENT_FEATURES), dtype="float64")

    def problem_of(kernel: Kernel, samples: Samples) -> Problem:
        """Return the problem of the bandwidths, in the coordinates of a metric."""
        bare = kernel.kernel if isinstance(kernel, Metric) else kernel
        basis = spec.make(bare, samples.X, samples.sample_weight, data.seed)
        return Problem(Anisotropy(samples, basis, BOUND, narrowing), goal, start.regularization)  # type: ignore[arg-type]

    problem = problem_of(start.kernel, _samples(data, start.kernel))
    with single_thread():  # a chain of small problems, which threads only slow down
        first, gain = _best_start(problem, lowest)
    by_score = goal.terms == ("heldout",)
    if first is None or (by_score and _is_hopeless(start, rival, gain)):
        return None
    known = by_score and not start.rejected
    tolerance = SMALLEST_GAIN * start.standard_error / max(1.0, abs(start.value)) if known else 0.0
    tolerance = max(tolerance, 1e-6)
    settings = Settings(0, max_steps, first_step=FIRST_STEP, tolerance=tolerance, patience=PATIENCE)
    with single_thread():
        theta, history = minimise(problem, settings, progress, first)
    kernel = _like(start.kernel, problem.parametrisation.kernel(theta))
    moments = data.fold(kernel)
    trial = Trial(repr(kernel), kernel, "fourier", (start.regularization,))
    (candidate,) = data.evaluate_sums(trial, moments, select_by_timescale)
    rival_moments = data.fold(rival.kernel, rival.basis) if rival_moments is None else rival_moments
    exchanged = _exchanged(data, (moments, candidate), (rival_moments, rival))
    found = Refinement(candidate, rival, exchanged, history)
    # Bandwidths may be fitted to the samples of the score; such modes differ from the modes of the honest rival.
    if not found.preferred or found.exchanged <= SAME_MODES:
        return found, moments
    in_folds = replace(settings, lbfgs_steps=FOLD_STEPS, tolerance=FOLD_TOLERANCE * settings.tolerance)

    def descend(kernel: Kernel, samples: Samples) -> Kernel | None:
        problem = problem_of(kernel, samples)
        with single_thread():  # one thread for each fold
            start = problem.evaluate(first.theta)
            if not np.isfinite(start.value):
                return None
            theta, _ = minimise(problem, in_folds, False, start)
        return _like(kernel, problem.parametrisation.kernel(theta))

    # The descent has maximised these scores; the decision is made on samples that it has not seen.
    return _compared_by_fold(data, found, start, descend), moments


def _compared_by_fold(
    data: SearchData, found: Refinement, start: Candidate, descend: Callable[[Kernel, Samples], Kernel | None]
) -> Refinement:
    """Return the refinement with scores of kernels that were refined on the training samples of each fold alone."""
    folds, started = data.folds.first, remade(start.kernel, start.origin)

    def refined(training: Training) -> Kernel | None:
        own, inner = started(training), inner_folds(folds, training.labels[:, 0])
        if own is None or inner is None:
            return None
        return descend(own, _samples(data, own, np.flatnonzero(training.labels[:, 0] == 1), inner))

    scored = [
        data.evaluate_by_fold(trial_of(c, (c.regularization,)), select_by_timescale, kernel_of, len(folds))[0]
        for c, kernel_of in ((found.candidate, refined), (found.rival, None))
    ]
    return replace(found, candidate=scored[0], rival=scored[1])


def inner_folds(folds: Folds, labels: np.ndarray) -> Folds | None:
    """Return the other folds within the training samples of one fold; None if there are fewer than two."""
    rows = np.flatnonzero(labels == 1)
    cuts = [(np.flatnonzero(roles == 1), np.flatnonzero(roles == 2)) for roles in folds.assignment[rows].T]
    splits = [(train, test) for train, test in cuts if len(train) and len(test)]
    return Folds(splits, len(rows)) if len(splits) > 1 else None


def _like(kernel: Kernel, inner: Kernel) -> Kernel:
    """Return another kernel in the metric of a kernel."""
    return Metric(inner, kernel.root) if isinstance(kernel, Metric) else inner


def _exchanged(data: SearchData, *fits: tuple[FoldedMoments, Candidate]) -> float:
    """Return `Refinement.exchanged` of two candidates with their sums; r if one of them has fewer than r modes."""
    (_, X, weight), frames = data.everything.typical, []
    root = np.ones(len(X)) if weight is None else np.sqrt(weight)
    for sums, candidate in fits:
        modes = data.modes(sums, candidate.regularization)
        if modes is None:
            return float(data.fit.n_components)
        values = ModeBasis(sums.basis, modes.coefficients, modes.offset).features(X)
        values -= np.average(values, axis=0, weights=weight)
        frames.append(np.linalg.qr(root[:, None] * values)[0])
    return float(data.fit.n_components - np.sum((frames[0].T @ frames[1]) ** 2))


def _samples(data: SearchData, kernel: Kernel, rows: np.ndarray | None = None, folds: Folds | None = None) -> Samples:
    """Return all samples, or these rows, in the coordinates of a kernel: y = xH for a metric, else x itself."""
    assert isinstance(data.form, EnergyForm)  # bandwidths are refined by the gradients of the energy
    X, tensor, weight = np.asarray(data.local.X, dtype=np.float64), data.form.tensor, data.weight
    if rows is not None:
        X, tensor, weight = X[rows], tensor.at(X[rows], rows), None if weight is None else weight[rows]
    if isinstance(kernel, Metric):
        X, tensor = X @ kernel.root, TensorInCoordinates(tensor, X, kernel.root)
    return Samples.of(X, weight, tensor, descent_folds(data.folds) if folds is None else folds)


class TensorInCoordinates(DiffusionTensor):
    """HᵀDH, the diffusion tensor in the coordinates y = xH: a function has the same energy in x and in y.

    The parts of D(x) = C ± FFᵀ, given at the samples X, become HᵀCH and HᵀF; a scalar s(x) becomes the factor √s Hᵀ.
    """

    def __init__(self, tensor: DiffusionTensor, X: np.ndarray, root: np.ndarray):
        self.dim, self.sign = root.shape[1], tensor.sign
        self.constant = None if tensor.constant is None else times(root.T, tensor.constant) @ root
        self._tensor, self._X, self._root = tensor, X, root

    def rows(self, X: np.ndarray, index: Index) -> TensorRows:
        """Return the tensor at the samples of these numbers."""
        scalar, factor = self._tensor.rows(self._X[index], index)
        if scalar is not None:
            return TensorRows(factor=np.sqrt(scalar)[:, None, None] * self._root.T)
        return TensorRows(factor=None if factor is None else self._root.T @ factor)


def descent_folds(folds: Folds) -> Folds:
    """Return the folds of the first draw, since a second draw adds little; a jackknife needs two folds, though."""
    return folds.first if len(folds.first) > 1 else folds


def _best_start(problem: Problem, lowest: float) -> tuple[Evaluation | None, float]:
    """Return J at the best isotropic θ ≥ `lowest`, None if J is not finite at any, and its gain over θ = 0."""
    # At the bound on narrowing the slope is 0, and descent would not leave it.
    shifts: list[float] = []
    for shift in (max(shift, lowest) for shift in START_SHIFTS):
        if all(abs(shift - other) > SAME_START for other in shifts):
            shifts.append(shift)
    starts = [problem.evaluate(np.full_like(problem.start, shift)) for shift in shifts]
    losses = np.nan_to_num([start.value for start in starts], nan=np.inf)
    best = int(np.argmin(losses))
    return (starts[best], float(losses[0] - losses[best])) if np.isfinite(losses[best]) else (None, 0.0)


def _is_hopeless(start: Candidate, rival: Candidate, gain: float) -> bool:
    """Return whether the score of the start, raised by `gain`, is still far below the rival's."""
    if start.rejected or rival.rejected:
        return False
    # The error of a difference requires scores of the same folds.
    alike = len(start.score.replicates) == len(rival.score.replicates)
    errors = (start.lead_error(rival) if alike else 0.0, start.standard_error)
    return start.value + gain - rival.value < -max(np.multiply(HOPELESS, errors))
