"""Implied time scales over lags, and the choice of a lag for a trajectory."""

from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from kdmaps.bases import BasisSpec
from kdmaps.checks import Check, Checks, muted, rules, warn
from kdmaps.data.correlation import integrated_correlation_time, trajectories_of
from kdmaps.data.distances import resolve_bandwidth
from kdmaps.data.inputs import as_source, join_trajectories
from kdmaps.data.pairs import check_steps
from kdmaps.data.sources import PREVIEW_SAMPLES, ArraySource, Source
from kdmaps.diagnostics.projection import Projection, project
from kdmaps.diagnostics.resampling import MIN_BLOCKS, Resampling, joint_intervals, optimistic_intervals
from kdmaps.kernels import make_kernel
from kdmaps.selection.plan import FitSpec
from kdmaps.spectrum.directed import propagator
from kdmaps.spectrum.modes import Clock
from kdmaps.spectrum.pencil import find_modes
from kdmaps.utils.frames import records
from kdmaps.utils.notebook import TableCard
from kdmaps.utils.numbers import rounded
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import checked_weight, seed_of

#: A lag is compared with lags that are at least this many times as long.
LONGER = 2
#: Relative differences of time scales below the first are negligible; differences beyond the second must be excluded
#: before time scales count as flat.
FLAT, STEEP = 0.05, 1 / 3
#: Number of frames used to choose a lag, and length of the pieces taken from longer trajectories.
MOST_FRAMES, PIECE = 20_000, 5_000
#: Settings of the quick model. Little regularization leaves the functions after its modes in the scan.
QUICK_BASIS, QUICK_REGULARIZATION = BasisSpec(n_features=200), 1e-4
#: Number of lags tried, up to this many integrated correlation times (each about two time scales) and up to the length
#: of the longest trajectory divided by PARTS.
N_LAGS, LONGEST, PARTS = 15, 2, 10


