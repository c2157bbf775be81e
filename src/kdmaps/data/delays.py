"""Delay coordinates: recent frames as one point, for systems that are observed in part."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.data.correlation import trajectories_of
from kdmaps.data.inputs import split_at_gaps
from kdmaps.utils.validation import as_numbers, check_positive_integer


def delays(X: Any, n: int, *, step: int = 1, groups: ArrayLike | None = None) -> Any:
    """Join every frame with the frames before it, (x_t, x_{t-step}, …, x_{t-(n-1)step}): a Takens embedding.

    By Takens' theorem, enough delayed values of one observable of a deterministic system determine its state.

    Parameters
    ----------
    X : array-like of shape (n_frames,) or (n_frames, d), or list of NumPy arrays
        Frames at equal time steps. Rows with NaN or infinity are gaps, across which nothing is joined.
    n : int
        Number of frames in a point.
    step : int, default=1
        Frames between them.
    groups : array-like of shape (n_frames,), optional
        Trajectory of each frame.

    Returns
    -------
    points : ndarray of shape (n_frames - (n - 1)·step, n·d)
        Row i belongs to frame i + (n - 1)·step. If X is a list, has gaps, or is given with groups, a list of such
        arrays, one for each stretch of frames without a gap; stretches that are too short are left out. Estimators
        take such a list as several trajectories.

    Examples
    --------
    >>> import kdmaps
    >>> kdmaps.data.delays([1.0, 2.0, 3.0, 4.0], 3)
    array([[3., 2., 1.],
           [4., 3., 2.]])
    >>> [part.tolist() for part in kdmaps.data.delays([1.0, 2.0, float("nan"), 4.0, 5.0], 2)]
    [[[2.0, 1.0]], [[5.0, 4.0]]]
    """
    check_positive_integer("n", n)
    check_positive_integer("step", step)
    several = isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], np.ndarray)
    if several and groups is not None:
        raise ValueError("X is a list of trajectories, which needs no groups; leave out groups.")
    arrays = [as_numbers("X", part, "a table of numbers, one row per frame") for part in (X if several else [X])]
    arrays = [part[:, None] if part.ndim == 1 else part for part in arrays]
    if groups is not None:
        arrays = [arrays[0][rows] for rows in trajectories_of(groups, len(arrays[0]))]
    reach = (n - 1) * step
    stretches = split_at_gaps(arrays)
    long = [piece for piece in stretches if len(piece) > reach]
    if not long:
        longest = max(map(len, stretches), default=0)
        raise ValueError(f"n={n} frames {step} apart need {reach + 1} frames without a gap, but X has {longest}.")
    joined = [np.hstack([piece[reach - k * step : len(piece) - k * step] for k in range(n)]) for piece in long]
    return joined if several or groups is not None or len(stretches) > 1 else joined[0]
