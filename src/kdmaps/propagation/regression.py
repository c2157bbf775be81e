"""Regression of the functions of a dictionary at second frames on these functions at first frames."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import linalg

from kdmaps.propagation.dictionary import Dictionary
from kdmaps.propagation.frames import Frames

#: Smallest singular value of an unpenalised regression, relative to the largest one.
SMALLEST = 1e-14
#: The same for instruments, which are noisy.
SMALLEST_OF_INSTRUMENTS = 1e-10
#: Penalty of the constant and the coordinates beside a kernel, per frame: against rounding only.
FREE = 1e-15
#: Instruments need this many times as many frames as functions.
FRAMES_PER_INSTRUMENT = 3
#: Rows of features that are held in memory.
CHUNK = 20_000


@dataclass(frozen=True, eq=False)
class Sums:
    """Σ f(x)f(x)ᵀ and Σ f(x)f(y)ᵀ over pairs of frames x, y, which may be added and subtracted."""

    first: np.ndarray
    cross: np.ndarray
    count: float  # total weight

    def __add__(self, other: Self) -> Self:
        return type(self)(self.first + other.first, self.cross + other.cross, self.count + other.count)

    def __sub__(self, other: Self) -> Self:
        return type(self)(self.first - other.first, self.cross - other.cross, self.count - other.count)


def sums_of(dictionary: Dictionary, frames: Frames, starts: np.ndarray) -> Sums:
    """Sum over the pairs that begin at these rows."""
    q = dictionary.n_functions
    total = Sums(np.zeros((q, q)), np.zeros((q, q)), 0.0)
    for begin in range(0, len(starts), CHUNK):
        rows = starts[begin : begin + CHUNK]
        first = dictionary(frames.values[rows])
        second = dictionary(frames.values[rows + frames.lag])
        weighted = first * frames.weight[rows, None]
        total = total + Sums(weighted.T @ first, weighted.T @ second, float(frames.weight[rows].sum()))
    return total


def sums_of_blocks(dictionary: Dictionary, frames: Frames) -> list[Sums]:
    """Sum over the pairs of each block."""
    blocks = frames.block[frames.starts]
    return [sums_of(dictionary, frames, frames.starts[blocks == b]) for b in range(frames.n_blocks)]


def least_squares(sums: Sums) -> np.ndarray:
    """Return K of the regression f(y)ᵀ ≈ f(x)ᵀK; functions are scaled first, as their sizes differ by many orders."""
    sizes = np.sqrt(np.maximum(np.diag(sums.first), np.finfo(float).tiny))
    scaled = sums.first / np.outer(sizes, sizes)
    return np.linalg.lstsq(scaled, sums.cross / sizes[:, None], rcond=SMALLEST)[0] / sizes[:, None]


def ridge_regression(sums: Sums, n_free: int, regularization: float) -> np.ndarray | None:
    """Return K with a penalty of all but the first functions; None if it is too small for a factorisation."""
    penalty = np.full(len(sums.first), regularization * sums.count)
    penalty[:n_free] = FREE * sums.count
    try:
        factor = linalg.cho_factor(sums.first + np.diag(penalty), check_finite=False)
    except np.linalg.LinAlgError:
        return None
    return linalg.cho_solve(factor, sums.cross, check_finite=False)


def instrumental(dictionary: Dictionary, frames: Frames, starts: np.ndarray, gap: int) -> np.ndarray | None:
    """Return K by frames `gap` lags earlier as instruments, whose noise is independent; None if frames are too few.

    Noise of the frames themselves makes rates of least squares too fast.
    """
    before = starts - gap * frames.lag
    before = frames.within(before[before >= 0], gap + 1)
    if len(before) < FRAMES_PER_INSTRUMENT * dictionary.n_functions:
        return None
    instruments = dictionary(frames.values[before])
    first = instruments.T @ dictionary(frames.values[before + gap * frames.lag])
    second = instruments.T @ dictionary(frames.values[before + (gap + 1) * frames.lag])
    return np.linalg.lstsq(first, second, rcond=SMALLEST_OF_INSTRUMENTS)[0]
