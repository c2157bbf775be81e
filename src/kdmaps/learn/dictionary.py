"""Mixture weights over a fixed dictionary of kernels at landmarks: after one pass, learning does not depend on N."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kdmaps.bases import DictionaryBasis, LandmarkBasis, pair_blocks
from kdmaps.forms.moments import generator_moments
from kdmaps.kernels import Kernel, Mixture
from kdmaps.learn.parametrisation import Parametrisation, Pullback, floored_softmax
from kdmaps.learn.statistics import Samples, Statistics

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

    samples: Samples
    kernels: tuple[Kernel, ...]
    floor: float
    landmarks: np.ndarray
    origin: np.ndarray

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
        self.start: np.ndarray = np.zeros(n)
        stack = DictionaryBasis(self.kernels, landmarks, origin)
        moments = samples.statistics(stack)
        self._weights = moments.weights
        self._totals = moments.totals.reshape(-1, n, p)
        self._grams, self._energies = (self._pairs(m) for m in (moments.grams, moments.energies))
        self._ridges = stack.ridges
        self._residual = None if generator is None else self._generator_moments(stack, generator)

    def kernel(self, theta: np.ndarray) -> Mixture:
        return Mixture(self.kernels, floored_softmax(theta, self.floor)[0])

    def basis(self, theta: np.ndarray) -> LandmarkBasis:
        return LandmarkBasis(self.kernel(theta), self.landmarks, self.origin)

    def describe(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        return {"beta": floored_softmax(theta, self.floor)[0]}

    def forward(self, theta: np.ndarray) -> tuple[Statistics, Pullback]:
        beta, pull_beta = floored_softmax(theta, self.floor)
        first, second = np.triu_indices(len(beta))
        # A pair ℓ ≠ m stands for β_ℓβ_m and β_mβ_ℓ.
        count, p = np.where(first == second, 1, 2), len(self.landmarks)
        products = count * beta[first] * beta[second]
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
            np.add.at(by_beta, first, count * by_product * beta[second])
            np.add.at(by_beta, second, count * by_product * beta[first])
            return pull_beta(by_beta)

        return statistics, pullback

    def _generator_moments(self, stack: DictionaryBasis, generator: GeneratorAction) -> tuple[np.ndarray, ...]:
        """Pairs of E (𝒢φ)(𝒢φ)ᵀ and E (𝒢φ)φᵀ, and E 𝒢φ, over all samples."""

        def images(X: np.ndarray) -> np.ndarray:
            return np.hstack([generator(kernel, X, self.landmarks) for kernel in self.kernels])

        samples = self.samples
        square, cross, image = generator_moments(images, stack, samples.X, samples.sample_weight)
        return *(self._pairs(matrix[None]) for matrix in (square, cross)), image.reshape(len(self.kernels), -1)

    def _pairs(self, matrices: np.ndarray) -> np.ndarray:
        """Blocks of pairs of kernels, flattened; (pairs, C·p·p)."""
        blocks = pair_blocks(matrices, len(self.kernels))
        return blocks.reshape(len(blocks), -1)
