"""The modes of folds for many λ by compiled subspace iteration: for races, where a rough answer will do.

Threads judge several kernels at once, so that everything of size p is one compiled function that holds no GIL. LAPACK
is called through the pointers that SciPy exports for Cython: its f2py wrappers hold the GIL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import get_cython_function_address, intrinsic
from scipy.linalg import lapack

from kdmaps.forms.moments import Moments
from kdmaps.spectrum.pencil import ROUNDING

#: Vectors that the iteration carries beyond the modes asked for: they take the slow convergence at the cut.
EXTRA = 8
#: Steps from random vectors, and from the modes of a neighbouring λ or of overlapping samples.
STEPS = np.array([5, 2])
#: Where more modes are wanted than those that are judged.
CLOSE_STEPS = np.array([12, 6])
#: Addresses of LAPACK functions. They are arguments of the compiled code, because that code is cached for other
#: processes.
_POTRF, _POTRS = (get_cython_function_address("scipy.linalg.cython_lapack", name) for name in ("dpotrf", "dpotrs"))


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
    """
    p = len(classes[0].total)
    start = np.random.default_rng(0).standard_normal((min(n_modes + EXTRA, p), p))
    arrays = [np.stack([getattr(part, name) for part in classes]) for name in ("total", "gram", "energy")]
    weights = np.array([part.weight for part in classes], dtype=np.float64)
    penalty = np.eye(p) if ridge is None else np.ascontiguousarray(ridge)
    settings = (penalty, lambdas, start, n_modes, center, steps, 2 * ROUNDING)
    return FoldPath(*_cross_fit_path(_POTRF, _POTRS, members, weights, *arrays, *settings))


@njit(nogil=True, cache=True)
def _cross_fit_path(
    potrf, potrs, members, weights, totals, grams, energies, ridge, lambdas, start, n_modes, center, steps, rounding
):  # fmt: skip
    n_folds, p, m, r = (members.shape[0] - 1) // 2, totals.shape[1], len(lambdas), n_modes
    S, L, weight, trace = _operators(members, weights, totals, grams, energies, center)
    known, values = np.zeros(m, np.bool_), np.zeros((m, 1 + n_folds, r))
    modes, forms = np.zeros((m, 1 + n_folds, r, p)), np.zeros((m, n_folds, 7, r, r))
    rates, vectors = np.zeros((m, r)), np.empty((1 + n_folds, start.shape[0], p))
    cold = True
    for i in range(m):
        known[i] = True
        for u in range(1 + n_folds):
            begin = vectors[u]
            if cold:
                begin = start if u == 0 else vectors[0]
            penalty = L[u] + lambdas[i] * ridge
            found, rows = _leading(potrf, potrs, S[u], penalty, begin, steps[0 if cold and u == 0 else 1])
            known[i] = len(found) >= r
            if not known[i]:
                break
            vectors[u] = rows
            for k in range(r):
                if not found[k] > rounding * trace[u] * np.dot(rows[k], rows[k]):
                    known[i] = False
                else:
                    modes[i, u, k] = rows[k] / np.sqrt(found[k])
            values[i, u] = found[:r]
            if not known[i]:
                break
        cold = not known[i]
        if known[i]:
            rates[i] = np.diag(_form(modes[i, 0], L[0], modes[i, 0]))
            for f in range(n_folds):
                _add_forms(forms[i, f], modes[i, 1 + f], modes[i, 0], S, L, ridge, 1 + f, 1 + n_folds + f)
    return known, values, rates, modes, forms, weight


@njit(nogil=True, cache=True)
def _operators(members, weights, totals, grams, energies, center):
    """Covariances and mean energies of unions of classes, their weights, and the traces of their second moments."""
    n, p = members.shape[0], totals.shape[1]
    covariances, mean_energies = np.zeros((n, p, p)), np.zeros((n, p, p))
    weight, trace, mean = np.zeros(n), np.zeros(n), np.zeros(p)
    for u in range(n):
        mean[:] = 0
        for c in range(members.shape[1]):
            if members[u, c]:
                weight[u] += weights[c]
                mean += totals[c]
                covariances[u] += grams[c]
                mean_energies[u] += energies[c]
        trace[u] = np.trace(covariances[u]) / weight[u]
        mean /= weight[u]
        covariances[u] /= weight[u]
        mean_energies[u] /= weight[u]
        if center:
            for i in range(p):
                covariances[u, i] -= mean[i] * mean
    return covariances, mean_energies, weight, trace


