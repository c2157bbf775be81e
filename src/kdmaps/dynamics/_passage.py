"""Committors and mean first passage times by the dynamical Galerkin approximation, and rates between several states.

The first two solve E[u(x_σ) + h·σ | x] = u(x) outside of sets in which u is given, for stopped pairs of frames: σ is
the lag, or the first time at which the path is in one of the sets, if that is earlier. Hence u = Σ_i c_i φ_i outside of
the sets satisfies
    Σ_i ⟨φ_j(x), φ_i(x) - φ_i(x_σ)⟩ c_i = ⟨φ_j(x), u(x_σ) + h·σ⟩,
where φ_i = 0 in the sets, and u(x_σ) on the right counts only if the path has ended in one. Only the paths after x
matter, so the frames need not be in equilibrium. Thiede, Giannakis, Dinner and Weare, J. Chem. Phys. 150, 244111
(2019); stopped pairs: Strahan et al., J. Chem. Theory Comput. 17, 2948 (2021).
"""

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.checks import Check, Checks, recorded, rules, warn
from kdmaps.data.inputs import join_trajectories
from kdmaps.diagnostics.committor import flux_and_rates
from kdmaps.diagnostics.projection import Projection
from kdmaps.diagnostics.resampling import Resampling, basic_intervals
from kdmaps.dynamics._states import CoarseStates
from kdmaps.dynamics._timescales import project_model
from kdmaps.estimators.committor import AdaptiveCommittor
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.exceptions import Undetermined
from kdmaps.summary import show_interval
from kdmaps.utils.frames import aligned, check_rows, join_rows, records, with_ends
from kdmaps.utils.notebook import TableCard, card
from kdmaps.utils.numbers import rounded
from kdmaps.utils.threads import one_blas_thread, slices
from kdmaps.utils.types import RandomStateLike, SamplesLike

#: Frames whose values in all resamples are held in memory at a time.
CHUNK_FRAMES = 2**14
#: Combinations of functions with a smaller part of the variance outside of the sets are left out.
RANK_TOLERANCE = 1e-5


