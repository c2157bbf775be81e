"""Selection with a temperature: a choice among candidates that has a derivative."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from kdmaps.kernels import softmax


def soft_selection(scores: Any, temperature: float) -> tuple[Any, Any]:
    """Take the best candidate, differentiably: π = softmax(scores/T), and the expected score Σ_ℓ π_ℓ scores_ℓ.

    For T → 0 it is the cross-validated selector, for T → ∞ the mean of all candidates. Its derivative by the
    parameters θ that the candidates share is the implicit one through the selector,
    Σ_ℓ π_ℓ [1 + (s_ℓ - Σπs)/T] ds_ℓ/dθ, which `jax.grad` finds.

    Parameters
    ----------
    scores : array-like of shape (L,)
        Scores of the candidates, larger is better: numbers or a JAX array, for example the scores of a dictionary in
        `KernelSearchCV.cv_results_`.
    temperature : float
        T > 0, in the units of the scores.

    Returns
    -------
    weights : array of shape (L,)
        π.
    score : array of shape ()

    Examples
    --------
    >>> from kdmaps.learn import soft_selection
    >>> weights, score = soft_selection([1.0, 3.0, 2.0], temperature=0.5)
    >>> weights.round(3), score.round(3)
    (array([0.016, 0.867, 0.117]), np.float64(2.851))
    """
    if not isinstance(temperature, Real) or not 0 < float(temperature) < np.inf:
        raise ValueError(f"temperature must be a positive number, got {temperature!r}.")
    scores = scores if hasattr(scores, "__array_namespace__") else np.asarray(scores, dtype=np.float64)
    weights = softmax(scores / temperature)
    return weights, (weights * scores).sum()
