"""The diffusion tensor as a smooth function, learned from displacements."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.clocks.runs import Runs
from kdmaps.exceptions import ArgumentError
from kdmaps.utils.types import RandomStateLike
from kdmaps.utils.validation import checked_random_state

#: Widths of the smoother that are compared, in standard deviations of the frames; infinity is one tensor for all.
WIDTHS = (0.15, 0.25, 0.4, 0.6, 1.0, 1.6, np.inf)
#: Landmarks through which displacements are averaged.
LANDMARKS = 150
#: The mean tensor counts as so many pairs at every point.
PRIOR = 3.0
#: Folds of whole runs, and about the largest number of pairs by which widths are compared.
FOLDS, MOST_PAIRS = 3, 8_000
#: Points per block of evaluations.
BLOCK = 4_096


@dataclass(frozen=True, eq=False)
class LearnedDiffusion:
    """A diffusion tensor a(x), positive definite at every point: pass it as `diffusion=`.

    With landmarks l, a kernel k and pairs p of frames that are displaced by Δ_p after a time τ,

        2τ a(x) = Σ_l k(x, l) Σ_p k(l, x_p) Δ_p Δ_pᵀ / Σ_l k(x, l) Σ_p k(l, x_p) - m(x) m(x)ᵀ

    with the mean displacement m(x), averaged in the same way. The mean tensor of all pairs is added with the weight of
    three pairs. Sums over pairs add up.
    """

    whitening: np.ndarray  #: (d, d): in the coordinates x·whitening, the mean displacement is isotropic.
    width: float  #: Width of the kernel in these coordinates; infinity for one tensor for all points.
    landmarks: np.ndarray  #: (n_landmarks, d): in these coordinates.
    counts: np.ndarray  #: (n_landmarks,): Σ_p k(l, x_p).
    shifts: np.ndarray  #: (n_landmarks, d): Σ_p k(l, x_p) Δ_p.
    squares: np.ndarray  #: (n_landmarks, d, d): Σ_p k(l, x_p) Δ_p Δ_pᵀ.
    overlaps: np.ndarray  #: (n_landmarks, n_landmarks): Σ_p k(l, x_p) k(l', x_p).
    mean: np.ndarray  #: (d, d): mean of Δ_p Δ_pᵀ.
    duration: float  #: τ.

    def __call__(self, X: ArrayLike) -> np.ndarray:
        """Return the tensor at the rows of X, (n_samples, d, d)."""
        points = np.asarray(X, dtype=np.float64) @ self.whitening
        back = np.linalg.inv(self.whitening)
        tensors = np.empty((len(points), *self.mean.shape))
        for begin in range(0, len(points), BLOCK):
            rows = slice(begin, begin + BLOCK)
            tensors[rows] = back.T @ self.covariance(points[rows]) @ back
        tensors /= 2 * self.duration
        return (tensors + np.swapaxes(tensors, 1, 2)) / 2

    def covariance(self, points: np.ndarray) -> np.ndarray:
        """Return the covariance of displacements at points in whitened coordinates."""
        kernel = kernel_values(points, self.landmarks, self.width)
        count = kernel @ self.counts + PRIOR
        square = np.tensordot(kernel, self.squares, axes=1) + PRIOR * self.mean
        shift = kernel @ self.shifts / count[:, None]
        return square / count[:, None, None] - shift[:, :, None] * shift[:, None, :]

    def errors(self, X: ArrayLike) -> np.ndarray:
        """Return the relative standard error of the tensor at the rows of X, (n_samples,).

        Squares of Gaussian displacements have the relative variance 2, and n of equal weight leave 2/n of it. Pairs
        have different weights at a point; n is then their effective number. The width of the kernel, which smooths
        true variations, and the prior are not part of this error.
        """
        points = np.asarray(X, dtype=np.float64) @ self.whitening
        kernel = kernel_values(points, self.landmarks, self.width)
        total = kernel @ self.counts
        squared = np.sum((kernel @ self.overlaps) * kernel, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.sqrt(2 * squared) / total
        return np.where(total > 0, errors, np.inf)

    def __repr__(self) -> str:
        shape = "one tensor for all points" if np.isinf(self.width) else f"width {self.width:.3g}"
        return f"LearnedDiffusion({self.mean.shape[0]} columns, {shape}, time {self.duration:.4g})"


def kernel_values(points: np.ndarray, landmarks: np.ndarray, width: float) -> np.ndarray:
    """Return e^{-|x - l|²/2h²}, (n_points, n_landmarks); ones for an infinite width."""
    if np.isinf(width):
        return np.ones((len(points), len(landmarks)))
    distances = np.sum(points**2, axis=1)[:, None] + np.sum(landmarks**2, axis=1) - 2 * points @ landmarks.T
    return np.exp(-0.5 * np.maximum(distances, 0) / width**2)


def smooth(
    points: np.ndarray, shifts: np.ndarray, landmarks: np.ndarray, width: float, whitening: np.ndarray, duration: float
) -> LearnedDiffusion:
    """Sum displacements, at points in whitened coordinates, around landmarks."""
    if np.isinf(width):
        landmarks = landmarks[:1]
    count, dimension = shifts.shape
    counts = np.zeros(len(landmarks))
    sums = np.zeros((len(landmarks), dimension))
    squares = np.zeros((len(landmarks), dimension**2))
    overlaps = np.zeros((len(landmarks), len(landmarks)))
    for begin in range(0, count, BLOCK):
        rows = slice(begin, begin + BLOCK)
        kernel = kernel_values(points[rows], landmarks, width)
        products = shifts[rows, :, None] * shifts[rows, None, :]
        counts += kernel.sum(axis=0)
        sums += kernel.T @ shifts[rows]
        squares += kernel.T @ products.reshape(len(products), -1)
        overlaps += kernel.T @ kernel
    return LearnedDiffusion(
        whitening=whitening,
        width=float(width),
        landmarks=landmarks,
        counts=counts,
        shifts=sums,
        squares=squares.reshape(-1, dimension, dimension),
        overlaps=overlaps,
        mean=shifts.T @ shifts / count,
        duration=duration,
    )


def learn_diffusion(
    runs: Runs, lag: int = 1, *, widths: Sequence[float] = WIDTHS, random_state: RandomStateLike = 0
) -> LearnedDiffusion:
    """Learn the tensor from displacements of runs; the width maximises the Gaussian likelihood of held-out runs."""
    rng = checked_random_state(random_state)
    points, shifts, owner = runs.displacements(lag)
    if not len(points):
        raise ArgumentError("lag={lag} leaves no pair of frames in runs; use a shorter lag.", lag=lag)
    whitening = whitening_of(shifts)
    points = points @ whitening
    shifts = shifts @ whitening
    chosen = np.sort(rng.permutation(len(points))[:LANDMARKS])
    landmarks = points[chosen]
    scale = float(np.median(np.std(points, axis=0)))
    duration = lag * runs.time_step
    candidates = [width * scale for width in widths]
    width = candidates[0]
    if len(candidates) > 1:
        every = max(1, len(points) // MOST_PAIRS)
        sample = (points[::every], shifts[::every], owner[::every] % FOLDS)
        scores = [_likelihood(*sample, landmarks, one, whitening, duration) for one in candidates]
        width = candidates[int(np.argmax(scores))]
    return smooth(points, shifts, landmarks, width, whitening, duration)


def whitening_of(shifts: np.ndarray) -> np.ndarray:
    """Return the symmetric inverse root of the mean square of displacements."""
    values, vectors = np.linalg.eigh(shifts.T @ shifts / len(shifts))
    if not values[0] > 1e-12 * values[-1]:
        raise ArgumentError(
            "The runs do not move along every direction of their columns, so that the diffusion tensor is singular. "
            "Leave out columns that are constant, or functions of others."
        )
    return (vectors / np.sqrt(values)) @ vectors.T


def _likelihood(
    points: np.ndarray,
    shifts: np.ndarray,
    fold: np.ndarray,
    landmarks: np.ndarray,
    width: float,
    whitening: np.ndarray,
    duration: float,
) -> float:
    """Return the log likelihood of the displacements of each fold, under the tensor of the other folds."""
    total = 0.0
    for number in range(FOLDS):
        test = fold == number
        if test.all() or not test.any():
            continue
        learned = smooth(points[~test], shifts[~test], landmarks, width, whitening, duration)
        root = np.linalg.cholesky(learned.covariance(points[test]))
        standard = np.linalg.solve(root, shifts[test][:, :, None])
        log_root = np.log(np.diagonal(root, axis1=1, axis2=2))
        total -= float(log_root.sum() + 0.5 * np.sum(standard**2))
    return total
