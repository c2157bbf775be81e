"""Bounds for mixtures of kernels hold, report when they do not apply, and the sharp ones are close to the truth."""

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg

import kdmaps
from experiments.theory.mixtures import (
    DictionaryOperators,
    lipschitz_covariance,
    lipschitz_energy,
    projector_continuity,
    projector_stability,
    rkhs_mixture_norm,
    uniform_positive_definiteness,
)
from kdmaps import KernelDiffusionMap
from kdmaps.bases import LandmarkBasis, select_landmarks
from kdmaps.forms.energy import compute_moments
from kdmaps.kernels import Gaussian, Laplacian, Matern, Mixture, RationalQuadratic

N_MODES, LAMBDA = 2, 1e-2
HALVES = np.array([0.5, 0.5])


def dictionary(name, kernels, n_landmarks, weights=None, center=True):
    X = kdmaps.problems.load(name).sample(1000, random_state=0)
    landmarks = select_landmarks(X, n_landmarks, "kmeans", 0)
    return DictionaryOperators.compute(Mixture(kernels, weights), landmarks, X, LAMBDA, center=center)


GAUSSIANS = [Gaussian(s) for s in (0.6, 1.2, 2.4)]
CASES = {
    "dw1d-gaussians": ("dw1d", GAUSSIANS, 30, None),
    "ou2d-4-gaussians": ("ou2d-4", GAUSSIANS, 60, [0.6, 0.3, 0.1]),
    "ou2d-4-families": ("ou2d-4", [Matern(1.5, 1.2), Gaussian(1.2), RationalQuadratic(2.0, 2.0)], 30, None),
}


@pytest.fixture(scope="module", params=CASES)
def operators(request):
    return dictionary(*CASES[request.param])


def neighbours(beta, distance):
    """Weights at ‖β-β'‖₁ = distance: all exchanges of two kernels, and random directions."""
    for i, j in permutations(range(len(beta)), 2):
        yield beta + distance / 2 * (np.eye(len(beta))[i] - np.eye(len(beta))[j])
    for v in np.random.default_rng(0).standard_normal((5, len(beta))):
        v -= v.mean()
        yield beta + distance * v / np.abs(v).sum()


def norm(matrix):
    return np.linalg.norm(matrix, 2)


# --- operators --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("center", [True, False])
def test_operators_equal_moments_of_the_mixture(center):
    X = kdmaps.problems.load("ou2d-4").sample(300, random_state=0)
    kernels = [Gaussian([0.7, 2.0]), Matern(2.5, 1.5), RationalQuadratic(2.0, 1.0)]
    landmarks, beta = X[:12], np.array([0.2, 0.5, 0.3])
    operators = DictionaryOperators.compute(Mixture(kernels), landmarks, X, LAMBDA, center=center, diffusion=[1.0, 3.0])
    basis = LandmarkBasis(Mixture(kernels, beta), landmarks, X.mean(axis=0))
    moments = compute_moments(basis, X, None, kdmaps.forms.tangent.checked_tensor([1.0, 3.0], X))
    covariance, energy = operators.at(beta)
    assert_allclose(covariance, moments.covariance(center), atol=1e-12)
    assert_allclose(energy, moments.mean_energy() + LAMBDA * basis.ridge, atol=1e-11)
    v = np.array([0.3, -0.5, 0.2])
    for plus, minus, slope in zip(
        operators.at(beta + 1e-4 * v), operators.at(beta - 1e-4 * v), operators.derivative(beta, v), strict=True
    ):
        assert_allclose(slope, (plus - minus) / 2e-4, atol=1e-9)  # exact for a quadratic


def test_operators_of_a_fitted_model():
    X = kdmaps.problems.load("ou2d-4").sample(500, random_state=0)
    model = KernelDiffusionMap(2, kernel=Mixture(GAUSSIANS), basis="landmarks", n_features=20, random_state=0).fit(X)
    found = DictionaryOperators.compute(model.kernel_, model.basis_.landmarks, X, model.regularization)
    covariance, energy = found.at(np.full(3, 1 / 3))
    assert_allclose(linalg.eigh(covariance, energy, eigvals_only=True)[::-1][:2], model.eigenvalues_, rtol=1e-7)


