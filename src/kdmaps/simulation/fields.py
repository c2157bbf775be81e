"""Values and gradients at a single point for a simulation step: a mode, its flat continuation, walls, biases."""

from typing import TypeAlias

import numpy as np
from scipy.spatial.distance import cdist

from kdmaps.bases import Basis, FourierBasis, LandmarkBasis
from kdmaps.data.distances import Support
from kdmaps.simulation import compiled
from kdmaps.simulation.export import LOGIT_FLOOR, Exported, checked_mode, mode_waves

#: Width of the weights of samples around a point, relative to the radius of the support.
WIDTH = 1 / 3


def checked_support(model: Exported, remedy: str) -> Support:
    """Return the support of a model, or raise with a remedy."""
    support = model.support_
    if support is None:
        raise ValueError(f"This model has no record of its samples, because it is from an older file; {remedy}.")
    if support.radius <= 0:
        raise ValueError(f"All samples of this model are equal; {remedy}.")
    return support


def _ramp(t: float) -> tuple[float, float]:
    """Return a twice differentiable function that increases from 0 at t ≤ 0 to 1 at t ≥ 1, and its slope."""
    t = min(max(t, 0.0), 1.0)
    return t**3 * (10 - 15 * t + 6 * t**2), 30 * t**2 * (1 - t) ** 2


