"""Whether samples lie on a curved surface of fewer dimensions than they have columns."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from kdmaps.data.findings import Finding

#: Rows that are looked at, and rows at which neighbourhoods are looked at.
ROWS, PROBES = 2_000, 200
#: Neighbours; each size is twice the one before, and the last at most a quarter of the rows.
SIZES = (20, 40, 80, 160)
#: A local spectrum of variances ends with its first fall by this factor, in the median over the probes. Samples that
#: fill their space make smaller ones, in neighbourhoods of twenty.
FALL = 3.0
#: Largest part of the normal in the tangential variance: beyond it neighbourhoods see most of the curvature.
LARGEST = 0.1
#: More columns need more neighbours than there are for the spectra.
MAX_COLUMNS = 20


def surface_dimension(X: np.ndarray) -> int | None:
    """Return the dimension of the curved surface that samples lie on, or None.

    In a neighbourhood of radius ρ the variance along a surface of dimension D grows as ρ² and, because of its
    curvature, the variance normal to it as ρ⁴: the ratio of both doubles D/2 times slower than the number k of
    neighbours, as k^(2/D). Samples that scatter about a surface, and thin slabs, show the opposite: the smaller a
    neighbourhood, the larger the ratio. So the ratio has to grow at least as k^(1/D), over two doublings of k.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    """
    X = np.unique(np.asarray(X[:: -(-len(X) // ROWS)], dtype=np.float64), axis=0)  # copies are no neighbours
    sizes = [k for k in SIZES if k <= len(X) // 4]
    if not 2 <= X.shape[1] <= MAX_COLUMNS or len(sizes) < 3:
        return None
    probes = X[:: -(-len(X) // PROBES)]
    nearest = np.argsort(cdist(probes, X), axis=1)[:, : sizes[-1]]
    found = [_dimension(X[nearest[:, :k]]) for k in sizes]
    for (D, first), (D2, second), (D3, third) in zip(found, found[1:], found[2:], strict=False):
        grows = min(second / first, third / second) >= 2 ** (1 / D) if first > 0 else False
        if D == D2 == D3 < X.shape[1] and first <= LARGEST and grows:
            return D
    return None


def _dimension(neighbourhoods: np.ndarray) -> tuple[int, float]:
    """Return the dimension that local spectra show, and the median ratio of normal to tangential variance."""
    deviations = neighbourhoods - neighbourhoods.mean(axis=1, keepdims=True)
    spectra = np.linalg.eigvalsh(np.swapaxes(deviations, 1, 2) @ deviations)[:, ::-1]
    spectra = np.maximum(spectra, 1e-14 * spectra[:, :1])  # rounding
    falls = np.flatnonzero(np.median(spectra[:, :-1] / spectra[:, 1:], axis=0) >= FALL)
    D = int(falls[0]) + 1 if falls.size else spectra.shape[1]
    return D, float(np.median(spectra[:, D] / spectra[:, :D].mean(axis=1))) if falls.size else 1.0


def surface_finding(X: np.ndarray) -> Finding | None:
    """Return a note on the surface that samples lie on, if there is one."""
    D = surface_dimension(X)
    if D is None:
        return None
    return Finding(
        "surface",
        (),
        f"The samples lie on a curved surface of dimension {D} in {X.shape[1]} columns.",
        "This is no mistake; with diffusion='tangent' (kdmaps fit --diffusion tangent) the energy is that on the "
        "surface, and modes and rates are more accurate.",
        "note",
    )
