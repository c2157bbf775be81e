"""Tests of a lag: the Chapman–Kolmogorov test, and this test together with implied time scales."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.checks import Check, Checks, muted, rules, warn_of
from kdmaps.data.inputs import as_source, join_trajectories
from kdmaps.data.pairs import time_step_check
from kdmaps.data.sources import ArraySource
from kdmaps.diagnostics.projection import Projection
from kdmaps.diagnostics.resampling import MIN_BLOCKS, Resampling, basic_intervals, joint_intervals
from kdmaps.dynamics._states import CoarseStates, coarse_states
from kdmaps.dynamics._timescales import check_reversible, is_directed, project_model
from kdmaps.estimators.arguments import model_and_samples
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.exceptions import Undetermined
from kdmaps.forms.moments import Moments
from kdmaps.selection.lag import STEEP, ImpliedTimescales, checked_lags, default_lags, scan_lags, some_frames
from kdmaps.spectrum.directed import propagator
from kdmaps.summary import count_frames
from kdmaps.utils.frames import records, with_ends
from kdmaps.utils.notebook import TableCard, card, warning_lines
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import check_positive_integer, checked_weight

#: Differences of autocorrelations or probabilities below the first are negligible, even if they are significant;
#: differences beyond the second must be excluded before a test is passed.
SMALL, LARGE = rules.CHAPMAN_KOLMOGOROV.limit, rules.CHAPMAN_KOLMOGOROV.decided
#: Maximum number of frames used by `validate`; more would hardly change the result.
MOST_FRAMES = 100_000
#: Multiples of the lag that `validate` predicts, where trajectories are long enough.
STEPS = 5


@dataclass(frozen=True)
class ChapmanKolmogorov(TableCard):
    """Predictions of one lag for several, compared with estimates.

    Estimate and prediction are compared by their mean difference over all steps after the first, with a bootstrap
    interval, for each mode or pair of states. The test *fails* if an interval excludes differences of up to 0.02, is
    *passed* if all intervals exclude differences of 0.1 or more, from at least ten blocks, and is *inconclusive*
    otherwise: the trajectories are too short.
    """

    steps: np.ndarray  #: (n_steps,): 1, 2, …, multiples of the lag.
    times: np.ndarray  #: (n_steps,): the same in the unit of `time_step`.
    #: (n_steps, r): autocorrelations of the modes, or (n_steps, m, m): probabilities P_ij of states j after states i.
    predicted: np.ndarray
    estimated: np.ndarray  #: The same, estimated for each step.
    predicted_intervals: np.ndarray  #: Confidence intervals, on a last axis.
    estimated_intervals: np.ndarray  #: Confidence intervals, on a last axis.
    #: (estimated - predicted) in standard errors of this difference; 0 for the first step, which defines the
    #: prediction.
    deviations: np.ndarray
    differences: np.ndarray  #: (r,) or (m, m): mean of estimated - predicted over the steps after the first.
    #: Confidence intervals of `differences`, on a last axis; those of all modes or pairs of states hold jointly.
    difference_intervals: np.ndarray
    confidence: float  #: Confidence level of the intervals.
    n_blocks: int  #: Number of blocks that were resampled.
    states: CoarseStates | None = None  #: Of a test of states, in the order of rows of X.

    @property
    def failed(self) -> np.ndarray:
        """True where the interval of the difference excludes -0.02 to 0.02; (r,) or (m, m)."""
        low, high = np.moveaxis(self.difference_intervals, -1, 0)
        return (low > SMALL) | (high < -SMALL)

    @property
    def passed(self) -> bool | None:
        """True if all intervals are between -0.1 and 0.1, False if the test failed, None if errors are too large."""
        if self.failed.any():
            return False
        inside = np.all(np.abs(self.difference_intervals) < LARGE) and self.n_blocks >= MIN_BLOCKS
        return True if inside else None

    @property
    def check(self) -> Check:
        """The check of the mean differences; too few blocks decide nothing, unless the test failed."""
        low, high = np.moveaxis(self.difference_intervals, -1, 0).reshape(2, -1)
        if self.passed is None and self.n_blocks < MIN_BLOCKS:
            low, high = np.full_like(low, -np.inf), np.full_like(high, np.inf)
        words = {"steps": len(self.steps), "result": self.outcome}
        return Check(rules.CHAPMAN_KOLMOGOROV, self.differences.ravel(), interval=(low, high), words=words)

    @property
    def checks(self) -> Checks:
        """The check of the mean differences."""
        return Checks([self.check])

    @property
    def outcome(self) -> str:
        """The result of the test in words, with the difference that decides it."""
        low, high = np.moveaxis(self.difference_intervals, -1, 0)
        reach = np.maximum(low, -high) if self.passed is False else np.maximum(high, -low)
        at = tuple(int(i) for i in np.unravel_index(np.argmax(reach), reach.shape))
        word = {True: "passed", False: "failed", None: "inconclusive"}[self.passed]
        limit = f"limit {SMALL if self.passed is False else LARGE:g}"
        return (
            f"{word}: estimate and prediction of {self._name(at)} differ by {self.differences[at]:+.2g} "
            f"({low[at]:+.2g} to {high[at]:+.2g}, {limit})"
        )

    def _name(self, place: tuple[int, ...]) -> str:
        if self.states is None:
            return f"mode {place[0] + 1}"
        return f"state {place[0] + 1} to {place[1] + 1} (labels {place[0]} and {place[1]})"

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data per mode (or pair of states) and step, for example for `pandas.DataFrame`."""
        places = np.indices(self.predicted.shape[1:])[..., None]
        columns = {"mode": places[0] + 1} if self.states is None else {"from": places[0], "to": places[1]}
        numbers = {"predicted": self.predicted, **with_ends("estimated", self.estimated, self.estimated_intervals)}
        of_steps = {name: np.moveaxis(values, 0, -1) for name, values in numbers.items()}
        return records(**columns, step=self.steps, time=self.times, **of_steps)

    def __repr__(self) -> str:
        what = "modes" if self.states is None else "states"
        lines = [f"Chapman–Kolmogorov test of {self.predicted.shape[1]} {what}, steps of {self.times[0]:.4g} in time"]
        for place in np.ndindex(self.predicted.shape[1:]):
            pairs = zip(self.predicted[(..., *place)], self.estimated[(..., *place)], strict=True)
            shown = ", ".join(f"{one:.3f}/{other:.3f}" for one, other in pairs)
            lines.append(f"  {self._name(place)}: predicted/estimated {shown}")
        lines.append(f"  {self.outcome}")
        return "\n".join(lines)


