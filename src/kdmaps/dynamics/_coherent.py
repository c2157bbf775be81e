"""Coherent sets: groups of particles that a flow keeps together from one time to another."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.dynamics._states import CoarseStates, coarse_states
from kdmaps.dynamics._timescales import check_lag, is_directed
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.utils.frames import records
from kdmaps.utils.notebook import TableCard
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.validation import checked_weight, unit_weight


@dataclass(frozen=True, eq=False)
class CoherentSets(TableCard):
    """Sets of particles at two times, the result of `coherent_sets`."""

    labels: np.ndarray  #: (n, 2): set of each particle at the first and at the second time.
    #: (n_sets,): weighted share of the particles of each set at the first time that are in it at the second time.
    coherence: np.ndarray
    states: CoarseStates  #: Clusters of the modes at both times, the rows of the first time before the second.

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data per set: its share of the particles at both times, and its coherence."""
        numbers = np.arange(len(self.coherence))
        first, second = (self.labels[:, :, None] == numbers).mean(axis=0)
        return records(set=numbers + 1, label=numbers, first=first, second=second, coherence=self.coherence)

    def __repr__(self) -> str:
        shown = ", ".join(f"{row['set']}: {row['first']:.1%} ({row['coherence']:.1%} stay)" for row in self.table())
        return f"{len(self.coherence)} coherent sets of {len(self.labels)} particles: {shown}"


def coherent_sets(
    model: ModeTransformer,
    first: SamplesLike,
    second: SamplesLike,
    n_sets: int | None = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> CoherentSets:
    """Find sets of particles that stay together in a flow, from their positions at two times.

    Parameters
    ----------
    model : fitted estimator, with a lag and reversible=False
        Fitted to the pairs, for example by `fit(np.vstack([first, second]), groups=np.tile(np.arange(n), 2))` with
        lag=1: every particle is a trajectory of two frames.
    first, second : array-like of shape (n, d)
        Positions of the same particles, in the same order, at the first and at the second time; not necessarily the
        particles of the fit.
    n_sets : int or None, default=None
        Number of sets, from 2 to 2^r for r modes; None as in `coarse_states`.
    sample_weight : array-like of shape (n,), optional
        Weights of the particles.

    Returns
    -------
    CoherentSets

    Notes
    -----
    The modes f of the first and g of the second positions are the most correlated functions: f(x) ≈ g(y) for a particle
    that moves from x to y. On a coherent set both are nearly constant, with the same value, so that joint clusters of
    f(x) and g(y) are the same sets at both times. The positions need not have the same law at both times.

    References
    ----------
    Banisch, R. and Koltai, P. (2017). Understanding the geometry of transport: diffusion maps for Lagrangian trajectory
    data unravel coherent sets. Chaos 27. Klus, S. et al. (2019). Kernel methods for detecting coherent structures in
    dynamical data. Chaos 29.

    Examples
    --------
    >>> import numpy as np, kdmaps
    >>> x = np.random.default_rng(0).uniform(-1, 1, size=(400, 1))  # mixing in each half, nothing crosses 0
    >>> y = np.sign(x) * (17 * np.abs(x) % 1)
    >>> settings = {"bandwidth": 0.3, "n_features": 40, "regularization": 1e-2, "random_state": 0}
    >>> m = kdmaps.KernelDiffusionMap(1, lag=1, reversible=False, **settings)
    >>> m = m.fit(np.vstack([x, y]), groups=np.tile(np.arange(400), 2))
    >>> sets = kdmaps.dynamics.coherent_sets(m, x, y, 2)
    >>> bool(np.mean((sets.labels[:, 0] == sets.labels[0, 0]) == (x[:, 0] * x[0, 0] > 0)) > 0.95)
    True
    """
    check_lag(model)
    if not is_directed(model):
        raise ValueError("model was fitted with reversible=True, which mixes both times. Fit it with reversible=False.")
    ends = [np.asarray(model.transform(X, end=end)) for X, end in ((first, "first"), (second, "second"))]
    n = len(ends[0])
    if len(ends[1]) != n:
        raise ValueError(f"second must contain the {n} particles of first, got {len(ends[1])} rows.")
    weight = unit_weight(checked_weight(sample_weight, ends[0]), n)
    states = coarse_states(np.vstack(ends), n_sets, sample_weight=np.tile(weight, 2))
    labels = states.labels.reshape(2, n).T
    kept = np.bincount(labels[:, 0], weight * (labels[:, 0] == labels[:, 1]), len(states.populations))
    with np.errstate(invalid="ignore"):
        coherence = kept / np.bincount(labels[:, 0], weight, len(states.populations))
    return CoherentSets(labels, coherence, states)