class Nearness:
    """Smooth squared distance to the samples of a fit: s = -2h² log Σ_i e^{-|x-x_i|²/2h²}, h = radius/3.

    s is at most the squared distance to the nearest sample, and close to it far from all samples.
    """

    radius: float
    width: float

    def __init__(self, support: Support):
        self.samples: np.ndarray = np.ascontiguousarray(support.samples, dtype=np.float64)
        self.radius, self.width = support.radius, WIDTH * support.radius

    def near(self, x: np.ndarray) -> bool:
        """Return whether a sample is within the radius, and store the squared distances for `soft`."""
        self._squares = cdist(x[None], self.samples, "sqeuclidean")[0]
        return bool(self._squares.min() <= self.radius**2)

    def soft(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return s at the point of the last call of `near`, ∇s = 2(x - Σ p_i x_i), and the weights p of the samples."""
        exponents = self._squares / (-2 * self.width**2)
        largest = exponents.max()
        p = np.exp(exponents - largest)
        total = p.sum()
        p /= total
        s = -2 * self.width**2 * (largest + np.log(total))
        return float(s), 2 * (x - p @ self.samples), p


class ModeField:
    """The value and the gradient of one mode, continued flat far from the samples if `flat`.

    The continuation is φ̃ = w φ + (1 - w) φ̄. φ̄ = Σ p_i φ(x_i), p_i ∝ e^{-|x-x_i|²/2h²}, is the mode at the samples
    nearest to x, hence nearly constant far away and never outside the range of the samples. w decreases from 1 at s =
    r² to 0 at s = (2r)² (`Nearness`), so that φ̃ = φ wherever `extrapolates` is False.
    """

    basis: Basis
    offset: float

    def __init__(self, model: Exported, mode: int, flat: bool):
        self.basis, coefficients, self.offset = checked_mode(model, mode)
        self.coefficients: np.ndarray = coefficients[:, None]
        self._waves: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        if isinstance(self.basis, FourierBasis):
            frequencies, cosines, sines = mode_waves(self.basis, coefficients)
            self._waves = np.ascontiguousarray(frequencies), cosines, sines
        self._radial: tuple[np.ndarray, np.ndarray] | None = None
        if isinstance(self.basis, LandmarkBasis) and self.basis.radial:
            kernel = self.basis.kernel
            self._radial = kernel.coordinates(self.basis.centred_landmarks), np.asarray(kernel.linear_map)
        self.nearness: Nearness | None = None
        if flat:
            self.nearness = Nearness(checked_support(model, "fit it again, or use outside='free'"))
            self.at_samples: np.ndarray = (
                self.basis.combine(self.nearness.samples, self.coefficients)[:, 0] - self.offset
            )

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value and the gradient at x."""
        return self._continued(x, *self._mode(x))

    def values(self, X: np.ndarray) -> np.ndarray:
        """Return the values at rows of X."""
        values = self.basis.combine(X, self.coefficients)[:, 0] - self.offset
        unused = np.zeros(X.shape[1])
        return np.array([self._continued(x, value, unused)[0] for x, value in zip(X, values, strict=True)])

    def _continued(self, x: np.ndarray, value: float, slope: np.ndarray) -> tuple[float, np.ndarray]:
        if self.nearness is None or self.nearness.near(x):
            return value, slope
        s, s_slope, p = self.nearness.soft(x)
        t, width = (s / self.nearness.radius**2 - 1) / 3, self.nearness.width
        if t <= 0:
            return value, slope
        mean = float(p @ self.at_samples)
        mean_slope = (p * (self.at_samples - mean)) @ self.nearness.samples / width**2
        if t >= 1:
            return mean, mean_slope
        w, w_slope = _ramp(1 - t)
        blend = (-w_slope / (3 * self.nearness.radius**2) * (value - mean)) * s_slope
        return w * value + (1 - w) * mean, w * slope + (1 - w) * mean_slope + blend

    def _mode(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        if self._waves is not None:
            slope = np.empty_like(x)
            value = compiled.waves(x - self.basis.origin, *self._waves, slope)
            return value - self.offset, slope
        if self._radial is not None:  # Σ a_m κ(s_m) with s_m = |y - ζ_m|² and y = xT
            kernel, (zeta, T), a = self.basis.kernel, self._radial, self.coefficients[:, 0]
            difference = kernel.coordinates(x - self.basis.origin) - zeta
            s = np.einsum("md,md->m", difference, difference)
            slope = (2 * a * kernel.profile(s, 1)) @ difference
            return float(a @ kernel.profile(s)) - self.offset, T @ slope if T.ndim == 2 else T * slope
        row = x[None]
        value = self.basis.combine(row, self.coefficients)[0, 0] - self.offset
        return float(value), self.basis.gradient(row, self.coefficients)[0, 0]


class KolmogorovField(ModeField):
    """The bias U = -E log(1 + w|∇f|²/ε) of a committor f before it is clipped; 0 far from the samples.

    w(f) is 1 where q is between δ and 1 - δ, and decreases to 0 where q is clipped: U is continuous, and U = 0 in A and
    B. δ is LOGIT_FLOOR.
    """

    def __init__(self, model: Exported, energy: float, floor: float):
        super().__init__(model, 0, flat=True)
        self.energy, self.floor = energy, floor
        self.at_samples[:] = 0

    def _mode(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        f, slope = super()._mode(x)
        w, w_slope = _ramp(min(f, 1 - f) / LOGIT_FLOOR)
        if w == 0:
            return 0.0, np.zeros_like(x)
        square, towards = slope @ slope, np.sign(0.5 - f) / LOGIT_FLOOR
        change = w_slope * towards * square * slope + 2 * w * self._curvature(x, slope)
        return -self.energy * np.log1p(w * square / self.floor), -self.energy / (self.floor + w * square) * change

    def _curvature(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the second derivatives of f times v."""
        if self._waves is not None:
            frequencies, cosines, sines = self._waves
            angles = frequencies @ (x - self.basis.origin)
            return -((cosines * np.cos(angles) + sines * np.sin(angles)) * (frequencies @ v)) @ frequencies
        assert self._radial is not None  # all kernels of committors at landmarks are radial
        kernel, (zeta, T), a = self.basis.kernel, self._radial, self.coefficients[:, 0]
        difference, along = kernel.coordinates(x - self.basis.origin) - zeta, kernel.coordinates(v)
        s = np.maximum(np.einsum("md,md->m", difference, difference), np.finfo(float).tiny)
        curved = (4 * a * kernel.profile(s, 2) * (difference @ along)) @ difference
        curved += 2 * (a @ kernel.profile(s, 1)) * along
        return T @ curved if T.ndim == 2 else T * curved


class WallField:
    """The energy k/2 (√s - r - margin)² further than r + margin from all samples, 0 elsewhere."""

    strength: float
    start: float

    def __init__(self, model: Exported, strength: float, margin: float):
        self.nearness: Nearness = Nearness(checked_support(model, "fit it again"))
        self.strength, self.start = strength, self.nearness.radius + margin

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the energy and its gradient at x."""
        if not self.nearness.near(x):
            s, s_slope, _ = self.nearness.soft(x)
            if s > self.start**2:
                beyond = np.sqrt(s) - self.start
                return self.strength * beyond**2 / 2, self.strength * beyond / (2 * np.sqrt(s)) * s_slope
        return 0.0, np.zeros_like(x)


#: Functions of the columns; accuracy matters near the samples, and everywhere if `nearness` is None.
Field: TypeAlias = ModeField | WallField