@njit(nogil=True, cache=True)
def _add_forms(out, V, A, S, L, ridge, train, test):
    """Write the forms of a fold, as in `FoldPath`."""
    overlap = _form(V, S[0], A)
    left, _, right = np.linalg.svd(overlap)
    out[0], out[1] = _form(V, S[test], V), _form(V, L[test], V)
    out[2], out[3] = _form(V, ridge, V), _form(V, L[train], V)
    out[4], out[5] = overlap, _form(V, S[0], V)
    out[6] = np.dot(np.ascontiguousarray(left), np.ascontiguousarray(right))


@njit(nogil=True, cache=True)
def _form(left, matrix, right):
    """AMBᵀ for rows A and B."""
    return np.dot(np.dot(left, matrix), np.ascontiguousarray(right.T))


@njit(nogil=True, cache=True)
def _leading(potrf, potrs, covariance, penalty, start, steps):
    """Ritz pairs of Σa = μBa, descending, after some steps with B⁻¹Σ from the rows of `start`; aᵀBa = 1.

    No pairs if B is not positive definite in floating point, or the vectors have become dependent.
    """
    p, k = penalty.shape[0], start.shape[0]
    factor, vectors = penalty.copy(), start.copy()
    # LAPACK reads these arrays by columns: a symmetric matrix is its own transpose, and rows become vectors.
    letter, size, info = np.array([76], np.uint8), np.array([p, k], np.int32), np.zeros(1, np.int32)
    lower, order, count = letter.ctypes.data, size.ctypes.data, size[1:].ctypes.data
    _call_five(potrf, lower, order, factor.ctypes.data, order, info.ctypes.data)
    failed = info[0] != 0
    for step in range(0 if failed else steps):
        vectors = np.dot(vectors, covariance)
        _call_eight(
            potrs, lower, order, count, factor.ctypes.data, order, vectors.ctypes.data, order, info.ctypes.data
        )  # fmt: skip
        failed = not np.all(np.isfinite(vectors))
        if failed:
            break
        if step % 2 == 1 or step == steps - 1:  # now and then is enough for the vectors to stay apart
            vectors = np.ascontiguousarray(np.linalg.qr(np.ascontiguousarray(vectors.T))[0].T)
        else:
            for row in range(k):
                vectors[row] /= np.sqrt(np.dot(vectors[row], vectors[row])) + 1e-300
    # Only their addresses were used above: they must live until here.
    letter[0] = size[0] = info[0] = 0
    factor[0, 0] = 0
    if failed:
        return np.empty(0), start
    # By the symmetric root of a small matrix, which is safe where its Cholesky factor is not.
    scales, turn = np.linalg.eigh(_form(vectors, penalty, vectors))
    if scales[0] <= 1e-14 * scales[-1]:
        return np.empty(0), start
    turn = turn / np.sqrt(scales)
    inner = np.dot(np.dot(np.ascontiguousarray(turn.T), _form(vectors, covariance, vectors)), turn)
    values, small = np.linalg.eigh(inner)
    rows = np.ascontiguousarray(np.dot(turn, small).T[::-1])
    return values[::-1].copy(), np.dot(rows, vectors)


def _add_call(builder, values):
    """Call the function at the first address with the other values as pointers."""
    pointer = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer] * (len(values) - 1)).as_pointer()
    builder.call(builder.inttoptr(values[0], kind), [builder.inttoptr(value, pointer) for value in values[1:]])


@intrinsic
def _call_five(typing_context, function, a, b, c, d, e):
    """Call the function at an address with five pointers, all given as integers."""

    def generate(context, builder, signature, values):
        _add_call(builder, values)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 6), generate


@intrinsic
def _call_eight(typing_context, function, a, b, c, d, e, f, g, h):
    """Call the function at an address with eight pointers, all given as integers."""

    def generate(context, builder, signature, values):
        _add_call(builder, values)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 9), generate


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