@dataclass(frozen=True, repr=False)
class Committor(TableCard):
    """Probability to reach the target before the source."""

    values: np.ndarray  #: (n_frames,): 0 in the source, 1 in the target, between 0 and 1 elsewhere; rows as in X.
    errors: np.ndarray  #: (n_frames,): standard errors.
    flux: float  #: Reactive flux: transitions from source to target per unit of time.
    rate: float  #: Rate from source to target, flux/⟨1 - q⟩.
    reverse_rate: float  #: Rate from target to source, flux/⟨q⟩.
    flux_interval: np.ndarray  #: (2,): 95 % interval.
    rate_interval: np.ndarray  #: (2,)
    reverse_rate_interval: np.ndarray  #: (2,)
    checks: Checks = field(default_factory=Checks)  #: Checks of the frames and of the intervals.

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of a table of the flux and the rates."""
        values = self.flux, self.rate, self.reverse_rate
        intervals = self.flux_interval, self.rate_interval, self.reverse_rate_interval
        rows = zip(("flux", "rate", "reverse rate"), values, intervals, strict=True)
        return ["", "value", "95 % interval"], [[name, rounded(x), show_interval(ends, 4)] for name, x, ends in rows]

    def __repr__(self) -> str:
        n, between = len(self.values), (self.values > 0.4) & (self.values < 0.6)
        low, high = self.rate_interval
        return (
            f"Committor of {n} frames: {np.count_nonzero(between)} between 0.4 and 0.6, mean standard error "
            f"{self.errors.mean():.2g}, rate {self.rate:.3g} ({low:.3g} – {high:.3g})"
        )


@dataclass(frozen=True)
class PassageTimes(TableCard):
    """Mean first passage times between states."""

    labels: np.ndarray  #: (m,): the states.
    #: (m, m): from state i (averaged over its frames) to state j, in the unit of `time_step`; 0 on the diagonal.
    times: np.ndarray
    intervals: np.ndarray  #: (m, m, 2): confidence intervals.
    confidence: float  #: Confidence level of the intervals.
    checks: Checks = field(default_factory=Checks, repr=False)  #: Checks of the frames and of the states.

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data for each pair of states, for example for `pandas.DataFrame`."""
        i, j = np.nonzero(~np.eye(len(self.labels), dtype=bool))
        named = {"from": self.labels[i], "to": self.labels[j]}
        return records(**named, **with_ends("time", self.times[i, j], self.intervals[i, j]))

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of a table with one row for each initial state."""
        names, rows = [str(label + 1) for label in self.labels], []
        for i, (name, times) in enumerate(zip(names, self.times, strict=True)):
            shown = [f"{rounded(t)} ({show_interval(ends)})" for t, ends in zip(times, self.intervals[i], strict=True)]
            rows.append([name, *shown[:i], "", *shown[i + 1 :]])
        return ["from state", *(f"to {name}" for name in names)], rows

    def __repr__(self) -> str:
        lines = [f"Mean first passage times in the unit of time_step ({100 * self.confidence:g} % intervals)"]
        lines += [
            f"  from label {row['from']} to label {row['to']}: {rounded(row['time'])} ({rounded(row['time_low'])} – "
            f"{rounded(row['time_high'])})"
            for row in self.table()
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class RateMatrix:
    """Rates between all pairs of states, the result of `rate_matrix`."""

    labels: np.ndarray  #: (m,): the states.
    rates: np.ndarray  #: (m, m): rate from state i to state j, by any route; 0 on the diagonal.
    intervals: np.ndarray  #: (m, m, 2): 95 % intervals.
    fluxes: np.ndarray  #: (m, m): reactive fluxes, symmetric.
    #: Committors from the first to the second of two labels; from the second to the first it is 1 - q.
    committors: dict[tuple[int, int], AdaptiveCommittor]

    @property
    def checks(self) -> Checks:
        """All checks of all committors; of several that fail, the first."""
        return Checks(check for committor in self.committors.values() for check in committor.checks)

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of a table with one row for each initial state."""
        rows = [[str(name), *(f"{x:.3g}" for x in own)] for name, own in zip(self.labels, self.rates, strict=True)]
        return ["from, to", *map(str, self.labels.tolist())], rows

    def __repr__(self) -> str:
        titles, rows = self.cells()
        return "\n".join(aligned([titles, *rows]))

    def _repr_html_(self) -> str:
        return card(f"Rates between {len(self.labels)} states, by label", *self.cells())


