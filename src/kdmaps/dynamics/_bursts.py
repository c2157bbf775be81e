"""Short unbiased runs: the diffusion tensor, and where to start them."""

from typing import Any

from kdmaps.clocks.runs import Runs
from kdmaps.clocks.tensor import LearnedDiffusion, learn_diffusion
from kdmaps.utils.types import RandomStateLike
from kdmaps.utils.validation import check_positive_integer


def diffusion_tensor(
    runs: Any, *, time_step: float | None = None, lag: int = 1, random_state: RandomStateLike = 0
) -> LearnedDiffusion:
    """Learn the diffusion tensor a(x) of dX = drift dt + √(2a) dW from the displacements of unbiased runs.

    Squares of displacements after a short time are averaged over nearby frames, and the squared mean displacement,
    which is the drift, is removed. The tensor is symmetric, positive definite and smooth; the width over which it is
    averaged maximises the likelihood of the displacements of held-out runs.

    Parameters
    ----------
    runs : list of runs, or array of shape (n_runs, n_frames, d)
        Unbiased runs with frames at equal time steps, from anywhere: arrays, data frames, files, streams, Dask data.
    time_step : float, optional
        Time between frames; by default the step of the times in the runs.
    lag : int, default=1
        Number of frames after which displacements are measured. The shortest is best unless the runs have memory.
    random_state : int, RandomState instance or None, default=0
        Seed of the landmarks.

    Returns
    -------
    LearnedDiffusion
        A function of samples, (n_samples, d) to (n_samples, d, d), for `diffusion=`; its method `errors` returns the
        relative standard error at any points.

    Examples
    --------
    A diffusion constant of 0.1 along both coordinates:

    >>> import numpy as np
    >>> import kdmaps
    >>> runs = kdmaps.problems.load("muller-brown").simulate(50, dt=0.001, n_trajectories=20, random_state=0)
    >>> a = kdmaps.dynamics.diffusion_tensor(list(runs), time_step=0.001)
    >>> a([[-0.5, 1.4]])[0].round(1) + 0.0
    array([[0.1, 0. ],
           [0. , 0.1]])
    """
    check_positive_integer("lag", lag)
    read = Runs.read(runs, time_step, name="runs", min_frames=lag + 1)
    return learn_diffusion(read, lag, random_state=random_state)
