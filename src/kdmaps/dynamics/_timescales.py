"""Models projected on trajectories: implied time scales, equilibrium weights, forecasts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kdmaps.checks import Check, recorded, rules, warn
from kdmaps.data.inputs import join_trajectories
from kdmaps.diagnostics.projection import Projection, project
from kdmaps.diagnostics.resampling import Resampling
from kdmaps.estimators.arguments import model_and_samples
from kdmaps.estimators.forecast import Forecast as Forecast
from kdmaps.estimators.transformer import ModeTransformer, checked_source
from kdmaps.exceptions import NotApplicable
from kdmaps.selection.lag import ImpliedTimescales as ImpliedTimescales
from kdmaps.selection.lag import LagChoice as LagChoice
from kdmaps.selection.lag import checked_lags, scan_lags
from kdmaps.selection.lag import choose_lag as choose_lag
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import checked_weight

#: Number of functions of the model that represent equilibrium weights. In 50 runs of one relaxation time from one well,
#: time scales were 0.85, 0.90 and 0.92 of the exact ones with 2, 4 and 8 functions, and the same with 50.
FUNCTIONS = 10


@one_blas_thread()
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


@one_blas_thread()
def equilibrium_weights(model: ModeTransformer, X: SamplesLike, *, groups: ArrayLike | None = None) -> np.ndarray:
    """Estimate weights of frames of runs that start out of equilibrium, for a second fit (Koopman reweighting).

    The weights w make the pairs stationary: E[w(x_t) f(x_{t+τ})] = E[w(x_t) f(x_t)] for the leading functions f of the
    model, of which w is a combination. The starting points may be arbitrary, but the runs must connect all states.

    `kdmaps.simulation.swarm_weights` needs no fit, its weights are positive, and they are more accurate for runs much
    shorter than the slowest relaxation time. Weights of this function are linear in the modes of a fit to frames out
    of equilibrium, and about as good for runs of a quarter of this time.

    Parameters
    ----------
    model : fitted estimator, with a lag
        Fitted to the runs without weights.
    X : list of arrays of shape (n_frames, d), or array-like of shape (n_frames, d)
        The runs.
    groups : array-like of shape (n_frames,), optional
        Run of each frame of an array.

    Returns
    -------
    ndarray of shape (n_frames,)
        Weights with mean 1, for `sample_weight` of `fit`; the frames of a list are joined.

    Warns
    -----
    UnreliableModesWarning
        If more than a tenth of the weights is negative before it is set to 0.

    References
    ----------
    Wu, H., Nüske, F., Paul, F., Klus, S., Koltai, P. and Noé, F. (2017). Variational Koopman models: slow collective
    variables and molecular kinetics from short off-equilibrium simulations. J. Chem. Phys. 146, 154104.

    Examples
    --------
    >>> import kdmaps, warnings
    >>> runs = list(kdmaps.problems.load("dw1d").simulate(40, dt=0.1, n_trajectories=50, x0=[-1.0], random_state=0))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # the runs start in one well
    ...     m = kdmaps.KernelDiffusionMap(1, lag=2, time_step=0.1, regularization=1e-3, random_state=0).fit(runs)
    ...     weights = kdmaps.dynamics.equilibrium_weights(m, runs)
    ...     again = kdmaps.KernelDiffusionMap(1, lag=2, time_step=0.1, regularization=1e-3, random_state=0)
    ...     bool(again.fit(runs, sample_weight=weights).timescales_[0] > m.timescales_[0])
    True
    """
    projection = project_model(model, X, groups, n_functions=FUNCTIONS)
    functions = np.column_stack([np.ones(len(projection.values)), projection.values])
    first, second = projection.pairs(projection.lag, slice(0, len(functions)))
    # The constant does not change, so that the matrix is singular.
    change = functions[first].T @ (functions[second] - functions[first]) / len(functions)
    weights = functions @ np.linalg.svd(change)[0][:, -1]
    weights = weights * np.sign(weights.sum())
    negative = -weights[weights < 0].sum() / np.abs(weights).sum()
    warn(Check(rules.EQUILIBRIUM_WEIGHTS, float(negative)))
    weights = np.maximum(weights, 0)
    return projection.in_order_of_rows(weights / weights.mean())


@one_blas_thread()
@recorded
def forecast(
    model: ModeTransformer,
    X: SamplesLike,
    values: ArrayLike,
    times: float | ArrayLike,
    at: SamplesLike = None,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Forecast:
    """Forecast observables, E[h(x_{t+time}) | x_t], with error bars and the horizon of the forecasts.

    The Koopman operator is applied once for each lag, on the modes or on all features with one of several
    regularizations. For each time, the one with the smallest error on held-out blocks of X is used. The operator of a
    model fitted with `reversible=False` comes from its training frames, the observables from X.

    Parameters
    ----------
    model : fitted estimator, with a lag
    X : array-like of shape (n_frames, d), list of such arrays, path of a file
        Frames at equal time steps, e.g. the training data.
    values : array-like of shape (n_frames,) or (n_frames, m)
        The observable, or m observables, at these frames.
    times : float or ascending array-like
        Multiples of the lag, in the unit of `time_step`. Other times are refused.
    at : array-like of shape (n_points, d), optional
        The present states; by default X.
    groups, sample_weight : array-like of shape (n_frames,), optional
        Trajectory of each frame, and its weight; pairs stay in one trajectory and have the weight of their first frame.

    Returns
    -------
    Forecast

    Examples
    --------
    >>> import numpy as np, kdmaps
    >>> turn = np.exp(0.1 * (-0.2 + 2j))  # a noisy oscillator
    >>> noise = np.random.default_rng(0).normal(size=(3000, 2)) @ [1, 1j] * np.sqrt(1 - abs(turn) ** 2)
    >>> path = [1 + 0j]
    >>> for step in noise:
    ...     path.append(turn * path[-1] + step)
    >>> X = np.column_stack([np.real(path), np.imag(path)])
    >>> settings = {"kernel": "gaussian", "bandwidth": 8.0, "regularization": 1e-4, "n_features": 60}
    >>> m = kdmaps.KernelDiffusionMap(2, lag=1, time_step=0.1, reversible=False, random_state=0, **settings).fit(X)
    >>> later = kdmaps.dynamics.forecast(m, X, X[:, 0], [0.1, 1.0], at=[[1.0, 0.0]])
    >>> bool(abs(later.values[1, 0] - (turn**10).real) < 0.1)
    True
    """
    model, X = model_and_samples(model, X, ModeTransformer)
    check_lag(model)
    return model._forecast(X, values, times, at, sample_weight, groups)


def project_model(
    model: ModeTransformer,
    X: SamplesLike,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    n_functions: int | None = None,
) -> Projection:
    """Evaluate the leading functions of a model with a lag at all frames; `n_functions` as in `project`."""
    model, X = model_and_samples(model, X, ModeTransformer)
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
    if lag_of(model) is None:
        raise NotApplicable(
            "model was fitted without a lag, so its time scales do not refer to time. Fit it with {lag:1} (in frames) "
            "and {time_step}."
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
        raise NotApplicable(
            "model was fitted with {reversible:False}, but this analysis assumes equilibrium. Fit it with "
            "{reversible:True}."
        )
