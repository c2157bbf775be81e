"""Kernels with parameters θ: from θ to the sums over samples, and from the derivatives of a loss by these sums to θ.

A bar denotes the derivative of the loss. D is the diffusion tensor, a are coefficients of modes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import softmax

from kdmaps.bases import (
    MIN_ROWS,
    Basis,
    DictionaryBasis,
    FourierBasis,
    LandmarkBasis,
    cos_sin,
    pair_blocks,
    square_root,
    times,
)
from kdmaps.forms.moments import generator_moments
from kdmaps.kernels import Kernel, Mixture
from kdmaps.learn.statistics import Chunk, Samples, Statistics

#: The derivative by θ, from the derivatives by the statistics.
Pullback = Callable[[Statistics], np.ndarray]
#: 𝒢k(·, z_m) at x_i for a kernel k, samples x and landmarks z: (kernel, X, Z) → array (n, p).
GeneratorAction = Callable[[Kernel, np.ndarray, np.ndarray], np.ndarray]


class Parametrisation(ABC):
    """A family of kernels with a vector of parameters."""

    samples: Samples
    start: np.ndarray  #: θ of the kernel that learning starts from.

    @abstractmethod
    def forward(self, theta: np.ndarray) -> tuple[Statistics, Pullback]:
        """Return the statistics at θ, and the function that turns their adjoint into the derivative by θ."""

    @abstractmethod
    def kernel(self, theta: np.ndarray) -> Kernel:
        """Return the kernel at θ."""

    @abstractmethod
    def basis(self, theta: np.ndarray) -> Basis:
        """Return the basis at θ."""

    @abstractmethod
    def describe(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the mixture weights `beta` and bandwidths `sigma` at θ."""


