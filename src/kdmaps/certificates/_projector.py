"""How far the space of the leading modes moves when the weights of a mixture change."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy import linalg

from kdmaps.certificates._certificate import Certificate
from kdmaps.certificates._dictionary import (
    DictionaryOperators,
    lipschitz_covariance,
    lipschitz_energy,
    uniform_positive_definiteness,
)

_NO_GAP = "There is no gap after mode {}: the cut goes through a degenerate cluster; use another number of modes."


def projector_continuity(operators: DictionaryOperators, n_modes: int, distance: float) -> Certificate:
    """Bound on ‖P_β - P_β'‖ for all β' with ‖β-β'‖₁ ≤ `distance`, as thm:projector-continuity has it.

    P projects on the r leading eigenvectors of A = L^{-1/2} Σ L^{-1/2} (L for L_{β,λ}), and the bound is
    2C₀/δ · ‖β-β'‖₁ with the gap δ = μ_r - μ_{r+1} at β. C₀ made explicit: let ℓ ≤ λ_min(L) on the whole simplex
    (prop:uniform-pd), R = L^{-1/2}, S = M_C²/N ≥ ‖Σ‖, and K_Σ, K_L the constants of prop:lipschitz-operators.

    - R₁ - R₂ = π⁻¹ ∫ s^{-1/2} (s+L₁)⁻¹ (L₂-L₁) (s+L₂)⁻¹ ds over s > 0, so ‖R₁-R₂‖ ≤ ‖L₁-L₂‖/(2ℓ^{3/2}).
    - Σ_β ≤ Σ_ℓ β_ℓ Σ_ℓ ≤ μ̄ λW_β ≤ μ̄ L with μ̄ = max_ℓ λ_max(Σ_ℓ, λW_ℓ), so ‖ΣR‖ ≤ ‖Σ^{1/2}‖ ‖Σ^{1/2}R‖ ≤ √(S μ̄).
    - A₁-A₂ = (R₁-R₂)Σ₁R₁ + R₂(Σ₁-Σ₂)R₁ + R₂Σ₂(R₁-R₂), hence C₀ = K_Σ/ℓ + √(S μ̄) K_L/ℓ^{3/2}.
    - ‖P₁-P₂‖ ≤ 2‖A₁-A₂‖/δ by Davis–Kahan and Weyl if the right side is below 1, and trivially otherwise: the gap at β
      suffices.

    It is rigorous, and vacuous for all but the smallest distances: ℓ is λ times the smallest eigenvalue of a kernel
    matrix, so that C₀ is 10⁷ to 10¹⁶ where the projector moves at a rate below 1. Use `projector_stability`.

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
        violations += (_NO_GAP.format(n_modes),)
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
    """Bound on how far the leading modes move for all β' with t = ‖β-β'‖₁ ≤ `distance`: a sharp version of the theorem.

    What moves is the space of the coefficients of the r leading modes; its distance is ‖Π_β - Π_β'‖, the sine of the
    largest angle, in the inner product of L = L_{β,λ} at β. In the eigenvectors of β, in which L = 1 and Σ = M is
    diagonal, the pencil at β' is (M + E_Σ, 1 + E). With indices 1 for the r leading modes and 2 for the others:

    - β'-β is t times a convex combination of the ½(e_ℓ-e_m), so a linear map of it is bounded by t times its largest
      norm on those; this gives constants k for all first-order parts of E_Σ and E, and q for the quadratic parts:
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
        violations += (_NO_GAP.format(r),)
    elif not separation > 0:
        violations += (f"The distance {t:g} is too large for the gap {last - after:.3g}; use a smaller one.",)
    constants = {"δ": last - after, "δ'": float(separation), **k}
    return Certificate(
        "thm:projector-continuity",
        float(np.sin(np.arctan(tangent))),
        constants,
        ("kernels are positive definite and C²", "landmarks and samples are fixed; only β changes"),
        violations,
        trivial=1.0,
    )


def _modes(operators: DictionaryOperators, n_modes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all μ at the model's β, descending, and coefficients with aᵀL_{β,λ}a = 1."""
    covariance, energy = operators.at(operators.weights)
    if not 1 <= n_modes < len(energy):
        raise ValueError(f"n_modes must be between 1 and p - 1 = {len(energy) - 1}, got {n_modes}.")
    values, vectors = linalg.eigh(covariance, energy)
    return values[::-1], vectors[:, ::-1]


def _first_order(operators: DictionaryOperators, V: np.ndarray, mu: np.ndarray, r: int) -> dict[str, float]:
    """Constants of `projector_stability`: the largest norms over the directions ½(e_ℓ-e_m)."""
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
