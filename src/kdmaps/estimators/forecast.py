"""Forecasts E[h(x_{t+kτ}) | x_t] of observables by regression on pairs of frames, tested on held-out blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy import linalg

from kdmaps.bases import Basis
from kdmaps.checks import Checks, muted
from kdmaps.data.correlation import trajectories_of
from kdmaps.data.pairs import make_pairs, paired_rows
from kdmaps.data.sources import ArraySource
from kdmaps.exceptions import ArgumentError
from kdmaps.forms.lagged import LaggedForm
from kdmaps.forms.moments import Moments
from kdmaps.selection.folds import FOLDS, Folds, make_folds, make_splits
from kdmaps.selection.plan import FitSpec
from kdmaps.selection.scores import jackknife_error
from kdmaps.spectrum.directed import find_directed_modes, two_sided
from kdmaps.spectrum.modes import Clock
from kdmaps.utils.content import content_digest
from kdmaps.utils.frames import aligned
from kdmaps.utils.notebook import TableCard
from kdmaps.utils.threads import map_reduce, slices
from kdmaps.utils.validation import as_numbers

#: Regularizations that are tried with all features, relative to the λ of the model, which was chosen for its modes.
FACTORS = (1e2, 1.0, 1e-2, 1e-4, 1e-6, 1e-8)
#: With fewer pairs of frames, blocks test nothing: the modes are used, without errors.
MIN_PAIRS = 60
#: Held-out frames per block from which forecasts are made, for errors to a few per cent.
TESTED = 2_000
#: Numbers of columns whose combinations many observables may be, and the largest relative error of these.
RANKS, FACTORISED = (8, 32, 128), 1e-13
#: A model keeps its last forecaster if it is not larger.
MOST_BYTES = 2**28


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
        rows = [[f"{t:.4g}", f"{e:.3g}", f"{s:.3f}", method] for t, e, s, method in numbers]
        for row, tested in zip(rows, np.isfinite(self.skill), strict=True):
            if not tested:
                row[1:3] = ["–", "–"]
        return titles, rows

    @property
    def outcome(self) -> str:
        """Sentence about the horizon."""
        if np.isfinite(self.horizon):
            return f"From time {self.horizon:.4g} on, forecasts of held-out frames are no better than the mean."
        return "Forecasts of held-out frames are better than the mean at all tested times."

    def __repr__(self) -> str:
        titles, rows = self.cells()
        return "\n".join(["Forecast", *aligned([titles, *rows]), self.outcome])


class _Propagator(NamedTuple):
    """E[z(y) | x] = z(x)ᵀK and E[h(y) | x] = z(x)ᵀw for functions z = (1, Cᵀ(φ - mean)) of the features φ."""

    functions: np.ndarray | None  # C; None for all features
    mean: np.ndarray
    step: np.ndarray  # K
    readout: np.ndarray  # w

    def at(self, features: np.ndarray, steps: np.ndarray) -> Iterator[np.ndarray]:
        """Yield forecasts z(x)ᵀK^(k-1)w for features φ of n points, for ascending numbers k of steps; (n, m) each.

        K is applied to the points or to the observables, whichever are fewer.
        """
        z = features - self.mean
        if self.functions is not None:
            z = z @ self.functions
        z = np.hstack([np.ones((len(z), 1)), z])
        readout = self.readout
        last = 1
        for k in steps:
            if readout.shape[1] <= len(z):
                readout = _advanced(self.step, readout, int(k) - last)
            else:
                z = _advanced(self.step.T, z.T, int(k) - last).T
            last = int(k)
            yield z @ readout


def _advanced(step: np.ndarray, columns: np.ndarray, n: int) -> np.ndarray:
    """Return Kⁿ times columns: n products with the columns, unless powers of K take fewer operations."""
    if n * columns.shape[1] > 2 * n.bit_length() * len(step):
        return np.linalg.matrix_power(step, n) @ columns
    for _ in range(n):
        columns = step @ columns
    return columns


class _Operator(NamedTuple):
    """One step of time for functions of the features, and the covariance with which observables are regressed."""

    functions: np.ndarray | None  # C of `_Propagator`
    step: np.ndarray  # K of `_Propagator`
    covariance: np.ndarray  # of the functions; its Cholesky factor for all features

    def readout(self, cross: np.ndarray) -> np.ndarray:
        """Return the regression of observables h(y) on the functions, from Cov[φ(x), h(y)]."""
        if self.functions is None:
            return linalg.cho_solve((self.covariance, False), cross)
        return np.linalg.solve(self.covariance, self.functions.T @ cross)


class _Operators(NamedTuple):
    """The operators of the modes, and of all features for each λ; None where λ is too small."""

    mean: np.ndarray  # E φ(x)
    operators: list[_Operator | None]

    @property
    def nbytes(self) -> int:
        return sum(one.step.nbytes + one.covariance.nbytes for one in self.operators if one is not None)

    def propagators(self, sums: _Cross) -> list[_Propagator | None]:
        """Return the propagators of observables."""
        mean = sums.second / sums.weight
        cross = sums.cross / sums.weight - np.outer(self.mean, mean)
        found: list[_Propagator | None] = []
        for one in self.operators:
            readout = None if one is None else np.vstack([mean, one.readout(cross)])
            found.append(None if one is None else _Propagator(one.functions, self.mean, one.step, readout))  # type: ignore[arg-type]
        return found


class _Cross(NamedTuple):
    """Sums over pairs (x, y) of frames, of features φ of the first and observables h of the second; they add up."""

    weight: float  # Σw
    second: np.ndarray  # (m,): Σw h(y)
    cross: np.ndarray  # (p, m): Σw φ(x)h(y)ᵀ

    def plus(self, other: _Cross) -> _Cross:
        """Return the sums over both sets of pairs."""
        return _Cross(self.weight + other.weight, self.second + other.second, self.cross + other.cross)


class Fitted(NamedTuple):
    """The parts of a fitted model that forecasts need."""

    basis: Basis
    clock: Clock
    n_components: int
    regularization: float
    moments: Moments | None  # of pairs in their direction of time; None for a reversible model

    def is_same(self, other: Fitted) -> bool:
        """Return whether both are parts of the same fit."""
        return all(one is two or (np.isscalar(one) and one == two) for one, two in zip(self, other, strict=True))

    def operators(self, moments: Moments, own: Moments | None = None) -> _Operators:
        """Return the operators for `moments` of pairs; those of `own` moments, if given, with the means of `moments`.

        The constant is added to the functions: means of first and second frames differ a little.
        """
        sums = two_sided(moments)
        steps = sums if own is None else two_sided(own)
        ridge = self.basis.ridge
        settings = (ridge, self.n_components, self.regularization, self.clock)
        modes = find_directed_modes(moments if own is None else own, *settings)[0].coefficients
        shift = sums.second_mean - sums.first_mean
        step = np.linalg.solve(modes.T @ steps.first @ modes, modes.T @ steps.cross @ modes)
        of_modes = _Operator(modes, _with_constant(step, shift @ modes), modes.T @ sums.first @ modes)
        found: list[_Operator | None] = [of_modes]
        for factor in FACTORS:
            penalty = factor * self.regularization * (np.eye(len(shift)) if ridge is None else ridge)
            try:
                step = linalg.cho_solve(linalg.cho_factor(steps.first + penalty), steps.cross)
                covariance = linalg.cho_factor(sums.first + penalty)[0]
            except np.linalg.LinAlgError:
                found.append(None)
            else:
                found.append(_Operator(None, _with_constant(step, shift), covariance))
        return _Operators(sums.first_mean, found)


def _with_constant(step: np.ndarray, drift: np.ndarray) -> np.ndarray:
    return np.block([[np.ones((1, 1)), drift[None]], [np.zeros((len(step), 1)), step]])


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
        raise ArgumentError(
            "{time} must be one or several ascending multiples of the lag, {lag_time:g}, got {times}.",
            lag_time=clock.duration,
            times=", ".join(f"{one:g}" for one in found.ravel()) or "none",
        )
    wrong = np.abs(found - steps * clock.duration) > 1e-6 * clock.duration
    if wrong.any():
        near = f"{steps[wrong][0] * clock.duration:.6g}"
        raise ArgumentError(
            "{time:{wrong}} is not a multiple of the lag, {lag_time:g}, and nothing is interpolated between lags. Use "
            "{near}, or fit with another {lag}.",
            wrong=f"{found[wrong][0]:g}",
            lag_time=clock.duration,
            near=near,
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


class _Observables(NamedTuple):
    """Observables in units of their standard deviations, as combinations of few columns."""

    columns: np.ndarray  # (n_frames, k)
    mixing: np.ndarray | None  # (k, m); None if the columns are the observables
    centre: np.ndarray
    spread: np.ndarray
    scale: np.ndarray  # the spread, 1 for constants

    @classmethod
    def of(cls, values: np.ndarray) -> _Observables:
        centre = values.mean(axis=0)
        spread = values.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        return cls(*_factorised((values - centre) / scale), centre, spread, scale)

    def squares(self, deviations: np.ndarray) -> np.ndarray:
        """Return the mean squares of the observables for rows (n, k) of deviations of the columns; (m,)."""
        if self.mixing is None:
            return np.mean(deviations**2, axis=0)
        covariance = deviations.T @ deviations / len(deviations)
        return np.maximum(np.einsum("km,km->m", self.mixing, covariance @ self.mixing), 0)

    def mixed(self, columns: np.ndarray) -> np.ndarray:
        """Return the observables of columns (…, k); (…, m)."""
        return columns if self.mixing is None else columns @ self.mixing


def _factorised(values: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return values as a product (n, k) (k, m) to rounding, if k is much smaller than m; otherwise themselves."""
    n, m = values.shape
    random = np.random.default_rng(0)
    for rank in RANKS:
        if 4 * rank > min(n, m):
            break
        columns = linalg.qr(values @ random.standard_normal((m, rank)), mode="economic")[0]
        mixing = columns.T @ values
        if np.linalg.norm(values - columns @ mixing) <= FACTORISED * np.linalg.norm(values):
            return columns, mixing
    return values, None


