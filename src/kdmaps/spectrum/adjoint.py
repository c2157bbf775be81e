"""The leading modes of Σa = μBa, and the derivative of a loss of the space that they span.

In the coordinates y = Kᵀa of the Cholesky factor K of B = KKᵀ, the problem is Cy = μy with C = K⁻¹ΣK⁻ᵀ. Only few pairs
are needed, and a similar kernel provides a start: Chebyshev-filtered subspace iteration takes a few products with C.
The derivative involves all other pairs, but only through (μ_k - C)⁻¹, which conjugate gradients apply.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import blas, lapack

from kdmaps.spectrum.iteration import EXTRA, TOLERANCE, leading_pairs
from kdmaps.utils.blas import mirror

#: Differences of eigenvalues below this fraction of μ_1 are not divided by.
GUARD = 1e-11
#: Smaller problems are solved densely.
SMALLEST_ITERATED = 100
#: Maximum number of steps of the conjugate gradients, before the dense solve takes over.
MAX_STEPS = 80


def guarded_reciprocal(difference: Any, scale: Any) -> Any:
    """1/x for differences x of eigenvalues, but 0 at x = 0; `scale` is the largest eigenvalue. NumPy or JAX."""
    return difference / (difference**2 + (GUARD * scale) ** 2)


class LeadingModes(NamedTuple):
    """The r leading eigenpairs of Σa = μBa, and approximations of a few more."""

    values: np.ndarray  # (b,): μ, descending; approximate beyond the first r where b < p
    vectors: np.ndarray  # (p, r): V, with VᵀΣV = 1
    reduced: np.ndarray  # (p, b): the orthonormal eigenvectors y = Kᵀa of C
    factor: np.ndarray  # (p, p): Kᵀ, upper triangular
    operator: np.ndarray  # (p, p): C

    def adjoint(self, by_vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the left factors S and T of Σ̄ = sym(SVᵀ) and B̄ = sym(TVᵀ) for a loss of the space of the modes.

        Such a loss does not change when the modes are rotated inside their space, so only pairs across the cut count,
        and the derivative is exact where leading eigenvalues agree: with M = diag μ_k and all other pairs (μ_o, o),

            S = X - ½ V sym(VᵀV̄),    T = -XM,    X_k = Σ_o o oᵀV̄_k/(μ_k - μ_o),    oᵀBo = 1.
        """
        V, n = self.vectors, self.vectors.shape[1]
        inside = V.T @ by_vectors
        across = self._across(blas.dtrsm(1.0, self.factor, by_vectors, trans_a=1))
        X = blas.dtrsm(1.0, self.factor, across)
        return X - V @ (inside + inside.T) / 4, -X * self.values[:n]

    def _across(self, right: np.ndarray) -> np.ndarray:
        """Solve (μ_k - C)x_k = b_k among the vectors orthogonal to the modes; exact but for the guard on small gaps."""
        n, Y = self.vectors.shape[1], self.reduced
        right = right - Y[:, :n] @ (Y[:, :n].T @ right)
        solution = _divided(self.values, Y, n, right)
        if Y.shape[1] == len(Y):
            return solution
        refined = _conjugate_gradients(self.operator, self.values[:n], Y[:, :n], right, solution)
        return _divided(*_eigenpairs(self.operator), n, right) if refined is None else refined


def leading_modes(
    covariance: np.ndarray, penalty: np.ndarray, n_modes: int, rounding: float, start: np.ndarray | None = None
) -> LeadingModes | None:
    """Solve Σa = μBa, from `start`, the `reduced` of a similar problem.

    None where B is not positive definite or the samples do not determine the modes: μ exceeds `rounding` |a|².
    """
    if len(penalty) < n_modes:
        return None
    # Symmetric: the transpose is the same matrix in the order of LAPACK, which copies the other order.
    factor, info = lapack.dpotrf(penalty.T)
    if info != 0:
        return None
    operator = mirror(lapack.dsygst(covariance.T, factor)[0].T)
    try:
        iterated = len(operator) >= max(SMALLEST_ITERATED, 4 * (n_modes + EXTRA))
        pairs = leading_pairs(operator, n_modes, start) if iterated else None
        values, reduced = _eigenpairs(operator) if pairs is None else pairs
    except np.linalg.LinAlgError:
        return None
    leading = values[:n_modes]
    a = blas.dtrsm(1.0, factor, reduced[:, :n_modes])
    if not np.all(leading > rounding * np.sum(a**2, axis=0)):
        return None
    return LeadingModes(values, a / np.sqrt(leading), reduced, factor, operator)


def _eigenpairs(operator: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all eigenpairs, the largest eigenvalues first."""
    values, vectors = linalg.eigh(operator, driver="evd", check_finite=False)
    return values[::-1], vectors[:, ::-1]


def _divided(values: np.ndarray, Y: np.ndarray, n_modes: int, right: np.ndarray) -> np.ndarray:
    """Σ_o y_o y_oᵀb_k/(μ_k - μ_o) over the given pairs beyond the modes."""
    others = Y[:, n_modes:]
    reciprocal = guarded_reciprocal(values[:n_modes] - values[n_modes:, None], values[0])
    return others @ (others.T @ right * reciprocal)


def _conjugate_gradients(
    C: np.ndarray, values: np.ndarray, Y: np.ndarray, right: np.ndarray, solution: np.ndarray
) -> np.ndarray | None:
    """Solve (μ_k - C)x_k = b_k orthogonally to Y, one column for each k, from a first guess; None without success."""

    def apply(x: np.ndarray) -> np.ndarray:
        image = x * values - C @ x
        # C keeps the complement of Y to rounding only, and along Y the system is not positive: rounding would grow.
        return image - Y @ (Y.T @ image)

    residual = right - apply(solution)
    direction, squares = residual, np.sum(residual**2, axis=0)
    goal = TOLERANCE**2 * np.sum(right**2, axis=0)
    for _ in range(MAX_STEPS):
        active = squares > goal
        if not active.any():
            return solution
        image = apply(direction)
        curvature = np.sum(direction * image, axis=0)
        if not np.all(curvature[active] > 0):
            return None
        step = np.divide(squares, curvature, out=np.zeros_like(squares), where=active)
        solution, residual = solution + step * direction, residual - step * image
        before, squares = squares, np.where(active, np.sum(residual**2, axis=0), squares)
        direction = residual + direction * np.divide(squares, before, out=np.zeros_like(squares), where=active)
    return None
