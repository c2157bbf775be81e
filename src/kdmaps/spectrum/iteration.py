"""The modes of folds for many λ by a few steps of subspace iteration each: for races, where a rough answer will do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from kdmaps.forms.moments import Moments
from kdmaps.spectrum.compiled import POTRF, POTRS, fit_path
from kdmaps.spectrum.pencil import ROUNDING

#: Vectors that the iteration carries beyond the modes asked for: they take the slow convergence at the cut.
EXTRA = 8
#: Steps from random vectors, and from the modes of a neighbouring λ or of overlapping samples.
STEPS = np.array([5, 2])
#: The same for pairs of frames, whose fast modes are less far apart, and the eigenvalue of what changes in a lag.
LAGGED_STEPS, LAGGED_BOUND = np.array([8, 4]), 1.0
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
    p = len(classes[0].total)
    start = np.random.default_rng(0).standard_normal((min(n_modes + EXTRA, p), p))
    arrays = [np.stack([getattr(part, name) for part in classes]) for name in ("total", "gram", "energy")]
    weights = np.array([part.weight for part in classes], dtype=np.float64)
    penalty = np.eye(p) if ridge is None else np.ascontiguousarray(ridge)
    settings = (penalty, lambdas, start, n_modes, center, steps, bound, MARGIN * ROUNDING)
    return FoldPath(*fit_path(POTRF, POTRS, members, weights, *arrays, *settings))  # type: ignore[call-arg]


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
