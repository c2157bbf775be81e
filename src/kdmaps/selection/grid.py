"""The grid of a search: its points, and its extension beyond its edges."""

from collections.abc import Sequence
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.kernels import FAMILIES, Kernel, make_kernel
from kdmaps.selection.candidate import Candidate


def rounded(regularization: float) -> float:
    """Round to three digits: legible, and shared by trials whose regularizations are the same but for rounding."""
    return float(f"{regularization:.3g}")


#: Bandwidths of the default grid, in units of the median pairwise distance.
BANDWIDTH_RANGE = (1.5, 30.0)
#: Regularizations of the default grid, in units of `rate_unit`.
REGULARIZATIONS = tuple(rounded(lam) for lam in np.geomspace(1e-4, 1e-1, 7))


def positive(name: str, values: ArrayLike) -> np.ndarray:
    """Distinct positive finite numbers in ascending order; `name` is the argument that holds them."""
    try:
        array = np.unique(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.size == 0 or not np.all(np.isfinite(array)) or np.any(array <= 0):
        raise ValueError(f"{name} must be positive finite numbers, got {values!r}.")
    return array


def rate_unit(median: float, diffusion: float) -> float:
    """Return the power of 1000 nearest to D/m², for the median distance m and the mean diffusion D of the samples.

    L and λ have the unit of a rate. Rounding keeps the grid legible, and the same for all data of ordinary size; it
    costs a factor of 32 at most, which is little for a grid over three decades that can be extended.
    """
    return float(1000.0 ** np.round(np.log(diffusion / median**2) / np.log(1000.0)))


def regularization_grid(regularizations: str | ArrayLike, unit: float) -> np.ndarray:
    """Return the regularizations themselves, or for "auto" the default ones times `unit`."""
    if isinstance(regularizations, str) and regularizations == "auto":
        return np.array([rounded(lam * unit) for lam in REGULARIZATIONS])
    return positive("regularizations", regularizations)


def bandwidth_grid(bandwidths: int | ArrayLike, bandwidth_range: ArrayLike, median: float) -> np.ndarray:
    """Return the bandwidths themselves, or that many between multiples of the `median` pairwise distance."""
    if isinstance(bandwidths, str):
        raise ValueError(f"bandwidths must be 'auto', a number of bandwidths or the bandwidths, got {bandwidths!r}.")
    if not isinstance(bandwidths, Integral):
        return positive("bandwidths", bandwidths)
    if int(bandwidths) < 1:
        raise ValueError(f"bandwidths must be at least 1, got {bandwidths!r}.")
    ends = np.ravel(bandwidth_range)
    if ends.dtype.kind not in "fiu" or len(ends) != 2 or not 0 < ends[0] <= ends[1] < np.inf:
        raise ValueError(f"bandwidth_range must be two positive numbers in order, got {bandwidth_range!r}.")
    return median * np.geomspace(ends[0], ends[1], int(bandwidths))


def kernels_of(families: Sequence[str | Kernel], sigmas: np.ndarray) -> list[tuple[str, Kernel]]:
    """Return every named family at every bandwidth, and every given kernel, each with its label."""
    if not isinstance(families, Sequence) or isinstance(families, str) or len(families) == 0:
        raise ValueError(f"families must be a non-empty list of names or kernels, got {families!r}.")
    found: list[tuple[str, Kernel]] = []
    for family in families:
        if isinstance(family, Kernel):
            found.append((repr(family), family))
        elif not isinstance(family, str) or family not in FAMILIES:
            raise ValueError(f"families holds {family!r}; choose from {', '.join(FAMILIES)}, or give kdmaps kernels.")
        else:
            found += [(family, make_kernel(family, float(sigma))) for sigma in sigmas]
    return found


def edge_of(family: list[Candidate], best: Candidate, tried: set[tuple[str, float]]) -> tuple[str | None, list[float]]:
    """Return an axis with `best` on an end not yet `tried`, and two further points at the same ratio; or None."""
    for axis in ("bandwidth", "regularization"):
        points = sorted({getattr(c, axis) for c in family if getattr(c, axis) is not None})
        value = getattr(best, axis)
        if len(points) > 1 and value in (points[0], points[-1]) and (axis, value) not in tried:
            ratio = points[0] / points[1] if value == points[0] else points[-1] / points[-2]
            return axis, [float(value * ratio**step) for step in (1, 2)]
    return None, []
