"""Compiled chunk step: features and Gram matrix of a chunk at the speed of one BLAS `syrk`, without the GIL.

BLAS is called through the pointers of `kdmaps.utils.blas`. They are arguments, because the compiled code is cached for
other processes. Sine and cosine are compiled polynomials. Features are computed and used in blocks that fit into the
second-level cache.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from kdmaps.utils.blas import SYRK


@intrinsic
def _call(typing_context, function, a, b, c, d, e, f, g, h, i, j):
    """Call the function at an address with ten pointers, all given as integers."""

    def generate(context, builder, signature, values):
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer] * 10).as_pointer()
        builder.call(builder.inttoptr(values[0], kind), [builder.inttoptr(value, pointer) for value in values[1:]])
        return context.get_dummy_value()

    return types.void(*[types.intp] * 11), generate


@njit(nogil=True, cache=True)
def _syrk(address, A, beta, out):
    """Write AᵀA + β·out to the lower triangle of `out`; both arrays have the same type."""
    # BLAS reads row-major A as column-major Aᵀ and row-major lower as column-major upper ("U"), not transposed ("N").
    letters, size = np.array([85, 78], np.uint8), np.array([A.shape[1], A.shape[0]], np.int32)
    scalars = np.array([1, beta], dtype=A.dtype)
    columns, rows = size.ctypes.data, size[1:].ctypes.data
    _call(  # type: ignore[call-arg]
        address, letters.ctypes.data, letters[1:].ctypes.data, columns, rows,
        scalars.ctypes.data, A.ctypes.data, columns, scalars[1:].ctypes.data, out.ctypes.data, columns,
    )  # fmt: skip
    letters[0] = size[0] = scalars[0] = 0  # only their addresses are used above: this keeps the arrays alive


@njit(nogil=True, cache=True)
def _add_lower(out, work):
    for i in range(out.shape[0]):
        for j in range(i + 1):
            out[i, j] += work[i, j]


def add_single_gram(out: np.ndarray, A: np.ndarray, work: np.ndarray) -> None:
    """Add AᵀA of a float32 A, computed in float32 `work`, to the lower triangle of float64 `out`, in place."""
    _syrk(SYRK[A.dtype], A, 0.0, work)
    _add_lower(out, work)


def add_pair_grams(here: np.ndarray, *others: np.ndarray | None) -> None:
    """Write s = √w(φ(y) + φ(x)) and δ = √w(φ(y) - φ(x)), and add Σssᵀ, Σδδᵀ and Σ√w s; see `_add_pair_grams`.

    Features φ(x) `here` and φ(y) `there` have the shape (n, p); of `sums` and `differences` the lower triangle is used.
    One compiled function, as for `add_waves`; `work` is for float32, as in `add_single_gram`.
    """
    _add_pair_grams(SYRK[here.dtype], here, *others)


@njit(nogil=True, cache=True)
def _add_pair_grams(syrk, here, there, root_weight, both, difference, sums, differences, total, work):
    for i in range(here.shape[0]):
        root = root_weight[i]
        for j in range(here.shape[1]):
            both[i, j] = root * (there[i, j] + here[i, j])
            difference[i, j] = root * (there[i, j] - here[i, j])
    total += np.dot(root_weight, both)
    if work is None:  # decided at compile time
        _syrk(syrk, both, 1.0, sums)
        _syrk(syrk, difference, 1.0, differences)
    else:
        _syrk(syrk, both, 0.0, work)
        _add_lower(sums, work)
        _syrk(syrk, difference, 0.0, work)
        _add_lower(differences, work)


# Cody–Waite split of π: products of a part with integers below 2²⁰ are exact. Then polynomials for |r| ≤ π/2, from
# Chebyshev fits of (sin r/r - 1)/r² and (cos r - 1 + r²/2)/r⁴ in r², with errors below rounding.
_PI_HI, _PI_MID, _PI_LO = 3.1415926534682512, 1.2154201012607932e-10, 4.0445324975919011e-21
_S1, _S2, _S3 = -1.6666666666666666633e-1, 8.3333333333333158444e-3, -1.9841269841254955987e-4
_S4, _S5, _S6 = 2.7557319219158430571e-6, -2.5052107616384595278e-8, 1.605897727281550607e-10
_S7, _S8 = -7.6439690310527690427e-13, 2.7314289861226158535e-15
_C1, _C2, _C3 = 4.166666666666666665e-2, -1.3888888888888880126e-3, 2.4801587301579843199e-5
_C4, _C5, _C6 = -2.7557319221567154411e-7, 2.087675660256890341e-9, -1.1470712252875162875e-11
_C7, _C8 = 4.7778772907686911104e-14, -1.5218559264094550689e-16


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "arcp"}, error_model="numpy")
def cos_sin_rows(angles: np.ndarray, row_scale: np.ndarray, out: np.ndarray) -> None:
    """Write [cos θ, sin θ]·row_scale into the two halves of each row of `out`."""
    n, q = angles.shape
    for i in range(n):
        scale, row, cosines, sines = row_scale[i], angles[i], out[i, :q], out[i, q:]
        for j in range(q):  # floats only, no branches, one row at a time: this loop vectorises
            a = row[j]
            k = np.floor(a * 0.3183098861837907 + 0.5)
            r = ((a - k * _PI_HI) - k * _PI_MID) - k * _PI_LO
            z = r * r
            s = _S1 + z * (_S2 + z * (_S3 + z * (_S4 + z * (_S5 + z * (_S6 + z * (_S7 + z * _S8))))))
            c = _C1 + z * (_C2 + z * (_C3 + z * (_C4 + z * (_C5 + z * (_C6 + z * (_C7 + z * _C8))))))
            sign = (1.0 - 2.0 * (k - 2.0 * np.floor(0.5 * k))) * scale  # (-1)ᵏ
            sines[j] = (r + r * z * s) * sign
            cosines[j] = (1.0 - 0.5 * z + z * z * c) * sign


# The same in single precision: products with integers below 2¹² are exact, which suffices for arguments up to 8192.
_F = np.float32
_ONE_OVER_PI, _HALF, _ONE, _TWO = _F(0.31830987), _F(0.5), _F(1.0), _F(2.0)
_FPI_HI, _FPI_MID, _FPI_LO = _F(3.140625), _F(9.67502593994140625e-4), _F(1.5099579897537296e-7)
_FS1, _FS2, _FS3, _FS4 = _F(-1.6666665963e-1), _F(8.3332420809e-3), _F(-1.9822732181e-4), _F(2.6347327186e-6)
_FC1, _FC2, _FC3, _FC4 = _F(4.1666666078e-2), _F(-1.3888812506e-3), _F(2.4786076313e-5), _F(-2.6545867294e-7)


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "arcp"}, error_model="numpy")
def cos_sin_rows_single(angles: np.ndarray, row_scale: np.ndarray, out: np.ndarray, shift: np.float32) -> None:
    """Float32 version of `cos_sin_rows` that subtracts `shift` from the cosine; cos θ - 1 is accurate for small θ."""
    n, q = angles.shape
    for i in range(n):
        scale, row, cosines, sines = row_scale[i], angles[i], out[i, :q], out[i, q:]
        for j in range(q):
            a = row[j]
            k = np.floor(a * _ONE_OVER_PI + _HALF)
            r = ((a - k * _FPI_HI) - k * _FPI_MID) - k * _FPI_LO
            z = r * r
            s = r + r * z * (_FS1 + z * (_FS2 + z * (_FS3 + z * _FS4)))
            c = z * z * (_FC1 + z * (_FC2 + z * (_FC3 + z * _FC4))) - _HALF * z  # cos r - 1
            sign = _ONE - _TWO * (k - _TWO * np.floor(_HALF * k))
            sines[j] = s * sign * scale
            cosines[j] = (c * sign + (sign - shift)) * scale


def add_waves(Y: np.ndarray, *others: np.ndarray | None) -> None:
    """Add Σ √w z and Σ zzᵀ (lower triangle) of z = √w [cos θ, sin θ], θ = Y @ directions, to `total` and `gram`.

    One compiled function: threads that return to the interpreter after every block would wait for the GIL.
    No angle may exceed `LARGE_ARGUMENT` of `_fourier.py`. In float32, 1 is subtracted from the cosines and the rows of
    a chunk are summed in float32. Workspace: `angles` (b, q) and `waves` (b, 2q) for b rows at a time, and `work`
    (2q, 2q) for float32.
    """
    _add_waves(SYRK[Y.dtype], Y, *others)


@njit(nogil=True, cache=True)
def _add_waves(syrk, Y, directions, root_weight, angles, waves, total, gram, work):
    n, size = Y.shape[0], angles.shape[0]
    for start in range(0, n, size):
        stop = min(start + size, n)
        root, a, z = root_weight[start:stop], angles[: stop - start], waves[: stop - start]
        np.dot(Y[start:stop], directions, a)
        if work is None:  # decided at compile time
            cos_sin_rows(a, root, z)
            _syrk(syrk, z, 1.0, gram)
        else:
            cos_sin_rows_single(a, root, z, _ONE)
            _syrk(syrk, z, min(start, 1), work)
        total += np.dot(root, z)
    if work is not None:
        _add_lower(gram, work)
