"""Tangent spaces of a data manifold by local principal components, and the energy along them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from sklearn.neighbors import NearestNeighbors

from kdmaps.bases import TensorRows
from kdmaps.checks import Check, rules, warn
from kdmaps.data import ArraySource, Source
from kdmaps.data.distances import neighbors
from kdmaps.forms.diffusion import DiffusionTensor, TensorLike
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import Index

#: A local spectrum ends where it first falls by this factor. In neighbourhoods of twenty samples or more that fill all
#: dimensions, random falls are smaller.
MIN_FALL = 2.0
#: Neighbours for each dimension of a tangent space; with fewer, its last direction mixes with the normal directions.
NEIGHBORS_PER_DIMENSION = 10
#: Smallest size of neighbourhoods, and largest fraction of all samples unless the dimension needs more.
SMALLEST, LARGEST_FRACTION = 20, 0.1
#: Samples at which the size of the neighbourhoods, the dimension and the floor are estimated.
PROBES = 500
#: Numbers in the work array (samples, neighbours, columns) of a chunk.
CHUNK_NUMBERS = 2**19


@dataclass(frozen=True)
class TangentDiffusion:
    """The tensor D(x) = P(x) + ε(I - P(x)), P the projector on the tangent space of the samples at x.

    On samples of an embedded manifold, the ambient energy E|∇f|² includes the derivative of f across the manifold,
    which the samples do not determine; E|P∇f|² is the energy of diffusion on the manifold. With noise, functions of the
    normal direction need a small ε > 0, or they would cost no energy. Tangent spaces are spanned by the leading
    principal components of the nearest samples.

    Parameters
    ----------
    dimension : int or None, default=None
        Dimension m of the manifold; None estimates it.
    n_neighbors : int or None, default=None
        Samples in a neighbourhood; None chooses the number that separates tangent and normal directions best.
    floor : "auto" or float, default="auto"
        ε between 0 and 1. "auto" is the ratio of the largest normal to the mean tangential variance in a neighbourhood.
    max_samples : int, default=10000
        Neighbours are searched among at most so many samples, drawn at random with a fixed seed, to limit memory.

    Notes
    -----
    A linear function of the normal direction with variance s² has the rate ε/s². For the ε = s²/t² of "auto", with the
    tangential variance t² in a neighbourhood, it relaxes as fast as tangential functions that vary over one
    neighbourhood, so it precedes no mode that varies over longer distances.

    The dimension is the first m with s_m ≥ 2 s_{m+1} in the mean local spectrum s_1 ≥ … ≥ s_d. Among neighbourhoods
    with at least ten samples for each dimension, the size with the smallest s_{m+1} relative to the mean of s_1..s_m is
    chosen. If no spectrum has such a fall, the samples fill all dimensions, and the tensor is the identity.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("sphere-3").sample(1000, random_state=0)
    >>> spaces = kdmaps.TangentDiffusion().fit(X)
    >>> spaces.dimension
    2
    """

    dimension: int | None = None
    n_neighbors: int | None = None
    floor: float | str = "auto"
    max_samples: int = 10_000

    @one_blas_thread()
    def fit(self, X: np.ndarray | Source, sample_weight: np.ndarray | None = None) -> TangentSpaces:
        """Return tangent spaces of the samples X; samples of weight 0 are left out, other weights have no effect."""
        source, rng = X if isinstance(X, Source) else ArraySource(X, checked=True), np.random.RandomState(0)
        dim = source.n_features
        self._check(dim)
        _, X, weight = source.sample(self.max_samples, rng, sample_weight)
        X = np.unique(np.asarray(X if weight is None else X[weight > 0], dtype=np.float64), axis=0)
        choices = [choice for choice in self._choices(X) if choice[2] < 1]
        if not choices:
            if self.dimension != dim and dim > 1:
                warn(Check(rules.NO_TANGENT_SPACES, dim, dim - 1, words={"count": len(X), "columns": dim}))
            return TangentSpaces(X[:1], dim, 0, 1.0)
        k, dimension, ratio = min(choices, key=lambda choice: choice[2])
        return TangentSpaces(X, dimension, k, ratio if self.floor == "auto" else float(self.floor))

    def _choices(self, X: np.ndarray) -> Iterator[tuple[int, int, float]]:
        """Yield size of neighbourhoods, dimension, and the ratio of normal to tangential variance."""
        n, dim = X.shape
        if self.dimension == dim or n < 3:
            return
        sizes = self._sizes(n, dim)
        for k, spectrum in zip(sizes, _mean_spectra(X, sizes), strict=True):
            falls = np.flatnonzero(spectrum[:-1] >= MIN_FALL * spectrum[1:])
            m = self.dimension or (falls[0] + 1 if falls.size else dim)
            enough = self.n_neighbors is not None or k >= NEIGHBORS_PER_DIMENSION * m
            if dim > m and spectrum[0] > 0 and (enough or (self.dimension is not None and k == sizes[-1])):
                yield k, int(m), float(min(spectrum[m] / spectrum[:m].mean(), 1))

    def _sizes(self, n: int, dim: int) -> list[int]:
        if self.n_neighbors is not None:
            return [min(int(self.n_neighbors), n)]
        needed = NEIGHBORS_PER_DIMENSION * (self.dimension or dim - 1)
        largest = max(int(LARGEST_FRACTION * n), min(needed, n // 4), min(SMALLEST, n))
        sizes = [largest]
        while sizes[-1] > SMALLEST:
            sizes.append(max(SMALLEST, int(sizes[-1] / np.sqrt(2))))
        return sizes[::-1]

    def _check(self, dim: int) -> None:
        m, k = self.dimension, self.n_neighbors
        if m is not None and not (isinstance(m, Integral) and 1 <= m <= dim):
            raise ValueError(f"dimension must be None or an integer from 1 to the {dim} columns of X, got {m!r}.")
        if k is not None and not (isinstance(k, Integral) and k > (m or 1)):
            raise ValueError(f"n_neighbors must be None or an integer above the dimension {m or 1}, got {k!r}.")
        if self.floor != "auto" and not (isinstance(self.floor, Real) and 0 <= float(self.floor) <= 1):
            raise ValueError(f"floor must be 'auto' or a number from 0 to 1, got {self.floor!r}.")
        if not isinstance(self.max_samples, Integral) or self.max_samples < 3:
            raise ValueError(f"max_samples must be an integer of at least 3, got {self.max_samples!r}.")


@dataclass(frozen=True, eq=False)
class TangentSpaces:
    """Tangent spaces at any point, from the principal components of the nearest samples."""

    samples: np.ndarray  #: (n, d): samples among which neighbours are searched.
    dimension: int  #: m.
    n_neighbors: int  #: 0 if the dimension is d, without a search.
    floor: float  #: ε.

    @property
    def normal(self) -> bool:
        """True if `frames` spans the normal spaces, which have fewer directions and so need fewer products."""
        dim = self.samples.shape[1]
        return 2 * self.dimension > dim and self.n_neighbors >= dim

    @cached_property
    def _tree(self) -> NearestNeighbors:
        return neighbors(self.samples, self.n_neighbors)

    def frames(self, X: np.ndarray) -> np.ndarray:
        """Return orthonormal columns that span the tangent space at each point of X (the normal space if `normal`)."""
        m, normal = self.dimension, self.normal
        out = np.empty((len(X), X.shape[1], X.shape[1] - m if normal else m))
        for part, deviations in _neighborhoods(self.samples, self._tree, X, self.n_neighbors):
            vectors = np.linalg.eigh(_smaller_product(deviations))[1]  # ascending
            if normal:
                out[part] = vectors[:, :, :-m]
            elif vectors.shape[1] == X.shape[1]:
                out[part] = vectors[:, :, -m:]
            else:
                out[part] = np.linalg.qr(np.swapaxes(deviations, 1, 2) @ vectors[:, :, : -m - 1 : -1])[0]
        return out


class TangentTensor(DiffusionTensor):
    """D = εI + (1-ε)TTᵀ with tangent directions T, or I - (1-ε)NNᵀ with normal directions N, whichever are fewer."""

    def __init__(self, spaces: TangentSpaces, frames: np.ndarray | None = None):
        self.dim: int = spaces.samples.shape[1]
        self.spaces: TangentSpaces = spaces
        self._frames = frames
        self.sign: float = -1.0 if spaces.normal else 1.0
        self.constant: np.ndarray | None = np.array(1.0 if spaces.normal or not spaces.n_neighbors else spaces.floor)

    def part(self, index: slice) -> TangentTensor:
        """Return the tensor of these rows of X alone."""
        return self if self._frames is None else TangentTensor(self.spaces, self._frames[index])

    def at(self, X: np.ndarray, index: Index) -> TangentTensor:
        """Return the tensor of the samples X with all frames, for many passes over X."""
        if not self.spaces.n_neighbors:
            return self
        return TangentTensor(self.spaces, self.spaces.frames(np.asarray(X, dtype=np.float64)))

    def rows(self, X: np.ndarray, index: Index) -> TensorRows:
        """Return the frames at the samples `X`, which are rows `index` of the whole array."""
        if not self.spaces.n_neighbors:
            return TensorRows()
        frames = self.spaces.frames(X) if self._frames is None else self._frames[index]
        return TensorRows(factor=np.sqrt(1 - self.spaces.floor) * frames)

    def content(self, X: np.ndarray, index: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the data that determine the tangent spaces."""
        spaces = self.spaces
        yield from (spaces.samples, np.array([spaces.dimension, spaces.n_neighbors, spaces.floor]))


