"""Forecasts E[h(x_{t+kτ}) | x_t] of observables by regression on pairs of frames, tested on held-out blocks."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from kdmaps.bases import Basis
from kdmaps.checks import Checks, muted
from kdmaps.data.correlation import trajectories_of
from kdmaps.data.pairs import make_pairs, paired_rows
from kdmaps.data.sources import ArraySource
from kdmaps.forms.lagged import LaggedForm
from kdmaps.forms.moments import Moments
from kdmaps.selection.folds import FOLDS, make_folds, make_splits
from kdmaps.selection.plan import FitSpec
from kdmaps.selection.scores import jackknife_error
from kdmaps.spectrum.directed import TwoSided, find_directed_modes, two_sided
from kdmaps.spectrum.modes import Clock
from kdmaps.utils.frames import aligned
from kdmaps.utils.notebook import TableCard
from kdmaps.utils.validation import as_numbers

#: Regularizations that are tried with all features, relative to the λ of the model, which was chosen for its modes.
FACTORS = (1e2, 1.0, 1e-2, 1e-4, 1e-6, 1e-8)
#: With fewer pairs of frames, blocks test nothing: the modes are used, without errors.
MIN_PAIRS = 60
#: Held-out frames per block from which forecasts are made, for errors to a few per cent.
TESTED = 2_000


@dataclass(frozen=True, eq=False)
class Forecast(TableCard):
    """Expectations of observables at later times, given the present state.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").trajectory(4000, 0.1, random_state=0)
    >>> m = kdmaps.KernelDiffusionMap(1, lag=1, time_step=0.1, n_features=30, random_state=0).fit(path)
    >>> later = kdmaps.dynamics.forecast(m, path, path[:, 0], [0.1, 0.5])
    >>> bool(later.skill[0] > later.skill[1] > 0)
    True
    """

    times: np.ndarray  #: (n_times,).
    values: np.ndarray  #: (n_times, n_points) or (n_times, n_points, m): E[h(x_{t+time}) | x_t].
    errors: np.ndarray  #: Standard errors of `values`, by a jackknife over blocks of frames.
    #: (n_times, m): root mean square error of forecasts of held-out frames, noise included; NaN if it was not tested.
    rmse: np.ndarray
    spread: np.ndarray  #: (m,): standard deviations of the observables, the error of a forecast by their means.
    methods: list[str]  #: For each time, "modes" or "all features": the better one on held-out blocks.
    #: Time from which forecasts of held-out frames are no better than the mean; infinite if no tested time reached it.
    horizon: float
    checks: Checks = field(default_factory=Checks, repr=False)  #: Checks of the frames and of the present states.

    @property
    def skill(self) -> np.ndarray:
        """1 - (held-out error/error of the mean)², averaged over observables that vary: 1 is perfect, 0 useless.

        NaN for times that were not tested, or if no observable varies.
        """
        varying = self.spread > 0
        if not varying.any():
            return np.full(len(self.times), np.nan)
        return 1 - np.mean((self.rmse[:, varying] / self.spread[varying]) ** 2, axis=1)

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of a table of times."""
        titles = ["time", "held-out error/spread", "skill", "method"]
        relative = np.sqrt(np.maximum(1 - self.skill, 0))
        numbers = zip(self.times, relative, self.skill, self.methods, strict=True)
        return titles, [[f"{t:.4g}", f"{e:.3g}", f"{s:.3f}", method] for t, e, s, method in numbers]

    @property
    def outcome(self) -> str:
        """Sentence about the horizon."""
        if np.isfinite(self.horizon):
            return f"From time {self.horizon:.4g} on, forecasts of held-out frames are no better than the mean."
        return "Forecasts of held-out frames are better than the mean at all tested times."

    def __repr__(self) -> str:
        titles, rows = self.cells()
        return "\n".join(["Forecast", *aligned([titles, *rows]), self.outcome])


