"""Moments: sums over all samples, which everything else is computed from.

Moments of chunks, folds and machines add up: streaming, cross-validation and sample weights are sums of Moments.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import reduce
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from kdmaps.bases import MIN_ROWS, Basis
from kdmaps.exceptions import MemoryLimitError
from kdmaps.utils.blas import add_gram, mirror
from kdmaps.utils.threads import map_reduce, n_threads, slices

#: Moments of several sets of samples as plain arrays that add up: (count, Σw, Σw²), Σwφ, both p×p matrices in one, and
#: flow and change, if present.
Packed = tuple[np.ndarray, ...]
#: p×p matrices that are alive at once, in the sum (for each thread) and in the solve: counted, and tested.
MATRICES_PER_THREAD, MATRICES = 4, 10


@dataclass(frozen=True)
class Moments:
    """Weighted sums over samples of the features φ of a basis."""

    count: int  #: Number of samples.
    weight: float  #: Σ w.
    weight_squared: float  #: Σ w².
    total: np.ndarray  #: (p,): Σ w φ.
    gram: np.ndarray  #: (p, p): Σ w φφᵀ.
    #: (p, p): Σ w ∇φ D ∇φᵀ with the diffusion tensor D; for pairs (x, y) of frames ½Σ w δδᵀ, δ = φ(y) - φ(x).
    energy: np.ndarray
    #: (p, p): ½Σ w sδᵀ, s = φ(x) + φ(y), for pairs whose direction in time matters. It has the same antisymmetric part
    #: as Σ w φ(x)φ(y)ᵀ; its symmetric part is half the change of Σ w φφᵀ from x to y.
    flow: np.ndarray | None = None
    change: np.ndarray | None = None  #: (p,): ½Σ w δ for such pairs.

    def _combine(self, other: Moments, combine: Callable[[Any, Any], Any]) -> Moments:
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(Moments))
        sums: list[Any] = [None if one is None or two is None else combine(one, two) for one, two in pairs]
        return Moments(*sums)

    def __add__(self, other: Moments) -> Moments:
        return self._combine(other, operator.add)

    def __sub__(self, other: Moments) -> Moments:
        return self._combine(other, operator.sub)

    @property
    def mean(self) -> np.ndarray:
        """E φ."""
        return self.total / self.weight

    @property
    def effective_count(self) -> float:
        """Kish's effective sample size (Σ w)²/Σ w²."""
        return self.weight**2 / self.weight_squared

    @property
    def weighted(self) -> bool:
        """True if samples have unequal weights, which reduce the effective number of samples."""
        return not np.isclose(self.effective_count, self.count, rtol=1e-9)

    def covariance(self, center: bool = True) -> np.ndarray:
        """Return Σ = E φφᵀ, minus E φ E φᵀ if centred."""
        second = self.gram / self.weight
        if center:
            second -= np.outer(self.mean, self.mean)
        return second

    def mean_energy(self) -> np.ndarray:
        """Return L = E ∇φ D ∇φᵀ."""
        return self.energy / self.weight

    def reduced(self, frame: np.ndarray) -> Moments:
        """Return the moments of the combinations Bᵀφ of the features, for a frame B of shape (p, q)."""
        gram, energy = (frame.T @ matrix @ frame for matrix in (self.gram, self.energy))
        flow = None if self.flow is None else frame.T @ self.flow @ frame
        change = None if self.change is None else frame.T @ self.change
        return replace(self, total=frame.T @ self.total, gram=gram, energy=energy, flow=flow, change=change)

    @staticmethod
    def pack(sets: Iterable[Moments]) -> Packed:
        """Stack the moments of several sets; one triangle of Gram and one of energy, both symmetric, share a matrix."""

        def both(m: Moments) -> np.ndarray:
            p = len(m.total)
            matrix = np.zeros((p, p + 1))
            matrix[:, :p] = np.tril(m.gram)
            matrix[:, 1:] += np.triu(m.energy)
            return matrix

        rows = [
            (np.array([m.count, m.weight, m.weight_squared]), m.total, both(m))
            + (() if m.flow is None else (m.flow, m.change))
            for m in sets
        ]
        return tuple(np.stack(column) for column in zip(*rows, strict=True))

    @staticmethod
    def unpack(packed: Packed) -> list[Moments]:
        """Return the moments of every set."""
        return [
            Moments(int(count), float(w), float(w2), a, mirror(ge[:, :-1].copy()), mirror(ge[:, 1:].T.copy()), *flow)
            for (count, w, w2), a, ge, *flow in zip(*packed, strict=True)
        ]


