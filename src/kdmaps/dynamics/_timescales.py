"""Implied time scales of a fitted model."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from kdmaps.diagnostics.resampling import Resampling
from kdmaps.dynamics._model import check_reversible, project_model
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.selection.lag import ImpliedTimescales, checked_lags, scan_lags
from kdmaps.utils.types import RandomStateLike, SamplesLike


def implied_timescales(
    model: ModeTransformer,
    X: SamplesLike,
    lags: ArrayLike | Sequence[int],
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 100,
    confidence: float = 0.95,
    random_state: RandomStateLike = None,
) -> ImpliedTimescales:
    """Compute the time scales of a model's modes for several lags, in one pass over the data.

    If the modes describe all that is slow, and the lag is long enough for the rest to be forgotten, then t = -τ/ln ν(τ)
    does not depend on the lag τ. Time scales that still grow say: use a longer lag, or a better kernel.

    Parameters
    ----------
    model : fitted estimator, with a lag
    X : array-like of shape (n_frames, d), list of such arrays, path of a file
        Frames at equal time steps, e.g. the training data.
    lags : sequence of int
        Ascending, in frames.
    groups : array-like of shape (n_frames,), optional
        Trajectory of each frame; pairs never cross trajectories.
    sample_weight : array-like of shape (n_frames,), optional
        The weight of a pair is that of its first frame.
    n_resamples : int, default=100
        Number of resamples of the block bootstrap.
    confidence : float, default=0.95
        Confidence level of the intervals.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    ImpliedTimescales

    Warns
    -----
    UnreliableModesWarning
        If the trajectory holds too few correlation times for intervals.

    Notes
    -----
    The frames are projected on at most 50 leading functions of the fitted eigenproblem, its modes among them. For each
    lag, the slowest combinations of these are found by Rayleigh–Ritz: L_τ v = (1 - ν) C₀ v. Intervals are basic
    bootstrap intervals of log t over blocks of at least five correlation times of the modes, as in
    `kdmaps.uncertainty.bootstrap`: they hold any optimism of the time scales between none and that of the resamples,
    and so the time scales themselves.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(5000, dt=0.1, random_state=0)[0]
    >>> m = kdmaps.KernelDiffusionMap(1, lag=2, time_step=0.1, regularization=1e-4, random_state=0).fit(path)
    >>> found = kdmaps.dynamics.implied_timescales(m, path, [1, 2, 4, 8], random_state=0)
    >>> found.plateau
    1
    """
    resampling = Resampling(n_resamples, confidence, random_state)
    check_reversible(model)
    along = project_model(model, X, groups, sample_weight)
    return scan_lags(along, checked_lags(lags, along.longest), resampling)