@one_blas_thread()
@recorded
def committor(
    model: ModeTransformer,
    X: SamplesLike,
    source: ArrayLike,
    target: ArrayLike,
    *,
    states: ArrayLike | CoarseStates | None = None,
    groups: ArrayLike | None = None,
    n_resamples: int = 100,
    random_state: RandomStateLike = None,
) -> Committor:
    """Estimate the probability that a path from each frame reaches the target before the source, as a `Committor`.

    Parameters
    ----------
    model : fitted estimator, with a lag
        Its leading functions, up to 50, represent the committor.
    X : array-like of shape (n_frames, d), list of such arrays, path of a file
        Frames at equal time steps; they need not be in equilibrium.
    source, target : array-like of bool of shape (n_frames,), list of such arrays, or int or sequence of int
        Masks of the frames in the two sets; with `states`, labels of states.
    states : array-like of int of shape (n_frames,), list of such arrays, or CoarseStates, optional
        State of each frame; for `CoarseStates`, the cores are used (`CoarseStates.cores`).
    groups : array-like of shape (n_frames,), optional
        Trajectory of each frame.
    n_resamples, random_state : int, default=100, and int, RandomState instance or None, default=None
        Number of resamples of the block bootstrap, and their seed.

    Notes
    -----
    Dynamical Galerkin approximation with stopped pairs: a pair ends when its path enters one of the sets, so the result
    does not depend on the lag, up to errors of sampling and of the function space. Excursions into a set between two
    frames are missed.

    The flux is ⟨(q(x_{t+1}) - q(x_t))²⟩/2 per time step. It and the rates need frames in equilibrium and reversible
    dynamics. `AdaptiveCommittor` has the same names for samples in any order, but its time is set by the diffusion
    tensor: both agree for frames of an overdamped simulation with a short time step. Between frames further apart
    paths cross a set unseen, and the flux of this function is lower; with inertia, or if the columns omit slow
    variables, only this function has the time of the simulation.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(20000, dt=0.02, random_state=0)[0]
    >>> m = kdmaps.KernelDiffusionMap(1, lag=5, time_step=0.02, regularization=1e-4, random_state=0).fit(path)
    >>> found = kdmaps.dynamics.committor(m, path, path[:, 0] < -1, path[:, 0] > 1, random_state=0)
    >>> middle = abs(path[:, 0]) < 0.1
    >>> bool(abs(found.values[middle].mean() - 0.5) < 0.1)
    True
    """
    resampling = Resampling(n_resamples, 0.95, random_state)
    check_rows(X, source=source, target=target, states=states)
    X, groups, lengths = join_trajectories(X, groups)
    projection = project_model(model, X, groups)
    n, labels = len(projection.rows), None if states is None else _labels(states, lengths, len(projection.rows))
    if labels is None:
        source, target = join_rows("source", source, lengths), join_rows("target", target, lengths)
    sets = [_mask(name, given, n, labels) for name, given in (("source", source), ("target", target))]
    if shared := np.count_nonzero(sets[0] & sets[1]):
        raise ValueError(f"source and target share {shared} frames; they must not overlap.")
    if (sets[0] | sets[1]).all():
        raise ValueError("source and target leave no frame between them; use smaller sets.")
    inside = [mask[projection.rows] for mask in sets]
    system = _stopped_system(projection, inside[0] | inside[1], inside[1].astype(np.float64), 0.0)
    counts = resampling.all_and_counts(len(projection.blocks))
    coefficients = np.array([system.solve(row) for row in counts])
    if not np.isfinite(coefficients[0]).all():
        raise ValueError("No path of X reaches source or target; use larger sets or longer trajectories.")
    values, errors = np.empty((2, n))
    for part in slices(n, CHUNK_FRAMES):
        found = np.clip(system.functions[part] @ coefficients.T + inside[1][part, None], 0, 1)
        values[part], errors[part] = found[:, 0], np.nanstd(found[:, 1:], axis=1, ddof=1)
    sums = []
    for block in projection.blocks:
        here, there = (values[rows] for rows in projection.pairs(1, block))
        energy = np.sum((there - here) ** 2) / (2 * projection.time_step)
        sums.append((energy, np.sum(here + there) / 2, len(here)))
    quantities, intervals = flux_and_rates(np.array(sums), counts, resampling.confidence)
    values, errors = projection.in_order_of_rows(values), projection.in_order_of_rows(errors)
    return Committor(values, errors, *quantities.tolist(), *intervals)


