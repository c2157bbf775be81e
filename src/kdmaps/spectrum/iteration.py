"""Leading modes by subspace iteration: to rounding for one symmetric matrix, roughly for the folds of a search."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from kdmaps.forms.moments import Moments
from kdmaps.spectrum.pencil import ROUNDING
from kdmaps.utils.blas import factorise, solve

#: Vectors that are iterated beyond the modes asked for: the more, the faster the modes converge.
EXTRA = 8
#: Residuals |Cy - μy| that `leading_pairs` accepts, as fractions of μ_1.
TOLERANCE = 1e-11
#: Maximum number of filters in `leading_pairs`, and their maximum degree.
MAX_FILTERS, MAX_DEGREE = 15, 10
#: A filter enlarges no vector by more than this: rounding of the largest vector spills over the others.
MAX_GROWTH = 1e8
#: Steps of `cross_fit_path` for all samples from random vectors, and for the folds from the modes of all samples.
STEPS = np.array([4, 1])
#: The same for pairs of frames, whose fast modes are closer together, and the eigenvalue of functions that forget all.
LAGGED_STEPS, LAGGED_BOUND = np.array([8, 4]), 1.0
#: Degree of the filters of `cross_fit_path`: a larger one would let the slowest mode drown the others.
DEGREE = 4
#: Modes need this many times the variance that rounding may leave: close to it, an exact solve may find fewer.
MARGIN = 100
#: Steps where more modes are computed than the score uses.
CLOSE_STEPS = np.array([12, 6])
#: Directions with variance or energy are worth finding if they are at most this fraction of all.
WORTHWHILE = 0.4


def chebyshev(
    apply: Callable[[np.ndarray], np.ndarray], vectors: np.ndarray, image: np.ndarray, bound: float, degree: int
) -> np.ndarray:
    """Return T_m(2A/b - 1)v of `vectors` v with `image` Av; the Chebyshev polynomial T_m grows beyond [0, b]."""
    before, now = vectors, 2 / bound * image - vectors
    for _ in range(degree - 1):
        before, now = now, 2 * (2 / bound * apply(now) - now) - before
    return now


def leading_pairs(C: np.ndarray, n_modes: int, start: np.ndarray | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Return r + `EXTRA` leading eigenpairs of a symmetric matrix, the first r converged; None if these are not found.

    Each round filters the vectors by the Chebyshev polynomial of [0, θ] with their smallest Ritz value θ. `start` are
    eigenvectors of a similar matrix; otherwise the iteration starts from random vectors.
    """
    shape = (len(C), n_modes + EXTRA)
    Y = np.random.default_rng(0).standard_normal(shape) if start is None or start.shape != shape else start
    for _ in range(MAX_FILTERS):
        Y = linalg.qr(Y, mode="economic", check_finite=False)[0]
        image = C @ Y
        values, turn = linalg.eigh(Y.T @ image, check_finite=False)
        values, turn = values[::-1], turn[:, ::-1]
        Y, image = Y @ turn, image @ turn
        residuals = image[:, :n_modes] - Y[:, :n_modes] * values[:n_modes]
        if np.linalg.norm(residuals, axis=0).max() <= TOLERANCE * values[0]:
            return values, Y
        if not values[-1] > MAX_GROWTH**-1 * values[0]:  # fewer directions with variance than vectors
            break
        ratio = 2 * values[0] / values[-1] - 1
        degree = int(np.clip(np.log(MAX_GROWTH) / max(np.arccosh(max(ratio, 1.0)), 1e-9), 1, MAX_DEGREE))
        Y = chebyshev(C.__matmul__, Y, image, values[-1], degree)
        Y /= np.linalg.norm(Y, axis=0)
    return None


