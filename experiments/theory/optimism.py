"""Optimism of a search: its best held-out score, the population value of this score, and a bound on the difference.

The bound comes from the influence of every sample on all scores.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any, cast

import numpy as np
from sklearn.utils import check_random_state

from experiments._runner import Row
from kdmaps import problems
from kdmaps.bases import ModeBasis
from kdmaps.certificates import Certificate
from kdmaps.data import ArraySource
from kdmaps.diagnostics.evidence import evaluated_at
from kdmaps.estimators.search import KernelSearchCV
from kdmaps.forms.energy import EnergyForm, compute_moments
from kdmaps.kernels import Kernel
from kdmaps.selection.candidate import Candidate, Stage
from kdmaps.selection.cross_fit import CrossFit
from kdmaps.selection.evaluation import FoldedMoments, SearchData
from kdmaps.selection.result import Search
from kdmaps.selection.scores import pooled_parts, ritz_pairs
from kdmaps.selection.search import search
from kdmaps.utils.types import RandomStateLike

#: Problems with the number of modes and of samples.
CASES = (("dw1d", 2, 500), ("ou2d-4", 2, 500))
GRID: dict[str, Any] = {
    "families": ["gaussian", "matern52"],
    "bandwidths": [0.5, 1.0, 2.0, 4.0, 8.0],
    "regularizations": [1e-4, 1e-3, 1e-2, 1e-1],
}
N_FEATURES = 60


def optimism_of(found: Search, blocks: np.ndarray | None = None, **options: Any) -> Certificate:
    """Bound how far the pooled time scales of the best candidate, Σ_k t_k, exceed their value in the population.

    Parameters
    ----------
    found : Search
        Of samples, without a lag. Every candidate that was evaluated with all features is fitted again.
    blocks : ndarray of shape (n_samples,), optional
        Number of the block of every sample that was searched, where samples are correlated.
    **options : Any
        `confidence`, `n_draws` and `random_state` of `score_optimism`.

    Returns
    -------
    Certificate
    """
    result, data = found.result, found.data
    if not isinstance(data.form, EnergyForm):
        raise ValueError("The optimism of a score is defined for samples without a lag; search with lag=None.")
    best = result.best
    others = [c for c in result.candidates if c.stage != Stage.SCREENED and not c.rejected and c is not best]
    terms: list[tuple[float, np.ndarray]] = []
    for group in _by_kernel([best, *others]):
        folded = data.fold(group[0].kernel, group[0].basis)
        fits = data.fit_folds(folded, [c.regularization for c in group])
        terms += [influence_of(data, folded, fit) for fit in fits if fit is not None]
    terms = [(score, psi) for score, psi in terms if np.isfinite(score)]  # no energy on the test samples: no score
    return score_optimism(np.array([psi for _, psi in terms]), terms[0][0], 0, blocks=blocks, **options)


def score_optimism(
    influences: np.ndarray,
    score: float,
    best: int,
    *,
    blocks: np.ndarray | None = None,
    confidence: float = 0.95,
    n_draws: int = 2000,
    random_state: RandomStateLike = 0,
) -> Certificate:
    """Bound how far the held-out score of a chosen candidate exceeds its value in the population.

    Let ψ_m(i) be the first-order contribution of sample i to the score of candidate m (Σ_i ψ_m(i) = 0). Then Ŝ_m - S_m
    is approximately normal with the standard error s_m = √(Σ_i ψ_m(i)²). The largest of (Ŝ_m - S_m)/s_m over all
    candidates is distributed as max_m Σ_i g_i ψ_m(i)/s_m with independent standard normal g_i (the multiplier
    bootstrap), whose quantile q is drawn. With the given confidence Ŝ_m - S_m ≤ q s_m for *all* candidates, hence for
    the chosen one, by whatever rule it was chosen. Scores of similar candidates are correlated, and q is far below its
    value for as many independent ones.

    Parameters
    ----------
    influences : ndarray of shape (n_candidates, n_samples)
        ψ.
    score, best : float, int
        Held-out score of the chosen candidate (also the trivial bound, because scores are not negative), and its index.
    blocks : ndarray of shape (n_samples,), optional
        Block of each sample; samples of one block share their g.
    confidence : float, default=0.95
        Confidence level of the bound.
    n_draws, random_state : int, default=2000, and int, RandomState instance or None, default=0
        Number and seed of the draws of g.

    Returns
    -------
    Certificate
        `value` is q s; the score minus it bounds the population value from below.
    """
    psi = np.asarray(influences, dtype=np.float64)
    if blocks is not None:
        _, labels = np.unique(blocks, return_inverse=True)
        joined = np.zeros((labels.max() + 1, len(psi)))
        np.add.at(joined, labels, psi.T)
        psi = joined.T
    errors = np.sqrt(np.sum(psi**2, axis=1))
    normals = check_random_state(random_state).standard_normal((n_draws, psi.shape[1]))
    largest = np.max(normals @ (psi / errors[:, None]).T, axis=1)
    quantile, error = float(np.quantile(largest, confidence)), float(errors[best])
    constants = {"q": quantile, "s": error, "M": len(psi), "score": score, "confidence": confidence}
    assumptions = (
        "samples, or blocks of samples, are independent and numerous",
        "modes change little when a few training samples change",
        "the candidates are chosen independently of the samples",
    )
    return Certificate("optimism", min(quantile * error, score), constants, assumptions, trivial=score)


def _by_kernel(candidates: list[Candidate]) -> list[list[Candidate]]:
    """Group candidates by their kernel, in the order of its first one: their sums over the samples are the same."""
    groups: dict[tuple[Kernel, str], list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault((candidate.kernel, candidate.basis), []).append(candidate)
    return list(groups.values())


def influence_of(data: SearchData, folded: FoldedMoments, fit: CrossFit) -> tuple[float, np.ndarray]:
    """Return the pooled score S = Σ_k t_k of a candidate and what each sample adds to it to first order.

    With the pooled directions w_k, wᵀ(Σ_f E_f)w = 1, of `PooledScore`: dt_k = w_kᵀ(dP - t_k dE)w_k, so that a test
    sample adds Σ_k (φ_k² - t_k ∇φ_kᵀa∇φ_k) times its weight, with the modes φ_k = w_kᵀv of its fold.
    """
    P, E, _ = pooled_parts(fit)
    (times,), (directions,) = ritz_pairs(P.sum(axis=0)[None], E.sum(axis=0)[None])
    sample, psi = data.local, np.zeros(len(data.local.X))
    form = cast("EnergyForm", data.form)
    weight = np.ones(len(psi)) if sample.weight is None else sample.weight
    for f, modes in enumerate(fold_modes(folded, fit, directions)):
        test = np.flatnonzero(data.folds.assignment[:, f] == 2)
        values, energies = evaluated_at(modes, sample.X[test], form.tensor, sample.rows[test])
        values -= np.average(values, axis=0, weights=weight[test])
        psi[test] += weight[test] * np.sum(values**2 - times * energies, axis=1)
    return float(times.sum()), psi


def fold_modes(folded: FoldedMoments, fit: CrossFit, directions: np.ndarray) -> list[ModeBasis]:
    """Return the modes of every fold, rotated to match the modes of all samples, then to the given directions."""
    zero = np.zeros(directions.shape[1])
    return [
        ModeBasis(folded.basis, fold.coefficients @ rotation @ directions, zero)
        for fold, rotation in zip(fit.folds, fit.rotations, strict=True)
    ]


# --- experiment -------------------------------------------------------------------------------------------------------
def run(problem: str, n_modes: int, n: int, seed: int) -> list[Row]:
    """Return the row of one search: the best score, its population value and the bound on their difference."""
    X = problems.load(problem).sample(n, random_state=seed)
    plan = KernelSearchCV(n_modes, **GRID, cv=3, n_features=N_FEATURES, random_state=seed, n_jobs=1)._plan()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        searched = search(ArraySource(X), None, None, plan)
    found = optimism_of(searched)
    score = found.constants["score"]
    return [
        {
            "part": "optimism",
            "problem": problem,
            "n_modes": n_modes,
            "n": n,
            "seed": seed,
            "score": score,
            "population": _population(searched, problem),
            "exact": float(np.sum(1 / problems.load(problem).rates(n_modes))),
            "bound": found.value,
            "q": found.constants["q"],
            "candidates": found.constants["M"],
        }
    ]


def _population(found: Search, problem: str) -> float:
    """Return the pooled score of the best candidate with averages of the stationary law in place of test samples."""
    data, best = found.data, found.result.best
    folded = data.fold(best.kernel, best.basis)
    (fit,) = data.fit_folds(folded, [best.regularization])
    if fit is None:
        return np.nan
    X, weights = nodes(problem)
    modes = fold_modes(folded, fit, np.eye(fit.coefficients.shape[1]))
    sums = [compute_moments(part, X, weights) for part in modes]
    sizes = np.array([fold.test_weight for fold in fit.folds])
    covariance = np.tensordot(sizes, [part.covariance(True) for part in sums], 1)
    energy = np.tensordot(sizes, [part.mean_energy() for part in sums], 1)
    return float(ritz_pairs(covariance[None], energy[None])[0].sum())


@cache
def nodes(problem: str) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights of a quadrature of the stationary law: `dw1d`, or an Ornstein–Uhlenbeck process."""
    system = problems.load(problem)
    if isinstance(system, problems.OrnsteinUhlenbeck):
        x, w = np.polynomial.hermite_e.hermegauss(40)
        grids = np.meshgrid(*(x / np.sqrt(rate) for rate in system.alpha), indexing="ij")
        products = np.meshgrid(*([w] * system.dim), indexing="ij")
        return np.stack([g.ravel() for g in grids], axis=1), np.prod([v.ravel() for v in products], axis=0)
    if not isinstance(system, problems.Langevin1D):
        raise ValueError(f"The law of {problem!r} is not implemented.")
    x = np.linspace(-5, 5, 4001)
    weights = np.exp(-system.potential(x))
    kept = weights > 1e-16 * weights.max()
    return x[kept, None], weights[kept]