@one_blas_thread()
@recorded
def mean_first_passage_times(
    model: ModeTransformer,
    X: SamplesLike,
    states: ArrayLike | CoarseStates,
    *,
    groups: ArrayLike | None = None,
    n_resamples: int = 100,
    confidence: float = 0.95,
    random_state: RandomStateLike = None,
) -> PassageTimes:
    """Estimate the mean first passage time from each state to every other state.

    Parameters
    ----------
    model : fitted estimator, with a lag
        Its leading functions, up to 50, represent the times.
    X : array-like of shape (n_frames, d), list of such arrays, path of a file
        Frames at equal time steps.
    states : array-like of int of shape (n_frames,), list of such arrays, or CoarseStates
        State of each frame, -1 outside of all states; for `CoarseStates`, `CoarseStates.cores`. If states touch, the
        times are too short, because paths at their border leave and enter them repeatedly.
    groups : array-like of shape (n_frames,), optional
        Trajectory of each frame.
    n_resamples, confidence : int, default=100, and float, default=0.95
        Number of resamples of the block bootstrap, and confidence level of the intervals.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    PassageTimes
        In the unit of the model's `time_step`.

    Warns
    -----
    UnreliableModesWarning
        If every frame belongs to a state, so that states touch.

    Notes
    -----
    As in `committor`, with m(x) = E[m(x_σ) + σ | x] and m = 0 in the target, for one target at a time. Times are
    averaged over the frames of the initial state.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(20000, dt=0.02, random_state=0)[0]
    >>> m = kdmaps.KernelDiffusionMap(1, lag=5, time_step=0.02, regularization=1e-4, random_state=0).fit(path)
    >>> cores = (path[:, 0] > 1).astype(int) - (abs(path[:, 0]) <= 1)  # 0 left, 1 right, -1 between
    >>> found = kdmaps.dynamics.mean_first_passage_times(m, path, cores, random_state=0)
    >>> bool(found.intervals[0, 1, 0] < found.times[0, 1] < found.intervals[0, 1, 1])
    True
    """
    resampling = Resampling(n_resamples, confidence, random_state)
    check_rows(X, states=states)
    X, groups, lengths = join_trajectories(X, groups)
    projection = project_model(model, X, groups)
    labels = _labels(states, lengths, len(projection.rows))
    names = _names(labels)
    outside = float(np.mean(labels < 0))
    warn(Check(rules.TOUCHING_STATES, outside, np.finfo(float).tiny))
    member = labels[projection.rows] == names[:, None]
    counts = resampling.all_and_counts(len(projection.blocks))
    found = np.stack([_times_to(projection, member, j, counts) for j in range(len(names))], -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.where(found > 0, found, np.nan))
    between = ~np.eye(len(names), dtype=bool)
    usable = np.all(np.isfinite(logs[:, between]), axis=1)  # all times positive
    known = logs[1:][usable[1:]]
    if not usable[0] or len(known) < 2:
        raise Undetermined("X contains too few transitions between states; use fewer states or longer trajectories.")
    intervals = np.exp(basic_intervals(logs[0], known, confidence, len(projection.blocks)))
    intervals[~between] = 0
    return PassageTimes(names, found[0], intervals, float(confidence))


@one_blas_thread()
def rate_matrix(
    X: SamplesLike,
    states: ArrayLike | CoarseStates,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    **settings: Any,
) -> RateMatrix:
    """Fit the committor of every pair of states, and return all rates.

    Parameters
    ----------
    X : array-like of shape (n_samples, d), or list of such arrays
    states : array-like of int of shape (n_samples,), or CoarseStates
        State of each sample, -1 outside of all states; for `CoarseStates`, the cores are used.
    sample_weight : array-like of shape (n_samples,), optional
    groups : array-like of shape (n_samples,), optional
    **settings
        Parameters of `AdaptiveCommittor`, such as `diffusion` and `random_state`.

    Returns
    -------
    RateMatrix
        A rate counts transitions from i to j by any route, also through other states.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("triplewell1d").sample(1000, random_state=0)
    >>> states = (abs(X[:, 0]) < 0.3) * 2 + (X[:, 0] < -1.3) + (X[:, 0] > 1.3) * 3 - 1
    >>> found = kdmaps.dynamics.rate_matrix(X, states, n_features=50, random_state=0)
    >>> found.rates.shape
    (3, 3)
    """
    X, groups, lengths = join_trajectories(X, groups, sample_weight)
    labels = _labels(states, lengths)
    names = _names(labels)
    m = len(names)
    rates, fluxes, intervals = np.zeros((m, m)), np.zeros((m, m)), np.zeros((m, m, 2))
    committors = {}
    for i, j in combinations(range(m), 2):
        y = np.where(labels == names[i], 0, np.where(labels == names[j], 1, -1))
        model = AdaptiveCommittor(**settings).fit(X, y, sample_weight, groups)
        committors[int(names[i]), int(names[j])] = model
        rates[i, j], rates[j, i] = model.rate_, model.reverse_rate_
        intervals[i, j], intervals[j, i] = model.rate_interval_, model.reverse_rate_interval_
        fluxes[i, j] = fluxes[j, i] = model.flux_
    return RateMatrix(names, rates, intervals, fluxes, committors)


def _times_to(projection: Projection, member: np.ndarray, target: int, counts: np.ndarray) -> np.ndarray:
    """Return the mean time from each state to a target, one row for each row of `counts`."""
    system = _stopped_system(projection, member[target], np.zeros(len(projection.rows)), projection.time_step)
    sums = np.array([member[:, block] @ system.functions[block] for block in projection.blocks])
    sizes = np.array([member[:, block].sum(axis=1) for block in projection.blocks])
    totals, numbers = np.tensordot(counts, sums, axes=1), counts @ sizes
    times = np.array([total @ system.solve(row) for total, row in zip(totals, counts, strict=True)])
    with np.errstate(divide="ignore", invalid="ignore"):
        return times / numbers


