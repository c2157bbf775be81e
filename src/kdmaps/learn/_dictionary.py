"""Mixture weights over a fixed dictionary of kernels at landmarks: after one pass, learning does not depend on N."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kdmaps.bases import LandmarkBasis
from kdmaps.bases.compiled import add_gram, mirror
from kdmaps.kernels import Kernel, Mixture
from kdmaps.learn._parametrisation import Parametrisation, floored_softmax
from kdmaps.learn._statistics import Samples, Statistics

#: 𝒢k(·, z_m) at x_i for a kernel k, samples x and landmarks z: (kernel, X, Z) → array (n, p).
GeneratorAction = Callable[[Kernel, np.ndarray, np.ndarray], np.ndarray]


class Dictionary(Parametrisation):
    """k = Σ_ℓ β_ℓ k_ℓ with θ = u, β = softmax(u) with a floor (eq:kernel-mixture, eq:softmax).

    The features of the mixture are Σ_ℓ β_ℓ k_ℓ(·, z), so its operators are Σ_ℓm β_ℓ β_m times the cross-Grams of
    pairs of kernels, which are computed once.

    Parameters
    ----------
    samples : Samples
    kernels : sequence of Kernel
        Any.
    landmarks : ndarray of shape (p, d)
    origin : ndarray of shape (d,)
    floor : float
        τ: no weight falls below τ/L.
    generator : callable, optional
        𝒢 applied to kernel functions, for the term `pde`.
    """

    def __init__(
        self,
        samples: Samples,
        kernels: Sequence[Kernel],
        landmarks: np.ndarray,
        origin: np.ndarray,
        floor: float = 0.01,
        generator: GeneratorAction | None = None,
    ):
        self.samples, self.kernels, self.floor = samples, tuple(kernels), floor
        self.landmarks, self.origin = landmarks, origin
        n, p = len(self.kernels), len(landmarks)
        self.start = np.zeros(n)
        stack = _StackBasis(self.kernels, landmarks, origin)
        moments = samples.statistics(stack)
        self._weights = moments.weights
        self._totals = moments.totals.reshape(-1, n, p)
        self._grams, self._energies = (_symmetric_pairs(m, n) for m in (moments.grams, moments.energies))
        self._ridges = np.stack([LandmarkBasis(kernel, landmarks, origin).ridge for kernel in self.kernels])
        self._residual = None if generator is None else self._generator_moments(stack, generator)

    def kernel(self, theta):
        return Mixture(self.kernels, floored_softmax(theta, self.floor)[0])

    def basis(self, theta):
        return LandmarkBasis(self.kernel(theta), self.landmarks, self.origin)

    def describe(self, theta):
        return {"beta": floored_softmax(theta, self.floor)[0]}

    def forward(self, theta):
        beta, pull_beta = floored_softmax(theta, self.floor)
        first, second = np.triu_indices(len(beta))
        products, p = beta[first] * beta[second], len(self.landmarks)
        residual = None
        if self._residual is not None:
            square, cross, image = self._residual
            residual = (products @ square).reshape(p, p), (products @ cross).reshape(p, p), beta @ image
        statistics = Statistics(
            self._weights,
            np.tensordot(self._totals, beta, (1, 0)),
            (products @ self._grams).reshape(-1, p, p),
            (products @ self._energies).reshape(-1, p, p),
            ridge=np.tensordot(beta, self._ridges, 1),
            beta=beta,
            residual=residual,
        )

        def pullback(adjoint: Statistics) -> np.ndarray:
            by_product = self._grams @ adjoint.grams.ravel() + self._energies @ adjoint.energies.ravel()
            by_beta = adjoint.beta + np.einsum("clp,cp->l", self._totals, adjoint.totals)
            by_beta += np.tensordot(self._ridges, adjoint.ridge, 2)
            if self._residual is not None:
                square, cross, image = self._residual
                by_product = by_product + square @ adjoint.residual[0].ravel() + cross @ adjoint.residual[1].ravel()
                by_beta += image @ adjoint.residual[2]
            np.add.at(by_beta, first, by_product * beta[second])
            np.add.at(by_beta, second, by_product * beta[first])
            return pull_beta(by_beta)

        return statistics, pullback

    def _generator_moments(self, stack: _StackBasis, generator: GeneratorAction):
        """Pairs of E (𝒢φ)(𝒢φ)ᵀ and E (𝒢φ)φᵀ, and E 𝒢φ, over all samples."""
        size, n = stack.n_features, len(self.kernels)
        z = self.landmarks - self.origin

        def start():
            return np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)

        def step(state, chunk):
            X, root = chunk.X - self.origin, np.sqrt(chunk.weight)[:, None]
            images = np.hstack([generator(kernel, chunk.X, self.landmarks) for kernel in self.kernels]) * root
            values = stack.kernel(X, z) * root
            add_gram(state[0], np.ascontiguousarray(images))
            state[1][:] += images.T @ values
            state[2][:] += root[:, 0] @ images

        square, cross, image = (sum(p) for p in zip(*self.samples.stream(stack.chunk_rows, start, step), strict=True))
        weight = self._weights.sum()
        pairs = (_symmetric_pairs(m[None] / weight, n) for m in (mirror(square), cross))
        return *pairs, image.reshape(n, -1) / weight


class _Stack:
    """The kernel matrices of several kernels side by side."""

    def __init__(self, kernels: Sequence[Kernel]):
        self.kernels = kernels

    def __call__(self, X, Z):
        return np.hstack([kernel(X, Z) for kernel in self.kernels])

    def partials(self, X, Z):
        for parts in zip(*(kernel.partials(X, Z) for kernel in self.kernels), strict=True):
            yield np.hstack(parts)


class _StackBasis(LandmarkBasis):
    """All k_ℓ(·, z_m), kernel after kernel; its energy goes coordinate by coordinate, for kernels of any kind."""

    def __init__(self, kernels: Sequence[Kernel], landmarks: np.ndarray, origin: np.ndarray):
        self.kernel: Any = _Stack(kernels)
        self.landmarks, self.origin = landmarks, origin
        self.n_features = len(kernels) * len(landmarks)
        self.centred_landmarks = landmarks - origin
        self.radial = False


def _symmetric_pairs(matrices: np.ndarray, n: int) -> np.ndarray:
    """For every pair ℓ ≤ m, the blocks of all C matrices that belong to β_ℓβ_m, symmetrised; (pairs, C·p·p)."""
    c, p = matrices.shape[0], matrices.shape[1] // n
    blocks = matrices.reshape(c, n, p, n, p)
    out = np.empty((n * (n + 1) // 2, c, p, p))
    for index, (first, second) in enumerate(zip(*np.triu_indices(n), strict=True)):
        block = blocks[:, first, :, second, :]
        if first != second:
            block = block + blocks[:, second, :, first, :]
        out[index] = (block + np.swapaxes(block, 1, 2)) / 2
    return out.reshape(len(out), -1)
