"""Kernel families; a profile and a spectral distribution define a radial family."""

from collections.abc import Callable, Iterator
from functools import partial
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from scipy.spatial.distance import cdist

from kdmaps.kernels._base import Kernel, namespace
from kdmaps.utils.validation import as_numbers

# Profiles with a singular derivative at s = 0 are evaluated at this s instead: the value is finite, and derivatives of
# the kernel multiply it by (x_j - z_j) = 0.
_TINY = 1e-300


class _Family(Kernel):
    """A single kernel with one bandwidth, or one per coordinate."""

    def __init__(self, bandwidth: ArrayLike = 1.0):
        sigma = as_numbers("bandwidth", bandwidth, "a number or one number per coordinate")
        if sigma.ndim > 1 or sigma.size == 0:
            raise ValueError(f"bandwidth must be a number or one number per coordinate, got shape {sigma.shape}.")
        if not np.all(np.isfinite(sigma)) or np.any(sigma <= 0):
            raise ValueError(f"bandwidth must be positive and finite, got {bandwidth!r}.")
        self.bandwidth = sigma

    def _parameters(self) -> dict[str, Any]:
        return {"bandwidth": self.bandwidth.tolist()}

    def to_dict(self) -> dict[str, Any]:
        return {"family": type(self).__name__, **self._parameters()}

    def components(self) -> list[tuple[float, Kernel]]:
        return [(1.0, self)]

    def with_bandwidth(self, bandwidth: ArrayLike) -> Kernel:
        """Return the same family with another bandwidth."""
        return type(self)(**{**self._parameters(), "bandwidth": bandwidth})

    def _check_dim(self, X: np.ndarray) -> None:
        if self.bandwidth.ndim == 1 and self.bandwidth.shape[0] != X.shape[1]:
            raise ValueError(
                f"bandwidth has {self.bandwidth.shape[0]} entries but X has {X.shape[1]} columns; give one bandwidth "
                "per column, or a single number."
            )

    def __repr__(self) -> str:
        arguments = ", ".join(f"{k}={np.round(v, 6).tolist()}" for k, v in self._parameters().items())
        return f"{type(self).__name__}({arguments})"


