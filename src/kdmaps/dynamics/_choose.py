"""The lag that a trajectory asks for."""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.data.correlation import integrated_correlation_time, trajectories_of
from kdmaps.data.inputs import as_source, join_trajectories
from kdmaps.data.sources import ArraySource, Source
from kdmaps.diagnostics.resampling import Resampling
from kdmaps.dynamics._along import Along, checked_lags, project
from kdmaps.dynamics._timescales import ImpliedTimescales, scan_lags
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import checked_weight
from kdmaps.utils.warn import muted, warn

#: Frames that decide about the lag, and how many of them follow one another in a longer trajectory.
MOST_FRAMES, PIECE = 20_000, 5_000
#: A model that costs little: the lag is seen in the functions that come after its modes as well.
FEATURES, REGULARIZATION = 200, 1e-4
#: Number of lags that are tried, up to this many integrated correlation times (each about two time scales), and to a
#: trajectory over this number.
N_LAGS, LONGEST, PARTS = 15, 2, 10


class LagChoice(NamedTuple):
    """A lag in frames, and the time scales that speak for it."""

    lag: int
    timescales: ImpliedTimescales


def choose_lag(
    X: SamplesLike,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_components: int = 2,
    time_step: float = 1.0,
    lags: ArrayLike | None = None,
    n_resamples: int = 50,
    confidence: float = 0.95,
    random_state: RandomStateLike = 0,
) -> LagChoice:
    """Find the smallest lag from which implied time scales are flat within their errors.

    Scores of different lags cannot be compared: every score falls as the lag grows. Here a cheap model (median
    bandwidth, little regularization, at most 20,000 frames) is fitted once with a lag of one frame, and its implied
    time scales decide.

    Parameters
    ----------
    X : array-like of shape (n_frames, d), list of such arrays, path, stream of chunks
        Frames at equal time steps. Of long trajectories pieces are used, of a stream its beginning.
    groups : array-like of shape (n_frames,), optional
        Trajectory of each frame.
    sample_weight : array-like of shape (n_frames,), optional
    n_components : int, default=2
        Number of time scales that must be flat, as far as they are longer than the lag.
    time_step : float, default=1
        Time between frames.
    lags : sequence of int, optional
        Lags to choose from, in frames. By default about fifteen, up to two integrated correlation times of the
        modes and to a tenth of the longest trajectory.
    n_resamples, confidence, random_state :
        As in `implied_timescales`.

    Returns
    -------
    LagChoice
        (lag, timescales).

    Warns
    -----
    UnreliableModesWarning
        If no lag is flat; the longest one that is shorter than the slowest time scale is returned.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(5000, dt=0.1, random_state=0)[0]
    >>> lag, found = kdmaps.dynamics.choose_lag(path)
    >>> lag == found.plateau
    True
    """
    resampling = Resampling(n_resamples, confidence, random_state)
    X, groups, _ = join_trajectories(X, groups)
    source = as_source(X)
    frames, groups, weight = some_frames(source, groups, checked_weight(sample_weight, source))
    with muted():
        model = KernelDiffusionMap(
            n_components,
            n_features=FEATURES,
            regularization=REGULARIZATION,
            lag=1,
            time_step=time_step,
            random_state=random_state,
        ).fit(frames, sample_weight=weight, groups=groups)
        along = project(model, frames, groups, weight)
        tried = default_lags(along) if lags is None else lags
        found = scan_lags(along, checked_lags(tried, along.longest), resampling)
        flat = found.plateau
    if flat is not None:
        return LagChoice(flat, found)
    warn(found.why_not_flat)
    return LagChoice(found.longest_resolved, found)


def default_lags(along: Along) -> np.ndarray:
    """Return about fifteen lags, up to where modes have relaxed or trajectories become short."""
    # Of the modes themselves: their time scales for the first lag may be far too short.
    trajectories = trajectories_of(along.owner, len(along.owner))
    slowest = max(integrated_correlation_time(series, trajectories) for series in along.values[:, : along.n_modes].T)
    most = min(max(LONGEST * slowest, N_LAGS), max(along.longest // PARTS, 2), along.longest - 1)
    return np.unique(np.geomspace(1, most, N_LAGS).round().astype(int))


def some_frames(
    source: Source, groups: Any, weight: np.ndarray | None, most: int = MOST_FRAMES
) -> tuple[np.ndarray, Any, np.ndarray | None]:
    """Return at most about `most` frames, in pieces of trajectories, with their groups and weights."""
    if not isinstance(source, ArraySource):
        held, count = [], 0
        for part in source.parts(most):
            held.append(source.read(part)[1])
            count += len(held[-1])
            if count >= most:
                break
        X = np.concatenate(held)[:most]
        groups, weight = (None if given is None else np.asarray(given)[: len(X)] for given in (groups, weight))
        return X, groups, weight
    n = len(source.array)
    trajectories = trajectories_of(groups, n)
    if n <= most:
        return source.read(slice(0, n))[1], groups, weight
    pieces = [piece for rows in trajectories for piece in np.array_split(rows, max(1, len(rows) // PIECE))]
    chosen = pieces[:: ceil(n / most)]
    rows = np.concatenate(chosen)
    labels = np.repeat(np.arange(len(chosen)), [len(piece) for piece in chosen])
    return source.read(rows)[1], labels, None if weight is None else weight[rows]