@one_blas_thread()
def chapman_kolmogorov(
    model: ModeTransformer,
    X: SamplesLike,
    *,
    steps: int = 5,
    n_states: int | None = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 100,
    confidence: float = 0.95,
    random_state: RandomStateLike = None,
) -> ChapmanKolmogorov:
    """Test whether one lag predicts several: ν_k(sτ) = ν_k(τ)^s, or P(sτ) = P(τ)^s (`ChapmanKolmogorov`).

    Parameters
    ----------
    model : fitted estimator, with a lag
    X : array-like of shape (n_frames, d), list of such arrays, path of a file
        Frames at equal time steps, e.g. the training data.
    steps : int, default=5
        Largest multiple s of the model's lag τ.
    n_states : int, optional
        Test coarse states (`coarse_states` of the modes) instead of single modes.
    groups, sample_weight : array-like of shape (n_frames,), optional
        Trajectory of each frame, and its weight; pairs stay in one trajectory and have the weight of their first frame.
    n_resamples, confidence : int, default=100, and float, default=0.95
        Number of resamples of the block bootstrap, and confidence level of the intervals.
    random_state : int, RandomState instance or None, default=None

    Notes
    -----
    Predictions come from the same frames as the estimates, at the first step. For memberships χ of states,
    P(τ) = ⟨χχᵀ⟩⁻¹⟨χ(x_t)χ(x_{t+τ})ᵀ⟩, symmetrised over the direction of time: the propagator in the space that they
    span. Its rows have sum 1; noise may make small entries negative.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(5000, dt=0.1, random_state=0)[0]
    >>> m = kdmaps.KernelDiffusionMap(1, lag=2, time_step=0.1, regularization=1e-4, random_state=0).fit(path)
    >>> test = kdmaps.dynamics.chapman_kolmogorov(m, path, steps=4, random_state=0)
    >>> bool(abs(test.estimated - test.predicted).max() < 0.05)
    True
    """
    check_positive_integer("steps", steps)
    resampling = Resampling(n_resamples, confidence, random_state)
    if n_states is not None:
        check_reversible(model)
    modes = project_model(model, X, groups, sample_weight, n_functions=1)
    if steps * modes.lag >= modes.longest:
        raise ValueError(
            f"steps={steps} of lag {modes.lag} need more than {steps * modes.lag} frames, but the longest trajectory "
            f"has {modes.longest}; use fewer steps or longer trajectories."
        )
    if n_states is None:
        return _test_predictions(modes, steps, resampling)
    states = coarse_states(modes.in_order_of_rows(modes.values), n_states, sample_weight=sample_weight)
    return _test_predictions(modes.with_values(states.memberships[modes.rows]), steps, resampling, states)