@dataclass(frozen=True, eq=False)
class Forecaster:
    """Everything about forecasts from some frames that does not depend on the observables."""

    model: Fitted
    frames: np.ndarray  # one trajectory after another
    rows: np.ndarray  # row of X of each frame
    owner: np.ndarray  # trajectory of each frame
    starts: np.ndarray  # first frames of the pairs
    weight: np.ndarray | None  # of the pairs
    whole: _Operators
    folds: Folds | None  # None if there are too few pairs to test anything
    of_folds: list[_Operators]  # of the training pairs of each fold
    tests: dict[str, tuple[list[_Propagator | None], _Tests | None]] = field(default_factory=dict)  # the last ones

    @classmethod
    def of(cls, model: Fitted, X: np.ndarray, groups: Any = None, weight: np.ndarray | None = None) -> Forecaster:
        """Sum over the pairs of the frames X, all of them and without each of the blocks that test forecasts."""
        lag = model.clock.lag
        assert lag is not None
        trajectories = trajectories_of(groups, len(X))
        rows = np.concatenate(trajectories)
        owner = np.repeat(np.arange(len(trajectories)), [len(part) for part in trajectories])
        frames = np.asarray(X, dtype=np.float64)[rows]
        starts = paired_rows(len(frames), lag, owner)[0]
        form = LaggedForm(lag, reversible=False)
        with muted():  # the fit has warned of short trajectories
            source = ArraySource(frames, checked=True)
            pairs, weight, _ = make_pairs(source, lag, None if weight is None else weight[rows], owner)
        if len(starts) < max(MIN_PAIRS, 8 * (model.n_components + 1)):
            whole = model.operators(pairs.moments(form, model.basis, weight)[0], model.moments)
            return cls(model, frames, rows, owner, starts, weight, whole, None, [])
        splitter = FitSpec(model.n_components, lag=lag, reversible=False, cv=FOLDS).splitter
        splits = make_splits(splitter, pairs.rows_for_splitters, None, model.n_components, 0)
        folds = make_folds(splits, pairs, weight, model.n_components)
        moments, parts = folds.moments(pairs, form, model.basis, weight)
        whole = model.operators(moments, model.moments)
        of_folds = [model.operators(train) for train, _ in parts]
        return cls(model, frames, rows, owner, starts, weight, whole, folds, of_folds)

    @property
    def nbytes(self) -> int:
        """Bytes of the frames and the operators."""
        return self.frames.nbytes + sum(one.nbytes for one in (self.whole, *self.of_folds))

    def forecast(self, values: np.ndarray, steps: np.ndarray, at: np.ndarray) -> Forecast:
        """Forecast observables with `values` at the frames, for ascending numbers of lags, from the points `at`."""
        observables = _Observables.of(values[:, None] if values.ndim == 1 else values)
        final, tests = self._tested(observables, steps)
        points = self.model.basis.features(np.asarray(at, dtype=np.float64))
        scale = observables.scale
        rmse = np.full((len(steps), len(scale)), np.nan)
        best = np.zeros(len(steps), dtype=int)
        horizon = np.inf
        replicates: list[np.ndarray] = []
        if tests is not None:
            place = np.clip(np.searchsorted(tests.steps, steps), 0, len(tests.steps) - 1)
            best = tests.best()[place]
            horizon = tests.horizon()
            tested = np.isin(steps, tests.steps)
            rmse[tested] = np.sqrt(tests.chosen_errors().mean(axis=0))[place[tested]] * scale
            replicates = [_at_points(fold, best, steps, points) for fold in tests.folds]
        expectations = observables.centre + scale * observables.mixed(_at_points(final, best, steps, points))
        errors = np.full_like(expectations, np.nan)
        if replicates:
            mean = np.mean(replicates, axis=0)
            squares = sum(observables.mixed(one - mean) ** 2 for one in replicates)
            errors = scale * np.sqrt((len(replicates) - 1) / len(replicates) * squares)
        if values.ndim == 1:
            expectations = expectations[..., 0]
            errors = errors[..., 0]
        duration = self.model.clock.duration
        methods = ["all features" if k else "modes" for k in best]
        return Forecast(steps * duration, expectations, errors, rmse, observables.spread, methods, horizon * duration)

    def _tested(self, observables: _Observables, steps: np.ndarray) -> tuple[list[_Propagator | None], _Tests | None]:
        """Return the propagators of observables, and their tests; the last ones are kept."""
        key = content_digest(observables.columns, observables.mixing, steps)
        if key not in self.tests:
            self.tests.clear()
            self.tests[key] = self._test_all(observables, steps)
        return self.tests[key]

    def _test_all(self, observables: _Observables, steps: np.ndarray) -> tuple[list[_Propagator | None], _Tests | None]:
        """Regress observables on the features, and test forecasts on blocks if there are enough."""
        values = observables.columns[self.rows]
        if self.folds is None:
            return self.whole.propagators(self._cross(values, np.arange(len(self.starts)))), None
        sums = [self._cross(values, rows) for rows in self.folds.rows]
        final = self.whole.propagators(reduce(_Cross.plus, sums))
        propagators: list[list[_Propagator | None]] = []
        for operators, roles in zip(self.of_folds, self.folds.roles.T, strict=True):
            training = [part for part, role in zip(sums, roles, strict=True) if role == 1]
            propagators.append(operators.propagators(reduce(_Cross.plus, training)))
        blocks = [self.starts[roles == 2] for roles in self.folds.assignment.T]
        ladder = self._ladder(steps, min(map(len, blocks)))
        tested = [
            self._test(fold, block, ladder, values, observables)
            for fold, block in zip(propagators, blocks, strict=True)
        ]
        errors = np.array([part[0] for part in tested])
        of_mean = np.array([part[1] for part in tested])
        finite = np.isfinite(of_mean).all(axis=(0, 2))
        if not finite.any():
            return final, None
        return final, _Tests(ladder[finite], errors[:, :, finite], of_mean[:, finite], propagators)

    def _cross(self, values: np.ndarray, pairs: np.ndarray) -> _Cross:
        """Sum over some of the pairs."""
        basis = self.model.basis
        lag = self.model.clock.lag or 0
        weight = np.ones(len(pairs)) if self.weight is None else self.weight[pairs]
        first = self.starts[pairs]

        def start() -> np.ndarray:
            return np.zeros((basis.n_features, values.shape[1]))

        def step(state: np.ndarray, part: slice) -> None:
            features = basis.features(self.frames[first[part]])
            state += (features * weight[part, None]).T @ values[first[part] + lag]

        sums = sum(map_reduce(list(slices(len(pairs), basis.chunk_rows)), start, step))
        return _Cross(float(weight.sum()), weight @ values[first + lag], np.asarray(sums))

    def _ladder(self, steps: np.ndarray, smallest: int) -> np.ndarray:
        """Return the numbers of steps that are tested: the given ones, and others that grow by about a third."""
        lag = self.model.clock.lag or 1
        longest = min(smallest // 2, np.bincount(self.owner).max() - 1) // lag
        if not longest:
            return np.ones(1, dtype=int)
        powers = 1.3 ** np.arange(0, np.log(longest) / np.log(1.3) + 1e-9)
        return np.union1d(steps[steps <= longest], np.round(powers).astype(int))

    def _test(
        self,
        propagators: list[_Propagator | None],
        block: np.ndarray,
        ladder: np.ndarray,
        values: np.ndarray,
        observables: _Observables,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the errors of every propagator, and of the mean, in a block of frames that it was not fitted to."""
        lag = self.model.clock.lag or 0
        chosen = block[:: -(-len(block) // TESTED)]
        features = self.model.basis.features(self.frames[chosen])
        inside = np.zeros(len(self.frames), dtype=bool)
        inside[block] = True
        shape = (len(ladder), len(observables.scale))
        errors = np.full((len(propagators), *shape), np.inf)
        of_mean = np.full(shape, np.inf)
        truths: list[tuple[np.ndarray, np.ndarray]] = []
        for i, k in enumerate(ladder):
            later = np.minimum(chosen + k * lag, len(self.frames) - 1)
            valid = (chosen + k * lag < len(self.frames)) & inside[later] & (self.owner[later] == self.owner[chosen])
            truths.append((valid, values[later[valid]]))
            if valid.any():
                of_mean[i] = observables.squares(truths[i][1] - propagators[0].readout[0])  # type: ignore[union-attr]
        for j, propagator in enumerate(propagators):
            guesses = [] if propagator is None else propagator.at(features, ladder)
            for i, guess in enumerate(guesses):
                valid, truth = truths[i]
                if valid.any():
                    errors[j, i] = observables.squares(guess[valid] - truth)
        return errors, of_mean


#: The forecaster of each model for the frames of its last forecast, with a digest of these frames.
_kept: WeakKeyDictionary[Any, tuple[str, Forecaster]] = WeakKeyDictionary()


def forecaster_of(
    estimator: Any, model: Fitted, X: np.ndarray, groups: Any = None, weight: np.ndarray | None = None
) -> Forecaster:
    """Return the forecaster of an estimator for the frames X; it is kept for the next forecast from the same frames."""
    key = content_digest(X, groups, weight)
    digest, forecaster = _kept.get(estimator, ("", None))
    if forecaster is not None and digest == key and forecaster.model.is_same(model):
        return forecaster
    forecaster = Forecaster.of(model, X, groups, weight)
    if forecaster.nbytes <= MOST_BYTES:
        _kept[estimator] = key, forecaster
    return forecaster


def _at_points(
    propagators: list[_Propagator | None], best: np.ndarray, steps: np.ndarray, features: np.ndarray
) -> np.ndarray:
    """Return forecasts with the best propagator after each number of steps; (n_steps, n, k)."""
    forecasts: dict[int, np.ndarray] = {}
    for k in np.unique(best):
        chosen = propagators[k] or propagators[0]
        assert chosen is not None
        numbers = np.flatnonzero(best == k)
        forecasts |= zip(numbers, chosen.at(features, steps[numbers]), strict=True)
    return np.array([forecasts[i] for i in range(len(steps))])
