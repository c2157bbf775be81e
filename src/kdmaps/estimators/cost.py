"""Predicted time and memory of a default fit, from measured fits (results/cost_default)."""

import time

import numpy as np

from kdmaps.utils.threads import one_blas_thread

#: Terms of the time: n of N samples are searched, in m = min(d, N) coordinates, with q times the default number of
#: features.
TERMS = ("constant", "searched n q", "searched n m q", "metrics m²", "all N q²", "all N d", "d > N: N d")
#: Their coefficients, in units of `unit_seconds`; from results/cost_default/rows.json.
SECONDS = (24.7, 0.0244, 0.000233, 0.0, 0.000107, 0.0, 1.85e-05)
#: The same for megabytes beyond the samples.
MEGABYTES = (45.9, 0.0364, 0.000119, 0.000125, 2e-05, 0.0, 5.95e-05)
#: Samples that a default fit searches, and its number of features.
SEARCHED, FEATURES = 5_000, 300


def design(n_samples: int, dim: int, n_features: int = FEATURES) -> np.ndarray:
    """Return the terms of the formula, without their coefficients."""
    n, m, q = min(n_samples, SEARCHED), min(dim, n_samples), n_features / FEATURES
    cells = n_samples * dim
    return np.array([1, n * q, n * m * q, m**2, n_samples * q**2, cells, cells * (dim > n_samples)], dtype=float)


def unit_seconds() -> float:
    """Return the CPU time of a symmetric product of 20,000 × 300 numbers in one thread, the best of three."""
    Z, best = np.random.default_rng(0).standard_normal((20_000, 300)), np.inf
    with one_blas_thread():
        for _ in range(3):
            start = time.process_time()
            Z.T @ Z
            best = min(best, time.process_time() - start)
    return float(best)


def predicted_cost(n_samples: int, dim: int, n_features: int = FEATURES) -> tuple[float, float]:
    """Return CPU seconds, and megabytes beyond the samples, of `AdaptiveDiffusionMap().fit` without a lag."""
    terms = design(n_samples, dim, n_features)
    return float(terms @ np.array(SECONDS)) * unit_seconds(), float(terms @ np.array(MEGABYTES))
