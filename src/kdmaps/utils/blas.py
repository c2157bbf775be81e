"""BLAS and LAPACK in place and without the interpreter lock, which SciPy's wrappers hold.

They are called through the pointers that SciPy exports for Cython; ctypes releases the lock during the call. Arrays are
C-contiguous. LAPACK reads them by columns: a symmetric matrix equals its transpose, and rows become vectors.
"""

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, cython_lapack


def _pointer(module: Any, name: str) -> int:
    """Return the address of a routine."""
    capsule = module.__pyx_capi__[name]
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address: int = get_pointer(capsule, get_name(capsule))
    return address


def _routine(address: int, n_arguments: int) -> Any:
    """Return a function that calls a routine with pointers as arguments."""
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


#: Addresses, for compiled code.
SYRK = {np.dtype(np.float64): _pointer(cython_blas, "dsyrk"), np.dtype(np.float32): _pointer(cython_blas, "ssyrk")}
_DGEMM = _routine(_pointer(cython_blas, "dgemm"), 13)
_DSYRK, _DPOTRF = _routine(SYRK[np.dtype(np.float64)], 10), _routine(_pointer(cython_lapack, "dpotrf"), 5)
_DPOTRS = _routine(_pointer(cython_lapack, "dpotrs"), 8)
_UPPER, _LOWER, _PLAIN, _TRANSPOSED = b"U", b"L", b"N", b"T"
_ONE = ctypes.c_double(1.0)


def add_gram(out: np.ndarray, A: np.ndarray) -> None:
    """Add AᵀA to the lower triangle of `out`."""
    rows, columns = (ctypes.byref(ctypes.c_int(size)) for size in A.shape)
    # Row-major A is column-major Aᵀ, not transposed, and row-major lower is column-major upper.
    _DSYRK(_UPPER, _PLAIN, columns, rows, ctypes.byref(_ONE), A.ctypes.data, columns, ctypes.byref(_ONE),
           out.ctypes.data, columns)  # fmt: skip


def add_product(out: np.ndarray, A: np.ndarray, B: np.ndarray) -> None:
    """Add AᵀB to `out`, for A and B of the same shape."""
    rows, columns = (ctypes.byref(ctypes.c_int(size)) for size in A.shape)
    # In column-major order, `out` is outᵀ = BᵀA with B not transposed.
    _DGEMM(_PLAIN, _TRANSPOSED, columns, columns, rows, ctypes.byref(_ONE), B.ctypes.data, columns, A.ctypes.data,
           columns, ctypes.byref(_ONE), out.ctypes.data, columns)  # fmt: skip


def mirror(lower: np.ndarray) -> np.ndarray:
    """Copy the lower triangle to the upper one, in place, and return the symmetric matrix."""
    np.copyto(lower, lower.T.copy(), where=_above_diagonal(len(lower)))
    return lower


@lru_cache(maxsize=4)
def _above_diagonal(size: int) -> np.ndarray:
    """Return a mask of the upper triangle without the diagonal."""
    return ~np.tri(size, dtype=bool)


def factorise(matrix: np.ndarray) -> bool:
    """Replace a symmetric matrix by its Cholesky factor; return False if it is not positive definite."""
    size, info = ctypes.byref(ctypes.c_int(len(matrix))), ctypes.c_int(0)
    _DPOTRF(_LOWER, size, matrix.ctypes.data, size, ctypes.byref(info))
    return info.value == 0


def solve(factor: np.ndarray, rows: np.ndarray) -> None:
    """Replace every row by the solution of the factorised equations with this row as right-hand side."""
    size, count = ctypes.byref(ctypes.c_int(len(factor))), ctypes.byref(ctypes.c_int(len(rows)))
    _DPOTRS(_LOWER, size, count, factor.ctypes.data, size, rows.ctypes.data, size, ctypes.byref(ctypes.c_int(0)))