# --- bandwidths of Fourier features ----------------------------------------------------------------------------------
class Anisotropy(Parametrisation):
    """σ_j = σ·exp(s(θ_j)) for every coordinate j, with s(θ) = c·tanh θ; c = 1 is the paper's VarRFF.

    The frequencies were drawn once, at σ. In every family they are proportional to 1/σ_j, and become w_j·exp(-s(θ_j)).
    The kernel may be a mixture: all its bandwidths are scaled together. With a separate bound b on narrowing,
    s(θ) = b·tanh(cθ/b) for θ < 0, which continues s smoothly. `basis` has the kernel at θ = 0 and frequencies in pairs,
    `bound` is c, and `narrowing` is b (by default c).
    """

    def __init__(self, samples: Samples, basis: FourierBasis, bound: float = 1.0, narrowing: float | None = None):
        if type(basis) is not FourierBasis:
            raise ValueError("Anisotropic bandwidths are learned with basis='fourier'.")
        self.samples: Samples = samples
        self.start: np.ndarray = np.zeros(basis.dim)
        self._base = basis
        self._bound, self._narrowing = bound, bound if narrowing is None else narrowing

    def _shift(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return s(θ) and its slope."""
        limit = np.where(theta < 0, self._narrowing, self._bound)
        tanh = np.tanh(self._bound * theta / limit)
        return limit * tanh, self._bound * (1 - tanh**2)

    def basis(self, theta: np.ndarray) -> FourierBasis:
        base = self._base
        frequencies = base.frequencies * np.exp(-self._shift(theta)[0])
        return FourierBasis(self.kernel(theta), frequencies, base.weights, base.origin)

    def kernel(self, theta: np.ndarray) -> Kernel:
        return scale_bandwidths(self._base.kernel, np.exp(self._shift(theta)[0]))

    def describe(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        first = self._base.kernel.components()[0][1]
        return {"sigma": first.bandwidth * np.exp(self._shift(theta)[0])}  # type: ignore[attr-defined]

    def forward(self, theta: np.ndarray) -> tuple[Statistics, Pullback]:
        basis, (shift, slope) = self.basis(theta), self._shift(theta)
        statistics = self.samples.statistics(basis, log_bandwidths=shift)

        def pullback(adjoint: Statistics) -> np.ndarray:
            by_frequencies = frequency_adjoint(self.samples, basis, statistics, adjoint)
            return (adjoint.log_bandwidths - np.sum(basis.frequencies * by_frequencies, axis=0)) * slope

        return statistics, pullback


def scale_bandwidths(kernel: Kernel, factors: np.ndarray) -> Kernel:
    """Return the kernel with every bandwidth multiplied by `factors`, one per coordinate."""
    if isinstance(kernel, Mixture):
        return Mixture([scale_bandwidths(part, factors) for part in kernel.kernels], kernel.weights)
    return kernel.with_bandwidth(kernel.bandwidth * factors)  # type: ignore[attr-defined]


class _Work(NamedTuple):
    """Arrays of one thread."""

    angles: np.ndarray  # (chunk, q)
    waves: np.ndarray  # (chunk, 2q): [cos, sin]
    adjoint: np.ndarray  # (chunk, 2q)
    frequencies: np.ndarray  # (q, d): the result


def frequency_adjoint(samples: Samples, basis: FourierBasis, statistics: Statistics, adjoint: Statistics) -> np.ndarray:
    """W̄: the derivative of a loss by the frequencies W, from its derivatives by the statistics, in one pass.

    For a constant diffusion tensor D, with Z = [cos XWᵀ, sin XWᵀ] and the raw Gram G = ZᵀZ, the statistics are
    functions of p×p arrays: gram = G∘vvᵀ and energy = (JGJᵀ)∘(WDWᵀ tiled)∘vvᵀ, J = [[0, -1], [1, 0]]. Their adjoint
    gives Ḡ and a part of W̄ through WDWᵀ; the rest is Z̄ = Z(Ḡ+Ḡᵀ), Ā = -sin∘C̄ + cos∘S̄, W̄ = ĀᵀX, in chunks.
    """
    W, q = basis.frequencies, basis.frequencies.shape[0]
    constant, sign = samples.diffusion.constant, samples.diffusion.sign
    amplitude = np.tile(np.sqrt(basis.weights), 2)
    pairs = np.outer(amplitude, amplitude)
    result = np.zeros_like(W)
    grams = np.empty_like(adjoint.grams)
    metric = None if constant is None else times(W, constant) @ W.T * pairs[:q, :q]
    for out, by_gram, by_energy in zip(grams, adjoint.grams, adjoint.energies, strict=True):
        np.multiply(by_gram, pairs, out=out)
        if metric is not None:
            for minus, turned, plain in _blocks(q):  # J(L̄∘(WDWᵀ tiled))Jᵀ
                out[plain] += minus * metric * by_energy[turned]
        out += out.T.copy()
    if constant is not None:
        by_metric = sum(
            minus * np.einsum("cij,cij->ij", adjoint.energies[:, *turned], statistics.grams[:, *plain])
            for minus, turned, plain in _blocks(q)
        )
        result += times((by_metric + by_metric.T) @ W, constant)
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
        np.add(work.frequencies, angles.T @ X, out=work.frequencies)

    return result + sum(work.frequencies for work in samples.stream(basis.chunk_rows, start, step))


def _blocks(q: int) -> list[tuple[float, tuple[slice, slice], tuple[slice, slice]]]:
    """Return (sign, block of JGJᵀ, block of G) of JGJᵀ = [[ss, -sc], [-cs, cc]]; the transposed map is the same."""
    c, s = slice(q), slice(q, None)
    return [(1.0, (c, c), (s, s)), (-1.0, (c, s), (s, c)), (-1.0, (s, c), (c, s)), (1.0, (s, s), (c, c))]


def _add_flux_adjoint(
    out: np.ndarray, bar: np.ndarray, waves: np.ndarray, energy: np.ndarray, W: np.ndarray, chunk: Chunk
) -> None:
    """Add the part through ∇φ·F = [-sin∘(FWᵀ), cos∘(FWᵀ)] for each column F of a diffusion factor per sample."""
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


# --- mixtures at landmarks -------------------------------------------------------------------------------------------
@dataclass(eq=False, repr=False)
class _LandmarkMixture(Parametrisation):
    """A mixture Σ_ℓ β_ℓ k_ℓ at landmarks."""

    samples: Samples
    kernels: Sequence[Kernel]
    landmarks: np.ndarray  #: (p, d).
    origin: np.ndarray  #: (d,).
    floor: float = 0.01  #: τ: no weight falls below τ/L.

    def basis(self, theta: np.ndarray) -> LandmarkBasis:
        return LandmarkBasis(self.kernel(theta), self.landmarks, self.origin)

    def _weights(self, u: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """β = (1-τ) softmax(u) + τ/L (eq:softmax), and its pullback."""
        soft, floor = softmax(u), self.floor
        return (1 - floor) * soft + floor / len(u), lambda adjoint: (1 - floor) * soft * (adjoint - soft @ adjoint)


@dataclass(eq=False, repr=False)
class Bandwidths(_LandmarkMixture):
    """k = Σ_ℓ β_ℓ κ_ℓ(|x-z|²/σ_ℓ²) with θ = (u, log σ/σ_start), β = softmax(u) with a floor: the paper's VMKL.

    Each evaluation is a pass over the samples, in chunks: its operators change with σ. Samples have a diffusion tensor
    that is constant or a scalar for each of them; kernels are radial and continuously differentiable, with one
    bandwidth for all coordinates.
    """

    learn_weights: bool = True  #: If False, the weights stay equal.

    def __post_init__(self) -> None:
        for kernel in self.kernels:
            T = kernel.linear_map
            if T is None or T.ndim or kernel.smoothness < 1 or isinstance(kernel, Mixture):
                raise ValueError(
                    f"{kernel!r} has a bandwidth that cannot be learned: only radial C¹ kernels with a single one "
                    "allow it. Learn weights only, or use basis='fourier'; a metric H can be given as samples XH with "
                    "the diffusion HᵀH instead."
                )
        self.start: np.ndarray = np.zeros(len(self.kernels) * (2 if self.learn_weights else 1))
        self._sigma = np.array([float(kernel.bandwidth) for kernel in self.kernels])  # type: ignore[attr-defined]

    def _split(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        n = len(self.kernels)
        beta, pull_beta = self._weights(theta[:n] if self.learn_weights else np.zeros(n))
        return beta, theta[-n:], pull_beta

    def kernel(self, theta: np.ndarray) -> Mixture:
        beta, shift, _ = self._split(theta)
        sigmas = self._sigma * np.exp(shift)
        parts = [k.with_bandwidth(s) for k, s in zip(self.kernels, sigmas, strict=True)]  # type: ignore[attr-defined]
        return Mixture(parts, beta)

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


def mixture_adjoint(samples: Samples, basis: LandmarkBasis, adjoint: Statistics) -> np.ndarray:
    """Return the derivatives of a loss by β and log σ, (2, L), from its derivatives by the statistics, in one pass.

    With φ = Σ_ℓ β_ℓ κ_ℓ(s/σ_ℓ²), g = Σ_ℓ 2β_ℓ κ_ℓ'(s/σ_ℓ²)/σ_ℓ² and squared distances s, s^D in the metrics 1 and D
    (S^D between landmarks), the energy is ½[(g∘s^D)ᵀg + gᵀ(g∘s^D)] - ½ S^D∘gᵀg, as in `LandmarkBasis`. Hence

        φ̄ = φ(Ḡ+Ḡᵀ) + total̄,        ḡ = s^D∘(gĒ) + (g∘s^D)Ē - g(S^D∘Ē)        (Ē symmetrised).
    """
    root = _metric_root(samples)
    z = basis.landmarks - basis.origin
    parts: list[tuple[float, Any]] = basis.kernel.components()
    zeta = z * root if np.ndim(root) == 0 else z @ root
    distances = cdist(zeta, zeta, "sqeuclidean")
    grams = adjoint.grams + np.swapaxes(adjoint.grams, 1, 2)
    energies = (adjoint.energies + np.swapaxes(adjoint.energies, 1, 2)) / 2
    crossed = energies * distances

    def start() -> np.ndarray:
        return np.zeros((2, len(parts)))

    def step(out: np.ndarray, chunk: Chunk) -> None:
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
    return sum(samples.stream(rows, start, step), total)


def _add_derivatives(
    out: np.ndarray, parts: list[tuple[float, Any]], s: np.ndarray, by_values: np.ndarray, by_slopes: np.ndarray | None
) -> None:
    """Contract φ̄ and ḡ with the derivatives of φ and g by β_ℓ and log σ_ℓ (t = s/σ_ℓ², dt/dlog σ = -2t)."""
    by_beta, by_shift = out
    for index, (beta, kernel) in enumerate(parts):
        variance = kernel.bandwidth**2
        t = s / variance
        first = kernel.profile(t, 1)
        by_beta[index] += np.vdot(by_values, kernel.profile(t))
        by_shift[index] -= 2 * beta * np.vdot(by_values, t * first)
        if by_slopes is not None:
            by_beta[index] += 2 / variance * np.vdot(by_slopes, first)
            by_shift[index] -= 4 * beta / variance * np.vdot(by_slopes, first + t * kernel.profile(t, 2))


def _metric_root(samples: Samples) -> Any:
    """B with D = BBᵀ for a constant diffusion tensor D; a number for a multiple of the identity."""
    diffusion = samples.diffusion
    if diffusion.rows(np.asarray(samples.X[:1], dtype=np.float64), np.arange(1)).factor is not None:
        raise ValueError(
            "Bandwidths at landmarks are learned with a diffusion that is constant or a scalar per sample; use "
            "basis='fourier', or learn weights only."
        )
    return 1.0 if diffusion.constant is None else square_root(diffusion.constant)


@dataclass(eq=False, repr=False)
class Dictionary(_LandmarkMixture):
    """k = Σ_ℓ β_ℓ k_ℓ with θ = u, β = softmax(u) with a floor (eq:kernel-mixture, eq:softmax).

    The features of the mixture are Σ_ℓ β_ℓ k_ℓ(·, z), so its operators are Σ_ℓm β_ℓ β_m times the cross-Grams of
    pairs of kernels. These are computed once: after one pass, the cost of learning does not depend on N. Kernels may be
    of any kind.
    """

    generator: GeneratorAction | None = None  #: 𝒢 applied to kernel functions, for the term `pde`.

    def __post_init__(self) -> None:
        n, p = len(self.kernels), len(self.landmarks)
        self.start: np.ndarray = np.zeros(n)
        stack = DictionaryBasis(self.kernels, self.landmarks, self.origin)
        moments = self.samples.statistics(stack)
        self._class_weights = moments.weights
        self._totals = moments.totals.reshape(-1, n, p)
        self._grams, self._energies = (self._pairs(m) for m in (moments.grams, moments.energies))
        self._ridges = stack.ridges
        self._residual = None if self.generator is None else self._generator_moments(stack, self.generator)

    def kernel(self, theta: np.ndarray) -> Mixture:
        return Mixture(self.kernels, self._weights(theta)[0])

    def describe(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        return {"beta": self._weights(theta)[0]}

    def forward(self, theta: np.ndarray) -> tuple[Statistics, Pullback]:
        beta, pull_beta = self._weights(theta)
        first, second = np.triu_indices(len(beta))
        # A pair ℓ ≠ m stands for β_ℓβ_m and β_mβ_ℓ.
        count, p = np.where(first == second, 1, 2), len(self.landmarks)
        products = count * beta[first] * beta[second]
        residual = None
        if self._residual is not None:
            square, cross, image = self._residual
            residual = (products @ square).reshape(p, p), (products @ cross).reshape(p, p), beta @ image
        statistics = Statistics(
            self._class_weights,
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