class _WithColumns:
    """Features of the first columns of X, followed by the other columns themselves: the observables."""

    dtype: np.dtype[Any] = np.dtype(np.float64)

    def __init__(self, basis: Basis, n_columns: int):
        self.basis, self.chunk_rows = basis, basis.chunk_rows
        self.n_features, self.dim = basis.n_features + n_columns, basis.dim + n_columns

    def features(self, X: np.ndarray, n_rows: float | None = None) -> np.ndarray:
        d = self.basis.dim
        return np.hstack([self.basis.features(np.ascontiguousarray(X[:, :d]), n_rows), X[:, d:]])


class _Propagator(NamedTuple):
    """E[z(y) | x] = z(x)ᵀK and E[h(y) | x] = z(x)ᵀw for functions z = (1, Cᵀ(φ - mean)) of the features φ."""

    functions: np.ndarray | None  # C; None for all features
    mean: np.ndarray
    step: np.ndarray  # K
    readout: np.ndarray  # w

    def readouts(self, steps: np.ndarray) -> np.ndarray:
        """Return K^(k-1) w for ascending numbers k of steps; (n_steps, q, m)."""
        found, known, last = [], self.readout, 1
        for k in steps:
            known, last = np.linalg.matrix_power(self.step, k - last) @ known, k
            found.append(known)
        return np.array(found)

    def at(self, features: np.ndarray, readouts: np.ndarray) -> np.ndarray:
        """Return forecasts for features φ of n points; (n_steps, n, m)."""
        z = features - self.mean
        z = z if self.functions is None else z @ self.functions
        return readouts[:, :1] + z @ readouts[:, 1:]


def _propagator(sums: TwoSided, C: np.ndarray | None, K: np.ndarray, w: np.ndarray, p: int) -> _Propagator:
    """Add the constant to the functions: means of first and second frames differ a little."""
    shift = sums.second_mean - sums.first_mean
    drift = shift[:p] if C is None else shift[:p] @ C
    step = np.block([[np.ones((1, 1)), drift[None]], [np.zeros((len(K), 1)), K]])
    return _Propagator(C, sums.first_mean[:p], step, np.vstack([sums.second_mean[p:], w]))


class Fitted(NamedTuple):
    """The parts of a fitted model that forecasts need."""

    basis: Basis
    clock: Clock
    n_components: int
    regularization: float
    moments: Moments | None  # of pairs in their direction of time; None for a reversible model

    def propagators(self, moments: Moments, own: Moments | None = None) -> list[_Propagator | None]:
        """Return the propagators of the modes, and of all features for each λ; None where λ is too small.

        The observables are regressed with `moments`; the operator is that of `own` moments, if given.
        """
        p = self.basis.n_features
        features = moments.reduced(np.eye(len(moments.total))[:, :p])
        own, sums = features if own is None else own, two_sided(moments)
        steps, ridge = two_sided(own), self.basis.ridge
        A = find_directed_modes(own, ridge, self.n_components, self.regularization, self.clock)[0].coefficients
        K = np.linalg.solve(A.T @ steps.first @ A, A.T @ steps.cross @ A)
        w = np.linalg.solve(A.T @ sums.first[:p, :p] @ A, A.T @ sums.cross[:p, p:])
        found: list[_Propagator | None] = [_propagator(sums, A, K, w, p)]
        for factor in FACTORS:
            penalty = factor * self.regularization * (np.eye(p) if ridge is None else ridge)
            try:
                K = linalg.cho_solve(linalg.cho_factor(steps.first + penalty), steps.cross)
                w = linalg.cho_solve(linalg.cho_factor(sums.first[:p, :p] + penalty), sums.cross[:p, p:])
            except np.linalg.LinAlgError:
                found.append(None)
            else:
                found.append(_propagator(sums, None, K, w, p))
        return found


def checked_steps(times: Any, clock: Clock) -> np.ndarray:
    """Return the numbers of lags of one or several ascending times; raise unless these are multiples of the lag."""
    found = np.atleast_1d(as_numbers("time", times, "a number, or ascending numbers"))
    steps = np.round(found / clock.duration)
    if (
        found.ndim != 1
        or not found.size
        or not np.all(np.isfinite(found))
        or np.any(np.diff(steps) <= 0)
        or not np.all(steps >= 1)
    ):
        raise ValueError(f"time must be a positive number, or ascending positive numbers, got {times!r}.")
    wrong = np.abs(found - steps * clock.duration) > 1e-6 * clock.duration
    if wrong.any():
        near = f"{steps[wrong][0] * clock.duration:.6g}"
        raise ValueError(
            f"time={found[wrong][0]:g} is not a multiple of the lag, {clock.duration:g}, and nothing is "
            f"interpolated between lags. Use {near}, or fit with another lag."
        )
    return steps.astype(int)


