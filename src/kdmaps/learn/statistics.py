"""Sums over the samples of size p×p, one for each class of samples with the same role in all folds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from kdmaps.bases import Basis, TensorRows
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.forms.energy import compute_moments
from kdmaps.selection.folds import Folds
from kdmaps.spectrum.pencil import ROUNDING
from kdmaps.utils.threads import map_reduce, slices


class Statistics(NamedTuple):
    """Operators for C classes of samples; its adjoint (the derivatives of a loss) has the same fields."""

    weights: Any  #: (C,): Σ w.
    totals: Any  #: (C, p): Σ w φ.
    grams: Any  #: (C, p, p): Σ w φφᵀ.
    energies: Any  #: (C, p, p): Σ w ∇φ D ∇φᵀ with the diffusion tensor D.
    ridge: Any = None  #: (p, p): R; None is the identity.
    beta: Any = None  #: (L,): weights of a mixture.
    log_bandwidths: Any = None  #: log σ/σ_start of every learned bandwidth.
    residual: Any = None  #: E (𝒢φ)(𝒢φ)ᵀ, E (𝒢φ)φᵀ, both (p, p), and E 𝒢φ, (p,), for a generator 𝒢.


def rounding_variance(statistics: Statistics) -> Any:
    """Return c such that rounding may leave a variance of c|a|² in a constant function Σ_m a_m φ_m.

    Four times `kdmaps.spectrum.pencil.rounding_variance`, so that the same test at the end of a fit passes, too.
    """
    return 8 * ROUNDING * statistics.grams.trace(axis1=1, axis2=2).sum() / statistics.weights.sum()


def map_arrays(function: Callable[..., Any], *parts: Any) -> Any:
    """Apply a function to the corresponding arrays of (nested) tuples of arrays; None stays None."""
    if parts[0] is None:
        return None
    if isinstance(parts[0], tuple):
        return tuple(map_arrays(function, *fields) for fields in zip(*parts, strict=True))
    return function(*parts)


class Chunk(NamedTuple):
    """Some samples of one class."""

    owner: int
    X: np.ndarray
    weight: np.ndarray
    tensor: TensorRows


@dataclass(frozen=True)
class Samples:
    """Samples, their weights and their folds."""

    X: np.ndarray  #: (n, d).
    sample_weight: np.ndarray | None  #: (n,).
    diffusion: DiffusionTensor
    rows: list[np.ndarray]  #: Rows of each class.
    roles: np.ndarray  #: (C, F): 1 where a class is used for training in a fold, 2 where for testing, 0 for neither.

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        sample_weight: np.ndarray | None = None,
        diffusion: DiffusionTensor | None = None,
        folds: Folds | None = None,
    ) -> Self:
        """Cut samples into the classes of `folds`, or into one."""
        diffusion = DiffusionTensor(None, X.shape[1]) if diffusion is None else diffusion
        rows = [np.arange(X.shape[0])] if folds is None else folds.rows
        roles = np.zeros((1, 0), dtype=np.int8) if folds is None else folds.roles
        return cls(X, sample_weight, diffusion, rows, roles)

    def statistics(self, basis: Basis, **fields: Any) -> Statistics:
        """Sum over the samples; `fields` are the other fields of the `Statistics`."""
        parts = [compute_moments(basis, self.X, self.sample_weight, self.diffusion, rows) for rows in self.rows]
        sums = zip(*((m.weight, m.total, m.gram, m.energy) for m in parts), strict=True)
        return Statistics(*map(np.stack, sums), **fields)

    def stream(self, size: int, start: Callable[[], Any], step: Callable[[Any, Chunk], None]) -> list[Any]:
        """Fold `step(state, chunk)` over chunks of at most `size` samples, over all cores."""

        def run(state: Any, task: tuple[int, slice]) -> None:
            owner, part = task
            index = self.rows[owner][part]
            X = np.asarray(self.X[index], dtype=np.float64)
            weight = np.ones(len(index)) if self.sample_weight is None else self.sample_weight[index]
            step(state, Chunk(owner, X, weight, self.diffusion.rows(X, index)))

        tasks = [(owner, part) for owner, rows in enumerate(self.rows) for part in slices(len(rows), size)]
        return map_reduce(tasks, start, run)
