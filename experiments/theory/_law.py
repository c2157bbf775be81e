"""Exact averages over the stationary laws of two problems."""

from __future__ import annotations

from functools import cache

import numpy as np

from kdmaps import problems


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