class MomentsForm:
    """Base of forms; moments of several sets are packed into plain arrays that add up, and back, for other machines."""

    pack: ClassVar[staticmethod[[Iterable[Moments]], Packed]] = staticmethod(Moments.pack)
    unpack: ClassVar[staticmethod[[Packed], list[Moments]]] = staticmethod(Moments.unpack)


def sum_moments(parts: Iterable[Moments]) -> Moments:
    """Add up moments, e.g. of the chunks of an iterator."""
    return reduce(operator.add, parts)


def add_exactly(
    part: Moments, total: Moments | None = None, carry: Moments | None = None
) -> tuple[Moments, Moments | None]:
    """Return `total` + `part`, and the error of this sum (Knuth's two-sum), the `carry` of the next part."""
    if total is None:
        return part, None
    part = part if carry is None else part + carry
    result = total + part
    gained = result - total
    return result, (total - (result - gained)) + (part - gained)


class StackedMoments:
    """Moments of several blocks, for sums in which every block may occur several times."""

    def __init__(self, blocks: list[Moments]):
        self._packed = Moments.pack(blocks)

    def combine(self, counts: np.ndarray) -> Moments:
        """Return the Moments of all blocks, with block b counted `counts[b]` times."""
        counts = counts.astype(np.float64)
        return Moments.unpack(tuple(np.tensordot(counts, parts, 1)[None] for parts in self._packed))[0]


def generator_moments(
    images: Callable[[np.ndarray], np.ndarray], basis: Basis, X: np.ndarray, sample_weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return E (𝒢φ)(𝒢φ)ᵀ, E (𝒢φ)φᵀ and E 𝒢φ over the samples X, in chunks; `images` maps points (n, d) to 𝒢φ (n, p)."""
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
    return mirror(square), cross, image


def check_memory_limit(memory_limit: Any) -> None:
    """Raise a ValueError unless the limit is None or a positive number."""
    if memory_limit is not None and (not isinstance(memory_limit, Real) or not 0 < float(memory_limit) < np.inf):
        raise ValueError(f"memory_limit must be None or a number of megabytes, got {memory_limit!r}.")


def chunk_rows(
    basis: Basis, n_features: int, memory_limit: float | None, kept: int = 0, row_bytes: int | None = None
) -> int:
    """Return samples per chunk for which a fit stays within `memory_limit` megabytes, all threads together.

    The limit covers chunks, accumulators, the p×p matrices of the solve and `kept` more of them.
    """
    if memory_limit is None:
        return basis.chunk_rows
    check_memory_limit(memory_limit)  # the estimator's limit may have changed since the fit
    threads, row_bytes = n_threads(), basis.row_bytes if row_bytes is None else row_bytes
    fixed = 8 * n_features**2 * (max(MATRICES_PER_THREAD * threads, MATRICES) + kept)
    rows = int((float(memory_limit) * 2**20 - fixed) / (threads * row_bytes))
    if rows < MIN_ROWS:
        needed = (fixed + MIN_ROWS * threads * row_bytes) / 2**20
        raise MemoryLimitError(
            "memory_limit={limit} MB is too small{features} on {threads} thread(s), which need {needed:.0f} MB; "
            "increase it, or use fewer {n_features}.",
            limit=memory_limit,
            features=f" for {n_features} features" if n_features else "",
            threads=threads,
            needed=np.ceil(needed),
        )
    return min(rows, basis.chunk_rows)
