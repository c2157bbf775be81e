"""Implied time scales of a fitted model, and the projection of models on trajectories."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kdmaps.data.inputs import join_trajectories
from kdmaps.diagnostics.projection import Projection, project
from kdmaps.diagnostics.resampling import Resampling
from kdmaps.estimators.transformer import ModeTransformer, checked_source
from kdmaps.selection.lag import ImpliedTimescales as ImpliedTimescales
from kdmaps.selection.lag import LagChoice as LagChoice
from kdmaps.selection.lag import checked_lags, scan_lags
from kdmaps.selection.lag import choose_lag as choose_lag
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import checked_weight


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

    If the modes describe all slow processes, and the lag τ is long enough for the fast ones to relax, then
    t = -τ/ln ν(τ) does not depend on τ. Time scales that still grow call for a longer lag or a better kernel. The
    result is `ImpliedTimescales`.

    Parameters
    ----------
    model : fitted estimator, with a lag
    X : array-like of shape (n_frames, d), list of such arrays, path of a file
        Frames at equal time steps, e.g. the training data.
    lags : sequence of int
        Ascending, in frames.
    groups, sample_weight : array-like of shape (n_frames,), optional
        Trajectory of each frame, and its weight; pairs stay in one trajectory and have the weight of their first frame.
    n_resamples, confidence : int, default=100, and float, default=0.95
        Number of resamples of the block bootstrap, and confidence level of the intervals.
    random_state : int, RandomState instance or None, default=None

    Warns
    -----
    UnreliableModesWarning
        If the trajectory is too short, in correlation times, for intervals.

    Notes
    -----
    The frames are projected on at most 50 leading functions of the fitted eigenproblem, including its modes. For each
    lag, the slowest combinations of these are found by Rayleigh–Ritz: L_τ v = (1 - ν) C₀ v. With reversible=False they
    are projected on the modes alone, and ν is the modulus of an eigenvalue of C₀₀⁻¹C₀₁. Intervals are basic bootstrap
    intervals of log t over blocks of frames, as in `kdmaps.uncertainty.bootstrap`.

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
    projection = project_model(model, X, groups, sample_weight, 1 if is_directed(model) else None)
    return scan_lags(projection, checked_lags(lags, projection.longest), resampling)


def project_model(
    model: ModeTransformer,
    X: SamplesLike,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    n_functions: int | None = None,
) -> Projection:
    """Evaluate the leading functions of a model with a lag at all frames; `n_functions` as in `project`."""
    check_lag(model)
    fitted: Any = getattr(model, "best_estimator_", model)
    X, groups, _ = join_trajectories(X, groups, sample_weight)
    source = checked_source(fitted, X)
    return project(
        fitted.basis_,
        fitted.moments_,
        fitted.modes_,
        fitted.regularization,
        source,
        groups,
        checked_weight(sample_weight, source),
        n_functions=n_functions,
        memory_limit=getattr(fitted, "memory_limit", None),
    )


def check_lag(model: ModeTransformer) -> None:
    """Raise unless a model was fitted to pairs of frames."""
    check_is_fitted(model)
    if hasattr(model, "named_steps"):
        raise ValueError(
            f"model is a {type(model).__name__}; pass its last step and the transformed frames: "
            "(pipeline[-1], pipeline[:-1].transform(X), ...)."
        )
    if lag_of(model) is None:
        raise ValueError(
            f"model ({type(model).__name__}) was fitted without a lag, so its time scales do not refer to time. Fit it "
            "with lag=1 (in frames) and time_step."
        )


def lag_of(model: Any) -> int | None:
    """Return the lag of a fitted model; None if it has none."""
    return getattr(getattr(getattr(model, "modes_", None), "clock", None), "lag", None)


def is_directed(model: ModeTransformer) -> bool:
    """Return True for a model fitted with reversible=False."""
    return getattr(model, "right_modes_", None) is not None


def check_reversible(model: ModeTransformer) -> None:
    """Raise for a model fitted with reversible=False."""
    if is_directed(model):
        raise ValueError(
            "model was fitted with reversible=False, but this analysis assumes equilibrium. Fit it with "
            "reversible=True."
        )
