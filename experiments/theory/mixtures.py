"""Mixtures of kernels at landmarks: operators for all weights β, and bounds on how far operators and modes move with β.

These are prop:lipschitz-operators, prop:uniform-pd, prop:rkhs-mixture-norm and thm:projector-continuity of the paper,
with explicit constants, and a sharper version of the theorem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import linalg

from kdmaps.bases import DictionaryBasis, pair_blocks
from kdmaps.certificates import Certificate
from kdmaps.forms.energy import compute_moments
from kdmaps.forms.tangent import DiffusionLike, checked_tensor
from kdmaps.kernels import Kernel

STANDING = ("kernels are positive definite and C²", "landmarks and samples are fixed; only β changes")
NO_GAP = "The gap after mode {} is zero: the cut goes through a degenerate cluster; use another number of modes."


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
        diffusion: DiffusionLike = None,
    ) -> DictionaryOperators:
        """Compute the operators of the components of a mixture.

        Parameters
        ----------
        mixture : Kernel
        landmarks : ndarray of shape (p, d)
        X : ndarray of shape (n, d)
        regularization : float
            λ.
        center : bool, default=True
            If True, centre the covariance.
        diffusion : optional
            Diffusion tensor of the energy, as for estimators.
        """
        weights, kernels = zip(*mixture.components(), strict=True)
        basis = DictionaryBasis(kernels, landmarks, landmarks.mean(axis=0))
        moments = compute_moments(basis, X, None, checked_tensor(diffusion, X))
        blocks = pair_blocks(np.stack([moments.covariance(center), moments.mean_energy()]), len(kernels))
        pairs = np.empty((2, len(kernels), len(kernels), *blocks.shape[2:]))
        first, second = np.triu_indices(len(kernels))
        pairs[:, first, second] = pairs[:, second, first] = np.swapaxes(blocks, 0, 1)
        return cls(kernels, pairs[0], pairs[1], basis.ridges, regularization, np.array(weights))

    def at(self, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Σ_β and L_{β,λ} = L_β + λW_β."""
        covariance, energy = self.quadratic(beta)
        return covariance, energy + self.regularization * np.tensordot(beta, self.ridges, 1)

    def quadratic(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return C_vᵀC_v/N and J_vᵀJ_v/N for any v."""
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


def _contract(u: np.ndarray, v: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    return np.einsum("i,j,ijpq->pq", u, v, pairs, optimize=True)


def _largest(matrices: np.ndarray) -> float:
    """Return the largest eigenvalue of a stack of symmetric matrices."""
    return float(np.linalg.eigvalsh(matrices)[:, -1].max())


def _diagonal(pairs: np.ndarray) -> np.ndarray:
    """Return the blocks (ℓ, ℓ) of pairs of kernels."""
    return pairs[np.arange(len(pairs)), np.arange(len(pairs))]


def lipschitz_covariance(operators: DictionaryOperators) -> Certificate:
    """Return K with ‖Σ_β - Σ_β'‖ ≤ K ‖β-β'‖₁: K = 2M_C²/N (eq:lip-sigma of prop:lipschitz-operators).

    M_C²/N = max_ℓ ‖C_ℓ‖²/N is the largest eigenvalue of any Σ_ℓ.
    """
    M = _largest(_diagonal(operators.covariances))
    return Certificate("prop:lipschitz-operators", 2 * M, {"M_C²/N": M}, STANDING, operators.rough_kernels())


def lipschitz_energy(operators: DictionaryOperators) -> Certificate:
    """Return K with ‖L_{β,λ} - L_{β',λ}‖ ≤ K ‖β-β'‖₁: K = 2M_J²/N + λM_W (eq:lip-L of prop:lipschitz-operators).

    M_J²/N = max_ℓ ‖J_ℓ‖²/N is the largest eigenvalue of any L_ℓ, and M_W of any W_ℓ.
    """
    M_J, M_W = _largest(_diagonal(operators.energies)), _largest(operators.ridges)
    lam = operators.regularization
    constants = {"M_J²/N": M_J, "M_W": M_W, "λ": lam}
    value = 2 * M_J + lam * M_W
    return Certificate("prop:lipschitz-operators", value, constants, STANDING, operators.rough_kernels())


def uniform_positive_definiteness(operators: DictionaryOperators) -> Certificate:
    """Return ℓ = λγ with L_{β,λ} ≥ ℓ for every β on the simplex (prop:uniform-pd).

    γ = min_ℓ λ_min(W_ℓ): λ_min is concave, so its minimum over the convex hull of the W_ℓ is at one of them. For smooth
    kernels γ is the jitter of W (eq:W-stab), and the bound only ensures that the problem can be solved.
    """
    gamma = float(np.linalg.eigvalsh(operators.ridges)[:, 0].min())
    lam = operators.regularization
    violations = () if gamma > 0 else ("W is not positive definite: use fewer or more distant landmarks.",)
    return Certificate("prop:uniform-pd", lam * max(gamma, 0.0), {"γ": gamma, "λ": lam}, ("λ > 0",), violations)


def rkhs_mixture_norm(kernel: Kernel, landmarks: np.ndarray, coefficients: Sequence[float] | np.ndarray) -> Certificate:
    """Compute the squared norm of f = Σ_m a_m k_β(·, z_m) in the space of k_β = Σ_ℓ β_ℓ k_ℓ (prop:rkhs-mixture-norm).

    ‖f‖² = aᵀW_βa, and the infimum of Σ_ℓ ‖f_ℓ‖²/β_ℓ over all f = Σ_ℓ f_ℓ is attained at f_ℓ = β_ℓ Σ_m a_m k_ℓ(·, z_m),
    where ‖f_ℓ‖²/β_ℓ = β_ℓ aᵀW_ℓa, with the sum aᵀW_βa. Both are computed; `constants` contains the share of every
    component.
    """
    a = np.asarray(coefficients, dtype=np.float64)
    norm = float(a @ kernel(landmarks) @ a)
    shares = [float(beta * (a @ part(landmarks) @ a)) for beta, part in kernel.components()]
    constants = {f"‖f_{ell}‖²/β_{ell}": share for ell, share in enumerate(shares, start=1)}
    violations: tuple[str, ...] = ()
    if not np.isclose(sum(shares), norm, rtol=1e-9, atol=1e-12 * (a @ a)):
        violations = (
            f"The parts add up to {sum(shares):.6g}, not to the norm, because of rounding; scale the coefficients.",
        )
    return Certificate("prop:rkhs-mixture-norm", norm, constants, ("kernels are positive definite",), violations)


def projector_continuity(operators: DictionaryOperators, n_modes: int, distance: float) -> Certificate:
    """Bound ‖P_β - P_β'‖ for all β' with ‖β-β'‖₁ ≤ `distance` (thm:projector-continuity).

    P projects on the r leading eigenvectors of A = L^{-1/2} Σ L^{-1/2} (L for L_{β,λ}), and the bound is
    2C₀/δ · ‖β-β'‖₁ with the gap δ = μ_r - μ_{r+1} at β. To make C₀ explicit, let ℓ ≤ λ_min(L) on the whole simplex
    (prop:uniform-pd), R = L^{-1/2}, S = M_C²/N ≥ ‖Σ‖, and K_Σ, K_L the constants of prop:lipschitz-operators.

    - R₁ - R₂ = π⁻¹ ∫ s^{-1/2} (s+L₁)⁻¹ (L₂-L₁) (s+L₂)⁻¹ ds over s > 0, so ‖R₁-R₂‖ ≤ ‖L₁-L₂‖/(2ℓ^{3/2}).
    - Σ_β ≤ Σ_ℓ β_ℓ Σ_ℓ ≤ μ̄ λW_β ≤ μ̄ L with μ̄ = max_ℓ λ_max(Σ_ℓ, λW_ℓ), so ‖ΣR‖ ≤ ‖Σ^{1/2}‖ ‖Σ^{1/2}R‖ ≤ √(S μ̄).
    - A₁-A₂ = (R₁-R₂)Σ₁R₁ + R₂(Σ₁-Σ₂)R₁ + R₂Σ₂(R₁-R₂), hence C₀ = K_Σ/ℓ + √(S μ̄) K_L/ℓ^{3/2}.
    - ‖P₁-P₂‖ ≤ 2‖A₁-A₂‖/δ by Davis–Kahan and Weyl if the right side is below 1, and trivially otherwise: the gap at β
      suffices.

    The bound is rigorous, but vacuous for all but the smallest distances: ℓ is λ times the smallest eigenvalue of a
    kernel matrix, so that C₀ is 10⁷ to 10¹⁶ while the projector moves at a rate below 1. Use `projector_stability`.

    Parameters
    ----------
    operators : DictionaryOperators
        β is its `weights`.
    n_modes : int
        r.
    distance : float
    """
    mu, _ = _modes(operators, n_modes)
    gap = float(mu[n_modes - 1] - mu[n_modes])
    K_S, K_L = lipschitz_covariance(operators), lipschitz_energy(operators)
    floor = uniform_positive_definiteness(operators)
    violations = (*operators.rough_kernels(), *floor.violations)
    if not gap > 0:
        violations += (NO_GAP.format(n_modes),)
    constants = {"δ": gap, "K_Σ": K_S.value, "K_L": K_L.value, "ℓ": floor.value}
    value = 1.0
    if floor.holds:
        lam = operators.regularization
        constants["μ̄"] = max(
            float(linalg.eigh(operators.covariances[k, k], lam * ridge, eigvals_only=True)[-1])
            for k, ridge in enumerate(operators.ridges)
        )
        root = np.sqrt(K_S.constants["M_C²/N"] * constants["μ̄"])
        constants["C₀"] = K_S.value / floor.value + root * K_L.value / floor.value**1.5
        if gap > 0:
            value = min(1.0, 2 * constants["C₀"] / gap * distance)
    return Certificate("thm:projector-continuity", value, constants, K_S.assumptions, violations, trivial=1.0)


def projector_stability(operators: DictionaryOperators, n_modes: int, distance: float) -> Certificate:
    """Bound how far the leading modes move for all β' with t = ‖β-β'‖₁ ≤ `distance`; sharper than the theorem.

    The bound is on ‖Π_β - Π_β'‖, the sine of the largest angle between the spaces of the r leading coefficients, in the
    inner product of L = L_{β,λ} at β. In the eigenvectors of β, in which L = 1 and Σ = M is diagonal, the pencil at β'
    is (M + E_Σ, 1 + E). With indices 1 for the r leading modes and 2 for the others:

    - β'-β is t times a convex combination of the ½(e_ℓ-e_m), so a linear map of it is bounded by t times its largest
      norm on these; this gives constants k for all first-order parts of E_Σ and E, and q for the quadratic parts:
      e = ‖E‖ ≤ t k_L + t² q_L < 1, s = ‖E_Σ‖ ≤ t k_Σ + t² q_Σ, ε = ‖E₂₁‖, ‖E_Σ - νE‖ ≤ t k_ν + t²(q_Σ + ν q_L).
    - A block triangular T with Tᵀ(1+E)T = 1 keeps the space 1. In A' = Tᵀ(M+E_Σ)T the off-diagonal block is
      T₂₂ᵀ(E_Σ,₂₁ - E₂₁(1+E₁₁)⁻¹(M₁+E_Σ,₁₁))T₁₁: to first order E_Σ,₂₁ - E₂₁M₁, bounded by t k_D, so

          ‖A'₂₁‖ ≤ B = [t k_D + t²(q_Σ + μ₁q_L) + ε (s + μ₁e)/(1-e)]/(1-e).
    - With g = ε/(1-e) the diagonal blocks are apart by at least
      δ' = δ - ‖(E_Σ - μ_rE)₁₁‖/(1-e)
      - [(μ₁-μ_{r+1})g² + ‖(E_Σ - μ_{r+1}E)₂₂‖ + (2g+g²)‖E_Σ - μ_{r+1}E‖]/(1-e).
    - If δ' > 0, Davis and Kahan's tan 2Θ theorem gives tan 2θ ≤ 2B/δ' for the angle in A', and, back through T,
      tan Θ ≤ x/√(1-e) / (1/√(1+e) - g x/√(1-e)) with x = tan θ.

    Parameters
    ----------
    operators : DictionaryOperators
        β is its `weights`.
    n_modes : int
        r.
    distance : float
    """
    t, r = distance, n_modes
    mu, V = _modes(operators, r)
    top, last, after = float(mu[0]), float(mu[r - 1]), float(mu[r])
    k = _first_order(operators, V, mu, r)

    def shifted(name: str, nu: float) -> float:  # ‖E_Σ - νE‖, or a block of it
        return t * k[name] + t**2 * (k["q_Σ"] + nu * k["q_L"])

    e, s, off = t * k["k_L"] + t**2 * k["q_L"], shifted("k_Σ", 0.0), t * k["k_L,21"] + t**2 * k["q_L"]
    tangent, separation = np.inf, -np.inf
    if e < 1:
        g = off / (1 - e)
        B = (shifted("k_D", top) + off * (s + top * e) / (1 - e)) / (1 - e)
        lost = (top - after) * g**2 + shifted("k_22", after) + (2 * g + g**2) * shifted("k_after", after)
        separation = last - after - (shifted("k_11", last) + lost) / (1 - e)
        if separation > 0:
            x = np.tan(np.arctan(2 * B / separation) / 2)
            lean = 1 / np.sqrt(1 + e) - g * x / np.sqrt(1 - e)
            tangent = x / np.sqrt(1 - e) / lean if lean > 0 else np.inf
    violations = operators.rough_kernels()
    if not last > after:
        violations += (NO_GAP.format(r),)
    elif not separation > 0:
        violations += (f"The distance {t:g} is too large for the gap {last - after:.3g}; use a smaller one.",)
    constants = {"δ": last - after, "δ'": float(separation), **k}
    sine = float(np.sin(np.arctan(tangent)))
    return Certificate("thm:projector-continuity", sine, constants, STANDING, violations, trivial=1.0)


def _modes(operators: DictionaryOperators, n_modes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all μ at the model's β, descending, and coefficients with aᵀL_{β,λ}a = 1."""
    covariance, energy = operators.at(operators.weights)
    if not 1 <= n_modes < len(energy):
        raise ValueError(f"n_modes must be between 1 and p - 1 = {len(energy) - 1}, got {n_modes}.")
    values, vectors = linalg.eigh(covariance, energy)
    return values[::-1], vectors[:, ::-1]


def _first_order(operators: DictionaryOperators, V: np.ndarray, mu: np.ndarray, r: int) -> dict[str, float]:
    """Return the constants of `projector_stability`: the largest norms over the directions ½(e_ℓ-e_m)."""
    names = ("k_Σ", "k_L", "k_L,21", "k_D", "k_11", "k_22", "k_after", "q_Σ", "q_L")
    largest = np.zeros(len(names))
    for pair in combinations(range(len(operators.weights)), 2):
        v = np.zeros(len(operators.weights))
        v[list(pair)] = 0.5, -0.5
        dS, dL = (V.T @ matrix @ V for matrix in operators.derivative(operators.weights, v))
        qS, qL = (V.T @ matrix @ V for matrix in operators.quadratic(v))
        after = dS - mu[r] * dL
        matrices = (
            dS,
            dL,
            dL[r:, :r],
            (dS - dL * mu)[r:, :r],
            (dS - mu[r - 1] * dL)[:r, :r],
            after[r:, r:],
            after,
            qS,
            qL,
        )
        largest = np.maximum(largest, [np.linalg.norm(matrix, 2) for matrix in matrices])
    return dict(zip(names, largest.tolist(), strict=True))
