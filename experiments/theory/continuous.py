"""The bandwidth from an interval: bound on the regret of the choice, and the scores that it is compared with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg, optimize

from experiments._runner import Row
from experiments.theory.optimism import nodes
from kdmaps import problems
from kdmaps.bases import make_basis
from kdmaps.certificates import Certificate
from kdmaps.forms.energy import compute_moments
from kdmaps.kernels import Matern

PROBLEM, NU, LAMBDA = "dw1d", 2.5, 0.01
#: A fine grid in place of the continuum; the bandwidths are absolute and do not depend on the samples.
BANDWIDTHS = np.geomspace(0.5, 5, 24)
N_MODES, N_FEATURES, N_FOLDS = 2, 80, 3
#: Numbers of samples.
SIZES = (1000, 10_000)
#: ε: the share of the regret that is spent on the distance between points of a net.
COVER = 0.1


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
    of `kdmaps.certificates.cv_consistency` over a net of M bandwidths, between which no score changes by more than the
    factor e^{Kη}. Here ℓ is the logarithm of the largest bandwidth over the smallest, for each of n families, and K
    bounds the slopes d log μ_j/d log σ for every law, fold and j: K = max(d, 2ν) for Matérn kernels of smoothness ν in
    d dimensions. The proof is on the page about theory.

    With r = F = 1 and c N_f = 1/(2s²) this is the bound for a score whose standard error is s.

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
        r, F, N_f and c as in `kdmaps.certificates.cv_consistency`.
    n_families : int, default=1
        n.
    """
    delta = max(regret, 0.0)
    net, value = np.inf, 1.0
    if delta > 0:
        net = n_families * np.ceil(1.5 * lipschitz * score * log_range / (COVER * delta))
        t = (1 - COVER) * delta / (2 * n_modes)
        value = 2 * net * n_modes * n_folds * np.exp(-concentration * fold_size * t**2)
    constants = {"Δ": regret, "S*": score, "ℓ": log_range, "K": lipschitz, "M": float(net), "r": n_modes, "F": n_folds}
    assumptions = (
        "all bandwidths of the interval are compared, and λ is fixed",
        "samples are independent",
        "every fold eigenvalue satisfies P(|μ̂ - μ| > t) ≤ 2 exp(-c N_f t²)",
        "S* and c are population values, not estimates",
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
    """Bound, with the given confidence, how much worse the chosen bandwidth is than the best in the interval.

    The bound is the smallest Δ for which `cv_consistency_continuous` is at most 1 - confidence; at most S*, since no
    score is negative.

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


def run(n: int, seed: int) -> list[Row]:
    """Return the row of one sample: its score at every bandwidth; seed -1 stands for the law itself."""
    if seed < 0:
        X, weights = nodes(PROBLEM)
        folds, by = [X], weights
    else:
        X = problems.load(PROBLEM).sample(n, random_state=seed)
        folds, by = [X[f::N_FOLDS] for f in range(N_FOLDS)], None
    scores = [float(np.mean([_sum(sigma, part, by) for part in folds])) for sigma in BANDWIDTHS]
    return [{"part": "continuous", "problem": PROBLEM, "n": n, "seed": seed, "scores": scores}]


def _sum(sigma: float, X: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the sum of the leading centred eigenvalues; the frequencies are the same for all samples."""
    basis = make_basis("fourier", Matern(NU, sigma), np.zeros((2, 1)), N_FEATURES, random_state=0)
    moments = compute_moments(basis, X, weights)
    covariance, energy = moments.covariance(True), moments.mean_energy() + LAMBDA * np.eye(basis.n_features)
    last = basis.n_features - 1
    return float(linalg.eigh(covariance, energy, eigvals_only=True, subset_by_index=(last - N_MODES + 1, last)).sum())
