"""Bounded anisotropic refinement of a kernel that a search has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kdmaps.kernels import Kernel
from kdmaps.learn.anisotropy import Anisotropy
from kdmaps.learn.objective import make_objective
from kdmaps.learn.optimiser import Settings, minimise
from kdmaps.learn.problem import Problem
from kdmaps.learn.statistics import Samples
from kdmaps.selection.candidate import Candidate
from kdmaps.selection.judging import FoldedMoments, SearchData
from kdmaps.selection.rules import CAUTION, select_by_timescale

#: Descent starts from the best of these isotropic θ: where the kernel is too smooth for one of the modes, it is stuck.
START_SHIFTS = (0.0, -0.6, -0.3, 0.3, 0.6)


@dataclass(frozen=True, eq=False)
class Refinement:
    """A refined kernel beside the candidate that it has to beat, both judged by the same folds.

    Attributes
    ----------
    candidate : Candidate
        After the refinement.
    rival : Candidate
        The choice of the search.
    moments : FoldedMoments
        The sums of the refined kernel.
    history : dict of str to ndarray
        One row per step of the optimiser.
    """

    candidate: Candidate
    rival: Candidate
    moments: FoldedMoments
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
        """
        return bool(self.score_difference > (-1 if self.steadier else 1) * self.difference_standard_error)


def refine(
    data: SearchData,
    start: Candidate,
    rival: Candidate,
    *,
    objective: str | Mapping[str, float] = "heldout",
    power: float = 0.5,
    caution: float = CAUTION,
    bound: float = 2.0,
    narrowest: float | None = None,
    learn_regularization: bool = False,
    max_steps: int = 25,
    progress: bool = False,
) -> Refinement | None:
    """Give every coordinate its own bandwidth σ_j = σ·exp(c·tanh θ_j), for modes that do better on held-out samples.

    Only the kernel's lengths change, never the metric of the energy, which would change the generator.

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
    power, caution : float
        Of the term `heldout`; the defaults make it the score of the search.
    bound : float
        c.
    narrowest : float, optional
        No σ_j becomes smaller than this (or than σ, if that is smaller): in coordinates that are too narrow, modes jump
        between samples, where no energy is seen.
    learn_regularization : bool
        If True, refine λ with the kernel.
    max_steps : int
        Most steps of L-BFGS.
    progress : bool

    Returns
    -------
    refinement : Refinement or None
        None if the samples do not determine the modes at any start.
    """
    narrowing = _narrowing(start.kernel, narrowest, bound)
    X = np.asarray(data.local.X, dtype=np.float64)
    basis = data.basis.make(start.kernel, data.preview.X, data.preview.weight, data.seed).astype("float64")
    samples = Samples.of(X, data.weight, data.form.tensor, data.folds)
    parametrisation = Anisotropy(samples, basis, bound, narrowing)  # type: ignore[arg-type]
    goal = make_objective(objective, data.fit.n_components, data.fit.center, power=power, caution=caution)
    problem = Problem(parametrisation, goal, start.regularization, learn_regularization)
    first = _best_start(problem, X.shape[1], lowest=-0.5 * narrowing / bound)
    if first is None:
        return None
    settings = Settings(adam_steps=0, lbfgs_steps=max_steps, patience=3)
    theta, history = minimise(problem, settings, progress, first)
    kernel = parametrisation.kernel(problem.split(theta)[0])
    lam = problem.regularization(theta) if learn_regularization else start.regularization
    moments = data.fold(kernel)
    (candidate,) = data.judge_sums(repr(kernel), moments, [lam], select_by_timescale)
    return Refinement(candidate, rival, moments, history)


def _narrowing(kernel: Kernel, narrowest: float | None, bound: float) -> float:
    """Return how far the logarithm of a bandwidth may fall."""
    if narrowest is None:
        return bound
    smallest = min(float(np.min(part.bandwidth)) for _, part in kernel.components())  # type: ignore[attr-defined]
    return float(np.clip(np.log(smallest / narrowest), 1e-3, bound))


def _best_start(problem: Problem, n_coordinates: int, lowest: float) -> np.ndarray | None:
    """Return the isotropic start of the smallest loss, none below `lowest`; None if no loss is finite."""
    # At the bound on narrowing the slope is 0, and descent would end where it starts.
    shifts = [max(shift, lowest) for shift in START_SHIFTS]
    starts = [np.where(np.arange(len(problem.start)) < n_coordinates, shift, 0.0) for shift in shifts]
    losses = np.nan_to_num([problem.evaluate(theta).value for theta in starts], nan=np.inf)
    best = int(np.argmin(losses))
    return starts[best] if np.isfinite(losses[best]) else None
