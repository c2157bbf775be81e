"""Random Fourier features, in cosine/sine pairs or with random phases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdmaps._chunkloop import add_gram, cos_sin, mirror
from kdmaps.bases._base import Basis
from kdmaps.kernels import Kernel


@dataclass
class _State:
    angles: np.ndarray  # (chunk, q) work space
    waves: np.ndarray  # (chunk, 2q) work space: [cos, sin]
    total: np.ndarray  # Σ w [cos, sin]
    gram: np.ndarray  # Σ w [cos, sin][cos, sin]ᵀ, lower triangle
    scaled: np.ndarray | None = None  # the same with weights w·a(x), for a scalar diffusion per sample
    energy: np.ndarray | None = None  # Σ w ∇φ FFᵀ ∇φᵀ, lower triangle, for a diffusion factor F per sample


class FourierBasis(Basis):
    """Pairs φ = √v_i cos(w_iᵀx), √v_i sin(w_iᵀx), so that φ(x)ᵀφ(z) ≈ k(x, z).

    With the Gram G = Σ φφᵀ in blocks (cc, cs; sc, ss), the energy Gram for a constant diffusion matrix a is

        [[ss, -sc], [-cs, cc]] ∘ (W a Wᵀ tiled 2×2):

    one symmetric product gives both operators, whatever d is.

    Parameters
    ----------
    kernel : Kernel
    frequencies : ndarray of shape (q, d)
    weights : ndarray of shape (q,)
        v, with sum 1.
    origin : ndarray of shape (d,)
    """

    def __init__(self, kernel: Kernel, frequencies: np.ndarray, weights: np.ndarray, origin: np.ndarray):
        self.kernel = kernel
        self.frequencies, self.weights, self.origin = frequencies, weights, origin
        self.n_features = 2 * frequencies.shape[0]
        self._amplitude = np.tile(np.sqrt(weights), 2)

    @property
    def ridge(self):
        return None

    def _waves(self, X: np.ndarray, root_weight=None, angles=None, out=None) -> np.ndarray:
        """[cos, sin] of the angles, rows scaled by `root_weight`."""
        angles = np.matmul(X - self.origin, self.frequencies.T, out=angles)
        out = np.empty((X.shape[0], 2 * angles.shape[1])) if out is None else out
        cos_sin(angles, np.ones(X.shape[0]) if root_weight is None else root_weight, out)
        return out

    def features(self, X):
        return self._waves(X) * self._amplitude

    def gradient(self, X, coefficients):
        q = self.frequencies.shape[0]
        waves, a = self._waves(X), coefficients * self._amplitude[:, None]
        slopes = waves[:, :q, None] * a[q:] - waves[:, q:, None] * a[:q]  # (n, q, r)
        return np.einsum("nqr,qd->nrd", slopes, self.frequencies, optimize=True)

    def start(self):
        rows, p = self.chunk_rows, 2 * self.frequencies.shape[0]
        return _State(np.empty((rows, p // 2)), np.empty((rows, p)), np.zeros(p), np.zeros((p, p)))

    def step(self, state, X, root_weight, tensor, constant):
        n = X.shape[0]
        waves = self._waves(X, root_weight, state.angles[:n], state.waves[:n])
        add_gram(state.gram, waves)
        state.total += root_weight @ waves
        if tensor.scalar is not None:
            state.scaled = np.zeros_like(state.gram) if state.scaled is None else state.scaled
            add_gram(state.scaled, waves * np.sqrt(tensor.scalar)[:, None])
        if tensor.factor is not None:
            state.energy = np.zeros_like(state.gram) if state.energy is None else state.energy
            q = self.frequencies.shape[0]
            for direction in np.moveaxis(tensor.factor, 2, 0):  # (n, d) each
                along = direction @ self.frequencies.T
                add_gram(state.energy, np.hstack([-along * waves[:, q:], along * waves[:, :q]]))

    def _turned(self, gram: np.ndarray, metric: np.ndarray) -> np.ndarray:
        """[[ss, -sc], [-cs, cc]] ∘ metric: derivatives swap cosine and sine."""
        q = self.frequencies.shape[0]
        out = np.empty_like(gram)
        np.multiply(gram[q:, q:], metric, out=out[:q, :q])
        np.multiply(gram[:q, :q], metric, out=out[q:, q:])
        np.multiply(gram[q:, :q], -metric, out=out[:q, q:])
        out[q:, :q] = out[:q, q:].T
        return out

    def finish(self, states, diffusion):
        gram = mirror(sum(state.gram for state in states))
        if diffusion.constant is not None:
            energy = self._turned(gram, self.frequencies @ diffusion.constant @ self.frequencies.T)
        elif states[0].scaled is not None:
            scaled = mirror(sum(state.scaled for state in states))
            energy = self._turned(scaled, self.frequencies @ self.frequencies.T)
        else:
            energy = np.zeros_like(gram)
        if states[0].energy is not None:
            energy += diffusion.sign * mirror(sum(state.energy for state in states))
        pairs = np.outer(self._amplitude, self._amplitude)
        return sum(state.total for state in states) * self._amplitude, gram * pairs, energy * pairs


class RandomPhaseBasis(FourierBasis):
    """The paper's features √(2 v_i) cos(w_iᵀx + b_i), b uniform on [0, 2π): noisier than pairs, kept for comparison.

    They are the fixed combinations √2 (cos b cos(wᵀx) - sin b sin(wᵀx)) of the pairs, and are computed as such.
    """

    def __init__(self, kernel, frequencies, weights, origin, phases):
        super().__init__(kernel, frequencies, weights, origin)
        self.phases = phases
        self.n_features = frequencies.shape[0]
        self._mix = np.concatenate([np.sqrt(2) * np.cos(phases), -np.sqrt(2) * np.sin(phases)])

    def _mixed(self, pairs: np.ndarray, axis: int) -> np.ndarray:
        """Combinations of cosine and sine along an axis of pairs."""
        shape = [1] * pairs.ndim
        shape[axis] = -1
        return np.add(*np.split(pairs * self._mix.reshape(shape), 2, axis=axis))

    def features(self, X):
        return self._mixed(super().features(X), 1)

    def gradient(self, X, coefficients):
        return super().gradient(X, np.tile(coefficients, (2, 1)) * self._mix[:, None])

    def finish(self, states, diffusion):
        total, *grams = super().finish(states, diffusion)
        gram, energy = (self._mixed(self._mixed(g, 0), 1) for g in grams)
        return self._mixed(total, 0), gram, energy