@dataclass(frozen=True)
class ImpliedTimescales(TableCard):
    """Time scales for several lags."""

    lags: np.ndarray  #: (n_lags,): integers, in frames.
    times: np.ndarray  #: (n_lags,): the lags in the unit of `time_step`.
    timescales: np.ndarray  #: (n_lags, r): longest first; 0 where no correlation is left after the lag.
    intervals: np.ndarray  #: (n_lags, r, 2): confidence intervals.
    time_step: float  #: Time between frames.
    confidence: float  #: Confidence level of the intervals.
    #: (n_resamples, n_lags, r): time scales of the resamples; a resample uses the same blocks for all lags.
    samples: np.ndarray
    n_blocks: int  #: Number of blocks that were resampled.

    @property
    def resolved(self) -> np.ndarray:
        """True for time scales longer than the lag, shape (n_lags, r); shorter ones cannot be resolved."""
        return self.timescales > self.times[:, None]

    @property
    def plateau(self) -> int | None:
        """The smallest lag from which time scales do not change, if they are flat from there (`flat_from`); or None."""
        return self._first_unchanged(True)

    @property
    def undecided(self) -> int | None:
        """The smallest lag from which time scales do not change, if it is unknown whether they are flat; or None."""
        return self._first_unchanged(None)

    def _first_unchanged(self, verdict: bool | None) -> int | None:
        compared = (i for i in range(len(self.lags)) if self._longer(i)[:, 0].any())
        unchanged = ((int(self.lags[i]), flat) for i in compared if (flat := self._flat_from(i)) is not False)
        lag, found = next(unchanged, (None, False))
        return lag if found is verdict else None

    def flat_from(self, lag: int) -> bool | None:
        """Compare the time scales of a lag with those of longer lags.

        The mean of log t over all lags that are at least twice as long, minus log t at the lag, is computed for each
        time scale longer than the lag, with a bootstrap interval. Both parts come from the same blocks, which makes
        this interval much narrower than the intervals of the time scales. The intervals of all modes hold jointly.

        Parameters
        ----------
        lag : int
            One of `lags`.

        Returns
        -------
        bool or None
            False if an interval excludes changes of up to 5 %: time scales depend on the lag. True if none does and
            the interval of the longest time scale excludes changes of more than a third, from at least ten blocks. None
            otherwise: the trajectories are too short to tell.
        """
        return self._flat_from(int(np.flatnonzero(self.lags == lag)[0]))

    def _longer(self, i: int) -> np.ndarray:
        """Return a mask of the lags and modes with which a lag is compared."""
        return (self.lags >= LONGER * self.lags[i])[:, None] & self.resolved & self.resolved[i]

    def _flat_from(self, i: int) -> bool | None:
        longer = self._longer(i)
        if not longer[:, 0].any():
            return None
        modes = np.flatnonzero(longer.any(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            logs, samples = np.log(self.timescales), np.log(self.samples)
            change = np.array([np.mean(logs[longer[:, k], k] - logs[i, k]) for k in modes])
            changes = np.stack([(samples[:, longer[:, k], k].T - samples[:, i, k]).mean(axis=0) for k in modes], axis=1)
        low, high = joint_intervals(change, changes, self.confidence, self.n_blocks).T
        if ((low > FLAT) | (high < -FLAT)).any():
            return False
        return True if self.n_blocks >= MIN_BLOCKS and low[0] > -STEEP and high[0] < STEEP else None

    @property
    def longest_resolved(self) -> int:
        """The longest lag below the slowest time scale, which `choose_lag` returns if none is flat."""
        slow = self.resolved[:, 0]
        return int(self.lags[slow][-1] if slow[0] else self.lags[0])

    @property
    def check(self) -> Check:
        """The check of `choose_lag`: whether time scales are flat from some lag on."""
        if not self.resolved[0, 0]:
            longest_in_lags = self.timescales[0, 0] / self.times[0]
            return Check(rules.NO_MEMORY, float(longest_in_lags), words={"lag_frames": int(self.lags[0])})
        longest = int(self.lags[-1])
        if self.plateau is not None:
            return Check(rules.LAG_NOT_FLAT, self.plateau, longest)
        words = {"lag_frames": self.undecided or self.longest_resolved, "blocks": self.n_blocks}
        unknown = self.undecided is not None
        return Check(rules.LAG_NOT_FLAT, np.nan if unknown else np.inf, longest, words=words)

    @property
    def checks(self) -> Checks:
        """Whether time scales are flat from some lag on."""
        return Checks([self.check])

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data per lag and mode, for example for `pandas.DataFrame`."""
        return records(
            lag=self.lags[:, None],
            time=self.times[:, None],
            mode=np.arange(self.timescales.shape[1]) + 1,
            timescale=self.timescales,
            timescale_low=self.intervals[..., 0],
            timescale_high=self.intervals[..., 1],
        )

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of a table with one row for each lag."""
        r = self.timescales.shape[1]
        rows = [
            [str(lag), f"{time:.4g}", *(self._shown(i, k) for k in range(r))]
            for i, (lag, time) in enumerate(zip(self.lags, self.times, strict=True))
        ]
        return ["lag", "time", *(f"time scale {k + 1}" for k in range(r))], rows

    def __repr__(self) -> str:
        lines = [f"Implied time scales ({100 * self.confidence:g} % intervals), longest first; –: shorter than the lag"]
        for i, (lag, time) in enumerate(zip(self.lags, self.times, strict=True)):
            shown = (self._shown(i, k) for k in range(self.timescales.shape[1]))
            lines.append(f"  lag {lag} (time {time:.4g}): {', '.join(shown)}")
        lines.append(f"  {self.outcome}")
        return "\n".join(lines)

    @property
    def outcome(self) -> str:
        """From which lag time scales are flat, in words."""
        if self.plateau is not None:
            return f"flat within the errors from lag {self.plateau}"
        return "not flat within the errors" if self.undecided is None else "too short to tell whether they are flat"

    def _shown(self, i: int, k: int) -> str:
        if not self.resolved[i, k]:
            return "–"
        low, high = self.intervals[i, k]
        return f"{rounded(self.timescales[i, k])} ({rounded(low)} – {rounded(high)})"


class LagChoice(NamedTuple):
    """A lag in frames, and the implied time scales from which it was chosen."""

    lag: int
    timescales: ImpliedTimescales


@one_blas_thread()
def choose_lag(
    X: SamplesLike,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_components: int = 2,
    time_step: float | None = None,
    lags: ArrayLike | None = None,
    n_resamples: int = 50,
    confidence: float = 0.95,
    random_state: RandomStateLike = 0,
) -> LagChoice:
    """Find the smallest lag from which implied time scales are flat within their errors.

    Scores of different lags cannot be compared, because every score falls as the lag grows. Instead, a quick model
    (median bandwidth, little regularization, at most 20,000 frames) is fitted once with a lag of one frame, and the lag
    is read from its implied time scales.

    Parameters
    ----------
    X : array-like of shape (n_frames, d), list of such arrays, path, stream of chunks
        Frames at equal time steps. Pieces of long trajectories are used, and the beginning of a stream.
    groups : array-like of shape (n_frames,), optional
        Trajectory of each frame.
    sample_weight : array-like of shape (n_frames,), optional
        The weight of a pair is the weight of its first frame.
    n_components : int, default=2
        Number of time scales that must be flat if they are longer than the lag.
    time_step : float, optional
        Time between frames; by default as in X if it contains times, otherwise 1.
    lags : sequence of int, optional
        Lags to choose from, in frames. By default about fifteen, up to two integrated correlation times of the modes
        and up to a tenth of the longest trajectory.
    n_resamples : int, default=50
        Number of resamples of the block bootstrap.
    confidence : float, default=0.95
        Confidence level of the intervals.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    LagChoice
        (lag, timescales).

    Warns
    -----
    UnreliableModesWarning
        If no lag is known to be flat. The smallest lag without a significant change is returned, or else the longest
        lag that is shorter than the slowest time scale.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(5000, dt=0.1, random_state=0)[0]
    >>> lag, found = kdmaps.dynamics.choose_lag(path)
    >>> lag == found.plateau
    True
    """
    resampling = Resampling(n_resamples, confidence, random_state)
    X, groups, _ = join_trajectories(X, groups, sample_weight)
    source = as_source(X)
    step = check_steps(source, groups)
    frames, groups, weight = some_frames(source, groups, checked_weight(sample_weight, source))
    spec = FitSpec(n_components, lag=1, time_step=step if time_step is None else time_step)
    with muted():
        projection = _quick_projection(frames, groups, weight, spec, random_state)
        tried = default_lags(projection) if lags is None else lags
        found = scan_lags(projection, checked_lags(tried, projection.longest), resampling)
        flat = found.plateau
    warn(found.check)
    return LagChoice(flat or found.undecided or found.longest_resolved, found)


def _quick_projection(
    frames: np.ndarray, groups: Any, weight: np.ndarray | None, spec: FitSpec, random_state: RandomStateLike
) -> Projection:
    """Fit the quick model to pairs of frames, and evaluate its leading functions at all frames."""
    spec.check()
    QUICK_BASIS.check(spec.n_components)
    source = as_source(np.asarray(frames))
    pairs, pair_weight, _ = spec.observations(source, checked_weight(weight, source), groups)
    seed = seed_of(random_state)
    preview = pairs.sample(PREVIEW_SAMPLES, np.random.RandomState(seed), pair_weight)
    X, sample_weight = preview.counted(spec.n_components)
    kernel = make_kernel("gaussian", resolve_bandwidth("median", X, sample_weight, seed))
    basis = QUICK_BASIS.make(kernel, X, sample_weight, seed)
    (moments,) = pairs.moments(spec.form(pairs, pair_weight), basis, pair_weight, **spec.summing)
    modes = find_modes(moments, basis.ridge, spec.n_components, QUICK_REGULARIZATION, clock=spec.clock).by_timescale()
    return project(basis, moments, modes, QUICK_REGULARIZATION, source, groups, weight)


def scan_lags(projection: Projection, lags: np.ndarray, resampling: Resampling) -> ImpliedTimescales:
    """Return the time scales of functions along trajectories for several lags."""
    n_blocks, step = len(projection.blocks), projection.time_step
    counts = resampling.counts(n_blocks)
    try:
        found = [_rates_of_lag(projection, Clock(int(lag), step), counts) for lag in lags]
    except np.linalg.LinAlgError as error:
        n = projection.values.shape[1]
        raise np.linalg.LinAlgError(
            f"X does not determine {n} function(s) after each lag; use longer trajectories or shorter lags."
        ) from error
    rates, samples = (np.array(part) for part in zip(*found, strict=True))
    samples = np.moveaxis(samples, 1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = optimistic_intervals(-np.log(rates), -np.log(samples), resampling.confidence, n_blocks)
    return ImpliedTimescales(
        lags, lags * step, 1 / rates, np.exp(logs), step, float(resampling.confidence), 1 / samples, n_blocks
    )


def _rates_of_lag(projection: Projection, clock: Clock, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest rates of all blocks, and of each resample."""
    assert clock.lag is not None
    moments = projection.moments(clock.lag)

    def slowest(row: np.ndarray) -> np.ndarray:
        sums, options = moments.combine(row), {"eigvals_only": True, "check_finite": False, "overwrite_a": True}
        if projection.directed:
            quotients = np.sort(1 - np.abs(np.linalg.eigvals(propagator(sums))))
        else:
            quotients = linalg.eigh(sums.mean_energy(), sums.covariance(), **options)
        return clock.rates(np.maximum(quotients[: projection.n_modes], np.finfo(float).tiny))

    return slowest(np.ones(counts.shape[1])), np.array([slowest(row) for row in counts])


def checked_lags(lags: Any, longest: int) -> np.ndarray:
    """Return lags as ascending positive integers, shorter than the longest trajectory."""
    array = np.atleast_1d(np.asarray(lags))
    if not np.issubdtype(array.dtype, np.integer) or array.ndim != 1 or not array.size or np.any(np.diff(array) <= 0):
        raise ValueError(f"lags must be ascending integers, in frames, got {lags!r}.")
    if array[0] < 1:
        raise ValueError(f"lags must be at least 1 frame, got {array[0]}.")
    if array[-1] >= longest:
        raise ValueError(
            f"lags go up to {array[-1]} frames, but the longest trajectory has {longest}; use shorter lags or longer "
            "trajectories."
        )
    return array


def default_lags(projection: Projection) -> np.ndarray:
    """Return about fifteen lags, up to the relaxation of the modes or a tenth of the longest trajectory."""
    # Correlation times, because the time scales of the first lag may be much too short.
    modes, longest = projection.values[:, : projection.n_modes], projection.longest
    slowest = max(integrated_correlation_time(series, projection.trajectories) for series in modes.T)
    most = max(min(max(LONGEST * slowest, N_LAGS), max(longest // PARTS, 2), longest - 1), 1)
    return np.unique(np.geomspace(1, most, N_LAGS).round().astype(int))


def some_frames(
    source: Source, groups: Any, weight: np.ndarray | None, most: int = MOST_FRAMES
) -> tuple[np.ndarray, Any, np.ndarray | None]:
    """Return at most about `most` frames, in pieces of trajectories, with their groups and weights."""
    if not isinstance(source, ArraySource):
        held, count = [], 0
        for part in source.parts(most):
            held.append(source.read(part)[1])
            count += len(held[-1])
            if count >= most:
                break
        X = np.concatenate(held)[:most]
        groups, weight = (None if given is None else np.asarray(given)[: len(X)] for given in (groups, weight))
        return X, groups, weight
    n = len(source.array)
    trajectories = trajectories_of(groups, n)
    if n <= most:
        return source.read(slice(0, n))[1], groups, weight
    pieces = [piece for rows in trajectories for piece in np.array_split(rows, max(1, len(rows) // PIECE))]
    chosen = pieces[:: ceil(n / most)]
    rows = np.concatenate(chosen)
    labels = np.repeat(np.arange(len(chosen)), [len(piece) for piece in chosen])
    return source.read(rows)[1], labels, None if weight is None else weight[rows]
