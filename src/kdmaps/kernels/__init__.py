"""Kernels: the formula of each, its derivatives and its spectral distribution.

A radial kernel is k(x, z) = κ(s) with s = Σ_j (x_j - z_j)²/σ_j², so a family consists of its *profile* κ and the first
two derivatives κ', κ'' with respect to s; everything else follows:

    ∂_j k = 2 κ' (x_j - z_j)/σ_j²,        Δ_x k = Σ_j [2 κ'/σ_j² + 4 κ'' (x_j - z_j)²/σ_j⁴].

In coordinates y = xT, with 1/σ on the diagonal of T, s = |y - ζ|²; a `Metric` is a T that is not diagonal.
Profiles use the array namespace of their argument, so NumPy and JAX share one formula.
By Bochner's theorem k(x, z) = E cos(wᵀ(x - z)); a family also maps standard normals to its frequencies w.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
