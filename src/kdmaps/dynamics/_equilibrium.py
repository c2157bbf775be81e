"""Weights that make short runs from arbitrary starting points representative of equilibrium."""

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.dynamics._timescales import project_model
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.exceptions import UnreliableModesWarning
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.warn import warn

#: Number of functions of the model that represent the weights. In 50 runs of one relaxation time from one well, time
#: scales were 0.85, 0.90 and 0.92 of the exact ones with 2, 4 and 8 functions, and the same with 50.
FUNCTIONS = 10
#: Largest part of the weights that may be negative before they are set to 0.
NEGATIVE = 0.1


def equilibrium_weights(model: ModeTransformer, X: SamplesLike, *, groups: ArrayLike | None = None) -> np.ndarray:
    """Estimate weights of frames of runs that start out of equilibrium, for a second fit (Koopman reweighting).

    The weights w make the pairs stationary: E[w(x_t) f(x_{t+τ})] = E[w(x_t) f(x_t)] for the leading functions f of the
    model, of which w is a combination. The starting points may be arbitrary, but the runs must connect all states.

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
    if negative > NEGATIVE:
        warn(
            f"The equilibrium weights are unreliable: {negative:.0%} of them is negative (limit {NEGATIVE:.0%}) and "
            "set to 0. The runs have too few transitions between states; use longer or more runs.",
            UnreliableModesWarning,
        )
    weights = np.maximum(weights, 0)
    return projection.in_order_of_rows(weights / weights.mean())
