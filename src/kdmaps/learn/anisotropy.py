"""Bounded anisotropic bandwidths for Fourier features (the paper's VarRFF)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdmaps.bases import FourierBasis, cos_sin
from kdmaps.kernels import Kernel, Mixture
from kdmaps.learn.parametrisation import Parametrisation, Pullback
from kdmaps.learn.statistics import Chunk, Samples, Statistics


class Anisotropy(Parametrisation):
    """σ_j = σ·exp(s(θ_j)) for every coordinate j, with s(θ) = c·tanh θ; c = 1 is the paper's VarRFF.

    The frequencies were drawn once, at σ; since those of every family are proportional to 1/σ_j, they become
    w_j·exp(-s(θ_j)). The kernel may be a mixture: all its bandwidths are scaled together. If narrowing has a bound b of
    its own, s(θ) = b·tanh(cθ/b) for θ < 0, which continues s smoothly.

    Parameters
    ----------
    samples : Samples
    basis : FourierBasis
        Of the kernel at θ = 0, with frequencies in pairs.
    bound : float
        c.
    narrowing : float, optional
        b; by default c.
    """

    samples: Samples
    bound: float

    def __init__(self, samples: Samples, basis: FourierBasis, bound: float = 1.0, narrowing: float | None = None):
        if type(basis) is not FourierBasis:
            raise ValueError("Anisotropic bandwidths are learned with basis='fourier'.")
        self.samples, self.bound, self._base = samples, bound, basis
        self.narrowing: float = bound if narrowing is None else narrowing
        self.start: np.ndarray = np.zeros(basis.dim)

    def _limit(self, theta: np.ndarray) -> np.ndarray:
        return np.where(theta < 0, self.narrowing, self.bound)

    def _shift(self, theta: np.ndarray) -> np.ndarray:
        return self._limit(theta) * np.tanh(self.bound * theta / self._limit(theta))

    def basis(self, theta: np.ndarray) -> FourierBasis:
        base = self._base
        frequencies = base.frequencies * np.exp(-self._shift(theta))
        return FourierBasis(self.kernel(theta), frequencies, base.weights, base.origin)

    def kernel(self, theta: np.ndarray) -> Kernel:
        return scale_bandwidths(self._base.kernel, np.exp(self._shift(theta)))

    def describe(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        first = self._base.kernel.components()[0][1]
        return {"sigma": first.bandwidth * np.exp(self._shift(theta))}  # type: ignore[attr-defined]

    def forward(self, theta: np.ndarray) -> tuple[Statistics, Pullback]:
        basis, shift = self.basis(theta), self._shift(theta)
        statistics = self.samples.statistics(basis, log_bandwidths=shift)

        def pullback(adjoint: Statistics) -> np.ndarray:
            W = basis.frequencies
            by_shift = -np.sum(W * frequency_adjoint(self.samples, basis, statistics, adjoint), axis=0)
            slope = self.bound * (1 - np.tanh(self.bound * theta / self._limit(theta)) ** 2)
            return (by_shift + adjoint.log_bandwidths) * slope

        return statistics, pullback


def scale_bandwidths(kernel: Kernel, factors: np.ndarray) -> Kernel:
    """Return the kernel with every bandwidth multiplied by `factors`, one per coordinate."""
    if isinstance(kernel, Mixture):
        return Mixture([scale_bandwidths(part, factors) for part in kernel.kernels], kernel.weights)
    return kernel.with_bandwidth(kernel.bandwidth * factors)  # type: ignore[attr-defined]


@dataclass
class _Work:
    angles: np.ndarray  # (chunk, q)
    waves: np.ndarray  # (chunk, 2q): [cos, sin]
    adjoint: np.ndarray  # (chunk, 2q)
    frequencies: np.ndarray  # (q, d): the result


def frequency_adjoint(samples: Samples, basis: FourierBasis, statistics: Statistics, adjoint: Statistics) -> np.ndarray:
    """W̄: the derivative of a loss by the frequencies W, from its derivatives by the statistics, in one pass.

    For a constant diffusion a, with Z = [cos XWᵀ, sin XWᵀ] and the raw Gram G = ZᵀZ, the statistics are functions of
    p×p arrays: gram = G∘vvᵀ and energy = (JGJᵀ)∘(WaWᵀ tiled)∘vvᵀ, J = [[0, -1], [1, 0]]. Their adjoint gives Ḡ and a
    part of W̄ through WaWᵀ; the rest is Z̄ = Z(Ḡ+Ḡᵀ), Ā = -sin∘C̄ + cos∘S̄, W̄ = ĀᵀX, in chunks.
    """
    W, q = basis.frequencies, basis.frequencies.shape[0]
    constant, sign = samples.diffusion.constant, samples.diffusion.sign
    amplitude = np.tile(np.sqrt(basis.weights), 2)
    pairs = np.outer(amplitude, amplitude)
    result = np.zeros_like(W)
    grams = np.empty_like(adjoint.grams)
    metric = None if constant is None else W @ constant @ W.T * pairs[:q, :q]
    for out, by_gram, by_energy in zip(grams, adjoint.grams, adjoint.energies, strict=True):
        np.multiply(by_gram, pairs, out=out)
        if metric is not None:
            _add_turned(out, by_energy, metric)
        out += out.T.copy()
    if constant is not None:
        by_metric = _turned_product(adjoint.energies, statistics.grams)
        result += (by_metric + by_metric.T) @ W @ constant
    totals = adjoint.totals * amplitude

    def start() -> _Work:
        rows = basis.chunk_rows
        return _Work(np.empty((rows, q)), np.empty((rows, 2 * q)), np.empty((rows, 2 * q)), np.zeros_like(W))

    def step(work: _Work, chunk: Chunk) -> None:
        n, X = len(chunk.X), chunk.X - basis.origin
        angles = np.matmul(X, W.T, out=work.angles[:n])
        waves, bar = work.waves[:n], work.adjoint[:n]
        cos_sin(angles, np.ones(n), waves, len(samples.X))
        np.matmul(waves, grams[chunk.owner], out=bar)
        bar += totals[chunk.owner]
        if constant is None or chunk.tensor.factor is not None:
            energy = adjoint.energies[chunk.owner] * (sign * pairs)
            _add_flux_adjoint(work.frequencies, bar, waves, energy + energy.T, W, chunk)
        np.multiply(waves[:, :q], bar[:, q:], out=angles)
        angles -= np.multiply(waves[:, q:], bar[:, :q], out=bar[:, :q])
        angles *= chunk.weight[:, None]
        work.frequencies += angles.T @ X

    return result + sum(work.frequencies for work in samples.stream(basis.chunk_rows, start, step))


def _blocks(q: int) -> list[tuple[float, tuple[slice, slice], tuple[slice, slice]]]:
    """Return (sign, block of JGJᵀ, block of G) of JGJᵀ = [[ss, -sc], [-cs, cc]]; the transposed map is the same."""
    c, s = slice(q), slice(q, None)
    return [(1.0, (c, c), (s, s)), (-1.0, (c, s), (s, c)), (-1.0, (s, c), (c, s)), (1.0, (s, s), (c, c))]


def _add_turned(out: np.ndarray, energy: np.ndarray, metric: np.ndarray) -> None:
    """Add the energy's part J(L̄∘(WaWᵀ tiled))Jᵀ of Ḡ to `out`."""
    for sign, turned, plain in _blocks(len(metric)):
        out[plain] += sign * metric * energy[turned]


