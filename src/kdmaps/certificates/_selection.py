"""Consistency of the cross-validated choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import optimize

from kdmaps.certificates._certificate import Certificate

#: ε: the share of the regret that is spent on the distance between points of a net.
_COVER = 0.1


def cv_consistency_bound(
    margin: float, n_candidates: int, n_modes: int, fold_size: float, concentration: float
) -> float:
    """Bound on the probability that cross-validation misses the best candidate (thm:cv-consistency), at most 1.

    P(miss) ≤ 2 M r exp(-c N_f Δ²/(4r²)) for M candidates, r modes, folds of N_f samples and a margin Δ between the best
    and the second-best population score, if every fold eigenvalue satisfies P(|μ̂ - μ| > t) ≤ 2 exp(-c N_f t²).

    The theorem assumes a fixed finite set of candidates, bounded C² kernels, independent samples, a positive margin and
    that concentration inequality; `margin` and `concentration` are usually estimates, and the bound is then one too.
    """
    exponent = -concentration * fold_size * max(margin, 0.0) ** 2 / (4 * n_modes**2)
    return float(min(1.0, 2 * n_candidates * n_modes * np.exp(exponent)))


def cv_consistency(
    margin: float, n_candidates: int, n_modes: int, n_folds: int, fold_size: float, concentration: float
) -> Certificate:
    """Bound on the probability that cross-validation misses the best candidate (thm:cv-consistency).

    P(miss) ≤ 2 M r F exp(-c N_f Δ²/(4r²)); see `cv_consistency_bound`. The union bound runs over all M·r·F fold
    eigenvalues: the factor F of the number of folds, which the paper's statement leaves out, belongs to it.
    """
    value = cv_consistency_bound(margin, n_candidates * n_folds, n_modes, fold_size, concentration)
    violations = []
    if not margin > 0:
        violations.append("The margin is not positive: two candidates are equally good, and either choice is right.")
    if not concentration > 0:
        violations.append("The concentration constant c is not positive.")
    return Certificate(
        "thm:cv-consistency",
        1.0 if violations else value,
        {"Δ": margin, "M": n_candidates, "r": n_modes, "F": n_folds, "N_f": fold_size, "c": concentration},
        (
            "the candidates are fixed before the samples are seen, bounded and C²",
            "samples are independent",
            "every fold eigenvalue satisfies P(|μ̂ - μ| > t) ≤ 2 exp(-c N_f t²)",
            "the margin Δ and c are those of the population, not estimates",
        ),
        tuple(violations),
        trivial=1.0,
    )


def cv_consistency_continuous(
    regret: float,
    score: float,
    log_range: float,
    lipschitz: float,
    n_modes: int,
    n_folds: int,
    fold_size: float,
    concentration: float,
    *,
    n_families: int = 1,
) -> Certificate:
    """Bound the probability that a choice from *all* bandwidths of an interval is worse than the best by `regret`.

    P(S(σ̂) < S(σ*) - Δ) ≤ 2 M r F exp(-c N_f t²), t = (1-ε)Δ/(2r), M = n ⌈3KS*ℓ/(2εΔ)⌉ with ε = 0.1: the union bound
    of `cv_consistency` over a net of M bandwidths, between which no score changes by more than the factor e^{Kη}. Here
    ℓ is the logarithm of the largest bandwidth over the smallest, for each of n families, and K bounds the slopes
    d log μ_j/d log σ for every law, fold and j: K = max(d, 2ν) for Matérn kernels of smoothness ν in d dimensions.
    The proof is on the page about theory.

    With r = F = 1 and c N_f = 1/(2s²) it is the bound for a score whose standard error is s.

    Parameters
    ----------
    regret : float
        Δ.
    score : float
        S*, the best population score.
    log_range : float
        ℓ.
    lipschitz : float
        K.
    n_modes, n_folds, fold_size, concentration :
        r, F, N_f and c as in `cv_consistency`.
    n_families : int, default=1
        n.
    """
    delta = max(regret, 0.0)
    net, value = np.inf, 1.0
    if delta > 0:
        net = n_families * np.ceil(1.5 * lipschitz * score * log_range / (_COVER * delta))
        t = (1 - _COVER) * delta / (2 * n_modes)
        value = 2 * net * n_modes * n_folds * np.exp(-concentration * fold_size * t**2)
    constants = {"Δ": regret, "S*": score, "ℓ": log_range, "K": lipschitz, "M": float(net), "r": n_modes, "F": n_folds}
    assumptions = (
        "all bandwidths of the interval are compared, and λ is fixed",
        "samples are independent",
        "every fold eigenvalue satisfies P(|μ̂ - μ| > t) ≤ 2 exp(-c N_f t²)",
        "S* and c are those of the population, not estimates",
    )
    constants |= {"N_f": fold_size, "c": concentration}
    return Certificate("thm:cv-continuous", float(min(1.0, value)), constants, assumptions, trivial=1.0)


def continuous_regret(
    confidence: float,
    score: float,
    log_range: float,
    lipschitz: float,
    n_modes: int,
    n_folds: int,
    fold_size: float,
    concentration: float,
    *,
    n_families: int = 1,
) -> Certificate:
    """Bound, with that confidence, how much worse than the best of all bandwidths the chosen one is.

    The smallest Δ for which `cv_consistency_continuous` is at most 1 - confidence; at most S*, since no score is
    negative.

    Parameters
    ----------
    confidence : float
    score, log_range, lipschitz, n_modes, n_folds, fold_size, concentration, n_families :
        As in `cv_consistency_continuous`.
    """
    settings = (score, log_range, lipschitz, n_modes, n_folds, fold_size, concentration)

    def excess(delta: float) -> float:
        return cv_consistency_continuous(delta, *settings, n_families=n_families).value - (1 - confidence)

    regret = score if excess(score) > 0 else float(optimize.brentq(excess, 1e-9 * score, score, xtol=1e-9 * score))
    found = cv_consistency_continuous(regret, *settings, n_families=n_families)
    return replace(found, value=regret, trivial=score)