def _test_predictions(
    projection: Projection, steps: int, resampling: Resampling, states: CoarseStates | None = None
) -> ChapmanKolmogorov:
    """Compare powers of the first propagator with the propagators of longer lags."""
    number, n_blocks = np.arange(1, steps + 1), len(projection.blocks)
    directed = states is None and projection.directed
    matrix = propagator if directed else _autocorrelations if states is None else _transition_matrix
    sums = [projection.moments(int(lag)) for lag in number * projection.lag]

    def compared(counts: np.ndarray) -> np.ndarray:
        """Return predictions and estimates of all steps."""
        found = np.array([matrix(moments.combine(counts)) for moments in sums])
        power = np.linalg.matrix_power if found.ndim == 3 else np.power
        both = np.array([[power(found[0], int(s)) for s in number], found])
        return np.diagonal(both, axis1=-2, axis2=-1) if directed else both

    predicted, estimated = compared(np.ones(n_blocks))
    resampled = np.array([compared(counts) for counts in resampling.counts(n_blocks)])
    predictions, samples = resampled[:, 0], resampled[:, 1]
    spread = (samples - predictions).std(axis=0, ddof=1)
    spread[0] = np.inf  # the first step defines the prediction
    mean, means = (estimated - predicted)[1:].mean(axis=0), (samples - predictions)[:, 1:].mean(axis=1)
    ends = joint_intervals(mean.ravel(), means.reshape(len(means), -1), resampling.confidence, n_blocks)
    return ChapmanKolmogorov(
        steps=number,
        times=number * projection.lag * projection.time_step,
        predicted=predicted,
        estimated=estimated,
        predicted_intervals=basic_intervals(predicted, predictions, resampling.confidence, n_blocks),
        estimated_intervals=basic_intervals(estimated, samples, resampling.confidence, n_blocks),
        deviations=(estimated - predicted) / np.maximum(spread, np.finfo(float).tiny),
        differences=mean,
        difference_intervals=ends.reshape(*mean.shape, 2),
        confidence=float(resampling.confidence),
        n_blocks=n_blocks,
        states=states,
    )


def _autocorrelations(moments: Moments) -> np.ndarray:
    """Return the autocorrelation 1 - L_kk/C_kk of every mode."""
    with np.errstate(invalid="ignore"):  # of constant frames
        return 1 - np.diagonal(moments.mean_energy()) / np.diagonal(moments.covariance())


def _transition_matrix(moments: Moments) -> np.ndarray:
    """Return 1 - C⁻¹L, with C not centred, because the memberships span the constant."""
    energy = moments.mean_energy()
    return np.eye(len(energy)) - np.linalg.solve(moments.covariance(center=False), energy)


@dataclass(frozen=True)
class Validation:
    """Tests of a model's lag."""

    lag: int  #: Lag of the model, in frames.
    implied: ImpliedTimescales  #: Time scales over lags, including the lag of the model.
    chapman: ChapmanKolmogorov | None  #: None if no trajectory has frames two lags apart.
    same_step: Check | None = None  #: Whether frames have the time step of the fit; None without times.

    @property
    def flat(self) -> bool | None:
        """True if the time scales are flat from the lag of the model on, False if not, None if errors are too large."""
        own = self.implied.flat_from(self.lag)
        shorter = self.implied.lags[self.implied.lags < self.lag]
        return True if own is None and True in map(self.implied.flat_from, shorter) else own

    @property
    def predicts(self) -> bool | None:
        """True if the Chapman–Kolmogorov test is passed, False if it failed, None if it is inconclusive or not made."""
        return None if self.chapman is None else self.chapman.passed

    @property
    def doubtful(self) -> np.ndarray:
        """True for modes that fail the Chapman–Kolmogorov test; (r,)."""
        r = self.implied.timescales.shape[1]
        return np.zeros(r, dtype=bool) if self.chapman is None else self.chapman.failed

    @property
    def flat_words(self) -> str:
        """A sentence about the lag from which the implied time scales are flat."""
        flat = self.implied.plateau
        if flat is None or self.flat is None:
            return self._check_flat().say()
        lag, first = count_frames(self.lag), count_frames(flat)
        text = f"Implied time scales of the fitted model are flat within their errors from a lag of {first} on."
        if self.flat:
            return text + ("" if flat == self.lag else f" The lag of {lag} is long enough.")
        return f"{text} They differ at the lag of {lag}; compare with a fit at {first}."

    @property
    def checks(self) -> Checks:
        """The tests with their limits."""
        # A plateau that begins after the lag is not a failure: one lag in twenty misses an interval by chance, and the
        # difference is usually small.
        later = self.implied.plateau is not None and self.flat is False
        tests = [None if later else self._check_flat(), self.same_step]
        tests.append(None if self.chapman is None else self.chapman.check)
        return Checks(test for test in tests if test is not None)

    def _check_flat(self) -> Check:
        words = {
            "longest": count_frames(int(self.implied.lags[-1])),
            "own": count_frames(self.lag),
            "blocks": self.implied.n_blocks,
            "steep": STEEP,
        }
        plateau = self.implied.plateau or self.lag
        value = {True: plateau, False: np.inf, None: np.nan}[self.flat]
        return Check(rules.NOT_FLAT, value, self.lag, words=words)

    def __repr__(self) -> str:
        words = {True: "are flat", False: "are not flat", None: "may or may not be flat"}[self.flat]
        flat = f"implied time scales {words} within their errors from this lag on"
        predicts = "not made" if self.chapman is None else self.chapman.outcome.partition(":")[0]
        first = f"Tests of a lag of {count_frames(self.lag)}: {flat}; Chapman–Kolmogorov test {predicts}"
        return "\n".join([first, repr(self.implied), *([] if self.chapman is None else [repr(self.chapman)])])

    def _repr_html_(self) -> str:
        parts = [self.implied._repr_html_(), *([] if self.chapman is None else [self.chapman._repr_html_()])]
        return card(repr(self).partition("\n")[0], *self.checks.cells(), warning_lines(self.checks), *parts)


