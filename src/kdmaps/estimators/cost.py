"""Predicted time and memory of a default fit, from measured fits (results/cost_default)."""

import time

import numpy as np

from kdmaps.utils.threads import one_blas_thread

#: Terms of the time: n of N samples are searched, in m = min(d, N) coordinates.
TERMS = ("constant", "searched n", "searched n m", "metrics m²", "all N", "all N d")
#: Their coefficients, in units of `unit_seconds`; from results/cost_default/rows.json.
SECONDS = (28.8, 0.0297, 9.31e-05, 0.000201, 1.26e-06, 2.49e-05)
#: The same for megabytes beyond the samples.
MEGABYTES = (65.7, 0.0212, 0.0, 0.000407, 0.0, 1.18e-05)
#: Samples that a default fit searches.
SEARCHED = 5_000


def design(n_samples: int, dim: int) -> np.ndarray:
    """Return the terms of the formula, without their coefficients."""
    n, m = min(n_samples, SEARCHED), min(dim, n_samples)
    return np.array([1, n, n * m, m**2, n_samples, n_samples * dim], dtype=float)


def unit_seconds() -> float:
    """Return the CPU time of a symmetric product of 20,000 × 300 numbers in one thread, the best of three."""
    Z, best = np.random.default_rng(0).standard_normal((20_000, 300)), np.inf
    with one_blas_thread():
        for _ in range(3):
            start = time.process_time()
            Z.T @ Z
            best = min(best, time.process_time() - start)
    return float(best)


def predicted_cost(n_samples: int, dim: int) -> tuple[float, float]:
    """Return CPU seconds, and megabytes beyond the samples, of `AdaptiveDiffusionMap().fit` without a lag."""
    terms = design(n_samples, dim)
    return float(terms @ np.array(SECONDS)) * unit_seconds(), float(terms @ np.array(MEGABYTES))
