"""The sets A and B of a committor: the side of each sample from labels, masks, functions or coarse states."""

from __future__ import annotations

from typing import Any

import numpy as np

from kdmaps.selection.committor import OUTSIDE, SOURCE, TARGET


def boundary_sides(y: Any, X: np.ndarray, weight: np.ndarray | None = None, complete: bool = True) -> np.ndarray:
    """Return the side of each sample from labels, masks, functions or coarse states.

    Unless `complete` is False, A, B and the region outside of both must have samples of positive weight.
    """
    n = len(X)
    side = _labels(y, X)
    if side.shape != (n,):
        raise ValueError(f"y must hold one label for each of the {n} samples of X, got shape {side.shape}.")
    if side.dtype.kind not in "iuf" or not np.isin(side, (SOURCE, TARGET, OUTSIDE)).all():
        known = side[~np.isin(side, (SOURCE, TARGET, OUTSIDE))][:5] if side.dtype.kind in "iuf" else side[:5]
        raise ValueError(
            f"y must hold 0 in A, 1 in B and -1 elsewhere, got {', '.join(map(str, known.tolist()))}; for more than "
            "two states use kdmaps.dynamics.rate_matrix."
        )
    side = side.astype(np.int64)
    if not complete:
        return side
    names = {SOURCE: "in A (y = 0)", TARGET: "in B (y = 1)", OUTSIDE: "outside of A and B (y = -1)"}
    for one, name in names.items():
        own = side == one
        if not own.any():
            remedy = "use smaller sets, or add samples between them" if one == OUTSIDE else "use larger sets"
            raise ValueError(f"No sample is {name}; {remedy}.")
        if weight is not None and not weight[own].any():
            raise ValueError(f"sample_weight is 0 for all samples {name}; the committor needs their weights.")
    return side


def _labels(y: Any, X: np.ndarray) -> np.ndarray:
    """Return the labels that y stands for, unchecked."""
    if y is None:
        raise ValueError("y is missing: give labels 0 in A, 1 in B and -1 elsewhere, or two masks.")
    if hasattr(y, "cores"):  # CoarseStates
        if len(y.populations) != 2:
            raise ValueError(
                f"y has {len(y.populations)} coarse states, but a committor needs two; use "
                "kdmaps.dynamics.rate_matrix for all pairs, or labels of two of them."
            )
        return np.asarray(y.cores)
    if callable(y):
        return np.asarray(y(X))
    if isinstance(y, tuple | list) and len(y) == 2 and all(callable(part) or np.ndim(part) == 1 for part in y):
        masks = [np.asarray(part(X) if callable(part) else part) for part in y]
        if any(mask.dtype != bool or mask.shape != (len(X),) for mask in masks):
            raise ValueError(f"y must hold two masks (arrays of bool) with one entry for each of the {len(X)} samples.")
        if shared := np.count_nonzero(masks[0] & masks[1]):
            raise ValueError(
                f"A (y = 0) and B (y = 1) overlap: {shared} samples are in both. Use disjoint sets, with a gap."
            )
        return np.where(masks[0], SOURCE, np.where(masks[1], TARGET, OUTSIDE))
    labels = np.asarray(y)
    if labels.dtype == bool:
        raise ValueError("y is one mask; give two, y=(in_A, in_B), or labels 0 in A, 1 in B and -1 elsewhere.")
    return labels
