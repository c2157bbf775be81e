"""Random points that kernels map to frequencies, and their allocation to the components of a mixture."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import special
from scipy.stats import qmc


def apportion(weights: np.ndarray, n: int) -> np.ndarray:
    """Return integers in proportion to `weights` with sum `n` (largest remainders), positive wherever possible."""
    counts = np.floor(weights * n).astype(int)
    counts = np.maximum(counts, (weights > 0).astype(int) if n >= np.count_nonzero(weights) else 0)
    while counts.sum() != n:
        excess = counts - weights * n
        if counts.sum() > n:
            counts[np.argmax(np.where(counts > 1, excess, -np.inf))] -= 1
        else:
            counts[np.argmin(excess)] += 1
    return counts


def spectral_points(n: int, dim: int, method: str, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Draw standard normals (n, dim) and uniforms (n,) by the given method."""
    if method == "iid":
        return rng.standard_normal((n, dim)), rng.uniform(size=n)
    if method == "orthogonal":
        blocks = rng.standard_normal((-(-n // dim), dim, dim))
        q, r = np.linalg.qr(blocks)
        q *= np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]  # Haar measure
        directions = np.swapaxes(q, 1, 2).reshape(-1, dim)[:n]
        # Stratify the radii and the scale mixture too: one stratum of the uniform distribution per frequency.
        radii = np.sqrt(2 * special.gammaincinv(dim / 2, _strata(n, rng)))
        return directions * radii[:, None], _strata(n, rng)
    if method == "sobol":
        points = _scrambled(n, dim + 1, rng.randint(2**31))
        return special.ndtri(points[:, :-1]), points[:, -1]
    raise ValueError(f"sampling must be 'iid', 'orthogonal' or 'sobol', got {method!r}.")


@lru_cache(maxsize=4)  # all kernels of a search start from the same points
def _scrambled(n: int, dim: int, seed: int) -> np.ndarray:
    """Return the first points of a scrambled Sobol sequence in the open unit cube, read-only."""
    sequence = qmc.Sobol(dim, rng=np.random.default_rng(seed))
    points = np.clip(sequence.random_base2((n - 1).bit_length())[:n], 1e-12, 1 - 1e-12)
    points.flags.writeable = False
    return points


def _strata(n: int, rng: np.random.RandomState) -> np.ndarray:
    return (rng.permutation(n) + rng.uniform(size=n)) / n
