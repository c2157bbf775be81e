"""cos and sin of many angles: compiled, or by NumPy where there are few samples.

To load compiled code takes about a second in every process (and to compile it, where kdmaps has never run, much more):
longer than all waves of a search with some thousand samples take in NumPy.
"""

from __future__ import annotations

import numpy as np

#: Rows of features per block: enough for BLAS, few enough for the second-level cache with a few hundred features.
BLOCK_ROWS = 320
#: Up to so many rows, nothing is compiled.
FEW_ROWS = 2048
#: Above these arguments the reduction by three parts of π loses digits, and NumPy's sin and cos are used instead.
LARGE_ARGUMENT = {np.dtype(np.float64): 1e5, np.dtype(np.float32): 8192.0}


def is_compiled(n_rows: float, dtype: np.dtype, bound: float = 0.0) -> bool:
    """Whether compiled code computes the waves of so many samples, with angles up to a bound.

    In single precision it always does, because it knows cos a - 1.
    """
    return (n_rows > FEW_ROWS or dtype == np.float32) and bound < LARGE_ARGUMENT[dtype]


def cos_sin(
    angles: np.ndarray,
    row_scale: np.ndarray,
    out: np.ndarray,
    n_rows: float | None = None,
    bound: float = np.inf,
    shift: float = 0.0,
) -> None:
    """Write [cos a - shift, sin a]·row_scale to the rows of `out`, to two units in the last place of 1.

    Any finite argument is allowed.

    Parameters
    ----------
    angles : ndarray of shape (n, q)
    row_scale : ndarray of shape (n,)
    out : ndarray of shape (n, 2q)
    n_rows : float, optional
        How many rows there are in all, if this is a block of them.
    bound : float
        An upper bound of all arguments, if one is known; it saves computing their maximum.
    shift : float
        For single precision only.
    """
    n_rows = len(angles) if n_rows is None else n_rows
    if is_compiled(n_rows, angles.dtype) and not bound < LARGE_ARGUMENT[angles.dtype]:
        bound = float(max(angles.max(initial=0.0), -angles.min(initial=0.0)))
    if is_compiled(n_rows, angles.dtype, bound):
        from kdmaps.bases import compiled

        if angles.dtype == np.float32:
            compiled.cos_sin_rows_single(angles, row_scale, out, np.float32(shift))
        else:
            compiled.cos_sin_rows(angles, row_scale, out)
        return
    q = angles.shape[1]
    np.cos(angles, out=out[:, :q])
    np.sin(angles, out=out[:, q:])
    out[:, :q] -= angles.dtype.type(shift)
    out *= row_scale[:, None]