class _Tests(NamedTuple):
    """Forecasts of held-out frames by every propagator, in units of the variance of each observable."""

    steps: np.ndarray  # ascending numbers of lags
    errors: np.ndarray  # (F, n_propagators, n_steps, m): mean squared errors in each block; infinite without propagator
    of_mean: np.ndarray  # (F, n_steps, m): the same of the mean
    folds: list[list[_Propagator | None]]  # of the training frames of each block

    def best(self) -> np.ndarray:
        """Return the propagator with the smallest error after each tested number of steps."""
        return self.errors.mean(axis=(0, 3)).argmin(axis=0)

    def chosen_errors(self) -> np.ndarray:
        """Return the errors of these propagators; (F, n_steps, m)."""
        return np.take_along_axis(self.errors, self.best()[None, None, :, None], axis=1)[:, 0]

    def horizon(self) -> float:
        """Return the first number of steps whose error is not smaller than the error of the mean by its own error."""
        errors, of_mean = (part.mean(axis=2) for part in (self.chosen_errors(), self.of_mean))
        with np.errstate(invalid="ignore", divide="ignore"):  # the mean has no error if the observables are constant
            left_out = 1 - (errors.sum(axis=0) - errors) / (of_mean.sum(axis=0) - of_mean)
            skill = 1 - errors.sum(axis=0) / of_mean.sum(axis=0)
            lost = np.flatnonzero(~(skill > [jackknife_error(column) for column in left_out.T]))
        return float(self.steps[lost[0]]) if lost.size else np.inf


def make_forecast(
    model: Fitted,
    X: np.ndarray,
    values: np.ndarray,
    steps: np.ndarray,
    at: np.ndarray,
    groups: Any = None,
    weight: np.ndarray | None = None,
) -> Forecast:
    """Forecast observables with `values` at the frames X, for ascending numbers of lags, from the points `at`."""
    columns = values[:, None] if values.ndim == 1 else values
    centre, spread = columns.mean(axis=0), columns.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    trajectories = trajectories_of(groups, len(X))
    rows = np.concatenate(trajectories)  # one trajectory after another
    owner = np.repeat(np.arange(len(trajectories)), [len(part) for part in trajectories])
    frames = np.hstack([np.asarray(X, dtype=np.float64), (columns - centre) / scale])[rows]
    whole, tests = _summed(model, frames, steps, owner, None if weight is None else weight[rows])
    final = model.propagators(whole, model.moments)
    points = model.basis.features(np.asarray(at, dtype=np.float64))
    rmse = np.full((len(steps), len(scale)), np.nan)
    best, horizon, replicates = np.zeros(len(steps), dtype=int), np.inf, []
    if tests is not None:
        place = np.clip(np.searchsorted(tests.steps, steps), 0, len(tests.steps) - 1)
        best, horizon = tests.best()[place], tests.horizon()
        known = np.isin(steps, tests.steps)
        rmse[known] = np.sqrt(tests.chosen_errors().mean(axis=0))[place[known]] * scale
        replicates = [_at_points(fold, best, steps, points) for fold in tests.folds]
    found = centre + scale * _at_points(final, best, steps, points)
    errors = np.full_like(found, np.nan)
    if len(replicates):
        deviations = np.array(replicates) - np.mean(replicates, axis=0)
        errors = scale * np.sqrt((len(replicates) - 1) / len(replicates) * np.sum(deviations**2, axis=0))
    if values.ndim == 1:
        found, errors = found[..., 0], errors[..., 0]
    times, methods = steps * model.clock.duration, ["all features" if k else "modes" for k in best]
    return Forecast(times, found, errors, rmse, spread, methods, horizon * model.clock.duration)


