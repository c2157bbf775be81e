"""Forecasts of all columns of X by a fitted model, which keeps no frames."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kdmaps.data.inputs import join_trajectories
from kdmaps.data.sources import ArraySource, Source
from kdmaps.exceptions import ArgumentError, NotApplicable
from kdmaps.propagation.propagator import Propagator, learn_propagator
from kdmaps.selection.folds import FOLDS, REPEATS
from kdmaps.selection.plan import FitSpec, SearchPlan
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.validation import as_numbers, checked_samples

#: Grid of a search without noise: bandwidths from one to four median distances.
N_BANDWIDTHS, BANDWIDTHS, REGULARIZATIONS = 2, (1.0, 3.0), (1e-6, 1e-3)
#: Most numbers of a mapped file that are read into memory for forecasts.
MOST_MAPPED = 50_000_000
#: Its number of features, at most.
FEATURES_WITHOUT_NOISE = 100


def _forecasts(model: Any) -> bool:
    """Return whether a fitted model forecasts; others have no `predict`, as scikit-learn expects, for this reason."""
    try:
        checked_propagator(model)
    except NotApplicable as reason:
        raise AttributeError(str(reason)) from reason
    return True


class Predictions:
    """Methods of models that are fitted to trajectories with `reversible=False`."""

    @available_if(_forecasts)  # type: ignore[untyped-decorator]
    @one_blas_thread()
    def predict(
        self, X: SamplesLike, steps: ArrayLike = 1, *, time: ArrayLike | None = None, return_std: bool = False
    ) -> Any:
        """Forecast all columns of X, given the present frames.

        The forecast is that of the candidate that was best on held-out blocks of the fit (`m.propagator_`). Nothing is
        fitted or tested again: it takes time and memory in proportion to the number of values, and models read from
        a file can forecast, too.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), list of such arrays
            Present frames, of all columns of the fit.
        steps : int or array-like of int, default=1
            Numbers of lags.
        time : float or array-like, optional
            Times in the unit of `time_step`, in place of `steps`. Between multiples of the lag, eigenpairs interpolate.
        return_std : bool, default=False
            If True, also return standard deviations.

        Returns
        -------
        values : ndarray of shape (n_samples, d), or (n_times, n_samples, d) for several steps or times
        std : ndarray of shape (d,) or (n_times, d), if `return_std`
            Root mean square errors of such forecasts on held-out frames, noise included. After the longest time that
            was tested, half of a block, they are those of this time.

        Examples
        --------
        >>> import numpy as np, kdmaps
        >>> X = kdmaps.data.delays(np.cos(0.3 * np.arange(200))[:, None], 2)
        >>> m = kdmaps.AdaptiveDiffusionMap(2, lag=1, reversible=False, random_state=0).fit(X[:150])
        >>> bool(np.abs(m.predict(X[150:151], 40)[0] - X[190]).max() < 1e-8)
        True
        """
        propagator = checked_propagator(self)
        duration = self.modes_.clock.duration  # type: ignore[attr-defined]
        lags, several = checked_lags(steps, time, duration)
        X, _, _ = join_trajectories(X)
        points = checked_samples(self, X, reset=False)
        values = propagator.forecast(np.asarray(points, dtype=np.float64), lags)
        values = values if several else values[0]
        if not return_std:
            return values
        errors = propagator.standard_errors(lags)
        return values, errors if several else errors[0]


def checked_propagator(model: Any) -> Propagator:
    """Return the propagator of a fitted model; raise if it has none."""
    check_is_fitted(model)
    propagator: Propagator | None = getattr(model, "propagator_", None)
    if propagator is not None:
        return propagator
    if getattr(model, "right_modes_", None) is None:
        raise NotApplicable(
            "Forecasts of the columns need a model of trajectories: fit AdaptiveDiffusionMap with {lag:1} and "
            "{reversible:False}. For other models, predict_expectation forecasts observables."
        )
    raise NotApplicable(
        "This model keeps no forecasts of its columns: it was fitted with a given kernel, in chunks, to frames that "
        "are not in memory, or by an older version. Fit AdaptiveDiffusionMap or KernelSearchCV to an array, or use "
        "kdmaps.dynamics.forecast."
    )


def checked_lags(steps: ArrayLike, time: ArrayLike | None, duration: float) -> tuple[np.ndarray, bool]:
    """Return times in lags, and whether there are several."""
    if time is not None:
        given = as_numbers("time", time, "a number, or numbers")
        lags = given / duration
    else:
        given = as_numbers("steps", steps, "an integer, or integers")
        lags = given
        if np.any(given != np.round(given)):
            raise ArgumentError(
                "steps must be numbers of lags, integers, got {steps}; for other times use time.", steps=steps
            )
    if given.ndim > 1 or not given.size or not np.isfinite(given).all() or np.any(given < 0):
        name, value = ("steps", steps) if time is None else ("time", time)
        raise ArgumentError("{name} must be at least 0, a number or a sequence, got {value!r}.", name=name, value=value)
    return np.atleast_1d(lags), given.ndim == 1


def propagator_of(source: Source, fit: FitSpec, weight: Any, groups: Any) -> Propagator | None:
    """Return the propagator of frames of an array in their direction of time; None for others, and for large files."""
    if fit.lag is None or fit.reversible or not isinstance(source, ArraySource):
        return None
    if not source.many_passes and source.array.size > MOST_MAPPED:
        return None
    X = np.array(source.read(slice(None))[1], dtype=np.float64)
    return learn_propagator(X, groups, fit.lag, fit.n_components, weight)


def plan_without_noise(plan: SearchPlan, lag: int, n_pairs: int) -> SearchPlan:
    """Return a shorter search for frames without noise, where all smooth functions are predictable.

    A few frames are cut into two blocks, and determine few modes.
    """
    fit = plan.fit
    if n_pairs < REPEATS * FOLDS * (fit.n_components + 2):
        most = max(1, n_pairs // REPEATS - lag - 2)
        fit = replace(fit, cv=1, n_components=min(fit.n_components, most))
    plan = replace(plan, fit=fit, metric_rounds=0, max_extensions=0, more_features=False)
    if not (plan.adaptive and isinstance(plan.regularizations, str) and "gaussian" in map(str, plan.families)):
        return plan
    few = replace(plan.basis, n_features=min(plan.basis.n_features, FEATURES_WITHOUT_NOISE))
    grid: dict[str, Any] = {"bandwidths": N_BANDWIDTHS, "bandwidth_range": BANDWIDTHS, "families": ("gaussian",)}
    return replace(plan, basis=few, regularizations=REGULARIZATIONS, **grid)