def _turned_product(energies: np.ndarray, grams: np.ndarray) -> np.ndarray:
    """Return the derivative by WaWᵀ: Σ of L̄∘JGJᵀ over classes and blocks."""
    q = grams.shape[-1] // 2
    return sum(
        sign * np.einsum("cij,cij->ij", energies[:, *turned], grams[:, *plain]) for sign, turned, plain in _blocks(q)
    )


def _add_flux_adjoint(
    out: np.ndarray, bar: np.ndarray, waves: np.ndarray, energy: np.ndarray, W: np.ndarray, chunk: Chunk
) -> None:
    """Return the part through ∇φ·F = [-sin∘(FWᵀ), cos∘(FWᵀ)] for each column F of a diffusion factor per sample."""
    q, (n, d) = W.shape[0], chunk.X.shape
    factor = chunk.tensor.factor
    if factor is None:
        assert chunk.tensor.scalar is not None
        factor = np.sqrt(chunk.tensor.scalar)[:, None, None] * np.broadcast_to(np.eye(d), (n, d, d))
    cosine, sine = waves[:, :q], waves[:, q:]
    for direction in np.moveaxis(factor, 2, 0):
        along = direction @ W.T
        flux = np.hstack([-along * sine, along * cosine]) @ energy
        bar[:, :q] += along * flux[:, q:]
        bar[:, q:] -= along * flux[:, :q]
        by_along = cosine * flux[:, q:] - sine * flux[:, :q]
        out += (by_along * chunk.weight[:, None]).T @ direction
