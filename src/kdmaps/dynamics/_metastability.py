"""States in time: how metastable coarse states are, and coherent sets, which a flow keeps together."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.optimize import linear_sum_assignment

from kdmaps.diagnostics.projection import Projection
from kdmaps.diagnostics.resampling import Resampling, basic_intervals
from kdmaps.dynamics._states import CoarseStates, coarse_states
from kdmaps.dynamics._timescales import check_lag, check_reversible, is_directed, project_model
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.exceptions import NotApplicable
from kdmaps.spectrum.modes import Clock
from kdmaps.utils.frames import aligned, records, with_ends
from kdmaps.utils.notebook import TableCard
from kdmaps.utils.numbers import rounded
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import checked_weight, unit_weight


@dataclass(frozen=True)
class Metastability(TableCard):
    """How metastable states are, on frames that the states were not found from; intervals from a block bootstrap."""

    populations: np.ndarray  #: (n_states,): shares of the frames with each label.
    population_intervals: np.ndarray  #: (n_states, 2).
    #: (n_states,): probability that a path that was last in the core of a state still is after one lag.
    stays: np.ndarray
    stay_intervals: np.ndarray  #: (n_states, 2).
    #: (n_states - 1,): time scales of the Markov model of the states, in the unit of `time_step`.
    timescales: np.ndarray
    timescale_intervals: np.ndarray  #: (n_states - 1, 2).
    mode_timescales: np.ndarray  #: Time scales of the modes of the model, for comparison.
    lag: int  #: Of the model, in frames.
    confidence: float  #: Confidence level of the intervals.

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data per state, for example for `pandas.DataFrame`."""
        populations = with_ends("population", self.populations, self.population_intervals)
        stays = with_ends("stays", self.stays, self.stay_intervals)
        return records(state=np.arange(len(self.stays)), **populations, **stays)

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of a table of states."""
        titles, rows = ["state", "population", "stays"], []
        for row in self.table():
            shares = ((row[name], row[f"{name}_low"], row[f"{name}_high"]) for name in titles[1:])
            shown = [f"{share:.1%} ({low:.1%}…{high:.1%})" for share, low, high in shares]
            rows.append([str(row["state"] + 1), *shown])
        return titles, rows

    def __repr__(self) -> str:
        titles, rows = self.cells()
        title = f"{len(rows)} states on held-out frames ({100 * self.confidence:g} % intervals)"
        found = zip(self.timescales, *self.timescale_intervals.T, strict=True)
        times = ", ".join(f"{rounded(t)} ({rounded(low)} – {rounded(high)})" for t, low, high in found)
        modes = ", ".join(rounded(t) for t in self.mode_timescales[: len(self.timescales)])
        last = f"time scales of the states: {times}; of the modes: {modes}"
        return "\n".join([title, *aligned([titles, *rows]), last])


@one_blas_thread()
def metastability(
    model: ModeTransformer,
    X: SamplesLike,
    states: CoarseStates,
    *,
    groups: ArrayLike | None = None,
    n_resamples: int = 100,
    confidence: float = 0.95,
    random_state: RandomStateLike = None,
) -> Metastability:
    """Measure how metastable states are: populations, shares that stay for one lag, time scales of the coarse model.

    Parameters
    ----------
    model : fitted estimator, with a lag
    X : array-like of shape (n_frames, d), list of such arrays, path of a file
        Frames at equal time steps.
    states : CoarseStates
        States of these frames, found from modes of the model.
    groups : array-like of shape (n_frames,), optional
        Trajectory of each frame.
    n_resamples, confidence : int, default=100, and float, default=0.95
        Number of resamples of the block bootstrap, and confidence level of the intervals.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    Metastability

    Notes
    -----
    Blocks of frames are halved at random. The states of each half are found from the modes of the other half, with the
    same number of states, and matched by their overlap. Transitions are counted between `CoarseStates.milestones`, in
    both directions of time. If the time scales of the states are much shorter than the time scales of the modes, the
    states cut through a well.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(20000, dt=0.02, random_state=0)[0]
    >>> m = kdmaps.KernelDiffusionMap(1, lag=5, time_step=0.02, n_features=50, random_state=0).fit(path)
    >>> states = kdmaps.dynamics.coarse_states(m.transform(path), 2)
    >>> found = kdmaps.dynamics.metastability(m, path, states, random_state=0)
    >>> bool((found.stays > 0.8).all() and (found.populations > 0.3).all())
    True
    """
    resampling = Resampling(n_resamples, confidence, random_state)
    check_reversible(model)
    projection = project_model(model, X, groups, n_functions=1)
    if len(states.labels) != len(projection.rows):
        raise ValueError(f"states has {len(states.labels)} frames, but X has {len(projection.rows)}.")
    found = _held_out(projection, states)
    path, m, blocks = found.milestones(projection.owner), len(states.populations), projection.blocks
    pairs = [projection.pairs(projection.lag, block) for block in blocks]
    counts = np.array([_counts(path[first], path[second], m) for first, second in pairs])
    labels = np.array([np.bincount(found.labels[block], minlength=m) for block in blocks])
    draws = resampling.all_and_counts(len(blocks))
    clock = Clock(projection.lag, projection.time_step)
    totals, sums = draws @ labels, np.tensordot(draws, counts + np.swapaxes(counts, 1, 2), axes=1)
    rows = sums.sum(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = totals / totals.sum(axis=1, keepdims=True)
        stays = np.where(rows > 0, np.diagonal(sums, axis1=1, axis2=2) / rows, 0.0)
    rates = np.array([_rates(one, clock) for one in sums])
    # Arcs of shares have a variance that hardly depends on them, and are finite for states that a resample lacks.
    ends = [_share_intervals(values, confidence, len(blocks)) for values in (shares, stays)]
    logs = np.log(rates)
    known = logs[1:][np.isfinite(logs[1:]).all(axis=1)]
    few = len(known) < 2
    times = np.full((m - 1, 2), np.nan) if few else basic_intervals(-logs[0], -known, confidence, len(blocks))
    return Metastability(
        shares[0], ends[0], stays[0], ends[1], 1 / rates[0], np.exp(times),
        np.asarray(model.timescales_), projection.lag, float(confidence),
    )  # fmt: skip


def _held_out(projection: Projection, states: CoarseStates) -> CoarseStates:
    """Return the states of every frame, found from the other half of the blocks, in the order of the projection."""
    m, memberships = len(states.populations), np.empty((len(projection.rows), len(states.populations)))
    half = np.random.RandomState(0).permutation(len(projection.blocks)) % 2 == 0
    owner = np.repeat(half, [block.stop - block.start for block in projection.blocks])
    given = states.labels[projection.rows]
    method = "auto" if states.centres is not None else "pcca"
    for own in (owner, ~owner):
        other = coarse_states(projection.values[~own], m, method=method)
        found = other.memberships_at(projection.values[own])
        overlap = _counts(given[own], found.argmax(axis=1), m)
        memberships[own] = found[:, linear_sum_assignment(-overlap)[1]]
    return CoarseStates(memberships.argmax(axis=1), memberships, states.populations, None)


def _counts(here: np.ndarray, there: np.ndarray, n_states: int) -> np.ndarray:
    """Count pairs of known states."""
    known = (here >= 0) & (there >= 0)
    return np.bincount(n_states * here[known] + there[known], minlength=n_states**2).reshape(n_states, n_states)


def _rates(symmetric: np.ndarray, clock: Clock) -> np.ndarray:
    """Return the rates of the Markov model with these symmetric counts, NaN if a state has none."""
    law = symmetric.sum(axis=1)
    if (law == 0).any():
        return np.full(len(law) - 1, np.nan)
    values = linalg.eigvalsh(symmetric / np.sqrt(np.outer(law, law)))[::-1][1:]
    return clock.rates(np.maximum(1 - values, np.finfo(float).tiny))


def _share_intervals(shares: np.ndarray, confidence: float, n_blocks: int) -> np.ndarray:
    """Return intervals of shares, of which the first row is the estimate and the others are resamples."""
    arcs = np.arcsin(np.sqrt(np.clip(shares, 0, 1)))
    ends = basic_intervals(arcs[0], arcs[1:], confidence, n_blocks)
    return np.sin(np.clip(ends, 0, np.pi / 2)) ** 2


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


@one_blas_thread()
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
        raise NotApplicable(
            "model was fitted with {reversible:True}, which mixes both times. Fit it with {reversible:False}."
        )
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
