"""Bounded anisotropic refinement of a kernel that a search has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kdmaps.bases import ModeBasis
from kdmaps.forms.energy import EnergyForm
from kdmaps.kernels import Kernel, Metric
from kdmaps.learn._coordinates import TensorInCoordinates
from kdmaps.learn.anisotropy import Anisotropy
from kdmaps.learn.objective import make_objective
from kdmaps.learn.optimiser import Settings, minimise
from kdmaps.learn.problem import Evaluation, Problem
from kdmaps.learn.statistics import Samples
from kdmaps.selection.candidate import Candidate
from kdmaps.selection.evaluation import FoldedMoments, SearchData
from kdmaps.selection.folds import Folds
from kdmaps.selection.rules import select_by_timescale
from kdmaps.utils.threads import single_thread

#: c of σ_j = σ·exp(c·tanh θ_j).
BOUND = 2.0
#: Descent starts from the best of these isotropic θ: where the kernel is too smooth for one of the modes, it is stuck.
START_SHIFTS = (0.0, -0.6, -0.3, 0.3, 0.6)
#: Mode spaces that differ by more have another mode.
MOST_EXCHANGED = 0.4
#: Starts that are closer than this are the same.
SAME_START = 0.05
#: The bandwidths are found with at most this many features; all of them judge the kernel that is found.
DESCENT_FEATURES = 100
#: Descent ends when each of `PATIENCE` steps gains less than this fraction of the standard error of the score.
SMALLEST_GAIN, PATIENCE = 0.005, 3
#: Length of the first step in θ that is tried: gradients of a score that is flat are short, the way is not.
FIRST_STEP = 0.5
#: A start is not refined if it is behind the rival by more than so many standard errors of the difference, and of its
#: own score: refinement gains about one of the latter, where it gains most.
HOPELESS = (3.0, 2.0)


@dataclass(frozen=True, eq=False)
class Refinement:
    """A refined kernel beside the candidate that it has to beat, both judged by the same folds.

    Attributes
    ----------
    candidate : Candidate
        After the refinement.
    rival : Candidate
        The choice of the search.
    exchanged : float
        How many modes are others: Σ_k sin²θ_k of the principal angles between the mode spaces of the two.
    history : dict of str to ndarray
        One row per step of the optimiser.
    """

    candidate: Candidate
    rival: Candidate
    exchanged: float
    history: dict[str, np.ndarray]

    @property
    def score_difference(self) -> float:
        """How much more the refined kernel scores than its rival."""
        return self.candidate.value - self.rival.value

    @property
    def difference_standard_error(self) -> float:
        """Standard error of that difference. Both scores see the same samples, so it is smaller than that of either."""
        if self.candidate.rejected:
            return np.nan
        return self.candidate.lead_error(self.rival)

    @property
    def steadier(self) -> bool:
        """Whether the folds agree better on the refined modes."""
        return self.candidate.agreement > self.rival.agreement

    @property
    def preferred(self) -> bool:
        """Whether the refinement is kept.

        It is if its score is higher by more than the standard error of the difference, or not lower by more than that
        while the folds agree better. A score alone prefers modes that level off in the tails: there the few samples of
        one fold give a mode that grows a shorter time scale than it has. Where scores cannot tell, a kernel that suits
        the system makes the modes of different samples more alike, one that suits this sample does not.

        If one of the modes is another one, folds that agree better on it do not tell that it is the slower one: then
        the score must be higher, too.
        """
        allowed = 1 if not self.steadier else -1 if self.exchanged <= MOST_EXCHANGED else 0
        return bool(self.score_difference > allowed * self.difference_standard_error)


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
    """Give every coordinate its own bandwidth σ_j = σ·exp(c·tanh θ_j), for modes that do better on held-out samples.

    Only the kernel's lengths change, never the metric of the energy, which would change the generator. The bandwidths
    of a `Metric` are those of its coordinates y = xH. The folds of the first draw decide where to go; all folds, and
    all features, judge the kernel that is found.

    Parameters
    ----------
    data : SearchData
        Samples, folds and settings of the search, with Fourier features.
    start : Candidate
        Where to start.
    rival : Candidate
        What the refinement has to beat: the choice of the search.
    objective : str or mapping
        What is minimised; see `kdmaps.learn.PRESETS`. The scores are held-out time scales in any case.
    narrowest : float, optional
        No σ_j becomes smaller than this (or than σ, if that is smaller): in coordinates that are too narrow, modes jump
        between samples, where no energy is seen.
    max_steps : int
        Most steps of L-BFGS.
    progress : bool
    rival_moments : FoldedMoments, optional
        The sums of the rival, if they are at hand.

    Returns
    -------
    refinement : Refinement
    moments : FoldedMoments
        The sums of the refined kernel.

    None is returned instead if the samples do not determine the modes at any start, or if the best start is so far
    behind the rival that refinement cannot win (`HOPELESS`).
    """
    goal = make_objective(objective, data.fit.n_components, data.fit.center)
    narrowing = _narrowing(start.kernel, narrowest)
    parametrisation = _parametrised(data, start.kernel, narrowing)
    problem = Problem(parametrisation, goal, start.regularization)
    with single_thread():  # a chain of small problems, which threads only slow down
        first, gain = _best_start(problem, lowest=-0.5 * narrowing / BOUND)
    by_score = goal.terms == ("heldout",)
    if first is None or (by_score and _is_hopeless(start, rival, gain)):
        return None
    known = by_score and not start.rejected
    tolerance = SMALLEST_GAIN * start.standard_error / max(1.0, abs(start.value)) if known else 0.0
    settings = Settings(
        adam_steps=0,
        lbfgs_steps=max_steps,
        first_step=FIRST_STEP,
        tolerance=max(tolerance, 1e-6),
        patience=PATIENCE,
    )
    with single_thread():
        theta, history = minimise(problem, settings, progress, first)
    kernel = parametrisation.kernel(theta)
    kernel = Metric(kernel, start.kernel.root) if isinstance(start.kernel, Metric) else kernel
    moments = data.fold(kernel)
    (candidate,) = data.evaluate_sums(repr(kernel), moments, [start.regularization], select_by_timescale)
    rival_moments = data.fold(rival.kernel, rival.basis) if rival_moments is None else rival_moments
    exchanged = _exchanged(data, (moments, candidate), (rival_moments, rival))
    return Refinement(candidate, rival, exchanged, history), moments


def _exchanged(data: SearchData, *fits: tuple[FoldedMoments, Candidate]) -> float:
    """Return `Refinement.exchanged` of two candidates with their sums; all modes if rounding leaves fewer."""
    (X, weight), frames = data.typical, []
    root = np.ones(len(X)) if weight is None else np.sqrt(weight)
    for sums, candidate in fits:
        modes = data.modes(sums, candidate.regularization)
        if modes is None:
            return float(data.fit.n_components)
        values = ModeBasis(sums.basis, modes.coefficients, modes.offset).features(X)
        values -= np.average(values, axis=0, weights=weight)
        frames.append(np.linalg.qr(root[:, None] * values)[0])
    return float(data.fit.n_components - np.sum((frames[0].T @ frames[1]) ** 2))


def _narrowing(kernel: Kernel, narrowest: float | None) -> float:
    """Return how far the logarithm of a bandwidth may fall."""
    if narrowest is None:
        return BOUND
    smallest = min(float(np.min(part.bandwidth)) for _, part in kernel.components())  # type: ignore[attr-defined]
    return float(np.clip(np.log(smallest / narrowest), 1e-3, BOUND))


def _parametrised(data: SearchData, kernel: Kernel, narrowing: float) -> Anisotropy:
    """Return the bandwidths as parameters; for a metric, of the kernel k₀ in the coordinates y = xH."""
    assert isinstance(data.form, EnergyForm)  # bandwidths are refined by the gradients of the energy
    X, preview, tensor = np.asarray(data.local.X, dtype=np.float64), data.preview.X, data.form.tensor
    if isinstance(kernel, Metric):
        tensor = TensorInCoordinates(tensor, X, kernel.root)
        X, preview, kernel = X @ kernel.root, preview @ kernel.root, kernel.kernel
    spec = replace(data.basis, n_features=min(data.basis.n_features, DESCENT_FEATURES), dtype="float64")
    basis = spec.make(kernel, preview, data.preview.weight, data.seed)
    samples = Samples.of(X, data.weight, tensor, descent_folds(data.folds))
    return Anisotropy(samples, basis, BOUND, narrowing)  # type: ignore[arg-type]


def descent_folds(folds: Folds) -> Folds:
    """Return the folds of the first draw: another one costs as much and tells less. A jackknife needs two folds."""
    return folds.first if len(folds.first) > 1 else folds


def _best_start(problem: Problem, lowest: float) -> tuple[Evaluation | None, float]:
    """Return J at the isotropic θ of the smallest loss, none below `lowest`, and by how much it is smaller than at 0.

    None if no loss is finite.
    """
    # At the bound on narrowing the slope is 0, and descent would end where it starts.
    shifts: list[float] = []
    for shift in (max(shift, lowest) for shift in START_SHIFTS):
        if all(abs(shift - other) > SAME_START for other in shifts):
            shifts.append(shift)
    starts = [problem.evaluate(np.full_like(problem.start, shift)) for shift in shifts]
    losses = np.nan_to_num([start.value for start in starts], nan=np.inf)
    best = int(np.argmin(losses))
    return (starts[best], float(losses[0] - losses[best])) if np.isfinite(losses[best]) else (None, 0.0)


def _is_hopeless(start: Candidate, rival: Candidate, gain: float) -> bool:
    """Whether the start, whose score the best isotropic shift raises by `gain`, is far behind the rival."""
    if start.rejected or rival.rejected:
        return False
    # One of them may have been judged on fewer folds: such scores have no error of their difference.
    alike = len(start.score.replicates) == len(rival.score.replicates)
    errors = (start.lead_error(rival) if alike else 0.0, start.standard_error)
    return start.value + gain - rival.value < -max(np.multiply(HOPELESS, errors))
