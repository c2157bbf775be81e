"""Forecasts of observables with error bars and a horizon."""

from numpy.typing import ArrayLike

from kdmaps.dynamics._timescales import check_lag
from kdmaps.estimators.forecast import Forecast as Forecast
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.utils.types import SamplesLike


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
    check_lag(model)
    return model._forecast(X, values, times, at, sample_weight, groups)