#: Argument `diffusion` of estimators; a string is "tangent".
DiffusionLike: TypeAlias = TensorLike | TangentDiffusion


def checked_tensor(
    diffusion: DiffusionLike, X: Any, sample_weight: np.ndarray | None = None, *, spaces: TangentSpaces | None = None
) -> DiffusionTensor:
    """Return the diffusion tensor of an estimator's argument at the samples X; `spaces` replaces those of X."""
    if isinstance(diffusion, str) and diffusion != "tangent":
        raise ValueError(f"diffusion must be None, 'tangent', a number, an array or a callable, got {diffusion!r}.")
    if isinstance(diffusion, str | TangentDiffusion):
        settings = TangentDiffusion() if isinstance(diffusion, str) else diffusion
        return TangentTensor(settings.fit(X, sample_weight) if spaces is None else spaces)
    tensor = DiffusionTensor(diffusion, X.shape[1])
    if X.shape[0] is not None:
        tensor.check_rows(X.shape[0])
    elif tensor.per_sample:
        raise ValueError("diffusion cannot be given per sample for a stream of unknown length; pass a callable.")
    return tensor


def _neighborhoods(
    samples: np.ndarray, tree: NearestNeighbors, X: np.ndarray, k: int
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield deviations (chunk, k, d) of the k samples nearest to each point of X from their mean, chunk by chunk."""
    size = max(1, CHUNK_NUMBERS // (k * X.shape[1]))
    for start in range(0, len(X), size):
        part = slice(start, min(start + size, len(X)))
        near = samples[tree.kneighbors(X[part], n_neighbors=k, return_distance=False)]
        yield part, near - near.mean(axis=1, keepdims=True)


def _smaller_product(deviations: np.ndarray) -> np.ndarray:
    """Return AᵀA (d×d) or AAᵀ (k×k) of each k×d matrix A, whichever is smaller; nonzero eigenvalues are equal."""
    transposed = np.swapaxes(deviations, 1, 2)
    return transposed @ deviations if deviations.shape[1] >= deviations.shape[2] else deviations @ transposed


def _mean_spectra(X: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    """Return variances along principal components of neighbourhoods of each size, descending, averaged over probes."""
    probes = X[np.linspace(0, len(X) - 1, min(PROBES, len(X))).astype(int)]
    tree, spectra = neighbors(X, max(sizes)), []
    for k in sizes:
        total = np.zeros(X.shape[1])
        for _, deviations in _neighborhoods(X, tree, probes, k):
            values = np.linalg.eigvalsh(_smaller_product(deviations))[:, ::-1] / k
            total[: values.shape[1]] += values.sum(axis=0)
        spectra.append(total / len(probes))
    return spectra
