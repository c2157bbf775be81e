"""Mixtures of radial kernels at landmarks, with learnable weights and bandwidths (the paper's VMKL)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from kdmaps.bases import MIN_ROWS, LandmarkBasis, square_root
from kdmaps.kernels import Kernel, Mixture
from kdmaps.learn.parametrisation import Parametrisation, Pullback, floored_softmax
from kdmaps.learn.statistics import Chunk, Samples, Statistics


class Bandwidths(Parametrisation):
    """k = Σ_ℓ β_ℓ κ_ℓ(|x-z|²/σ_ℓ²) with θ = (u, log σ/σ_start), β = softmax(u) with a floor.

    Each evaluation is a pass over the samples, in chunks: its operators change with σ.

    Parameters
    ----------
    samples : Samples
        With a diffusion tensor that is constant or a scalar per sample.
    kernels : sequence of Kernel
        Radial, continuously differentiable, each with one bandwidth for all coordinates.
    landmarks : ndarray of shape (p, d)
    origin : ndarray of shape (d,)
    floor : float
        τ: no weight falls below τ/L.
    learn_weights : bool
        Whether β is learned, or equal weights are kept.
    """

    samples: Samples
    kernels: tuple[Kernel, ...]
    floor: float
    landmarks: np.ndarray
    origin: np.ndarray
    learn_weights: bool

    def __init__(
        self,
        samples: Samples,
        kernels: Sequence[Kernel],
        landmarks: np.ndarray,
        origin: np.ndarray,
        floor: float = 0.01,
        learn_weights: bool = True,
    ):
        for kernel in kernels:
            T = kernel.linear_map
            if T is None or T.ndim or kernel.smoothness < 1 or isinstance(kernel, Mixture):
                raise ValueError(
                    f"{kernel!r} has no learnable bandwidth: a radial C¹ family with a single bandwidth has one. "
                    "Learn weights only, or use basis='fourier'; a metric H can be given as samples XH with the "
                    "diffusion HᵀH instead."
                )
        self.samples, self.kernels, self.floor = samples, tuple(kernels), floor
        self.landmarks, self.origin, self.learn_weights = landmarks, origin, learn_weights
        self._sigma = np.array([float(kernel.bandwidth) for kernel in kernels])  # type: ignore[attr-defined]
        n = len(self.kernels)
        self.start: np.ndarray = np.zeros(2 * n if learn_weights else n)

    def _split(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        n = len(self.kernels)
        beta, pull_beta = floored_softmax(theta[:n] if self.learn_weights else np.zeros(n), self.floor)
        return beta, theta[-n:], pull_beta

    def kernel(self, theta: np.ndarray) -> Mixture:
        beta, shift, _ = self._split(theta)
        sigmas = self._sigma * np.exp(shift)
        parts = [k.with_bandwidth(s) for k, s in zip(self.kernels, sigmas, strict=True)]  # type: ignore[attr-defined]
        return Mixture(parts, beta)

    def basis(self, theta: np.ndarray) -> LandmarkBasis:
        return LandmarkBasis(self.kernel(theta), self.landmarks, self.origin)

    def describe(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        beta, shift, _ = self._split(theta)
        return {"beta": beta, "sigma": self._sigma * np.exp(shift)}

    def forward(self, theta: np.ndarray) -> tuple[Statistics, Pullback]:
        beta, shift, pull_beta = self._split(theta)
        basis = self.basis(theta)
        statistics = self.samples.statistics(basis, ridge=basis.ridge, beta=beta, log_bandwidths=shift)

        def pullback(adjoint: Statistics) -> np.ndarray:
            by_beta, by_shift = mixture_adjoint(self.samples, basis, adjoint)
            by_shift = by_shift + adjoint.log_bandwidths
            return np.concatenate([pull_beta(by_beta + adjoint.beta), by_shift]) if self.learn_weights else by_shift

        return statistics, pullback


class _Derivatives(NamedTuple):
    beta: np.ndarray  # (L,)
    shift: np.ndarray  # (L,), by log σ


def mixture_adjoint(samples: Samples, basis: LandmarkBasis, adjoint: Statistics) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of a loss by β and log σ, from its derivatives by the statistics, in one pass.

    With φ = Σ_ℓ β_ℓ κ_ℓ(s/σ_ℓ²), g = Σ_ℓ 2β_ℓ κ_ℓ'(s/σ_ℓ²)/σ_ℓ² and squared distances s, s^a in the metrics 1 and a
    (S^a between landmarks), the energy is ½[(g∘s^a)ᵀg + gᵀ(g∘s^a)] - ½ S^a∘gᵀg (see `LandmarkBasis`). Hence

        φ̄ = φ(Ḡ+Ḡᵀ) + total̄,        ḡ = s^a∘(gĒ) + (g∘s^a)Ē - g(S^a∘Ē)        (Ē symmetrised).
    """
    root = _metric_root(samples)
    z = basis.landmarks - basis.origin
    parts: list[tuple[float, Any]] = basis.kernel.components()
    zeta = z * root if np.ndim(root) == 0 else z @ root
    distances = cdist(zeta, zeta, "sqeuclidean")
    grams = adjoint.grams + np.swapaxes(adjoint.grams, 1, 2)
    energies = (adjoint.energies + np.swapaxes(adjoint.energies, 1, 2)) / 2
    crossed = energies * distances

    def start() -> _Derivatives:
        return _Derivatives(np.zeros(len(parts)), np.zeros(len(parts)))

    def step(out: _Derivatives, chunk: Chunk) -> None:
        X = chunk.X - basis.origin
        s = cdist(X, z, "sqeuclidean")
        along = s * root**2 if np.ndim(root) == 0 else cdist(X @ root, zeta, "sqeuclidean")
        values = sum(beta * k.profile(s / k.bandwidth**2) for beta, k in parts)
        slopes = sum(2 * beta / k.bandwidth**2 * k.profile(s / k.bandwidth**2, 1) for beta, k in parts)
        by_values = chunk.weight[:, None] * (values @ grams[chunk.owner] + adjoint.totals[chunk.owner])
        weight = chunk.weight if chunk.tensor.scalar is None else chunk.weight * chunk.tensor.scalar
        by_slopes = along * (slopes @ energies[chunk.owner]) + (slopes * along) @ energies[chunk.owner]
        by_slopes -= slopes @ crossed[chunk.owner]
        _add_derivatives(out, parts, s, by_values, weight[:, None] * by_slopes)

    total = start()
    _add_derivatives(total, parts, cdist(z, z, "sqeuclidean"), adjoint.ridge, None)
    rows = max(MIN_ROWS, basis.chunk_rows // 4)  # several work arrays of a chunk's size are alive at once
    for part in samples.stream(rows, start, step):
        total = _Derivatives(total.beta + part.beta, total.shift + part.shift)
    return total


def _add_derivatives(
    out: _Derivatives,
    parts: list[tuple[float, Any]],
    s: np.ndarray,
    by_values: np.ndarray,
    by_slopes: np.ndarray | None,
) -> None:
    """Contract φ̄ and ḡ with the derivatives of φ and g by β_ℓ and log σ_ℓ (t = s/σ_ℓ², dt/dlog σ = -2t)."""
    for index, (beta, kernel) in enumerate(parts):
        variance = kernel.bandwidth**2
        t = s / variance
        first = kernel.profile(t, 1)
        out.beta[index] += np.vdot(by_values, kernel.profile(t))
        out.shift[index] -= 2 * beta * np.vdot(by_values, t * first)
        if by_slopes is not None:
            out.beta[index] += 2 / variance * np.vdot(by_slopes, first)
            out.shift[index] -= 4 * beta / variance * np.vdot(by_slopes, first + t * kernel.profile(t, 2))


def _metric_root(samples: Samples) -> Any:
    """B with a = BBᵀ for a constant diffusion matrix a; a number for a multiple of the identity."""
    diffusion = samples.diffusion
    if diffusion.rows(np.asarray(samples.X[:1], dtype=np.float64), np.arange(1)).factor is not None:
        raise ValueError(
            "Bandwidths at landmarks are learned with a diffusion that is constant or a scalar per sample; use "
            "basis='fourier', or learn weights only."
        )
    if diffusion.constant is None:
        return 1.0
    a = diffusion.constant
    if np.array_equal(a, a[0, 0] * np.eye(len(a))):
        return np.sqrt(a[0, 0])
    return square_root(a)
