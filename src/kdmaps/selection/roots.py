"""Roots H of metrics HHᵀ in which a search continues: of the gradients of modes, or of single coordinates.

Modes of an isotropic kernel in many dimensions are dominated by the distances along irrelevant inputs, and so is a
metric made of their gradients. Functions of a single input, or of a single principal component, need few samples
however many inputs there are. The coordinates of the slowest of them define a metric from which a search can start.
"""

import numpy as np

from kdmaps.data.sources import Sample
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.selection.scores import ritz_pairs
from kdmaps.utils.threads import slices

#: Smallest eigenvalue of the metric relative to its largest: no direction is shrunk by more than its root.
FLOOR = 2e-4
#: Piecewise linear functions of a coordinate have this many knots, at quantiles.
KNOTS = 10
#: A coordinate with less than this part of the largest variance, or diffusion, is constant up to rounding.
ROUNDING = 1e-24
#: Numbers per block of coordinates.
BLOCK_NUMBERS = 2**20


def metric_root(matrix: np.ndarray, frame: np.ndarray | None = None) -> np.ndarray:
    """Return H = U diag(√v), M = U diag(v) Uᵀ with its largest eigenvalue made 1 and none below `FLOOR`.

    The columns are in the order of their importance: the first coordinates of a Sobol sequence are its best. The matrix
    may be in the coordinates of a frame (d, m) of orthonormal columns.
    """
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = np.maximum(values[::-1] / values[-1], FLOOR), vectors[:, ::-1]
    if frame is None:
        return vectors * np.sqrt(values)
    rest = np.linalg.qr(frame, mode="complete")[0][:, len(values) :]
    return np.hstack([frame @ vectors * np.sqrt(values), rest * np.sqrt(FLOOR)])


def axis_root(
    sample: Sample,
    share: np.ndarray,
    n_components: int,
    components: bool,
    tensor: DiffusionTensor | None,
    second: np.ndarray | None,
) -> np.ndarray | None:
    """Return H of the inputs, or of the principal components, with the slowest functions of a single one of them.

    As in `metric_root`, every function contributes 1, divided by the diffusion along its coordinate or, for pairs of
    frames, by the variance; columns are in the order of their importance. None if a coordinate does not vary. `share`
    has sum 1, `tensor` is None for pairs of frames, and `second` has their second frames.
    """
    X = sample.X
    mean = share @ X
    axes = np.eye(X.shape[1])
    if components:
        axes = np.linalg.eigh((X - mean).T @ (share[:, None] * (X - mean)))[1]
    points = (X - mean) @ axes
    squares = share @ points**2 if tensor is None else _axis_diffusion(tensor, sample, axes)
    if not np.all(squares > ROUNDING * squares.max()):
        return None
    times = axis_timescales(points, share, squares, None if second is None else (second - mean) @ axes)
    slowest = np.argsort(times, axis=None)[-n_components:] // times.shape[1]
    counts = np.bincount(slowest, minlength=len(axes))
    order = np.argsort(-counts, kind="stable")
    return (axes * np.sqrt(np.maximum(counts / counts.max(), FLOOR) / squares))[:, order]


def axis_timescales(
    points: np.ndarray, share: np.ndarray, diffusion: np.ndarray, second: np.ndarray | None = None
) -> np.ndarray:
    """Return the time scales of the piecewise linear functions of each coordinate, ascending; (d, KNOTS - 1).

    `share` has sum 1, and `diffusion` is the mean diffusion along each coordinate. With `second`, the same coordinates
    one lag later, the result are the inverse quotients 1/(1-ν) of pairs. Coordinates with repeated quantiles, such as
    discrete ones, have time scales 0.
    """
    n, d = points.shape
    knots = np.quantile(points, np.linspace(0, 1, KNOTS), axis=0)
    times = np.zeros((d, KNOTS - 1))
    known = np.flatnonzero(np.all(np.diff(knots, axis=0) > 0, axis=0))
    for part in slices(len(known), max(1, BLOCK_NUMBERS // (n * KNOTS))):
        own = known[part]
        if second is None:
            covariance, energy = _hat_sums(points[:, own], knots[:, own], share)
            energy *= diffusion[own, None, None]
        else:
            hats = _hats(points[:, own], knots[:, own])
            later = _hats(second[:, own], knots[:, own])
            covariance = (_covariance(hats, share) + _covariance(later, share)) / 2
            energy = _product(later - hats, share) / 2
        # Without the first hat no function is constant.
        times[own] = ritz_pairs(covariance[:, 1:, 1:], energy[:, 1:, 1:])[0]
    return times


def _hats(points: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Return hat functions of every coordinate at its knots; (d, n, KNOTS)."""
    return np.maximum(1 - np.abs(_places(points, knots)[:, :, None] - np.arange(KNOTS)), 0)


def _places(points: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Return the places of points among the knots of their coordinate, from 0 to KNOTS - 1; (d, n)."""
    numbers = np.arange(KNOTS)
    return np.stack([np.interp(x, own, numbers) for x, own in zip(points.T, knots.T, strict=True)])


def _hat_sums(points: np.ndarray, knots: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariances of the hat functions of every coordinate, and of their derivatives; (d, KNOTS, KNOTS).

    At a point, two neighbouring hats differ from 0, so both are sums over the intervals between knots.
    """
    d = points.shape[1]
    places = _places(points, knots)
    left = np.minimum(places.astype(int), KNOTS - 2)
    right_part = places - left
    cells = (left + KNOTS * np.arange(d)[:, None]).ravel()

    def summed(values: np.ndarray) -> np.ndarray:
        return np.bincount(cells, (share * values).ravel(), d * KNOTS).reshape(d, KNOTS)[:, :-1]

    lower = np.arange(KNOTS - 1)
    upper = lower + 1
    means = np.zeros((d, KNOTS))
    means[:, lower] += summed(1 - right_part)
    means[:, upper] += summed(right_part)
    covariance = np.zeros((d, KNOTS, KNOTS))
    covariance[:, lower, lower] += summed((1 - right_part) ** 2)
    covariance[:, upper, upper] += summed(right_part**2)
    covariance[:, lower, upper] = covariance[:, upper, lower] = summed(right_part * (1 - right_part))
    covariance -= means[:, :, None] * means[:, None, :]
    steepness = summed(np.ones_like(right_part)) / np.diff(knots, axis=0).T ** 2
    energy = np.zeros((d, KNOTS, KNOTS))
    energy[:, lower, lower] += steepness
    energy[:, upper, upper] += steepness
    energy[:, lower, upper] = energy[:, upper, lower] = -steepness
    return covariance, energy


def _product(values: np.ndarray, share: np.ndarray) -> np.ndarray:
    return np.swapaxes(values, 1, 2) @ (share[:, None] * values)


def _covariance(values: np.ndarray, share: np.ndarray) -> np.ndarray:
    means = share @ values
    return _product(values, share) - means[:, :, None] * means[:, None, :]


def _axis_diffusion(tensor: DiffusionTensor, sample: Sample, axes: np.ndarray) -> np.ndarray:
    """Return the mean of uᵀDu for every axis u."""
    scalar, factor = tensor.rows(sample.X, sample.rows)
    total = np.zeros(len(axes))
    if tensor.constant is not None:
        total += np.einsum("ij,ij->j", axes, tensor.constant @ axes) if tensor.constant.ndim else tensor.constant
    if scalar is not None:
        total += scalar.mean()
    if factor is not None:
        total += tensor.sign * np.mean(np.sum((np.swapaxes(factor, 1, 2) @ axes) ** 2, axis=1), axis=0)
    return total