class _Radial(_Family):
    """Radial kernel k(x, z) = κ(s), s = Σ_j (x_j - z_j)²/σ_j²."""

    @property
    def linear_map(self) -> np.ndarray:
        return 1 / self.bandwidth

    def _s(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        self._check_dim(X)
        return cdist(X / self.bandwidth, Z / self.bandwidth, "sqeuclidean")

    def __call__(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        return self.profile(self._s(X, X if Z is None else Z))

    def partials(self, X: np.ndarray, Z: np.ndarray) -> Iterator[np.ndarray]:
        slope = 2 * self.profile(self._s(X, Z), 1)
        for x, z, inverse in zip(X.T, Z.T, np.broadcast_to(self.bandwidth**-2.0, X.shape[1]), strict=True):
            yield slope * ((x[:, None] - z[None, :]) * inverse)

    def spectral_scale(self, uniforms: np.ndarray) -> np.ndarray:
        """Quantile function of the random factor τ in w = τ g/σ, g standard normal; τ = 1 by default."""
        return np.ones_like(uniforms)

    def frequencies(self, normals: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        self._check_dim(normals)
        return normals * self.spectral_scale(uniforms)[:, None] / self.bandwidth


class Gaussian(_Radial):
    """Gaussian kernel k(x, z) = exp(-s/2); w ~ N(0, σ⁻²).

    Parameters
    ----------
    bandwidth : float or array-like of shape (d,), default=1.0
        σ.

    Examples
    --------
    >>> from kdmaps.kernels import Gaussian
    >>> import numpy as np
    >>> Gaussian(bandwidth=[1.0, 2.0])(np.zeros((1, 2)), np.array([[1.0, 0.0], [0.0, 2.0]])).round(4)
    array([[0.6065, 0.6065]])
    """

    log_slope: float = -0.5

    def profile(self, s: Any, order: int = 0) -> Any:
        return namespace(s).exp(-s / 2) * (-0.5) ** order


class Matern(_Radial):
    """Matérn kernel k(x, z) = 2^{1-ν}/Γ(ν) t^ν K_ν(t), t = √(2ν s), for half-integer ν.

    Its frequencies w follow a multivariate Student-t distribution with 2ν degrees of freedom.

    With g_ν(t) = √(2/π) t^ν K_ν(t): g_{1/2} = e^{-t}, g_{3/2} = (1+t) e^{-t}, g_{ν+1} = 2ν g_ν + t² g_{ν-1} and
    g_ν' = -t g_{ν-1}, so that κ = g_ν/g_ν(0), κ' = -ν g_{ν-1}/g_ν(0) and κ'' = ν² g_{ν-2}/g_ν(0).
    For ν = 3/2 and 5/2, κ is (1+t) e^{-t} and (1+t+t²/3) e^{-t}.

    Parameters
    ----------
    nu : float, default=1.5
        ν, a positive half-integer.
    bandwidth : float or array-like of shape (d,), default=1.0
        σ.

    Examples
    --------
    >>> from kdmaps.kernels import Matern
    >>> import numpy as np
    >>> Matern(nu=0.5, bandwidth=2.0)(np.array([[0.0]]), np.array([[2.0]])).round(4)  # e^{-1}
    array([[0.3679]])
    """

    def __init__(self, nu: float = 1.5, bandwidth: ArrayLike = 1.0):
        super().__init__(bandwidth)
        if not (np.isfinite(nu) and nu > 0 and float(2 * nu).is_integer() and int(2 * nu) % 2 == 1):
            raise ValueError(f"nu must be a positive half-integer (1/2, 3/2, 5/2, ...), got {nu!r}.")
        self.nu: float = float(nu)
        self.smoothness: float = 2 * (self.nu - 0.5)
        self._at_zero = float(special.gamma(self.nu) * 2 ** (self.nu - 0.5) / np.sqrt(np.pi))

    def _parameters(self) -> dict[str, Any]:
        return {"nu": self.nu, **super()._parameters()}

    def profile(self, s: Any, order: int = 0) -> Any:
        xp = namespace(s)
        t = xp.sqrt(2 * self.nu * xp.maximum(s, _TINY))
        return (-self.nu) ** order / self._at_zero * _bessel_profile(self.nu - order, t, xp)

    def value_and_slope(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.smoothness < 1:
            return super().value_and_slope(s)
        t = s * (2 * self.nu)
        np.sqrt(t, out=t)
        decay = np.negative(t)
        np.exp(decay, out=decay)  # both have the same exponential, the slowest part
        decay /= self._at_zero
        value, slope = (_bessel_polynomial(round(nu - 0.5), t) for nu in (self.nu, self.nu - 1))
        value *= decay
        decay *= -self.nu * slope
        return value, decay

    def spectral_scale(self, uniforms: np.ndarray) -> np.ndarray:
        return np.sqrt(self.nu / special.gammaincinv(self.nu, uniforms))  # χ²_{2ν} = 2 Gamma(ν)


class RationalQuadratic(_Radial):
    """Rational quadratic kernel k(x, z) = (1 + s/(2α))^{-α}; w = √τ g/σ with τ ~ Gamma(α, 1/α).

    Parameters
    ----------
    alpha : float, default=2.0
        α > 0.
    bandwidth : float or array-like of shape (d,), default=1.0
        σ.

    Examples
    --------
    >>> from kdmaps.kernels import RationalQuadratic
    >>> import numpy as np
    >>> RationalQuadratic(alpha=2.0)(np.array([[0.0]]), np.array([[2.0]]))  # (1 + 1)^-2
    array([[0.25]])
    """

    def __init__(self, alpha: float = 2.0, bandwidth: ArrayLike = 1.0):
        super().__init__(bandwidth)
        if not (np.isfinite(alpha) and alpha > 0):
            raise ValueError(f"alpha must be positive and finite, got {alpha!r}.")
        self.alpha: float = float(alpha)

    def _parameters(self) -> dict[str, Any]:
        return {"alpha": self.alpha, **super()._parameters()}

    def profile(self, s: Any, order: int = 0) -> Any:
        base = 1 + s / (2 * self.alpha)
        factor = (1.0, -0.5, 0.25 * (self.alpha + 1) / self.alpha)[order]
        return factor * base ** (-self.alpha - order)

    def spectral_scale(self, uniforms: np.ndarray) -> np.ndarray:
        return np.sqrt(special.gammaincinv(self.alpha, uniforms) / self.alpha)


class Laplacian(_Family):
    """Laplacian kernel k(x, z) = exp(-Σ_j |x_j - z_j|/σ_j); w_j independent Cauchy with scale 1/σ_j.

    Not radial, and not differentiable where x_j = z_j: the derivative is set to 0 there (the mean of the one-sided
    derivatives), and second derivatives raise an error.

    Parameters
    ----------
    bandwidth : float or array-like of shape (d,), default=1.0
        σ.

    Examples
    --------
    >>> from kdmaps.kernels import Laplacian
    >>> import numpy as np
    >>> Laplacian(bandwidth=3.0)(np.zeros((1, 2)), np.array([[1.0, 2.0]])).round(4)  # e^{-1}
    array([[0.3679]])
    """

    smoothness: float = 0

    def __call__(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        self._check_dim(X)
        Z = X if Z is None else Z
        return np.exp(-cdist(X / self.bandwidth, Z / self.bandwidth, "cityblock"))

    def partials(self, X: np.ndarray, Z: np.ndarray) -> Iterator[np.ndarray]:
        value = self(X, Z)
        for x, z, sigma in zip(X.T, Z.T, np.broadcast_to(self.bandwidth, X.shape[1]), strict=True):
            yield -np.sign(x[:, None] - z[None, :]) / sigma * value

    def frequencies(self, normals: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        self._check_dim(normals)
        return np.tan(np.pi * (special.ndtr(normals) - 0.5)) / self.bandwidth


def _bessel_profile(nu: float, t: Any, xp: Any) -> Any:
    """Evaluate g_ν(t) = θ_n(t)e^{-t}, ν = n+½, with θ_n(t) = Σ_k (n+k)!/((n-k)! k! 2^k) t^{n-k}; K_{-ν} = K_ν."""
    if nu < 0:
        return t ** (2 * nu) * _bessel_profile(-nu, t, xp)
    return _bessel_polynomial(round(nu - 0.5), t) * xp.exp(-t)


def _bessel_polynomial(n: int, t: Any) -> Any:
    """Evaluate θ_n(t)."""
    coefficients = [factorial(n + k) / (factorial(n - k) * factorial(k) * 2**k) for k in range(1, n + 1)]
    polynomial: Any = t + coefficients[0] if coefficients else 1.0
    for coefficient in coefficients[1:]:
        polynomial = polynomial * t + coefficient
    return polynomial


#: Classes by the names in stored kernels.
CLASSES: dict[str, Callable[..., Kernel]] = {c.__name__: c for c in (Gaussian, Laplacian, Matern, RationalQuadratic)}
#: Families by the names that estimators and the command line accept, to be called with a bandwidth.
FAMILIES: dict[str, Callable[..., Kernel]] = {
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "matern32": partial(Matern, 1.5),
    "matern52": partial(Matern, 2.5),
    "rq2": partial(RationalQuadratic, 2.0),
    "rq5": partial(RationalQuadratic, 5.0),
}


def make_kernel(kernel: str | Kernel, bandwidth: ArrayLike = 1.0) -> Kernel:
    """Build a kernel from the name of its family and a bandwidth.

    Parameters
    ----------
    kernel : str or Kernel
        A name in `FAMILIES`; a Kernel is returned unchanged.
    bandwidth : float or array-like of shape (d,), default=1.0
        σ.

    Examples
    --------
    >>> from kdmaps.kernels import make_kernel
    >>> make_kernel("matern52", bandwidth=2.0)
    Matern(nu=2.5, bandwidth=2.0)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str) or kernel not in FAMILIES:
        raise ValueError(f"Unknown kernel {kernel!r}; choose one of {', '.join(FAMILIES)}, or give a kdmaps kernel.")
    return FAMILIES[kernel](bandwidth=bandwidth)
