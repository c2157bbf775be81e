"""Compiled subspace iteration for all folds and regularizations of a kernel.

Threads judge several kernels at once, so that everything of size p is one function that holds no GIL. LAPACK is called
through the pointers that SciPy exports for Cython: its f2py wrappers hold the GIL.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import get_cython_function_address, intrinsic

#: Addresses of LAPACK functions. They are arguments of the compiled code, because that code is cached for other
#: processes.
POTRF: int
POTRS: int
POTRF, POTRS = (get_cython_function_address("scipy.linalg.cython_lapack", name) for name in ("dpotrf", "dpotrs"))


#: Degree of Chebyshev's polynomials: more would let the slowest mode drown the others.
DEGREE = 4


# Loops instead of array expressions: numba compiles them ten times faster.
@njit(nogil=True, cache=True)
def fit_path(
    potrf, potrs, members, weights, totals, grams, energies, ridge, lambdas, start, n_modes, center, steps, bound,
    rounding,
):  # fmt: skip
    """Return the fields of `kdmaps.spectrum.iteration.FoldPath`."""
    n_folds, p, m, r = (members.shape[0] - 1) // 2, totals.shape[1], len(lambdas), n_modes
    S, L, weight, trace = _operators(members, weights, totals, grams, energies, center)
    known, values = np.zeros(m, np.bool_), np.zeros((m, 1 + n_folds, r))
    modes, forms = np.zeros((m, 1 + n_folds, r, p)), np.zeros((m, n_folds, 7, r, r))
    rates, vectors = np.zeros((m, r)), np.empty((1 + n_folds, start.shape[0], p))
    penalty, cold = np.empty((p, p)), True
    for i in range(m):
        known[i] = True
        for u in range(1 + n_folds):
            begin = start if cold and u == 0 else vectors[0 if cold else u]
            for j in range(p):
                for k in range(p):
                    penalty[j, k] = L[u, j, k] + lambdas[i] * ridge[j, k]
            found, rows = _leading(potrf, potrs, S[u], penalty, begin, steps[0 if cold and u == 0 else 1], bound)
            if len(found) < r:
                known[i] = False
                break
            _copy(vectors[u], rows, 1.0)
            for k in range(r):
                values[i, u, k] = found[k]
                if found[k] > rounding * trace[u] * np.dot(rows[k], rows[k]):
                    _copy(modes[i, u, k : k + 1], rows[k : k + 1], 1 / np.sqrt(found[k]))
                else:
                    known[i] = False
            if not known[i]:
                break
        cold = not known[i]
        if known[i]:
            energy = _form(modes[i, 0], L[0], modes[i, 0])
            for k in range(r):
                rates[i, k] = energy[k, k]
            for f in range(n_folds):
                _add_forms(forms[i, f], modes[i, 1 + f], modes[i, 0], S, L, ridge, 1 + f, 1 + n_folds + f)
    return known, values, rates, modes, forms, weight


@njit(nogil=True, cache=True)
def _operators(members, weights, totals, grams, energies, center):
    """Covariances and mean energies of unions of classes, their weights, and the traces of their second moments."""
    n, p = members.shape[0], totals.shape[1]
    covariances, mean_energies = np.zeros((n, p, p)), np.zeros((n, p, p))
    weight, trace, mean = np.zeros(n), np.zeros(n), np.zeros((n, p))
    for u in range(n):
        for c in range(members.shape[1]):
            if members[u, c]:
                weight[u] += weights[c]
                for i in range(p):
                    mean[u, i] += totals[c, i]
                    for j in range(p):
                        covariances[u, i, j] += grams[c, i, j]
                        mean_energies[u, i, j] += energies[c, i, j]
        for i in range(p):
            mean[u, i] /= weight[u]
            trace[u] += covariances[u, i, i] / weight[u]
        for i in range(p):
            for j in range(p):
                covariances[u, i, j] /= weight[u]
                mean_energies[u, i, j] /= weight[u]
                if center:
                    covariances[u, i, j] -= mean[u, i] * mean[u, j]
    return covariances, mean_energies, weight, trace


@njit(nogil=True, cache=True)
def _add_forms(out, V, A, S, L, ridge, train, test):
    """Write the forms of a fold, as in `FoldPath`."""
    overlap = _form(V, S[0], A)
    left, _, right = np.linalg.svd(overlap)
    _copy(out[0], _form(V, S[test], V), 1.0)
    _copy(out[1], _form(V, L[test], V), 1.0)
    _copy(out[2], _form(V, ridge, V), 1.0)
    _copy(out[3], _form(V, L[train], V), 1.0)
    _copy(out[4], overlap, 1.0)
    _copy(out[5], _form(V, S[0], V), 1.0)
    _copy(out[6], np.dot(np.ascontiguousarray(left), np.ascontiguousarray(right)), 1.0)


@njit(nogil=True, cache=True)
def _copy(out, source, factor):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = factor * source[i, j]


@njit(nogil=True, cache=True)
def _form(left, matrix, right):
    """AMBᵀ for rows A and B."""
    return np.dot(np.dot(left, matrix), np.ascontiguousarray(right.T))


@njit(nogil=True, cache=True)
def _leading(potrf, potrs, covariance, penalty, start, steps, bound):
    """Ritz pairs of Σa = μBa, descending, after some steps with B⁻¹Σ from the rows of `start`; aᵀBa = 1.

    If all unwanted μ are below a known `bound`, steps are those of Chebyshev's recurrence, which is small up to there.
    No pairs if B is not positive definite in floating point, or the vectors have become dependent.
    """
    p, k = penalty.shape[0], start.shape[0]
    factor, vectors = penalty.copy(), start.copy()
    # LAPACK reads these arrays by columns: a symmetric matrix is its own transpose, and rows become vectors.
    letter, size, info = np.array([76], np.uint8), np.array([p, k], np.int32), np.zeros(1, np.int32)
    lower, order, count = letter.ctypes.data, size.ctypes.data, size[1:].ctypes.data
    _call_five(potrf, lower, order, factor.ctypes.data, order, info.ctypes.data)  # type: ignore[call-arg]
    failed, previous = info[0] != 0, vectors
    for step in range(0 if failed else steps):
        before = vectors
        vectors = np.dot(vectors, covariance)
        _call_eight(
            potrs, lower, order, count, factor.ctypes.data, order, vectors.ctypes.data, order, info.ctypes.data
        )  # fmt: skip
        together = step % 2 == 1 or step == steps - 1  # now and then is enough for the vectors to stay apart
        if bound > 0:
            place = step % DEGREE
            for i in range(k):
                for j in range(p):
                    image = 2 / bound * vectors[i, j] - before[i, j]
                    vectors[i, j] = image if place == 0 else 2 * image - previous[i, j]
            previous, together = before, place == DEGREE - 1 or step == steps - 1
        for row in range(k if bound == 0 or together else 0):  # the recurrence knows the lengths
            length = np.sqrt(np.dot(vectors[row], vectors[row]))
            failed = failed or not 0 < length < np.inf
            _copy(vectors[row : row + 1], vectors[row : row + 1], 1 / length if length > 0 else 0.0)
        if failed:
            break
        if together:
            vectors = np.ascontiguousarray(np.linalg.qr(np.ascontiguousarray(vectors.T))[0].T)
    # Only their addresses were used above: they must live until here.
    letter[0] = size[0] = info[0] = 0
    factor[0, 0] = 0
    if failed:
        return np.empty(0), start
    # By the symmetric root of a small matrix, which is safe where its Cholesky factor is not.
    scales, turn = np.linalg.eigh(_form(vectors, penalty, vectors))
    if scales[0] <= 1e-14 * scales[-1]:
        return np.empty(0), start
    for i in range(k):
        for j in range(k):
            turn[i, j] /= np.sqrt(scales[j])
    inner = np.dot(np.dot(np.ascontiguousarray(turn.T), _form(vectors, covariance, vectors)), turn)
    values, small = np.linalg.eigh(inner)
    rows = np.dot(np.ascontiguousarray(np.dot(turn, small).T[::-1]), vectors)
    return values[::-1].copy(), rows


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