def test_lipschitz_constants(operators):
    K_S, K_L = lipschitz_covariance(operators), lipschitz_energy(operators)
    assert K_S.holds
    assert K_L.holds
    ratios = []
    for beta in neighbours(operators.weights, 0.05):
        before, after = operators.at(operators.weights), operators.at(beta)
        t = np.abs(beta - operators.weights).sum()
        ratios.append([K.value * t / norm(x - y) for K, x, y in zip((K_S, K_L), before, after, strict=True)])
    assert np.min(ratios) >= 1
    assert np.max(np.min(ratios, axis=0)) < 10  # in the direction that changes the operators most


def pencil_dictionary(S, W, regularization=1.0):
    """Two kernels between which Σ_β and L_{β,λ} are straight lines, from S[1] to S[0] and from λW[1] to λW[0]."""
    covariances = np.array([[(a + b) / 2 for b in S] for a in S])
    return DictionaryOperators(
        (Gaussian(1.0), Gaussian(2.0)), covariances, np.zeros_like(covariances), np.array(W), regularization, HALVES
    )


def test_lipschitz_constants_by_hand():
    """‖Σ_ℓ‖ = 3, 5; ‖L_ℓ‖ = 2, 1; ‖W_ℓ‖ = 4, 7; λ = 0.1."""
    operators = pencil_dictionary([np.diag([3.0, 1.0]), np.diag([2.0, 5.0])], [np.diag([4.0, 1.0]), 7 * np.eye(2)], 0.1)
    operators.energies[[0, 1], [0, 1]] = np.diag([2.0, 1.0]), np.eye(2)
    assert lipschitz_covariance(operators).value == pytest.approx(2 * 5)
    assert lipschitz_energy(operators).value == pytest.approx(2 * 2 + 0.1 * 7)


def test_positive_definite_on_the_whole_simplex(operators):
    bound = uniform_positive_definiteness(operators)
    assert bound.holds
    smallest = []
    for beta in np.vstack([np.eye(3), np.random.default_rng(0).dirichlet(np.ones(3), 20)]):
        _, energy = operators.at(beta)
        smallest.append(np.linalg.eigvalsh(energy)[0])
        assert smallest[-1] >= bound.value - 1e-14 * norm(energy)


def test_rough_kernel_is_reported():
    rough = dictionary("dw1d", [Gaussian(1.0), Laplacian(1.0)], 10)
    for certificate in (lipschitz_covariance(rough), projector_stability(rough, 2, 1e-3)):
        assert not certificate.holds
        assert "Laplacian" in certificate.violations[0]


# --- projectors -------------------------------------------------------------------------------------------------------
def movement(operators, beta, n_modes=N_MODES):
    """Sine of the largest angle between the spaces of leading coefficients, in the inner product of L at the model."""
    covariance, energy = operators.at(operators.weights)
    root = np.linalg.cholesky(energy).T
    spaces = []
    for S, L in ((covariance, energy), operators.at(beta)):
        leading = linalg.eigh(S, L)[1][:, -n_modes:]
        spaces.append(np.linalg.qr(root @ leading)[0])
    return norm(spaces[0] @ spaces[0].T - spaces[1] @ spaces[1].T)


def projector(covariance, energy):
    """P of thm:projector-continuity, with the symmetric square root."""
    values, U = np.linalg.eigh(energy)
    leading = (U * np.sqrt(values)) @ U.T @ linalg.eigh(covariance, energy)[1][:, -N_MODES:]
    return leading @ leading.T


@pytest.mark.parametrize(("distance", "cap"), [(1e-4, 10), (1e-3, 10), (1e-2, 20)])
def test_sharp_projector_bound(operators, distance, cap):
    certificate = projector_stability(operators, N_MODES, distance)
    assert certificate.holds
    moved = [movement(operators, beta) for beta in neighbours(operators.weights, distance)]
    assert max(moved) <= certificate.value < 1
    assert certificate.value <= cap * max(moved)


def test_sharp_projector_bound_of_modes_that_cross():
    """μ = 0.6 ± 0.2 for β = (½, ½) and 0.6 ± (0.2 - t/2) at the distance t: no bound reaches beyond t = 0.4."""
    operators = pencil_dictionary([np.diag([0.3, 0.9]), np.diag([1.3, -0.1])], [np.eye(2)] * 2)
    for t in (0.1, 0.3, 0.39):
        certificate = projector_stability(operators, 1, t)
        assert certificate.holds
        assert certificate.constants["δ'"] == pytest.approx(0.4 - t)
        assert certificate.value == pytest.approx(0, abs=1e-12)  # up to there nothing turns
    for t in (0.41, 0.6):
        assert movement(operators, HALVES + t / 2 * np.array([1, -1]), 1) == pytest.approx(1)
        assert not projector_stability(operators, 1, t).holds


