"""Sums over samples of features φ and of what a generator 𝒢 makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kdmaps.bases import Basis
from kdmaps.utils.blas import add_gram, mirror
from kdmaps.utils.threads import map_reduce, slices


class GeneratorMoments(NamedTuple):
    """What the residual of any combination of features depends on.

    Attributes
    ----------
    square, cross : ndarray of shape (p, p)
        E (𝒢φ)(𝒢φ)ᵀ and E (𝒢φ)φᵀ.
    image : ndarray of shape (p,)
        E 𝒢φ: zero under the stationary law, and up to sampling error for its samples.
    """

    square: np.ndarray
    cross: np.ndarray
    image: np.ndarray


def generator_moments(
    images: Callable[[np.ndarray], np.ndarray], basis: Basis, X: np.ndarray, sample_weight: np.ndarray | None = None
) -> GeneratorMoments:
    """Return E (𝒢φ)(𝒢φ)ᵀ, E (𝒢φ)φᵀ and E 𝒢φ over the samples X, in chunks: nothing of size n×p is ever formed.

    Parameters
    ----------
    images : callable
        𝒢φ at points: (n, d) → (n, p).
    basis : Basis
        φ.
    X : ndarray of shape (n, d)
    sample_weight : ndarray of shape (n,), optional
    """
    p = basis.n_features
    weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight

    def start() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.zeros((p, p)), np.zeros((p, p)), np.zeros(p)

    def step(state: tuple[np.ndarray, np.ndarray, np.ndarray], part: slice) -> None:
        chunk, root = np.asarray(X[part], dtype=np.float64), np.sqrt(weight[part])
        scaled = np.ascontiguousarray(images(chunk) * root[:, None])
        add_gram(state[0], scaled)
        state[1][:] += scaled.T @ (basis.features(chunk) * root[:, None])
        state[2][:] += root @ scaled

    states = map_reduce(list(slices(X.shape[0], basis.chunk_rows)), start, step)
    square, cross, image = (sum(parts) / weight.sum() for parts in zip(*states, strict=True))
    return GeneratorMoments(mirror(square), cross, image)
