"""Generators of diffusions, applied to basis functions in closed form: residuals 𝒢φ + λφ and Rayleigh estimates.

For known dynamics the equation 𝒢φ = -λφ (eq:gen-eigen) tests a mode without a reference, and thm:residual-gap bounds
the distance from the true mode by the residual (`experiments/theory/residuals.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from kdmaps.bases import Basis, FourierBasis, LandmarkBasis, ModeBasis, RandomPhaseBasis, square_root
from kdmaps.forms.diffusion import DiffusionTensor, TensorLike
from kdmaps.kernels import Kernel
from kdmaps.problems.base import Diffusion, Problem
from kdmaps.utils.threads import map_reduce, one_blas_thread, slices
from kdmaps.utils.validation import unit_weight

Field = Callable[[np.ndarray], Any]


@dataclass(frozen=True)
class Residuals:
    """Residuals of modes in the eigenvalue equation of a generator."""

    values: np.ndarray  #: (n, r): 𝒢φ_k + λ̂_kφ_k at the points.
    rates: np.ndarray  #: (r,): Rayleigh estimates λ̂_k = -⟨φ_k, 𝒢φ_k⟩/⟨φ_k, φ_k⟩ (eq:app_rayleigh_closed).
    norms: np.ndarray  #: (r,): ‖𝒢φ_k + λ̂_kφ_k‖/‖φ_k‖ in the law of the points.
    means: np.ndarray  #: (r,): E φ_k/‖φ_k‖, the share of the constant in a mode of unit norm.


def rayleigh_residuals(values: np.ndarray, images: np.ndarray, sample_weight: np.ndarray | None = None) -> Residuals:
    """Compute the `Residuals` of functions from their values φ and images 𝒢φ (or G_hφ) at points.

    λ̂ = -⟨φ, 𝒢φ⟩/⟨φ, φ⟩ is the λ with the smallest residual (eq:app_rayleigh_ls, eq:app_rayleigh_closed).

    Parameters
    ----------
    values, images : ndarray of shape (n, r)
        φ and 𝒢φ.
    sample_weight : ndarray of shape (n,), optional
        Weights of the points.
    """
    weight = unit_weight(sample_weight, len(values))
    squares = weight @ values**2
    rates = -(weight @ (values * images)) / squares
    residual = images + rates * values
    return Residuals(residual, rates, np.sqrt(weight @ residual**2 / squares), weight @ values / np.sqrt(squares))


class Generator:
    """The generator 𝒢f = b·∇f + tr(a∇²f) of dX = b dt + √2 σ dW with a = σσᵀ (eq:generator, whose σσᵀ is 2a).

    A generator is a function (kernel, X, Z) → 𝒢k(·, z_m)(x_i), as required by the term "pde" of
    `kdmaps.VariationalKernelMap`.

    Parameters
    ----------
    drift : callable
        b: points (n, d) → (n, d).
    diffusion : None, number, array-like or callable, default=None
        The tensor a, as the `diffusion` of estimators: the energy of a reversible process is E[∇f·a∇f] = -E[f𝒢f]. None
        is the identity (noise √2 dW). A number, a diagonal (d,) or a matrix (d, d) if it is constant; otherwise points
        (n, d) → (n,), (n, d), (n, d, d) or a `kdmaps.Factor` σ.

    Examples
    --------
    >>> import kdmaps
    >>> from kdmaps.generators import Generator
    >>> X = kdmaps.problems.load("dw1d").sample(20_000, random_state=0)
    >>> model = kdmaps.KernelDiffusionMap(n_components=2, random_state=0).fit(X)
    >>> found = Generator(lambda x: -x * (x**2 - 1)).residuals(model, X)
    >>> found.values.shape, found.rates.shape
    ((20000, 2), (2,))
    """

    diffusion: TensorLike

    def __init__(self, drift: Field, diffusion: TensorLike = None):
        self._drift, self.diffusion = drift, diffusion

    def drift(self, X: np.ndarray) -> np.ndarray:
        """Evaluate b at points X of shape (n, d); the result has the same shape."""
        b = np.asarray(self._drift(X), dtype=np.float64)
        if b.shape != X.shape:
            raise ValueError(f"The drift must have the shape {X.shape} of the points, got {b.shape}.")
        if not np.all(np.isfinite(b)):
            raise ValueError("The drift is not finite at every point.")
        return b

    def _spread(self, X: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return (diagonal of a (1 or n, d), None), or (None, σ (1 or n, d, k)) with a = σσᵀ."""
        tensor = DiffusionTensor(self.diffusion, X.shape[1])
        if tensor.per_sample:
            raise ValueError("A generator acts at any point: pass diffusion as a callable, not as an array per sample.")
        if tensor.constant is not None:
            constant = tensor.constant if tensor.constant.ndim else tensor.constant * np.eye(X.shape[1])
            diagonal = np.diagonal(constant)
            if np.array_equal(constant, np.diag(diagonal)):
                return diagonal[None, :], None
            return None, square_root(constant)[None]
        scalar, factor = tensor.rows(X, slice(None))
        return (np.broadcast_to(scalar[:, None], X.shape), None) if scalar is not None else (None, factor)

    def __call__(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Evaluate 𝒢k(·, z_m) at x_i; (n, p).

        For k = κ(|y - ζ|²) in coordinates y = xT, for example with 1/σ_j on the diagonal of T, and r = T(y - ζ)
        (Appendix "Kernel derivative identities", for any profile κ):

            ∇k = 2κ' r,    ∇²k = 4κ'' rrᵀ + 2κ' TTᵀ,
            𝒢k = 2κ' b·r + 4κ'' rᵀar + 2κ' tr(TᵀaT).

        Parameters
        ----------
        kernel : Kernel
            A kernel that is C².
        X, Z : ndarray of shape (n, d) and (p, d)
            Points x_i and landmarks z_m.
        """
        X, Z = np.asarray(X, dtype=np.float64), np.asarray(Z, dtype=np.float64)
        b, (diagonal, factor) = self.drift(X), self._spread(X)
        images = np.zeros((len(X), len(Z)))
        for beta, part in kernel.components():
            images += beta * _on_radial(part, X, Z, b, diagonal, factor)
        return images

    @one_blas_thread()
    def apply(self, basis: Basis, X: np.ndarray) -> np.ndarray:
        """Evaluate 𝒢φ_m(x_i) for all features φ of a basis; (n, p).

        With θ = wᵀx: 𝒢cos θ = -(b·w) sin θ - (wᵀaw) cos θ and 𝒢sin θ = (b·w) cos θ - (wᵀaw) sin θ. Fourier features
        of any kernel are smooth (if the kernel is not C², 𝒢φ grows with the number of features); landmarks need a C²
        kernel.

        Parameters
        ----------
        basis : Basis
        X : ndarray of shape (n, d)
        """
        X = np.asarray(X, dtype=np.float64)
        if isinstance(basis, ModeBasis):
            return self.apply(basis.basis, X) @ basis.coefficients  # 𝒢 of the offset is zero
        if isinstance(basis, LandmarkBasis):
            return self(basis.kernel, X, basis.landmarks)
        if not isinstance(basis, FourierBasis):
            raise TypeError(f"No closed form for {type(basis).__name__}.")
        W, (diagonal, factor) = basis.frequencies, self._spread(X)
        if diagonal is not None:
            decay = diagonal @ (W**2).T
        else:
            assert factor is not None
            decay = sum((column @ W.T) ** 2 for column in np.moveaxis(factor, 2, 0))
        along = self.drift(X) @ W.T
        cosines, sines = np.hsplit(FourierBasis.features(basis, X), 2)  # pairs, also for random phases
        on_cosines, on_sines = -along * sines - decay * cosines, along * cosines - decay * sines
        if isinstance(basis, RandomPhaseBasis):  # √2 cos(θ + phase)
            return np.sqrt(2) * (np.cos(basis.phases) * on_cosines - np.sin(basis.phases) * on_sines)
        return np.hstack([on_cosines, on_sines])

    @one_blas_thread()
    def residuals(self, estimator: Any, X: np.ndarray, sample_weight: np.ndarray | None = None) -> Residuals:
        """Compute 𝒢φ_k + λ̂_kφ_k of the modes of a fitted estimator, with their Rayleigh estimates (eq:pde-loss).

        Parameters
        ----------
        estimator : fitted estimator
            Anything with `basis_`, `coefficients_` and `modes_`.
        X : ndarray of shape (n, d)
            Points of the stationary law, preferably not the training samples.
        sample_weight : ndarray of shape (n,), optional
            Weights of the points.
        """
        modes = ModeBasis(estimator.basis_, estimator.coefficients_, estimator.modes_.offset)
        values, images = np.empty((2, X.shape[0], modes.n_features))

        def step(_: None, part: slice) -> None:
            chunk = np.asarray(X[part], dtype=np.float64)
            values[part], images[part] = modes.features(chunk), self.apply(modes, chunk)

        map_reduce(list(slices(X.shape[0], estimator.basis_.chunk_rows)), lambda: None, step)
        return rayleigh_residuals(values, images, sample_weight)


def for_problem(problem: Problem) -> Generator:
    """Return the generator of a problem with a drift.

    Parameters
    ----------
    problem : kdmaps.problems.Diffusion
        For example ``kdmaps.problems.load("dw1d")``.
    """
    if not isinstance(problem, Diffusion):
        raise ValueError(
            f"{problem.name!r} does not have a drift in closed form; pass its drift to kdmaps.generators.Generator."
        )
    return Generator(problem.drift, problem.diffusion)


def _on_radial(kernel: Kernel, X: np.ndarray, Z: np.ndarray, b: np.ndarray, diagonal: Any, factor: Any) -> np.ndarray:
    """Evaluate 𝒢k for one family; see `Generator.__call__`."""
    T = kernel.linear_map
    if kernel.smoothness < 2 or T is None:
        raise ValueError(
            f"{kernel!r} is not twice differentiable where points coincide, so a generator cannot act on it; use a C² "
            "family (gaussian, matern32, matern52, rq2, rq5), or basis='fourier', whose features are smooth."
        )
    centre = Z.mean(axis=0)
    y, zeta = kernel.coordinates(X - centre), kernel.coordinates(Z - centre)
    s = cdist(y, zeta, "sqeuclidean")
    along = _along(kernel.coordinates(b), y, zeta)  # b·r
    if diagonal is not None and T.ndim == 2:
        diagonal, factor = None, np.sqrt(diagonal)[:, :, None] * np.eye(X.shape[1])
    if diagonal is None:
        columns = kernel.coordinates(np.moveaxis(factor, 2, 0))  # of Tᵀσ
        trace = (columns**2).sum(axis=(0, 2))
        if columns.shape[1] == 1:  # a is constant
            quadratic = cdist(y @ columns[:, 0].T, zeta @ columns[:, 0].T, "sqeuclidean")
        else:
            quadratic = sum(_along(column, y, zeta) ** 2 for column in columns)
    else:
        diagonal = diagonal * T**2
        trace = diagonal.sum(axis=1)
        if len(diagonal) == 1:
            quadratic = cdist(y * np.sqrt(diagonal), zeta * np.sqrt(diagonal), "sqeuclidean")
        else:
            quadratic = sum(w[:, None] * (x[:, None] - z) ** 2 for w, x, z in zip(diagonal.T, y.T, zeta.T, strict=True))
    # κ'' may be infinite at x = z (Matérn 3/2), and rᵀar must be exactly zero there, without rounding errors.
    curved = 4 * kernel.profile(s, 2) * np.where(s > 0, quadratic, 0)
    return 2 * kernel.profile(s, 1) * (along + trace[:, None]) + curved


def _along(direction: np.ndarray, y: np.ndarray, zeta: np.ndarray) -> np.ndarray:
    """Return (y_i - ζ_m)·c_i for a direction c_i at every point; (n, p)."""
    return np.einsum("nd,nd->n", y, direction)[:, None] - direction @ zeta.T
