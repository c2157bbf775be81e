"""The modes of folds for many λ by a few steps of subspace iteration each: for races, where a rough answer will do."""

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
#: Steps from random vectors, and from the modes of a neighbouring λ or of overlapping samples.
STEPS = np.array([5, 2])
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
    """Fit the modes of all samples and of every fold by a few steps of subspace iteration for each λ.

    Every step multiplies by (L+λR)⁻¹Σ; Rayleigh and Ritz end it. The vectors of the λ before are the start, so that a
    path should go from the largest λ down; those of all samples are the first start of the folds. Scores of held-out
    samples then agree with those of exact modes to about 1 %.

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
    n_folds, m, p = len(members) // 2, len(lambdas), len(classes[0].total)
    S, L, weight, trace = _operators(members, classes, center)
    R = np.eye(p) if ridge is None else ridge
    known, values = np.zeros(m, dtype=bool), np.zeros((m, 1 + n_folds, n_modes))
    modes, forms = np.zeros((m, 1 + n_folds, n_modes, p)), np.zeros((m, n_folds, 7, n_modes, n_modes))
    vectors: np.ndarray | None = None
    penalties, factors = np.empty((2, 1 + n_folds, p, p))  # used again: new pages cost as much as the sums
    for i, lam in enumerate(lambdas):
        np.add(L[: 1 + n_folds], np.multiply(R, lam, out=factors[0]), out=penalties)
        np.copyto(factors, penalties)
        problems = S[: 1 + n_folds], penalties, factors
        if vectors is None:
            pairs = _from_random(*problems, min(n_modes + EXTRA, p), steps, bound)
        else:
            pairs = _leading(*problems, vectors, steps[1], bound)
        vectors = None
        if pairs is None:
            continue
        found, rows = pairs[0][:, :n_modes], pairs[1][:, :n_modes]
        least = MARGIN * ROUNDING * trace[: 1 + n_folds, None] * np.sum(rows**2, axis=2)
        if found.shape[1] == n_modes and np.all(found > least):
            known[i], vectors, values[i] = True, pairs[1], found
            modes[i] = rows / np.sqrt(found)[:, :, None]
            forms[i] = _forms(modes[i, 1:], modes[i, 0], S, L, R)
    rates = np.einsum("mkp,pq,mkq->mk", modes[:, 0], L[0], modes[:, 0], optimize=True)
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
    n_folds = len(V)
    train, test, columns = slice(1, 1 + n_folds), slice(1 + n_folds, None), V.swapaxes(1, 2)
    image = V @ S[0]
    overlap = image @ A.T
    left, _, right = np.linalg.svd(overlap)
    held_out = (V @ S[test] @ columns, V @ L[test] @ columns, V @ R @ columns)
    return np.stack([*held_out, V @ L[train] @ columns, overlap, image @ columns, left @ right], axis=1)


def _from_random(
    covariances: np.ndarray, penalties: np.ndarray, factors: np.ndarray, size: int, steps: np.ndarray, bound: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return what `_leading` does from random vectors: first for all samples, whose vectors then start the folds."""
    start = np.random.default_rng(0).standard_normal((1, size, penalties.shape[-1]))
    whole = _leading(covariances[:1], penalties[:1], factors[:1], start, steps[0], bound)
    if whole is None or len(penalties) == 1:
        return whole
    start = np.repeat(whole[1], len(penalties) - 1, axis=0)
    folds = _leading(covariances[1:], penalties[1:], factors[1:], start, steps[1], bound)
    return None if folds is None else (np.concatenate([whole[0], folds[0]]), np.concatenate([whole[1], folds[1]]))


def _leading(
    covariances: np.ndarray, penalties: np.ndarray, factors: np.ndarray, start: np.ndarray, steps: int, bound: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Ritz pairs of Σa = μBa, descending, after some steps with B⁻¹Σ from the rows of `start`; aᵀBa = 1.

    Several problems at once; `factors` are copies of the B, and are overwritten. If all unwanted μ are below a known
    `bound`, steps are those of Chebyshev's recurrence, which is small up to there. None if a B is not positive definite
    in floating point, or vectors became dependent.
    """
    vectors = previous = start
    if not all([factorise(factor) for factor in factors]):
        return None
    for step in range(steps):
        before, vectors = vectors, vectors @ covariances
        for factor, rows in zip(factors, vectors, strict=True):
            solve(factor, rows)
        together = step % 2 == 1 or step == steps - 1  # now and then is enough for the vectors to stay apart
        if bound > 0:
            image = 2 / bound * vectors - before
            vectors = image if step % DEGREE == 0 else 2 * image - previous
            previous, together = before, step % DEGREE == DEGREE - 1 or step == steps - 1
        if bound == 0 or together:  # the recurrence knows the lengths
            lengths = np.linalg.norm(vectors, axis=2, keepdims=True)
            if not np.all((lengths > 0) & (lengths < np.inf)):
                return None
            vectors = vectors / lengths
        if together:
            vectors = np.linalg.qr(vectors.swapaxes(1, 2))[0].swapaxes(1, 2)
    # By the symmetric root of a small matrix, which is safe where its Cholesky factor is not.
    columns = vectors.swapaxes(1, 2)
    scales, turn = np.linalg.eigh(vectors @ penalties @ columns)
    if np.any(scales[:, 0] <= 1e-14 * scales[:, -1]):
        return None
    turn = turn / np.sqrt(scales)[:, None, :]
    values, small = np.linalg.eigh(turn.swapaxes(1, 2) @ (vectors @ covariances @ columns) @ turn)
    return values[:, ::-1], (turn @ small).swapaxes(1, 2)[:, ::-1] @ vectors


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
