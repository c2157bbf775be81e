"""A dictionary of kernels at landmarks: its operators for all weights β, their Lipschitz constants and lower bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kdmaps.bases import DictionaryBasis, LandmarkBasis, pair_blocks
from kdmaps.certificates._certificate import Certificate
from kdmaps.forms.diffusion import is_per_sample
from kdmaps.forms.energy import compute_moments
from kdmaps.forms.tangent import DiffusionLike, checked_tensor
from kdmaps.kernels import Kernel


@dataclass(frozen=True)
class DictionaryOperators:
    """Σ_β, L_β and W_β of the mixture Σ_ℓ β_ℓ k_ℓ for every β, from one pass over the samples.

    The features C_β and their derivatives J_β are linear in β (eq:CWJ-beta), so that Σ_β = Σ_ℓm β_ℓβ_m Σ_ℓm with the
    symmetric parts Σ_ℓm of C_ℓᵀC_m/N, and likewise L_β: no array of size (N·d)×p exists. A centred covariance is of the
    same form, with the means of the columns taken out of C.

    Attributes
    ----------
    kernels : tuple of Kernel
    covariances, energies : ndarray of shape (L, L, p, p)
        Σ_ℓm and L_ℓm.
    ridges : ndarray of shape (L, p, p)
        W_ℓ with its jitter (eq:W-stab).
    regularization : float
        λ.
    weights : ndarray of shape (L,)
        β of the model.
    """

    kernels: tuple[Kernel, ...]
    covariances: np.ndarray
    energies: np.ndarray
    ridges: np.ndarray
    regularization: float
    weights: np.ndarray

    @classmethod
    def compute(
        cls,
        mixture: Kernel,
        landmarks: np.ndarray,
        X: np.ndarray,
        regularization: float,
        *,
        center: bool = True,
        sample_weight: np.ndarray | None = None,
        diffusion: DiffusionLike = None,
    ) -> DictionaryOperators:
        """Operators of the components of a mixture.

        Parameters
        ----------
        mixture : Kernel
        landmarks : ndarray of shape (p, d)
        X : ndarray of shape (n, d)
        regularization : float
            λ.
        center : bool, default=True
            Whether the covariance is centred.
        sample_weight : ndarray of shape (n,), optional
        diffusion : optional
            Diffusion tensor of the energy, as for estimators.
        """
        weights, kernels = zip(*mixture.components(), strict=True)
        tensor, origin = checked_tensor(diffusion, X, sample_weight, keep=True), landmarks.mean(axis=0)

        basis = DictionaryBasis(kernels, landmarks, origin)
        moments = compute_moments(basis, X, sample_weight, tensor)
        blocks = pair_blocks(np.stack([moments.covariance(center), moments.mean_energy()]), len(kernels))
        pairs = np.empty((2, len(kernels), len(kernels), *blocks.shape[2:]))
        first, second = np.triu_indices(len(kernels))
        pairs[:, first, second] = pairs[:, second, first] = np.swapaxes(blocks, 0, 1)
        return cls(kernels, pairs[0], pairs[1], basis.ridges, regularization, np.array(weights))

    @classmethod
    def of(cls, estimator: Any, X: np.ndarray, sample_weight: np.ndarray | None = None) -> DictionaryOperators:
        """Operators behind a model that was fitted to X with landmarks."""
        if not isinstance(estimator.basis_, LandmarkBasis):
            raise ValueError("These certificates are about kernels at landmarks; fit with basis='landmarks'.")
        if is_per_sample(estimator.diffusion) and not _is_fitted_to(estimator, X, sample_weight):
            raise ValueError("diffusion was given per sample, and belongs to the samples of fit; pass these as X.")
        return cls.compute(
            estimator.kernel_,
            estimator.basis_.landmarks,
            X,
            getattr(estimator, "regularization_", estimator.regularization),
            center=estimator.center,
            sample_weight=sample_weight,
            diffusion=estimator.diffusion,
        )

    def at(self, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ_β and L_{β,λ} = L_β + λW_β."""
        covariance, energy = self.quadratic(beta)
        return covariance, energy + self.regularization * np.tensordot(beta, self.ridges, 1)

    def quadratic(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """C_vᵀC_v/N and J_vᵀJ_v/N for any v."""
        return _contract(v, v, self.covariances), _contract(v, v, self.energies)

    def derivative(self, beta: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of Σ_β and of L_{β,λ} along v."""
        ridge = self.regularization * np.tensordot(v, self.ridges, 1)
        return 2 * _contract(beta, v, self.covariances), 2 * _contract(beta, v, self.energies) + ridge

    def rough_kernels(self) -> tuple[str, ...]:
        """Return a violation of the standing assumption for every kernel that is not C²."""
        return tuple(
            f"{kernel!r} is not C²; use a smoother family." for kernel in self.kernels if kernel.smoothness < 2
        )


def _is_fitted_to(estimator: Any, X: np.ndarray, sample_weight: np.ndarray | None) -> bool:
    """Whether X are the samples of the fit, by the sums of the features over them."""
    features = estimator.basis_.features(np.asarray(X, dtype=np.float64))
    total = features.sum(axis=0) if sample_weight is None else sample_weight @ features
    found = estimator.moments_
    # Rounding of the sums; other samples of the same law differ by 1/√n.
    return found.count == len(X) and np.allclose(total, found.total, rtol=0, atol=1e-9 * np.abs(found.total).max())


def _contract(u: np.ndarray, v: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    return np.einsum("i,j,ijpq->pq", u, v, pairs, optimize=True)


def _largest(matrices: Iterable[np.ndarray]) -> float:
    return float(max(np.linalg.eigvalsh(matrix)[-1] for matrix in matrices))


def _diagonal(pairs: np.ndarray) -> list[np.ndarray]:
    return [pairs[ell, ell] for ell in range(len(pairs))]


_STANDING = ("kernels are positive definite and C²", "landmarks and samples are fixed; only β changes")


def lipschitz_covariance(operators: DictionaryOperators) -> Certificate:
    """K with ‖Σ_β - Σ_β'‖ ≤ K ‖β-β'‖₁: K = 2M_C²/N (eq:lip-sigma of prop:lipschitz-operators).

    M_C²/N = max_ℓ ‖C_ℓ‖²/N is the largest eigenvalue of any Σ_ℓ.
    """
    M = _largest(_diagonal(operators.covariances))
    return Certificate("prop:lipschitz-operators", 2 * M, {"M_C²/N": M}, _STANDING, operators.rough_kernels())


def lipschitz_energy(operators: DictionaryOperators) -> Certificate:
    """K with ‖L_{β,λ} - L_{β',λ}‖ ≤ K ‖β-β'‖₁: K = 2M_J²/N + λM_W (eq:lip-L of prop:lipschitz-operators).

    M_J²/N = max_ℓ ‖J_ℓ‖²/N is the largest eigenvalue of any L_ℓ, M_W that of any W_ℓ.
    """
    M_J, M_W = _largest(_diagonal(operators.energies)), _largest(operators.ridges)
    lam = operators.regularization
    constants = {"M_J²/N": M_J, "M_W": M_W, "λ": lam}
    value = 2 * M_J + lam * M_W
    return Certificate("prop:lipschitz-operators", value, constants, _STANDING, operators.rough_kernels())


def uniform_positive_definiteness(operators: DictionaryOperators) -> Certificate:
    """ℓ = λγ with L_{β,λ} ≥ ℓ for every β on the simplex (prop:uniform-pd).

    γ = min_ℓ λ_min(W_ℓ): λ_min is concave, so its minimum over the convex hull of the W_ℓ is at one of them. For smooth
    kernels γ is the jitter of W (eq:W-stab), and ℓ says no more than that the problem can be solved.
    """
    gamma = float(min(np.linalg.eigvalsh(ridge)[0] for ridge in operators.ridges))
    lam = operators.regularization
    violations = () if gamma > 0 else ("W is not positive definite: use fewer or more distant landmarks.",)
    return Certificate("prop:uniform-pd", lam * max(gamma, 0.0), {"γ": gamma, "λ": lam}, ("λ > 0",), violations)


def rkhs_mixture_norm(kernel: Kernel, landmarks: np.ndarray, coefficients: Sequence[float] | np.ndarray) -> Certificate:
    """Squared norm of f = Σ_m a_m k_β(·, z_m) in the space of k_β = Σ_ℓ β_ℓ k_ℓ (prop:rkhs-mixture-norm).

    ‖f‖² = aᵀW_βa, and the infimum of Σ_ℓ ‖f_ℓ‖²/β_ℓ over all f = Σ_ℓ f_ℓ is attained at f_ℓ = β_ℓ Σ_m a_m k_ℓ(·, z_m):
    there ‖f_ℓ‖²/β_ℓ = β_ℓ aᵀW_ℓa, with the sum aᵀW_βa. Both are computed, and `constants` has the share of every
    component.
    """
    a = np.asarray(coefficients, dtype=np.float64)
    norm = float(a @ kernel(landmarks) @ a)
    shares = [float(beta * (a @ part(landmarks) @ a)) for beta, part in kernel.components()]
    constants = {f"‖f_{ell}‖²/β_{ell}": share for ell, share in enumerate(shares, start=1)}
    violations: tuple[str, ...] = ()
    if not np.isclose(sum(shares), norm, rtol=1e-9, atol=1e-12 * (a @ a)):
        violations = (f"The parts add up to {sum(shares):.6g}: the norm is lost to rounding; scale the coefficients.",)
    return Certificate("prop:rkhs-mixture-norm", norm, constants, ("kernels are positive definite",), violations)
