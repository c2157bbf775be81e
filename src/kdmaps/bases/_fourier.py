"""Random Fourier features, in pairs of cosine and sine or with random phases.

Their waves are computed by compiled code, or by NumPy for few samples: loading compiled code takes about a second in
every process (and much more to compile it for the first time), longer than NumPy needs for a search with some thousand
samples.
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from kdmaps.bases._base import Basis, Sums, TensorRows, times
from kdmaps.kernels import Kernel
from kdmaps.utils.blas import add_gram, mirror
from kdmaps.utils.threads import slices

#: Rows per block of features: enough for BLAS, and a few hundred features fit into the second-level cache.
BLOCK_ROWS = 320
#: Rows of a chunk, relative to a basis that holds the features of all of them: less time is lost between chunks.
BLOCKS = 4
#: Up to so many rows, NumPy computes the waves.
FEW_ROWS = 2048
#: For larger arguments the reduction by three parts of π loses digits, and NumPy's sin and cos are used instead.
LARGE_ARGUMENT = {np.dtype(np.float64): 1e5, np.dtype(np.float32): 8192.0}


@dataclass
class _State:
    angles: np.ndarray  # (block, q) workspace
    waves: np.ndarray  # (block, 2q) workspace: [cos, sin]
    total: np.ndarray  # Σ w [cos, sin]
    gram: np.ndarray  # Σ w [cos, sin][cos, sin]ᵀ, lower triangle
    n_samples: float  # total number of samples
    work: np.ndarray | None = None  # Gram in single precision
    weight: float = 0.0  # Σ w
    scaled: np.ndarray | None = None  # gram with weights w·D(x), for a scalar diffusion per sample
    energy: np.ndarray | None = None  # Σ w ∇φ FFᵀ ∇φᵀ, lower triangle, for a diffusion factor F per sample
    flux: np.ndarray | None = None  # (block, 2q) workspace: √w ∇φ F for one column of F


@dataclass(eq=False, repr=False)
class FourierBasis(Basis):
    """Pairs of random Fourier features √v_i cos(w_iᵀx), √v_i sin(w_iᵀx), so that φ(x)ᵀφ(z) ≈ k(x, z).

    With the Gram matrix G = Σ φφᵀ in blocks (cc, cs; sc, ss), the energy Gram matrix for a constant diffusion matrix D
    is

        [[ss, -sc], [-cs, cc]] ∘ (W D Wᵀ tiled 2×2):

    one symmetric product gives both operators, for any d.

    In single precision cos - 1 and sin are summed: wide kernels have cosines close to 1, whose variance and energy
    would be lost to rounding. The 1 is added back in double precision.
    """

    kernel: Kernel
    frequencies: np.ndarray  #: (q, d).
    weights: np.ndarray  #: (q,): v, with sum 1.
    origin: np.ndarray  #: (d,).

    def __post_init__(self) -> None:
        self.n_features: int = 2 * self.frequencies.shape[0]
        self._amplitude = np.tile(np.sqrt(self.weights), 2)
        self._set_type(self.dtype)

    def _set_type(self, dtype: np.dtype) -> None:
        self.dtype = dtype
        self._shift = 1.0 if dtype == np.float32 else 0.0
        self._directions = np.ascontiguousarray(self.frequencies.T, dtype=dtype)
        self._reach = np.abs(self._directions).max(axis=1).sum()

    def astype(self, dtype: DTypeLike) -> Self:
        other = copy(self)
        other._set_type(np.dtype(dtype))
        return other

    @property
    def chunk_rows(self) -> int:
        # In single precision every chunk ends with the addition of a p×p matrix, which is negligible from 2p rows on.
        if self.dtype == np.float32:
            return max(super().chunk_rows, 2 * self.n_features)
        return BLOCKS * super().chunk_rows

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize * 3 * self.frequencies.shape[0] + 8 * 4 * self.dim

    @property
    def ridge(self) -> None:
        return None

    @cached_property
    def _pairs(self) -> np.ndarray:
        """Products of amplitudes, (p, p)."""
        return np.outer(self._amplitude, self._amplitude)

    @cached_property
    def _rotated(self) -> np.ndarray:
        """The frequencies in their span, if there are fewer than inputs: lengths are the same."""
        q, d = self.frequencies.shape
        return np.asarray(np.linalg.qr(self.frequencies.T, mode="r")).T if d > q else self.frequencies

    def _centred(self, X: np.ndarray) -> tuple[np.ndarray, float]:
        """Return X - origin and an upper bound of all angles."""
        Y = np.subtract(X, self.origin, order="C").astype(self.dtype, copy=False)
        return Y, max(Y.max(initial=0.0), -Y.min(initial=0.0)) * self._reach

    def _of_waves(self, coefficients: np.ndarray) -> np.ndarray:
        """Return the coefficients of the waves [cos, sin]."""
        return coefficients * self._amplitude[:, None]

    def _waves(self, X: np.ndarray, n_rows: float | None = None) -> np.ndarray:
        """Return [cos, sin] of the angles; X may be part of `n_rows` rows."""
        Y, bound = self._centred(X)
        out = np.empty((X.shape[0], 2 * self._directions.shape[1]), dtype=self.dtype)
        cos_sin(Y @ self._directions, np.ones(X.shape[0], self.dtype), out, n_rows, bound)
        return out

    def features(self, X: np.ndarray, n_rows: float | None = None) -> np.ndarray:
        waves = self._waves(X, n_rows)
        return np.multiply(waves, self._amplitude, out=waves if waves.dtype == np.float64 else None)

    def combine(self, X: np.ndarray, coefficients: np.ndarray, n_rows: float | None = None) -> np.ndarray:
        out, scaled = np.empty((X.shape[0], coefficients.shape[1])), self._of_waves(coefficients)
        for part in slices(X.shape[0], BLOCK_ROWS):  # waves stay in the cache
            out[part] = self._waves(X[part], n_rows or len(X)) @ scaled
        return out

    def gradient(self, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        directed = self._directed(coefficients, self.frequencies)
        return (self._waves(X) @ directed).reshape(len(X), coefficients.shape[1], self.dim)

    def _directed(self, coefficients: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """Return factors (2q, r·d) of the waves in derivatives along the `directions` (q, d) of the frequencies."""
        q, a = self.frequencies.shape[0], self._of_waves(coefficients)
        turned = np.concatenate([a[q:], -a[:q]])  # differentiation exchanges cosine and sine
        return (turned[:, :, None] * np.tile(directions, (2, 1))[:, None, :]).reshape(2 * q, -1)

    def slopes(self, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Return c of shape (n, r, q) in ∇ Σ_m a_mk φ_m(x_i) = Σ_j c_ikj w_j."""
        q, a, waves = self.frequencies.shape[0], self._of_waves(coefficients), self._waves(X)
        return waves[:, None, :q] * a[q:].T - waves[:, None, q:] * a[:q].T

    def energies(
        self, X: np.ndarray, coefficients: np.ndarray, root: np.ndarray, n_rows: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        r, directions = coefficients.shape[1], times(self._rotated if np.ndim(root) == 0 else self.frequencies, root)
        factors = np.hstack([self._of_waves(coefficients), self._directed(coefficients, directions)])
        values, energies = np.empty((2, X.shape[0], r))
        for part in slices(X.shape[0], BLOCK_ROWS):
            found = self._waves(X[part], n_rows or len(X)) @ factors
            values[part] = found[:, :r]
            energies[part] = np.sum(found[:, r:].reshape(len(found), r, -1) ** 2, axis=2)
        return values, energies

    def start(self, rows: int, n_samples: int | None = None) -> _State:
        p, rows = 2 * self.frequencies.shape[0], min(rows, BLOCK_ROWS)
        angles, waves = np.empty((rows, p // 2), self.dtype), np.empty((rows, p), self.dtype)
        work = np.zeros((p, p), self.dtype) if self.dtype == np.float32 else None
        return _State(angles, waves, np.zeros(p), np.zeros((p, p)), np.inf if n_samples is None else n_samples, work)

    def step(
        self, state: _State, X: np.ndarray, root_weight: np.ndarray, tensor: TensorRows, constant: np.ndarray | None
    ) -> None:
        (Y, bound), root = self._centred(X), root_weight.astype(self.dtype, copy=False)
        state.weight += float(root_weight @ root_weight)
        if tensor.scalar is None and tensor.factor is None and is_compiled(state.n_samples, self.dtype, bound):
            from kdmaps.bases.compiled import add_waves

            add_waves(Y, self._directions, root, state.angles, state.waves, state.total, state.gram, state.work)
            return
        for part in slices(Y.shape[0], state.angles.shape[0]):
            values = (None if value is None else value[part] for value in tensor)
            self._step_block(state, Y[part], root[part], TensorRows(*values), bound)

    def _step_block(self, state: _State, Y: np.ndarray, root: np.ndarray, tensor: TensorRows, bound: float) -> None:
        n, q = Y.shape[0], self.frequencies.shape[0]
        angles, waves = state.angles[:n], state.waves[:n]
        cos_sin(np.matmul(Y, self._directions, out=angles), root, waves, state.n_samples, bound, self._shift)
        _add_gram(state.gram, waves, state.work)
        state.total += root @ waves
        if self._shift:
            waves[:, :q] += root[:, None]
        if tensor.scalar is not None:
            state.scaled = np.zeros_like(state.gram) if state.scaled is None else state.scaled
            scale = np.sqrt(tensor.scalar).astype(self.dtype, copy=False)
            _add_gram(state.scaled, waves * scale[:, None], state.work)
        if tensor.factor is not None:
            if state.flux is None or state.energy is None:
                state.energy, state.flux = np.zeros_like(state.gram), np.empty_like(state.waves)
            flux = state.flux[:n]
            for direction in np.moveaxis(tensor.factor, 2, 0):  # (n, d) each
                along = np.matmul(direction.astype(self.dtype, order="C"), self._directions, out=angles)
                np.multiply(along, waves[:, :q], out=flux[:, q:])
                np.multiply(np.negative(along, out=along), waves[:, q:], out=flux[:, :q])
                _add_gram(state.energy, flux, state.work)

    def _turned(self, gram: np.ndarray, metric: np.ndarray) -> np.ndarray:
        """Return [[ss, -sc], [-cs, cc]] ∘ metric: differentiation exchanges cosine and sine."""
        q = self.frequencies.shape[0]
        out = np.empty_like(gram)
        np.multiply(gram[q:, q:], metric, out=out[:q, :q])
        np.multiply(gram[:q, :q], metric, out=out[q:, q:])
        np.multiply(gram[q:, :q], -metric, out=out[:q, q:])
        out[q:, :q] = out[:q, q:].T
        return out

    def finish(self, states: list[Any], constant: np.ndarray | None, sign: float) -> Sums:
        gram, total = mirror(sum(state.gram for state in states)), sum(state.total for state in states)
        if self._shift:
            ones, weight = np.repeat([1.0, 0.0], self.frequencies.shape[0]), sum(state.weight for state in states)
            total = total + weight * ones
            gram += np.outer(ones, total) + np.outer(total - weight * ones, ones)
        pairs = self._pairs
        gram *= pairs
        if constant is not None:
            energy = self._turned(gram, times(self.frequencies, constant) @ self.frequencies.T)
        elif states[0].scaled is not None:
            scaled = mirror(sum(state.scaled for state in states)) * pairs
            energy = self._turned(scaled, self.frequencies @ self.frequencies.T)
        else:
            energy = np.zeros_like(gram)
        if states[0].energy is not None:
            energy += sign * mirror(sum(state.energy for state in states)) * pairs
        return total * self._amplitude, gram, energy


def _add_gram(out: np.ndarray, A: np.ndarray, work: np.ndarray | None) -> None:
    """Add AᵀA to the lower triangle of float64 `out`; `work` is for a float32 A."""
    if work is None:
        add_gram(out, A)
        return
    from kdmaps.bases.compiled import add_single_gram

    add_single_gram(out, A, work)


class RandomPhaseBasis(FourierBasis):
    """The paper's features √(2 v_i) cos(w_iᵀx + b_i), b uniform on [0, 2π); noisier than pairs, for comparison.

    They are computed as the combinations √2 (cos b cos(wᵀx) - sin b sin(wᵀx)) of the pairs.
    """

    def __init__(
        self, kernel: Kernel, frequencies: np.ndarray, weights: np.ndarray, origin: np.ndarray, phases: np.ndarray
    ):
        super().__init__(kernel, frequencies, weights, origin)
        self.phases = phases
        self.n_features: int = frequencies.shape[0]
        self._mix = np.concatenate([np.sqrt(2) * np.cos(phases), -np.sqrt(2) * np.sin(phases)])

    def _mixed(self, pairs: np.ndarray, axis: int) -> np.ndarray:
        """Combine cosine and sine along an axis of pairs."""
        shape = [1] * pairs.ndim
        shape[axis] = -1
        return np.add(*np.split(pairs * self._mix.reshape(shape), 2, axis=axis))

    def features(self, X: np.ndarray, n_rows: float | None = None) -> np.ndarray:
        return self._mixed(super().features(X, n_rows), 1)

    def _of_waves(self, coefficients: np.ndarray) -> np.ndarray:
        return super()._of_waves(np.tile(coefficients, (2, 1)) * self._mix[:, None])

    def finish(self, states: list[Any], constant: np.ndarray | None, sign: float) -> Sums:
        total, *grams = super().finish(states, constant, sign)
        gram, energy = (self._mixed(self._mixed(g, 0), 1) for g in grams)
        return self._mixed(total, 0), gram, energy


def is_compiled(n_rows: float, dtype: np.dtype, bound: float = 0.0) -> bool:
    """Return whether compiled code computes the waves of `n_rows` samples, with angles up to a bound."""
    # In single precision it always does, because it computes cos θ - 1 without loss of digits.
    return (n_rows > FEW_ROWS or dtype == np.float32) and bound < LARGE_ARGUMENT[dtype]


def cos_sin(
    angles: np.ndarray,
    row_scale: np.ndarray,
    out: np.ndarray,
    n_rows: float | None = None,
    bound: float = np.inf,
    shift: float = 0.0,
) -> None:
    """Write [cos θ - shift, sin θ]·row_scale to the rows of `out`, to two units in the last place of 1.

    Angles θ (n, q) are part of `n_rows` rows; `bound` is an upper bound of |θ|. Only single precision has a shift.
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
    # With t = tan θ/2: sin θ = 2t/(1 + t²), cos θ = 2/(1 + t²) - 1. NumPy's tan is vectorised, its cos and sin are not.
    scale, cosines, sines = row_scale[:, None], *np.split(out, 2, axis=1)
    tangents = np.tan(np.multiply(angles, 0.5, out=sines), out=sines)
    np.square(tangents, out=cosines)
    np.divide(2 * scale, np.add(cosines, 1, out=cosines), out=cosines)
    sines *= cosines
    cosines -= (1 + angles.dtype.type(shift)) * scale
