"""Bound on how much of the best held-out score may be chance, from the influence of every sample on all scores."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from kdmaps.bases import ModeBasis
from kdmaps.certificates import Certificate, score_optimism
from kdmaps.diagnostics.evidence import energies_at, values_at
from kdmaps.forms.energy import EnergyForm
from kdmaps.kernels import Kernel
from kdmaps.selection.candidate import Candidate, Stage
from kdmaps.selection.cross_fit import CrossFit
from kdmaps.selection.evaluation import FoldedMoments, SearchData
from kdmaps.selection.result import Search
from kdmaps.selection.scores import pooled_parts, ritz_pairs


def optimism_of(found: Search, blocks: np.ndarray | None = None, **options: Any) -> Certificate:
    """Bound how far the pooled time scales of the best candidate, Σ_k t_k, exceed those of its modes in the population.

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
        values = values_at(modes, sample.X[test])
        values -= np.average(values, axis=0, weights=weight[test])
        energies = energies_at(modes, sample.X[test], form.tensor, sample.rows[test])
        psi[test] += weight[test] * np.sum(values**2 - times * energies, axis=1)
    return float(times.sum()), psi


def fold_modes(folded: FoldedMoments, fit: CrossFit, directions: np.ndarray) -> list[ModeBasis]:
    """Return the modes of every fold, turned towards those of all samples and then to the given directions."""
    zero = np.zeros(directions.shape[1])
    return [
        ModeBasis(folded.basis, fold.coefficients @ rotation @ directions, zero)
        for fold, rotation in zip(fit.folds, fit.rotations, strict=True)
    ]
