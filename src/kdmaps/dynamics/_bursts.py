"""Short unbiased runs: the diffusion tensor, and where to start them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.clocks.runs import Runs
from kdmaps.clocks.starting import start_probabilities
from kdmaps.clocks.tensor import LearnedDiffusion, learn_diffusion
from kdmaps.clocks.weights import Starts
from kdmaps.data.inputs import join_trajectories
from kdmaps.data.sources import gather
from kdmaps.estimators.real_time import energy_densities
from kdmaps.estimators.transformer import FittedEstimator, checked_source
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import check_positive_integer, checked_random_state, checked_weight, unit_weight


@one_blas_thread()
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


@one_blas_thread()
def where_to_start(
    model: FittedEstimator,
    X: SamplesLike,
    n: int,
    *,
    sample_weight: ArrayLike | None = None,
    random_state: RandomStateLike = 0,
) -> Starts:
    """Choose rows of X to start n bursts from: where the energy of the modes, or of a committor, is.

    Rows are drawn with probabilities of which 60 % follow the energy (in equal parts for all modes), 20 % are the same
    for all rows, and 20 % follow the weights. Bursts from these rows determine the clock with much smaller errors than
    bursts from random rows; the result has the importance weights that correct for the choice.

    Parameters
    ----------
    model : fitted estimator
        Modes or a committor of samples without a lag. Its time scales need no unit yet.
    X : array-like of shape (n_samples, d)
        The samples to choose from, usually the training samples.
    n : int
        Number of bursts.
    sample_weight : array-like of shape (n_samples,), optional
        Weights with which X represents the stationary law.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    Starts
        `rows` (which may repeat), `weights` and `probabilities`; pass it to `fit` as `burst_start`.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    >>> m = kdmaps.KernelDiffusionMap(1, random_state=0).fit(X)
    >>> kdmaps.dynamics.where_to_start(m, X, 20).rows.shape
    (20,)
    """
    check_positive_integer("n", n)
    joined, _, _ = join_trajectories(X, None, sample_weight)
    source = checked_source(model, joined)
    weight = checked_weight(sample_weight, source)
    rows = np.asarray(gather(source), dtype=np.float64)
    share = unit_weight(weight, len(rows))
    probabilities = start_probabilities(share, energy_densities(model, rows))
    chosen = checked_random_state(random_state).choice(len(rows), n, p=probabilities)
    weights = share[chosen] / probabilities[chosen]
    return Starts(chosen, weights / weights.mean(), probabilities)
