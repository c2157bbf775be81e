"""Bounded anisotropic refinement of a kernel that a search has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kdmaps.bases import Basis, make_basis
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.kernels import Kernel
from kdmaps.learn._anisotropy import Anisotropy
from kdmaps.learn._objective import make_objective
from kdmaps.learn._optimiser import Settings, minimise
from kdmaps.learn._problem import Problem
from kdmaps.learn._statistics import Samples
from kdmaps.selection.folds import CrossFit, FoldMoments, cross_fit
from kdmaps.selection.rules import CAUTION, CandidateScore, jackknife_error, select_by_timescale

#: Descent starts from the best of these isotropic θ: where the kernel is too smooth for one of the modes, it is stuck.
START_SHIFTS = (0.0, -0.6, -0.3, 0.3, 0.6)


@dataclass(frozen=True)
class Refinement:
    """A refined kernel, and what the held-out samples say of it and of its rival.

    Attributes
    ----------
    kernel, regularization : Kernel, float
        After the refinement.
    score_before, score_after : float
        Held-out score by which the search selects (`select_by_timescale`) of the rival and of the
        refined kernel; -inf if the samples do not determine the modes.
    difference_standard_error : float
        Of their difference. Both scores see the same samples, so it is smaller than that of either.
    agreement_before, agreement_after : float
        Mean squared cosine between the mode spaces of folds and of all samples, for both.
    history : dict of str to ndarray
        One row per step of the optimiser.
    """

    kernel: Kernel
    regularization: float
    score_before: float
    score_after: float
    difference_standard_error: float
    agreement_before: float
    agreement_after: float
    history: dict[str, np.ndarray]

    @property
    def score_difference(self) -> float:
        """Held-out score of the refined kernel minus that of its rival."""
        return self.score_after - self.score_before

    @property
    def preferred(self) -> bool:
        """Whether to prefer the refined kernel: its score is higher by more than the standard error of the difference,
        or not lower by more than that while the folds agree better.

        A score alone prefers modes that level off in the tails: there the few samples of one fold give a mode that
        grows a shorter time scale than it has. Where scores cannot tell, a kernel that suits the system makes the modes
        of different samples more alike, one that suits this sample does not.
        """
        steadier = self.agreement_after > self.agreement_before
        return bool(self.score_difference > (-1 if steadier else 1) * self.difference_standard_error)


def refine(
    X: np.ndarray,
    kernel: Kernel,
    regularization: float,
    *,
    folds: FoldMoments,
    rival: tuple[Kernel, float] | None = None,
    n_components: int = 4,
    sample_weight: np.ndarray | None = None,
    diffusion: DiffusionTensor | None = None,
    n_features: int = 300,
    sampling: str = "sobol",
    center: bool = True,
    random_state=None,
    objective: str | Mapping[str, float] = "heldout",
    power: float = 0.5,
    caution: float = CAUTION,
    bound: float = 2.0,
    narrowest: float | None = None,
    learn_regularization: bool = False,
    max_steps: int = 25,
    progress: bool = False,
) -> Refinement:
    """Give every coordinate its own bandwidth σ_j = σ·exp(c·tanh θ_j), for modes that do better on held-out samples.

    Only the kernel's lengths change, never the metric of the energy, which would change the generator.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d)
    kernel : Kernel
        Where to start.
    regularization : float
        λ.
    folds : FoldMoments
        The folds that score.
    rival : (Kernel, float), optional
        The kernel and λ that the refinement has to beat, e.g. the choice of `KernelSearchCV`; by default its own start.
    n_components : int
    sample_weight : ndarray of shape (n_samples,), optional
    diffusion : DiffusionTensor, optional
    n_features, sampling, random_state :
        Of the Fourier basis (`make_basis`). With the seed of the search its frequencies are those of the search,
        divided by σ_j/σ, and the scores are comparable.
    center : bool
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
        Whether λ is refined with the kernel.
    max_steps : int
        Most steps of L-BFGS.
    progress : bool

    Returns
    -------
    refinement : Refinement
    """
    diffusion = DiffusionTensor(None, X.shape[1]) if diffusion is None else diffusion

    def basis_of(kernel: Kernel) -> Basis:
        settings = {"sampling": sampling, "random_state": random_state, "sample_weight": sample_weight}
        return make_basis("fourier", kernel, X, n_features, **settings)

    def judge(basis: Basis, lam: float) -> tuple[CandidateScore, float]:
        moments = folds.compute(basis, X, sample_weight, diffusion)
        return _judge(cross_fit(*moments, basis.ridge, n_components, [lam], center)[0], folds.roles.shape[1])

    samples = Samples.of(X, sample_weight, diffusion, folds)
    narrowing = bound if narrowest is None else _narrowing(kernel, narrowest, bound)
    parametrisation = Anisotropy(samples, basis_of(kernel), bound, narrowing)  # type: ignore[arg-type]
    goal = make_objective(objective, n_components, center, power=power, caution=caution)
    problem = Problem(parametrisation, goal, regularization, learn_regularization)
    settings = Settings(adam_steps=0, lbfgs_steps=max_steps, patience=3)
    theta, history = minimise(problem, settings, progress, _best_start(problem, parametrisation))

    parameters, _ = problem.split(theta)
    lam = problem.regularization(theta) if learn_regularization else regularization
    rival_kernel, rival_lam = (kernel, regularization) if rival is None else rival
    before, agreement_before = judge(basis_of(rival_kernel), rival_lam)
    after, agreement_after = judge(parametrisation.basis(parameters), lam)
    return Refinement(
        kernel=parametrisation.kernel(parameters),
        regularization=lam,
        score_before=before.value,
        score_after=after.value,
        difference_standard_error=jackknife_error(after.replicates - before.replicates),
        agreement_before=agreement_before,
        agreement_after=agreement_after,
        history=history,
    )


def _narrowing(kernel: Kernel, narrowest: float, bound: float) -> float:
    """Return the largest -log(σ_j/σ) that leaves every bandwidth above `narrowest`; at least 1e-3, at most `bound`."""
    smallest = min(float(np.min(part.bandwidth)) for _, part in kernel.components())  # type: ignore[attr-defined]
    return float(np.clip(np.log(smallest / narrowest), 1e-3, bound))


def _best_start(problem: Problem, parametrisation: Anisotropy) -> np.ndarray:
    """Return the isotropic θ of `START_SHIFTS` with the smallest loss."""
    # At the bound on narrowing the slope is 0, and descent would end where it starts.
    lowest = -0.5 * parametrisation.narrowing / parametrisation.bound
    kernel_part = np.arange(len(problem.start)) < len(parametrisation.start)
    starts = [np.where(kernel_part, max(shift, lowest), 0.0) for shift in START_SHIFTS]
    return min(starts, key=lambda theta: np.nan_to_num(problem.evaluate(theta).value, nan=np.inf))


def _judge(fit: CrossFit | None, n_folds: int) -> tuple[CandidateScore, float]:
    """Return the held-out score and the agreement of the folds; -inf and NaN if there are no modes."""
    if fit is None:
        return CandidateScore(-np.inf, np.full(n_folds, np.nan), np.full(n_folds, np.nan)), np.nan
    return select_by_timescale(fit), fit.agreement()
