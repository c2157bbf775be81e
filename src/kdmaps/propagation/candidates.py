"""Candidates: regressions in several dictionaries, scored by forecasts of held-out blocks after several lags."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from kdmaps.data.distances import median_distance
from kdmaps.propagation.dictionary import Dictionary, kernel_dictionary
from kdmaps.propagation.frames import Frames
from kdmaps.propagation.regression import Sums, instrumental, least_squares, ridge_regression, sums_of_blocks
from kdmaps.selection.scores import jackknife_error

#: Numbers of coordinates that are tried.
RANKS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 25, 32, 40, 50, 65, 80, 100, 120)
#: Regressions with instruments, and kernels, are tried in at most so many coordinates.
MOST_WITH_INSTRUMENTS, MOST_IN_KERNEL = 25, 20
#: Coordinates with a smaller part of the largest deviation are not part of a kernel.
SMALLEST_IN_KERNEL = 1e-6
#: Bandwidths in median distances.
BANDWIDTHS = (0.35, 0.7, 1.4, 2.8, 5.6)
REGULARIZATIONS = (1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)
#: Features of a kernel: at most so many, and at least four frames for each.
FEATURES, FRAMES_PER_FEATURE = 300, 4
#: Smallest and largest relative error that a score distinguishes.
ERRORS = (1e-8, 10.0)
#: Forecasts are tested from at most so many frames of a block.
TESTED = 2_000
#: Candidates whose scores differ by less, in powers of ten, are equally good.
INDIFFERENT = 0.05

#: A regression on the pairs that begin outside a block: from the sums over these pairs and their first rows.
Regression = Callable[[Sums, np.ndarray], np.ndarray | None]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A dictionary with a regression, and the errors of its forecasts."""

    name: str  #: "affine", "instrumental", "kernel" or "exponentials".
    dictionary: Dictionary
    errors: np.ndarray  #: (F, n_steps): mean squared errors in each block, relative to the variance; NaN if untested.
    regularization: float = 0.0
    gap: int = 0  #: Of instruments, in lags.
    bandwidth: float = np.nan
    exponents: np.ndarray | None = None  #: (s,): complex, per lag, for sums of exponentials.

    @property
    def score(self) -> float:
        """Mean over the steps of the logarithm of the root mean square error: smaller is better."""
        return float(_scores(self.errors[None])[0])

    @property
    def replicates(self) -> np.ndarray:
        """Scores without each block; (F,)."""
        n = len(self.errors)
        return _scores(np.stack([np.delete(self.errors, f, axis=0) for f in range(n)]))

    @property
    def n_functions(self) -> int:
        """Number of functions, or of exponentials."""
        return self.dictionary.n_functions if self.exponents is None else len(self.exponents)

    def error_after_one_lag(self) -> float:
        """Return the root mean square error of forecasts after one lag, relative to the standard deviation."""
        return float(np.sqrt(np.nanmean(self.errors[:, 0])))

    def lead(self, other: "Candidate") -> float:
        """Return by how many standard errors this candidate is better than another one."""
        error = jackknife_error(other.replicates - self.replicates)
        return (other.score - self.score) / max(error, 1e-3)

    def as_good_as(self, best: "Candidate") -> bool:
        """Return True if this candidate is not worse than the best one by more than the error of the difference."""
        error = jackknife_error(self.replicates - best.replicates)
        return self.score - best.score <= max(INDIFFERENT, error)


def _scores(errors: np.ndarray) -> np.ndarray:
    """Return scores of stacks (…, F, n_steps) of errors."""
    with np.errstate(invalid="ignore"):
        tested = np.isfinite(errors)
        sums = np.where(tested, errors, 0).sum(axis=-2)
        counts = tested.sum(axis=-2)
        means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    logs = np.log10(np.clip(np.sqrt(means), *ERRORS))
    known = np.isfinite(logs)
    total = np.where(known, logs, 0).sum(axis=-1)
    return np.where(known.any(axis=-1), total / np.maximum(known.sum(axis=-1), 1), np.inf)