class FoldPath(NamedTuple):
    """Modes of all samples and of the training samples of F folds at m regularizations."""

    known: np.ndarray  # (m,): True where the samples determine all r modes
    values: np.ndarray  # (m, 1+F, r): μ, of all samples first
    rates: np.ndarray  # (m, r), of all samples
    modes: np.ndarray  # (m, 1+F, r, p): coefficients of unit variance, in rows
    # (m, F, 7, r, r), for the modes V of a fold and A of all samples: VᵀΣV and VᵀLV of the test samples, VᵀRV, VᵀLV of
    # the training samples, VᵀΣA and VᵀΣV of all samples, and the rotation of V towards A.
    forms: np.ndarray
    weight: np.ndarray  # (1+2F,): of all samples, training samples, test samples


def cross_fit_path(
    members: np.ndarray,
    classes: Sequence[Moments],
    ridge: np.ndarray | None,
    lambdas: np.ndarray,
    n_modes: int,
    center: bool = True,
    steps: np.ndarray = STEPS,
    bound: float = 0.0,
) -> FoldPath:
    """Fit the modes of all samples and of every fold by a few steps of subspace iteration, all λ at once.

    Each step multiplies by (L+λR)⁻¹Σ; a Rayleigh–Ritz projection follows the last one. The folds start from the modes
    of all samples. Held-out scores agree with the scores of exact modes to about 1 %.

    `members` (1+2F, C) has the classes that make up all samples, the training samples of each fold, and the test
    samples of each fold; `bound` is a known upper bound of all μ beyond the first r, or 0.
    """
    n_sets, m, p = 1 + len(members) // 2, len(lambdas), len(classes[0].total)
    S, L, weight, trace = _operators(members, classes, center)
    R = np.eye(p) if ridge is None else ridge
    values, rates = np.zeros((m, n_sets, n_modes)), np.zeros((m, n_modes))
    modes, forms = np.zeros((m, n_sets, n_modes, p)), np.zeros((m, n_sets - 1, 7, n_modes, n_modes))
    factors = L[:n_sets] + np.multiply.outer(lambdas, R)[:, None]
    known = np.array([all([factorise(factor) for factor in some]) for some in factors], dtype=bool)
    if not known.any() or n_modes > p:
        return FoldPath(np.zeros(m, dtype=bool), values, rates, modes, forms, weight)
    factors = factors if known.all() else factors[known]
    start = np.random.default_rng(0).standard_normal((min(n_modes + EXTRA, p), p))
    whole = _iterated(S[:1], factors[:, :1], np.broadcast_to(start, (len(factors), 1, *start.shape)), steps[0], bound)
    folds = _iterated(S[1:n_sets], factors[:, 1:], np.repeat(whole, n_sets - 1, axis=1), steps[1], bound)
    found, rows = _ritz(S[:n_sets], L[:n_sets], R, lambdas[known], np.concatenate([whole, folds], axis=1), n_modes)
    safe = found > MARGIN * ROUNDING * trace[:n_sets, None] * np.sum(rows**2, axis=-1)
    found = np.where(safe, found, 1.0)
    rows /= np.sqrt(found)[..., None]
    values[known], modes[known] = found, rows
    forms[known] = _forms(rows[:, 1:], rows[:, :1], S, L, R)
    rates[known] = np.sum((rows[:, 0] @ L[0]) * rows[:, 0], axis=-1)
    known[known] = np.all(safe, axis=(1, 2))
    return FoldPath(known, values, rates, modes, forms, weight)


