"""Weights of many short runs that start anywhere."""

from typing import Any

from kdmaps.checks import warn_of
from kdmaps.clocks.runs import Runs
from kdmaps.clocks.swarms import SwarmWeights, swarm_of
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import RandomStateLike
from kdmaps.utils.validation import check_positive_integer, seed_of


@one_blas_thread()
def swarm_weights(runs: Any, *, lag: int = 2, random_state: RandomStateLike = 0) -> SwarmWeights:
    """Estimate the weights with which the frames of many short unbiased runs represent the stationary law.

    The runs may start anywhere, in any numbers, but together they must connect all regions. For the law q of the
    frames, log w is a combination b·χ of smooth functions with E_q[∇χ a ∇χᵀ] b = E_q[𝓛χ], which pairs of frames show:
    one linear system, and positive weights. The bandwidth of the functions and the ridge are chosen by held-out runs.

    Parameters
    ----------
    runs : list of runs, or array of shape (n_runs, n_frames, d)
        Frames at equal time steps: arrays, data frames, files, streams, Dask data.
    lag : int, default=2
        Frames between the two frames of a pair. It should be short: the motion within it is taken as a small step.
    random_state : int, RandomState instance or None, default=0
        Seed of the functions, and of the cells of the checks.

    Returns
    -------
    SwarmWeights
        `joined` is for `sample_weight` of a fit with a lag to `list(runs)`, or of one without a lag to all frames.

    Warns
    -----
    UnreliableModesWarning
        If the runs do not connect all regions, still spread from their starts, or hardly determine the weights.

    Examples
    --------
    >>> import numpy as np
    >>> import kdmaps
    >>> starts = np.random.default_rng(0).uniform(-2, 2, (100, 1))
    >>> runs = kdmaps.problems.load("dw1d").simulate(40, dt=0.02, n_trajectories=100, x0=starts, random_state=0)
    >>> w = kdmaps.simulation.swarm_weights(runs)
    >>> len(w.weights), w.joined.shape
    (100, (4000,))
    """
    check_positive_integer("lag", lag)
    read = Runs.read(runs, 1.0, name="runs", min_frames=lag + 2)  # the unit of time does not matter
    found = swarm_of(read, lag, seed_of(random_state))
    warn_of(found.checks)
    return found
