"""The modes of folds for many λ by a few steps of subspace iteration: for races, where a rough answer will do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from kdmaps.forms.moments import Moments
from kdmaps.spectrum.pencil import ROUNDING
from kdmaps.utils.blas import factorise, solve

#: Vectors that the iteration carries beyond the modes asked for: they take the slow convergence at the cut.
EXTRA = 8
#: Steps of all samples from random vectors, and of the folds from the modes of all samples.
STEPS = np.array([4, 1])
#: The same for pairs of frames, whose fast modes are less far apart, and the eigenvalue of what changes in a lag.
LAGGED_STEPS, LAGGED_BOUND = np.array([8, 4]), 1.0
#: Degree of Chebyshev's polynomials: more would let the slowest mode drown the others.
DEGREE = 4
#: Modes need this many times the variance that rounding may leave: at the brink, an exact solve may find fewer.
MARGIN = 100
#: Where more modes are wanted than those that are judged.
CLOSE_STEPS = np.array([12, 6])


class FoldPath(NamedTuple):
    """Modes of all samples and of the training samples of F folds at m regularizations.

    Attributes
    ----------
    known : ndarray of shape (m,)
        Whether the samples determine so many modes.
    values : ndarray of shape (m, 1+F, r)
        μ, of all samples first.
    rates : ndarray of shape (m, r)
        Of all samples.
    modes : ndarray of shape (m, 1+F, r, p)
        Coefficients of unit variance, in rows.
    forms : ndarray of shape (m, F, 7, r, r)
        For the modes V of a fold and A of all samples: VᵀΣV and VᵀLV of the test samples, VᵀRV, VᵀLV of the training
        samples, VᵀΣA and VᵀΣV of all samples, and the rotation of V towards A.
    weight : ndarray of shape (1+2F,)
        Of all samples, training samples, test samples.
    """

    known: np.ndarray
    values: np.ndarray
    rates: np.ndarray
    modes: np.ndarray
    forms: np.ndarray
    weight: np.ndarray


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

    Every step multiplies by (L+λR)⁻¹Σ; Rayleigh and Ritz end it. The modes of all samples are the start of the folds.
    Scores of held-out samples then agree with those of exact modes to about 1 %.

    Parameters
    ----------
    members : ndarray of shape (1+2F, C) of bool
        Which classes of samples make up all samples, and the training and then the test samples of each fold.
    classes : sequence of C Moments
    ridge : ndarray of shape (p, p) or None
        R; None is the identity.
    lambdas : ndarray of shape (m,)
    n_modes : int
        r.
    center : bool
    steps : ndarray of two int
        As `STEPS`.
    bound : float
        All μ that are not wanted are below this one; 0 if it is not known.
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
    left, _, right = np.linalg.svd(overlap)
    held_out = (V @ S[test] @ columns, V @ L[test] @ columns, V @ R @ columns)
    return np.stack([*held_out, V @ L[train] @ columns, overlap, image @ columns, left @ right], axis=2)


def _iterated(covariances: np.ndarray, factors: np.ndarray, start: np.ndarray, steps: int, bound: float) -> np.ndarray:
    """Return orthonormal rows after some steps with B⁻¹Σ from the rows of `start`, for the n sets at every λ.

    If all unwanted μ are below a known `bound`, steps are those of Chebyshev's recurrence, which is small up to there.
    NaN where rows vanished or became infinite.

    Parameters
    ----------
    covariances : ndarray of shape (n, p, p)
    factors : ndarray of shape (m, n, p, p)
        What `factorise` made of B.
    start : ndarray of shape (m, n, k, p)
    steps, bound :
        As in `cross_fit_path`.
    """
    vectors = previous = start
    problems = list(np.ndindex(*start.shape[:2]))
    for step in range(steps):
        before, vectors = vectors, vectors @ covariances
        for i in problems:
            solve(factors[i], vectors[i])
        together = step % 2 == 1 or step == steps - 1  # now and then is enough for the vectors to stay apart
        if bound > 0:
            image = 2 / bound * vectors - before
            vectors = image if step % DEGREE == 0 else 2 * image - previous
            previous, together = before, step % DEGREE == DEGREE - 1 or step == steps - 1
        if bound == 0 or together:  # the recurrence knows the lengths
            with np.errstate(invalid="ignore"):
                vectors = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
        if together:
            vectors = np.linalg.qr(vectors.swapaxes(2, 3))[0].swapaxes(2, 3)
    return vectors


def _ritz(
    covariances: np.ndarray, energies: np.ndarray, R: np.ndarray, lambdas: np.ndarray, vectors: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the n largest μ of Σa = μBa, B = L+λR, in the span of some rows, and the rows a, with aᵀBa = 1.

    μ is 0 where rows are not finite or dependent.
    """
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


def seen_directions(second_moment: np.ndarray, energy: np.ndarray, worthwhile: float = 0.4) -> np.ndarray | None:
    """Return orthonormal directions outside of which the samples see neither variance nor energy, to rounding.

    By pivoted Cholesky decomposition of the sum of both matrices, each divided by its trace. None if these are more
    than the fraction `worthwhile` of all directions: a smooth kernel leaves few, a rough one nearly all.
    """
    matrix = second_moment / np.trace(second_moment) + energy / np.trace(energy)
    factor, pivots, rank, _ = lapack.dpstrf(matrix, lower=1, tol=ROUNDING * matrix.diagonal().max())
    if rank > worthwhile * len(matrix):
        return None
    columns = np.empty((len(matrix), rank))
    columns[pivots - 1] = np.tril(factor)[:, :rank]
    return np.linalg.qr(columns)[0]