def _at_points(
    propagators: list[_Propagator | None], best: np.ndarray, steps: np.ndarray, features: np.ndarray
) -> np.ndarray:
    """Return forecasts with the best propagator after each number of steps; (n_steps, n, m)."""
    found: dict[int, np.ndarray] = {}
    for k in np.unique(best):
        chosen = propagators[k] or propagators[0]
        assert chosen is not None
        found |= zip(np.flatnonzero(best == k), chosen.at(features, chosen.readouts(steps[best == k])), strict=True)
    return np.array([found[i] for i in range(len(steps))])


def _summed(
    model: Fitted, frames: np.ndarray, steps: np.ndarray, owner: np.ndarray, weight: np.ndarray | None
) -> tuple[Moments, _Tests | None]:
    """Sum over the pairs of frames, which contain the observables, and test forecasts on blocks if there are enough."""
    lag, r, m = model.clock.lag, model.n_components, frames.shape[1] - model.basis.dim
    assert lag is not None
    form, basis = LaggedForm(lag, reversible=False), _WithColumns(model.basis, m)
    starts = paired_rows(len(frames), lag, owner)[0]
    with muted():  # the fit has warned of short trajectories
        pairs, weight, _ = make_pairs(ArraySource(frames, checked=True), lag, weight, owner)
    if len(starts) < max(MIN_PAIRS, 8 * (r + 1)):
        return pairs.moments(form, basis, weight)[0], None
    splitter = FitSpec(r, lag=lag, reversible=False, cv=FOLDS).splitter
    splits = make_splits(splitter, pairs.rows_for_splitters, None, r, 0)
    whole, parts = make_folds(splits, pairs, weight, r).moments(pairs, form, basis, weight)  # type: ignore[arg-type]
    longest = min(min(len(test) for _, test in splits) // 2, np.bincount(owner).max() - 1) // lag
    ladder = np.ones(1, dtype=int)
    if longest:  # numbers of steps that grow by about a third
        powers = 1.3 ** np.arange(0, np.log(longest) / np.log(1.3) + 1e-9)
        ladder = np.union1d(steps[steps <= longest], np.round(powers).astype(int))
    propagators = [model.propagators(train) for train, _ in parts]
    blocks = [starts[test] for _, test in splits]
    found = [_test(model, frames, owner, *fold, ladder) for fold in zip(propagators, blocks, strict=True)]
    errors, of_mean = (np.array(part) for part in zip(*found, strict=True))
    known = np.isfinite(of_mean).all(axis=(0, 2))
    return whole, _Tests(ladder[known], errors[:, :, known], of_mean[:, known], propagators) if known.any() else None


def _test(
    model: Fitted,
    frames: np.ndarray,
    owner: np.ndarray,
    propagators: list[_Propagator | None],
    block: np.ndarray,
    ladder: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the errors of every propagator, and of the mean, in a block of frames that it was not fitted to."""
    d, lag = model.basis.dim, model.clock.lag or 0
    chosen = block[:: -(-len(block) // TESTED)]
    features, inside = model.basis.features(frames[chosen, :d]), np.zeros(len(frames), dtype=bool)
    inside[block] = True
    guesses = [None if one is None else one.at(features, one.readouts(ladder)) for one in propagators]
    shape = (len(ladder), frames.shape[1] - d)
    errors, of_mean = np.full((len(guesses), *shape), np.inf), np.full(shape, np.inf)
    for i, k in enumerate(ladder):
        later = np.minimum(chosen + k * lag, len(frames) - 1)
        valid = (chosen + k * lag < len(frames)) & inside[later] & (owner[later] == owner[chosen])
        if not valid.any():
            continue
        truth = frames[later[valid], d:]
        of_mean[i] = np.mean((truth - propagators[0].readout[0]) ** 2, axis=0)  # type: ignore[union-attr]
        for own, guess in zip(errors, guesses, strict=True):
            if guess is not None:
                own[i] = np.mean((guess[i, valid] - truth) ** 2, axis=0)
    return errors, of_mean
