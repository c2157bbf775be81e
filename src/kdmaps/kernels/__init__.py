"""Kernels: the formula of each, its derivatives and its spectral distribution.

A radial kernel is k(x, z) = κ(s) with s = Σ_j (x_j - z_j)²/σ_j², so a family consists of its *profile* κ and the first
two derivatives κ', κ'' with respect to s; everything else follows:

    ∂_j k = 2 κ' (x_j - z_j)/σ_j²,        Δ_x k = Σ_j [2 κ'/σ_j² + 4 κ'' (x_j - z_j)²/σ_j⁴].

In coordinates y = xT, with 1/σ on the diagonal of T, s = |y - ζ|²; a `Metric` is a T that is not diagonal.
Profiles use the array namespace of their argument, so NumPy and JAX share one formula.
By Bochner's theorem k(x, z) = E cos(wᵀ(x - z)); a family also maps standard normals to its frequencies w.
"""

from kdmaps.kernels._base import Kernel
from kdmaps.kernels._families import FAMILIES, Gaussian, Laplacian, Matern, RationalQuadratic, make_kernel
from kdmaps.kernels._metric import Metric
from kdmaps.kernels._mixture import Mixture, kernel_from_dict, simplex_floor, softmax

__all__ = [
    "FAMILIES",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Matern",
    "Metric",
    "Mixture",
    "RationalQuadratic",
    "kernel_from_dict",
    "make_kernel",
    "simplex_floor",
    "softmax",
]