@one_blas_thread()
def validate(
    model: ModeTransformer,
    X: SamplesLike,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 100,
    confidence: float = 0.95,
    random_state: RandomStateLike = 0,
) -> Validation:
    """Test the lag of a model by `implied_timescales` and `chapman_kolmogorov`, with lags that suit the trajectory.

    Parameters
    ----------
    model : fitted estimator, with a lag
    X : array-like of shape (n_frames, d), list of such arrays, path of a file
        Frames at equal time steps, e.g. the training data. Of more than 100,000 frames, pieces are used.
    groups, sample_weight : array-like of shape (n_frames,), optional
        Trajectory of each frame, and its weight; pairs stay in one trajectory and have the weight of their first frame.
    n_resamples, confidence : int, default=100, and float, default=0.95
        Number of resamples of the block bootstrap, and confidence level of the intervals.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    Validation
        `flat`: from the model's lag on, time scales do not depend on it (`ImpliedTimescales.flat_from`). `predicts`:
        one lag predicts several (`ChapmanKolmogorov`). Both are True, False, or None if the errors are too large.

    Warns
    -----
    UnreliableModesWarning
        If a test fails, or if the trajectories are too short for a test of the lag.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(5000, dt=0.1, random_state=0)[0]
    >>> m = kdmaps.KernelDiffusionMap(1, lag=2, time_step=0.1, regularization=1e-4, random_state=0).fit(path)
    >>> tests = kdmaps.dynamics.validate(m, path)
    >>> tests.flat, tests.predicts
    (True, True)
    """
    model, X = model_and_samples(model, X, ModeTransformer)
    resampling = Resampling(n_resamples, confidence, random_state)
    X, groups, _ = join_trajectories(X, groups, sample_weight)
    source = as_source(X)
    same_step = time_step_check(source, groups, float(model.modes_.clock.time_step))
    X, groups, weight = some_frames(source, groups, checked_weight(sample_weight, source), MOST_FRAMES)
    frames = ArraySource(X)  # without column names, which pieces of X do not have
    # The fit has already warned of the trajectory; a resample may contain no pair.
    with muted(), np.errstate(invalid="ignore"):
        for n_functions in (1,) if is_directed(model) else (None, 1):  # modes alone if frames do not determine more
            projection = project_model(model, frames, groups, weight, n_functions)
            lags = default_lags(projection)
            if projection.lag < projection.longest:
                lags = np.union1d(lags, projection.lag)
            with suppress(np.linalg.LinAlgError):
                implied = scan_lags(projection, checked_lags(lags, projection.longest), resampling)
                break
        else:
            raise Undetermined("X is too short for tests of the lag; use longer trajectories or a shorter lag.")
        steps, chapman = min(STEPS, (projection.longest - 1) // projection.lag), None
        if steps > 1:
            modes = project_model(model, frames, groups, weight, n_functions=1)
            chapman = _test_predictions(modes, steps, resampling)
    tests = Validation(projection.lag, implied, chapman, same_step)
    warn_of(tests.checks)
    return tests
