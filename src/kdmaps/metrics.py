"""Agreement of learned modes with a reference: of subspaces (SubR², principal angles) and of single modes (alignment).

Modes are columns of values at common samples. All functions centre the columns first, because modes are defined up to a
constant, and use inner products under the empirical distribution.
"""

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import orth, polar, subspace_angles
from scipy.optimize import linear_sum_assignment

from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.validation import checked_weight, unit_weight

Array: TypeAlias = NDArray[np.float64]
# Singular values below this fraction of the largest are rounding errors of linearly dependent columns.
RANK_TOLERANCE = 1e-10


@one_blas_thread()
def subspace_r2(modes: ArrayLike, reference: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Return the mean squared cosine between the spans of learned and reference modes (the paper's SubR²).

    SubR² = ‖Qᵀ P‖_F² / min(r, R), with orthonormal bases Q of the r centred modes and P of the centred reference, of
    rank R: 1 if one span contains the other, 0 if they are orthogonal, whatever the basis of either span. A reference
    of more than r functions should contain its last degenerate cluster completely.

    Parameters
    ----------
    modes : array-like of shape (n_samples, r)
        Learned modes. If they are linearly dependent, the missing directions count as 0.
    reference : array-like of shape (n_samples, R)
        Reference modes; linearly dependent ones are dropped.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the samples.

    Returns
    -------
    float
        Between 0 and 1, larger is better.

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.metrics import subspace_r2
    >>> t = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> wave = np.column_stack([np.cos(t), np.sin(t)])
    >>> turned = np.column_stack([np.cos(t + 1), np.sin(t + 1)])
    >>> round(subspace_r2(turned, wave), 6), round(subspace_r2(turned[:, :1], np.cos(2 * t)[:, None]), 6)
    (1.0, 0.0)
    """
    modes, reference, weight = _check(modes, reference, sample_weight)
    basis, target = _basis(modes, weight), _basis(reference, weight)
    value = np.sum((basis.T @ target) ** 2) / min(modes.shape[1], target.shape[1])
    return float(min(value, 1.0))


@one_blas_thread()
def principal_angles(modes: ArrayLike, reference: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
    """Return the principal angles between the spans of the centred modes and the centred reference.

    Parameters
    ----------
    modes, reference : array-like of shape (n_samples, r) and (n_samples, R)
        Learned modes and reference modes.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the samples.

    Returns
    -------
    ndarray
        Angles in radians, ascending, as many as the smaller of the two ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.metrics import principal_angles
    >>> t = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> principal_angles(np.cos(t + 0.1)[:, None], np.cos(t)[:, None]).round(6)
    array([0.1])
    """
    modes, reference, weight = _check(modes, reference, sample_weight)
    return subspace_angles(_basis(modes, weight), _basis(reference, weight))[::-1]


@one_blas_thread()
def align_modes(
    modes: ArrayLike, reference: ArrayLike, method: Literal["procrustes", "hungarian"] = "procrustes"
) -> Array:
    """Align the order, signs and (for Procrustes) rotation of learned modes with a reference.

    "procrustes" solves min_Q ‖Ũ Q - U‖_F² over orthogonal Q: Q = M Vᵀ with Ũᵀ U = M Σ Vᵀ and minimum 2r - 2 tr Σ
    (the paper's proposition on Procrustes alignment). Ũ is any orthonormal basis of the centred modes, and U the
    orthonormal basis nearest to the centred reference columns. If the reference has more columns than there are modes,
    the modes are aligned to the r columns of U that their span captures best.

    "hungarian" assigns one mode to each reference column, maximising the sum of absolute correlations, and flips signs
    to make the correlations positive; values are otherwise unchanged.

    Parameters
    ----------
    modes, reference : array-like of shape (n_samples, r) and (n_samples, R)
        Learned modes and reference modes.
    method : {"procrustes", "hungarian"}
        Method of alignment.

    Returns
    -------
    ndarray of shape (n_samples, min(r, R))
        Aligned modes in the order of the reference columns; with "procrustes", they have mean 0 and variance 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.metrics import align_modes
    >>> t = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> wave = np.column_stack([np.cos(t), np.sin(t)])
    >>> swapped = np.column_stack([-wave[:, 1], wave[:, 0]])
    >>> bool(np.allclose(align_modes(swapped, wave, "hungarian"), wave))
    True
    """
    modes, reference, weight = _check(modes, reference, None)
    if method == "procrustes":
        n_modes = modes.shape[1]
        basis = _basis(modes, weight)
        if basis.shape[1] < n_modes or _basis(reference, weight).shape[1] < reference.shape[1]:
            raise ValueError("Procrustes needs linearly independent columns; drop dependent modes or references.")
        target = polar(_unit_columns(reference, weight))[0]
        captured = np.sum((basis.T @ target) ** 2, axis=0)
        target = target[:, np.sort(np.argsort(-captured, kind="stable")[:n_modes])]
        return basis @ polar(basis.T @ target)[0] * np.sqrt(len(modes))
    if method == "hungarian":
        correlation = _correlations(modes, reference, weight)
        target_index, mode_index = linear_sum_assignment(-np.abs(correlation.T))
        return modes[:, mode_index] * np.where(correlation[mode_index, target_index] < 0, -1, 1)
    raise ValueError(f'method must be "procrustes" or "hungarian", got {method!r}.')


@one_blas_thread()
def correlation_table(modes: ArrayLike, reference: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
    """Return the absolute correlation of every learned mode with every reference mode; shape (r, R).

    Parameters
    ----------
    modes, reference : array-like of shape (n_samples, r) and (n_samples, R)
        Learned modes and reference modes.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.metrics import correlation_table
    >>> t = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> correlation_table(np.column_stack([np.cos(t), np.sin(t)]), -np.sin(t)[:, None]).round(6)
    array([[0.],
           [1.]])
    """
    return np.abs(_correlations(*_check(modes, reference, sample_weight)))


def _check(modes: ArrayLike, reference: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Array, Array, Array]:
    """Validate the arguments, and scale the weights to sum 1."""
    checked = []
    for name, values in (("modes", modes), ("reference", reference)):
        array = np.asarray(values, dtype=np.float64)
        n, m = array.shape if array.ndim == 2 else (0, 0)
        if m == 0:
            raise ValueError(f"{name} must have shape (n_samples, n_functions), got {array.shape}.")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} contains NaN or infinity; remove those samples.")
        if n <= m:
            raise ValueError(f"{name} has {m} columns but {n} samples; pass more samples than columns.")
        checked.append(array)
    first, second = checked
    if len(first) != len(second):
        raise ValueError(f"modes has {len(first)} samples, reference {len(second)}; evaluate both at the same points.")
    return first, second, unit_weight(checked_weight(sample_weight, first), len(first))


def _unit_columns(values: Array, weight: Array) -> Array:
    """Centre the columns, weight the rows by √w, and scale the columns to norm 1."""
    scale = np.abs(values).max(axis=0)
    # Scale the largest entry to 1 first: extreme units would overflow or hide a constant column.
    values = values / np.where(scale > 0, scale, 1)
    centred = (values - weight @ values) * np.sqrt(weight)[:, None]
    norms = np.linalg.norm(centred, axis=0)
    if (norms <= 1e-13).any():
        raise ValueError(f"Column {int(np.argmin(norms))} is constant on the samples; leave out the constant mode.")
    return centred / norms


def _basis(values: Array, weight: Array) -> Array:
    """Return an orthonormal basis of the span of the centred columns, without null directions."""
    return orth(_unit_columns(values, weight), RANK_TOLERANCE)


def _correlations(modes: Array, reference: Array, weight: Array) -> Array:
    return np.clip(_unit_columns(modes, weight).T @ _unit_columns(reference, weight), -1, 1)
