"""How much of the best of many held-out scores is chance."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from kdmaps.certificates._certificate import Certificate
from kdmaps.utils.types import RandomStateLike


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

    With ψ_m(i), what sample i adds to the score of candidate m to first order (Σ_i ψ_m(i) = 0), Ŝ_m - S_m is
    approximately normal with the standard error s_m = √(Σ_i ψ_m(i)²). The largest of (Ŝ_m - S_m)/s_m over all
    candidates has the law of max_m Σ_i g_i ψ_m(i)/s_m with independent standard normal g_i (the multiplier bootstrap),
    whose quantile q is drawn. With that confidence Ŝ_m - S_m ≤ q s_m for *all* candidates, so for the chosen one,
    however it was chosen. Candidates that score alike move together, so that q is far below that of as many
    independent ones.

    Parameters
    ----------
    influences : ndarray of shape (n_candidates, n_samples)
        ψ.
    score : float
        Held-out score of the chosen candidate. The population value of a time scale score is not negative, so this is
        the trivial bound.
    best : int
        Its place among the candidates.
    blocks : ndarray of shape (n_samples,), optional
        Number of the block that each sample belongs to; samples of one block share their g.
    confidence : float, default=0.95
    n_draws : int, default=2000
    random_state : int, RandomState instance or None

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
    quantile = float(np.quantile(largest, confidence))
    error = float(errors[best])
    constants = {"q": quantile, "s": error, "M": len(psi), "score": score, "confidence": confidence}
    assumptions = (
        "samples, or blocks of them, are independent and many",
        "modes change little when a few training samples change",
        "the candidates are fixed before the samples are seen",
    )
    value = min(quantile * error, score)
    return Certificate("optimism", value, constants, assumptions, trivial=score)