@dataclass(frozen=True)
class _System:
    """Linear equations of every block."""

    functions: np.ndarray  # the constant and the functions of the model, 0 in the sets, (n_frames, q)
    gram: np.ndarray  # ⟨φφᵀ⟩, (n_blocks, q, q)
    change: np.ndarray  # ⟨φ(x)(φ(x) - φ(x_σ))ᵀ⟩, (n_blocks, q, q)
    gain: np.ndarray  # ⟨φ(x)(u(x_σ) + h·σ)⟩, (n_blocks, q)

    def solve(self, counts: np.ndarray) -> np.ndarray:
        """Return c, with block b counted `counts[b]` times; NaN if the sets cannot be reached."""
        gram, change, gain = (np.tensordot(counts, part, axes=1) for part in (self.gram, self.change, self.gain))
        values, vectors = np.linalg.eigh(gram)
        kept = values > RANK_TOLERANCE * values[-1]
        frame = vectors[:, kept] / np.sqrt(values[kept])
        try:
            return frame @ np.linalg.solve(frame.T @ change @ frame, frame.T @ gain)
        except np.linalg.LinAlgError:
            return np.full(len(gain), np.nan)


def _stopped_system(projection: Projection, boundary: np.ndarray, arrived: np.ndarray, per_frame: float) -> _System:
    """Sum over the pairs that begin outside of the sets (`boundary`), in which u is `arrived`; h is `per_frame`."""
    n = len(boundary)
    outside = ~boundary
    functions = np.column_stack([np.ones(n), projection.values]) * outside[:, None]
    # For each frame, the next frame in a set, the frame itself included; n if there is none.
    entered = np.minimum.accumulate(np.where(boundary, np.arange(n), n)[::-1])[::-1]
    sums = []
    for block in projection.blocks:
        starts, ends = (np.arange(n)[rows] for rows in projection.pairs(projection.lag, block))
        begin = outside[starts]
        starts, ends = starts[begin], np.minimum(ends[begin], entered[starts[begin]])
        here = functions[starts]
        gain = np.where(boundary[ends], arrived[ends], 0.0) + per_frame * (ends - starts)
        sums.append((here.T @ here, here.T @ (here - functions[ends]), here.T @ gain))
    gram, change, gain = (np.array(part) for part in zip(*sums, strict=True))
    return _System(functions, gram, change, gain)


def _labels(states: Any, lengths: list[int] | None, n_frames: int | None = None) -> np.ndarray:
    """Return the state of each frame, -1 outside the cores of coarse states."""
    labels = states.cores if isinstance(states, CoarseStates) else np.asarray(join_rows("states", states, lengths))
    if labels.shape != (n_frames or labels.size,) or labels.dtype.kind not in "iu":
        number = "" if n_frames is None else f"the {n_frames} "
        raise ValueError(
            f"states must contain an integer label for each of {number}frames, got {labels.dtype} of shape "
            f"{labels.shape}."
        )
    return labels


def _names(labels: np.ndarray) -> np.ndarray:
    """Return the labels of the states."""
    names = np.unique(labels[labels >= 0])
    if len(names) < 2:
        raise Undetermined("states must contain at least two states (labels 0, 1, …), got {count}.", count=len(names))
    return names


def _mask(name: str, given: Any, n_frames: int, labels: np.ndarray | None) -> np.ndarray:
    """Return a mask of the frames in a set."""
    array = np.asarray(given)
    if labels is not None:
        if array.dtype.kind not in "iu":
            raise ValueError(f"{name} must be one or several labels of states, got {given!r}.")
        mask = np.isin(labels, array)
    elif array.shape != (n_frames,) or array.dtype != bool:
        raise ValueError(
            f"{name} must be True or False for each of the {n_frames} frames, or a label with states=..., got "
            f"{array.dtype} of shape {array.shape}."
        )
    else:
        mask = array
    if not mask.any():
        raise ValueError(f"{name} contains no frame; use a larger set.")
    return mask