def tested_rows(frames: Frames, block: int, steps: int) -> np.ndarray:
    """Return rows of a block from which forecasts stay in the block."""
    inside = frames.starts[frames.block[frames.starts] == block]
    rows = frames.within(inside, steps)
    rows = rows[frames.block[rows + steps * frames.lag] == block]
    return rows[:: -(-len(rows) // TESTED)] if len(rows) else rows


def mean_squared(difference: np.ndarray) -> float:
    """Return the mean squared length of the rows; a large number if it is not finite, NaN without rows."""
    if not len(difference):
        return np.nan
    with np.errstate(over="ignore", invalid="ignore"):
        error = float(np.mean(np.sum(difference**2, axis=1)))
    return error if np.isfinite(error) else 1e6


def held_out_errors(frames: Frames, dictionary: Dictionary, regressions: list[Regression]) -> np.ndarray:
    """Return mean squared errors of forecasts of held-out blocks; (n_regressions, F, n_steps)."""
    features = dictionary(frames.values)
    parts = sums_of_blocks(dictionary, frames)
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    blocks = frames.block[frames.starts]
    truth = frames.values @ frames.targets
    readout = dictionary.readout(frames.targets)
    errors = np.full((len(regressions), frames.n_blocks, len(frames.steps)), np.nan)
    for block, part in enumerate(parts):
        train = whole - part
        rows = [tested_rows(frames, block, steps) for steps in frames.steps]
        for i, regression in enumerate(regressions):
            K = regression(train, frames.starts[blocks != block])
            if K is None:
                continue
            for j, w in enumerate(powers(K, readout, frames.steps)):
                with np.errstate(over="ignore", invalid="ignore"):
                    forecast = features[rows[j]] @ w
                errors[i, block, j] = mean_squared(forecast - truth[rows[j] + frames.steps[j] * frames.lag])
    return errors / frames.variance


def powers(K: np.ndarray, readout: np.ndarray, steps: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Yield K^h w for ascending numbers h of steps."""
    w = readout
    before = 0
    for h in steps:
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(h - before):
                w = K @ w
        before = h
        yield w


def ranks(frames: Frames) -> list[int]:
    """Return the numbers of coordinates that are tried: at least three frames of a training set for each."""
    most = max(1, min(frames.n_coordinates, int(0.8 * len(frames.starts)) // 3))
    return sorted({k for k in RANKS if k < most} | {min(most, RANKS[-1])})


def affine_candidates(frames: Frames) -> list[Candidate]:
    """Return least squares in the leading coordinates: exact dynamic mode decomposition of their span."""

    def regression(sums: Sums, _: np.ndarray) -> np.ndarray:
        return least_squares(sums)

    found = []
    for k in ranks(frames):
        dictionary = Dictionary(k)
        (errors,) = held_out_errors(frames, dictionary, [regression])
        found.append(Candidate("affine", dictionary, errors))
    return found


def instrumental_candidates(frames: Frames) -> list[Candidate]:
    """Return the same with earlier frames as instruments, which noise of the frames does not bias."""
    gaps = sorted({1, 2, frames.n_delays, 2 * frames.n_delays})
    found = []
    for k in [k for k in ranks(frames) if k <= MOST_WITH_INSTRUMENTS]:
        dictionary = Dictionary(k)
        regressions = [_with_instruments(dictionary, frames, gap) for gap in gaps]
        errors = held_out_errors(frames, dictionary, regressions)
        for gap, own in zip(gaps, errors, strict=True):
            if np.isfinite(own).any():
                found.append(Candidate("instrumental", dictionary, own, gap=gap))
    return found


def _with_instruments(dictionary: Dictionary, frames: Frames, gap: int) -> Regression:
    def regression(_: Sums, starts: np.ndarray) -> np.ndarray | None:
        return instrumental(dictionary, frames, starts, gap)

    return regression


def kernel_candidates(frames: Frames, seed: int) -> list[Candidate]:
    """Return ridge regressions in the coordinates and features of kernels of several bandwidths."""
    n_features = min(FEATURES, 2 * (len(frames.starts) // (2 * FRAMES_PER_FEATURE)))
    if n_features < 2:
        return []
    deviations = frames.values.std(axis=0)
    k = min(MOST_IN_KERNEL, int(np.count_nonzero(deviations > SMALLEST_IN_KERNEL * deviations[0])))
    Z = np.ascontiguousarray(frames.values[:, :k])
    median = median_distance(Z, random_state=seed)
    found = []
    for factor in BANDWIDTHS:
        dictionary = kernel_dictionary(Z, factor * median, n_features, seed)
        regressions = [_with_ridge(1 + k, regularization) for regularization in REGULARIZATIONS]
        errors = held_out_errors(frames, dictionary, regressions)
        for regularization, own in zip(REGULARIZATIONS, errors, strict=True):
            if np.isfinite(own).any():
                found.append(Candidate("kernel", dictionary, own, regularization, bandwidth=factor * median))
    return found


def _with_ridge(n_free: int, regularization: float) -> Regression:
    def regression(sums: Sums, _: np.ndarray) -> np.ndarray | None:
        return ridge_regression(sums, n_free, regularization)

    return regression


def fitted(candidate: Candidate, frames: Frames, sums: Sums, starts: np.ndarray) -> np.ndarray | None:
    """Return the regression matrix K of a candidate from the pairs that begin at these rows, with their sums."""
    if candidate.name == "instrumental":
        return instrumental(candidate.dictionary, frames, starts, candidate.gap)
    if candidate.name == "kernel":
        return ridge_regression(sums, 1 + candidate.dictionary.n_coordinates, candidate.regularization)
    return least_squares(sums)
