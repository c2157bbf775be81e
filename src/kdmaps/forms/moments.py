"""Moments: the only thing that ever sees all of X.

They form a group: chunks add, folds subtract, machines reduce. Streaming, cross-validation and sample weights are all
sums of Moments.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from kdmaps.bases import Basis
from kdmaps.bases._base import MIN_ROWS
from kdmaps.data import ArraySource, Source
from kdmaps.data.remote import RemoteSource
from kdmaps.data.sources import weights_at
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.forms.engines import chunk_rows, make_loop
from kdmaps.utils.threads import map_reduce, single_thread


@dataclass(frozen=True)
class Moments:
    """Weighted sums over samples of the features φ of a basis.

    Attributes
    ----------
    count : int
        Number of samples.
    weight, weight_squared : float
        Σ w and Σ w².
    total : ndarray of shape (p,)
        Σ w φ.
    gram : ndarray of shape (p, p)
        Σ w φφᵀ.
    energy : ndarray of shape (p, p)
        Σ w ∇φ a ∇φᵀ.
    """

    count: int
    weight: float
    weight_squared: float
    total: np.ndarray
    gram: np.ndarray
    energy: np.ndarray

    def _combine(self, other: Moments, sign: int) -> Moments:
        return Moments(
            self.count + sign * other.count,
            self.weight + sign * other.weight,
            self.weight_squared + sign * other.weight_squared,
            self.total + sign * other.total,
            self.gram + sign * other.gram,
            self.energy + sign * other.energy,
        )

    def __add__(self, other: Moments) -> Moments:
        return self._combine(other, 1)

    def __sub__(self, other: Moments) -> Moments:
        return self._combine(other, -1)

    def __mul__(self, factor: float) -> Moments:
        """The moments with every sample weight multiplied by `factor`."""
        return Moments(
            self.count,
            factor * self.weight,
            factor**2 * self.weight_squared,
            factor * self.total,
            factor * self.gram,
            factor * self.energy,
        )

    __rmul__ = __mul__

    @property
    def mean(self) -> np.ndarray:
        """E φ."""
        return self.total / self.weight

    @property
    def effective_count(self) -> float:
        """Kish's effective sample size (Σ w)²/Σ w²."""
        return self.weight**2 / self.weight_squared

    def covariance(self, center: bool = True) -> np.ndarray:
        """Σ = E φφᵀ, minus E φ E φᵀ if centred."""
        second = self.gram / self.weight
        if center:
            second -= np.outer(self.mean, self.mean)
        return second

    def mean_energy(self) -> np.ndarray:
        """L = E ∇φ a ∇φᵀ."""
        return self.energy / self.weight


def compute_moments(
    basis: Basis,
    X: np.ndarray | Source,
    sample_weight: np.ndarray | None = None,
    diffusion: DiffusionTensor | None = None,
    rows: np.ndarray | None = None,
    *,
    engine: str | None = "numba",
    memory_limit: float | None = None,
    kept: int = 0,
) -> Moments:
    """Moments of the samples X, in chunks over all cores; nothing larger than a chunk is ever formed.

    Parameters
    ----------
    basis : Basis
    X : array of shape (n_samples, d), or Source
    sample_weight : ndarray of shape (n_samples,), optional
    diffusion : DiffusionTensor, optional
        The identity by default.
    rows : ndarray of int, optional
        Only these samples, of an array.
    engine : {"numba", "jax"} or None, default="numba"
        See `kdmaps.forms.engines.make_loop`.
    memory_limit : float, optional
        Megabytes, see `kdmaps.forms.engines.chunk_rows`.
    kept : int, default=0
        How many other p×p matrices count towards the limit.
    """
    source = X if isinstance(X, Source) else ArraySource(X, checked=True)
    diffusion = DiffusionTensor(None, basis.dim) if diffusion is None else diffusion
    if isinstance(source, RemoteSource):
        return source.moments(basis, sample_weight, diffusion, engine=engine, memory_limit=memory_limit)[0]

    def step(state, part):
        index, chunk = source.read(part)
        chunk = np.asarray(chunk, dtype=np.float64)
        weight = np.ones(chunk.shape[0]) if sample_weight is None else weights_at(sample_weight, index)
        loop.step(state, chunk, np.sqrt(weight), diffusion.rows(chunk, index), diffusion.constant)

    loop = make_loop(basis, engine)
    size = chunk_rows(loop, basis.n_features, memory_limit, kept)
    known = source.n_samples if rows is None else len(rows)
    if known is not None:  # a power of two: few sizes to compile for, where sizes are compiled for
        size = min(size, max(MIN_ROWS, 2 ** (known - 1).bit_length()))
    chosen = {} if rows is None else {"rows": rows}
    # An accelerator is fed by one thread.
    with nullcontext() if loop is basis else single_thread():
        states = map_reduce(source.parts(size, **chosen), lambda: loop.start(size), step)
    n = len(rows) if rows is not None else source.n_samples or 0
    weight, squared = float(n), float(n)
    if sample_weight is not None:
        weights = sample_weight if rows is None else sample_weight[rows]
        if len(weights) != n:
            raise ValueError(f"sample_weight has {len(weights)} entries, but X has {n} samples.")
        weight, squared = float(weights.sum()), float(weights @ weights)
    return Moments(n, weight, squared, *loop.finish(states, diffusion))


def sum_moments(parts: Iterable[Moments]) -> Moments:
    """Σ of moments, e.g. of the chunks of an iterator."""
    parts = iter(parts)
    total = next(parts)
    for part in parts:
        total = total + part
    return total


def add_exactly(
    part: Moments, total: Moments | None = None, carry: Moments | None = None
) -> tuple[Moments, Moments | None]:
    """`total` + `part`, and the rounding error of this sum, to be given as `carry` with the next part.

    Compensated summation (Knuth's two-sum): the error after any number of parts is that of one addition.
    """
    if total is None:
        return part, None
    part = part if carry is None else part + carry
    result = total + part
    gained = result - total
    return result, (total - (result - gained)) + (part - gained)
