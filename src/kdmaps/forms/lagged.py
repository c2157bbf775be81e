"""The lagged form: variance against the change during a lag, for pairs (x, y) = (x_t, x_{t+τ}) of a trajectory.

Symmetrised over the direction of time, C₀ = ½E[φ(x)φ(x)ᵀ + φ(y)φ(y)ᵀ] and C_τ = ½E[φ(x)φ(y)ᵀ + φ(y)φ(x)ᵀ] have the
difference L_τ = C₀ - C_τ = ½E[(φ(y) - φ(x))(φ(y) - φ(x))ᵀ], the Dirichlet form of the chain observed every τ. With it,
Σa = μ(L_τ+λR)a is the problem of the energy form: the quotient aᵀL_τa/aᵀΣa of a mode is 1 - ν with its autocorrelation
ν, and the time scale is -τ/ln ν. As a sum of squares, L_τ loses no digits for slow modes and is never negative.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kdmaps.bases import Basis
from kdmaps.data.pairs import split_pairs
from kdmaps.data.sources import Source, weights_at
from kdmaps.forms.moments import Moments, MomentsForm, chunk_rows
from kdmaps.utils.blas import mirror
from kdmaps.utils.threads import map_reduce, slices

#: Pairs per block: a few hundred features of so many pairs stay in the cache.
BLOCK_PAIRS = 512


@dataclass
class _State:
    """Σwssᵀ and Σwδδᵀ (lower triangles) and Σws, s = φ(x) + φ(y), δ = φ(y) - φ(x); Σwsδᵀ and Σwδ if not reversible."""

    sums: np.ndarray
    differences: np.ndarray
    total: np.ndarray
    block: np.ndarray  # s and δ of a block of pairs, times √w
    work: np.ndarray | None
    flow: np.ndarray | None
    change: np.ndarray | None
    pairs: int = 0
    weight: float = 0.0
    weight_squared: float = 0.0


@dataclass(frozen=True)
class LaggedForm(MomentsForm):
    """Sums of features over pairs of frames; their `Moments` have L_τ for energy."""

    lag: int
    reversible: bool = True  # if False, `Moments.flow` is summed too: one more product
    spaces = None

    def part(self, rows: slice) -> Self:
        """Return the form of these pairs alone, which is identical."""
        return self

    def moments(
        self,
        basis: Basis,
        source: Source,
        sample_weight: np.ndarray | None = None,
        rows: np.ndarray | None = None,
        *,
        memory_limit: float | None = None,
        kept: int = 0,
    ) -> Moments:
        """Sum over the pairs of a source, in chunks over all cores.

        With s = φ(x) + φ(y) and δ = φ(y) - φ(x): Σw·½(φφᵀ of both frames) = ¼Σw(ssᵀ + δδᵀ), and L_τ sums ½wδδᵀ. Two
        symmetric products take two thirds of the work of computing C₀ and C_τ. Parameters are as in
        `EnergyForm.moments`.
        """
        p, single = basis.n_features, basis.dtype == np.float32

        def start() -> _State:
            work = np.zeros((p, p), np.float32) if single else None
            directed = () if self.reversible else (np.zeros((p, p)), np.zeros(p))
            block = np.empty((2, min(size, BLOCK_PAIRS), p), basis.dtype)
            return _State(np.zeros((p, p)), np.zeros((p, p)), np.zeros(p), block, work, *(directed or (None, None)))

        def step(state: _State, part: Any) -> None:
            index, chunk = source.read(part)
            weight = np.ones(len(chunk)) if sample_weight is None else weights_at(sample_weight, index)
            self._add(state, basis, np.asarray(chunk, dtype=np.float64), weight)

        size = chunk_rows(basis, p, memory_limit, kept, row_bytes=8 * 6 * (p + basis.dim))
        states = map_reduce(source.parts(size, rows), start, step)
        sums, differences, total, count, weight, squared = (
            sum(getattr(state, name) for state in states)
            for name in ("sums", "differences", "total", "pairs", "weight", "weight_squared")
        )
        if sample_weight is not None and rows is None and len(sample_weight) != count:
            raise ValueError(f"sample_weight has {len(sample_weight)} entries for {count} pairs of frames.")
        differences = mirror(differences)
        directed = () if self.reversible else (sum(s.flow for s in states) / 2, sum(s.change for s in states) / 2)
        means = total / 2, (mirror(sums) + differences) / 4, differences / 2
        return Moments(count, weight, squared, *means, *directed)

    def _add(self, state: _State, basis: Basis, pairs: np.ndarray, weight: np.ndarray) -> None:
        """Add a chunk of pairs."""
        state.pairs += len(pairs)
        state.weight += float(weight.sum())
        state.weight_squared += float(weight @ weight)
        root = np.sqrt(weight).astype(basis.dtype)
        from kdmaps.bases.compiled import add_pair_grams  # slow to load

        for part in slices(len(pairs), BLOCK_PAIRS):
            here, there = self._features(basis, *split_pairs(pairs[part]))
            both, difference = state.block[:, : len(here)]
            add_pair_grams(
                here, there, root[part], both, difference, state.sums, state.differences, state.total, state.work
            )
            if state.flow is not None and state.change is not None:
                state.flow += both.T @ difference
                state.change += root[part] @ difference

    def _features(self, basis: Basis, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the features of both frames of each pair; consecutive frames are computed once."""
        lag = self.lag  # with infinite `n_rows` below: the compiled code is loaded anyway
        if lag < len(first) and np.array_equal(first[lag:], second[:-lag]):
            frames = np.concatenate([first, second[-lag:]])
            features = basis.features(frames, np.inf).astype(basis.dtype, copy=False)
            return features[:-lag], features[lag:]
        here, there = (basis.features(np.ascontiguousarray(frames), np.inf) for frames in (first, second))
        return here.astype(basis.dtype, copy=False), there.astype(basis.dtype, copy=False)