@pytest.mark.parametrize("seed", range(5))
def test_sharp_projector_bound_if_the_first_order_vanishes(seed):
    """Σ = M ± tA and L = 1 ± tK with A₂₁ = K₂₁M₁: to first order in t the leading space does not move."""
    rng = np.random.default_rng(seed)
    M, r, p = np.diag([1.0, 0.9, 0.3, 0.2, 0.1]), 2, 5
    A, K = (0.2 * (B + B.T) for B in rng.standard_normal((2, p, p)))
    A[r:, :r] = K[r:, :r] @ M[:r, :r]
    A[:r, r:] = A[r:, :r].T
    operators = pencil_dictionary([M + A, M - A], [np.eye(p) + K, np.eye(p) - K])
    for t in (1e-3, 1e-2, 3e-2):
        certificate = projector_stability(operators, r, t)
        moved = max(movement(operators, HALVES + sign * t / 2 * np.array([1, -1]), r) for sign in (-1, 1))
        assert certificate.holds
        assert certificate.constants["k_D"] < 1e-12
        assert 0 < moved <= certificate.value < 100 * moved


def test_projector_bound_of_the_theorem(operators):
    for distance in (1e-20, 1e-3):
        certificate = projector_continuity(operators, N_MODES, distance)
        assert certificate.holds
        for beta in neighbours(operators.weights, distance):
            change = projector(*operators.at(beta)) - projector(*operators.at(operators.weights))
            assert norm(change) <= certificate.value + 1e-6  # rounding of a square root with condition number 1e9
    # Vacuous at any distance of practical interest.
    assert certificate.value == 1


def test_constant_of_the_theorem(operators):
    """‖A_β - A_β'‖ ≤ C₀ ‖β-β'‖₁."""
    C0 = projector_continuity(operators, N_MODES, 1e-3).constants["C₀"]

    def whitened(beta):
        covariance, energy = operators.at(beta)
        values, U = np.linalg.eigh(energy)
        root = (U / np.sqrt(values)) @ U.T
        return root @ covariance @ root

    change = max(norm(whitened(b) - whitened(operators.weights)) for b in neighbours(operators.weights, 0.05))
    assert change <= C0 * 0.05


def test_projector_bounds_report_when_they_do_not_apply(operators):
    far = projector_stability(operators, N_MODES, 0.5)
    assert not far.holds
    assert far.value == 1
    assert "too large" in far.violations[0]
    with pytest.raises(ValueError, match="n_modes"):
        projector_stability(operators, 1000, 0.5)
    same = dictionary("dw1d", [Gaussian(1.0), Gaussian(1.0)], 10)
    assert projector_stability(same, 2, 0.1).value == pytest.approx(0, abs=1e-6)


def test_norm_of_a_mixture():
    rng = np.random.default_rng(0)
    Z, a = rng.standard_normal((6, 2)), rng.standard_normal(6)
    mixture = Mixture([Gaussian(0.8), Matern(1.5, 1.0), RationalQuadratic(2.0, 0.7)], [0.5, 0.3, 0.2])
    certificate = rkhs_mixture_norm(mixture, Z, a)
    assert certificate.holds
    assert sum(certificate.constants.values()) == pytest.approx(certificate.value)
    # On the points themselves the infimum is a quadratic program: minimise Σ f_ℓᵀW_ℓ⁻¹f_ℓ/β_ℓ with Σ f_ℓ = W_βa.
    blocks = linalg.block_diag(*(np.linalg.inv(beta * kernel(Z)) for beta, kernel in mixture.components()))
    summation = np.tile(np.eye(6), 3)
    system = np.block([[2 * blocks, summation.T], [summation, np.zeros((6, 6))]])
    parts = np.linalg.solve(system, np.concatenate([np.zeros(18), mixture(Z) @ a]))[:18]
    assert parts @ blocks @ parts == pytest.approx(certificate.value)