def _operators(
    members: np.ndarray, classes: Sequence[Moments], center: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Covariances and mean energies of unions of classes, their weights, and the traces of their second moments."""
    weight = members @ np.array([part.weight for part in classes], dtype=np.float64)
    share = members / weight[:, None]
    mean, second, energy = (
        np.tensordot(share, np.stack([getattr(part, name) for part in classes]), axes=1)
        for name in ("total", "gram", "energy")
    )
    trace = np.trace(second, axis1=1, axis2=2)
    if center:
        for matrix, m in zip(second, mean, strict=True):
            matrix -= np.outer(m, m)
    return second, energy, weight, trace


def _forms(V: np.ndarray, A: np.ndarray, S: np.ndarray, L: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Return the forms of all folds, as in `FoldPath`."""
    n_folds = V.shape[1]
    train, test, columns = slice(1, 1 + n_folds), slice(1 + n_folds, None), V.swapaxes(2, 3)
    image = V @ S[0]
    overlap = image @ A.swapaxes(2, 3)
    left, _, right = np.linalg.svd(V @ S[train] @ A.swapaxes(2, 3))  # test samples do not take part in the alignment
    held_out = (V @ S[test] @ columns, V @ L[test] @ columns, V @ R @ columns)
    return np.stack([*held_out, V @ L[train] @ columns, overlap, image @ columns, left @ right], axis=2)


def _iterated(covariances: np.ndarray, factors: np.ndarray, start: np.ndarray, steps: int, bound: float) -> np.ndarray:
    """Return orthonormal rows after some steps with B⁻¹Σ from the rows of `start` (m, n, k, p), n sets at m λ."""

    def apply(rows: np.ndarray) -> np.ndarray:
        rows = rows @ covariances
        for i in np.ndindex(*start.shape[:2]):
            solve(factors[i], rows[i])
        return rows

    vectors = start
    for step in range(0, steps, DEGREE if bound > 0 else 1):
        image, last = apply(vectors), step == steps - 1
        if bound > 0:
            image, last = chebyshev(apply, vectors, image, bound, min(DEGREE, steps - step)), True
        with np.errstate(invalid="ignore"):
            vectors = image / np.linalg.norm(image, axis=-1, keepdims=True)
        if last or step % 2 == 1:  # every second step is enough for the vectors to stay apart
            vectors = np.linalg.qr(vectors.swapaxes(2, 3))[0].swapaxes(2, 3)
    return vectors


def _ritz(
    covariances: np.ndarray, energies: np.ndarray, R: np.ndarray, lambdas: np.ndarray, vectors: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the n largest μ (0 for unusable rows) of Σa = μ(L+λR)a in the span of some rows, and the rows a."""
    sound = np.all(np.isfinite(vectors), axis=(2, 3), keepdims=True)
    vectors = np.where(sound, vectors, np.eye(*vectors.shape[2:]))
    columns = vectors.swapaxes(2, 3)
    penalties = vectors @ energies @ columns + lambdas[:, None, None, None] * (vectors @ R @ columns)
    # By the symmetric root of a small matrix, which is safe where its Cholesky factor is not.
    scales, turn = np.linalg.eigh(penalties)
    sound = sound[..., 0] & (scales[..., :1] > 1e-14 * scales[..., -1:])
    turn = turn / np.sqrt(np.where(sound, scales, 1.0))[..., None, :]
    values, small = np.linalg.eigh(turn.swapaxes(2, 3) @ (vectors @ covariances @ columns) @ turn)
    rows = (turn @ small[..., ::-1][..., :n]).swapaxes(2, 3) @ vectors
    return np.where(sound, values[..., ::-1][..., :n], 0.0), rows


def seen_directions(second_moment: np.ndarray, energy: np.ndarray) -> np.ndarray | None:
    """Return orthonormal directions outside of which the samples have neither variance nor energy, to rounding.

    None if these are more than the fraction `WORTHWHILE` of all: a smooth kernel leaves few, a rough one nearly all.
    """
    matrix = second_moment / np.trace(second_moment) + energy / np.trace(energy)
    factor, pivots, rank, _ = lapack.dpstrf(matrix, lower=1, tol=ROUNDING * matrix.diagonal().max())
    if rank > WORTHWHILE * len(matrix):
        return None
    columns = np.empty((len(matrix), rank))
    columns[pivots - 1] = np.tril(factor)[:, :rank]
    return np.linalg.qr(columns)[0]
