"""Bounds for a continuum of kernels and for the eigenvalue of the constant, against exact eigenvalues."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kdmaps
from experiments.theory.constant import constant_mode, eigenvalue_sum_choice, wide_kernel_sum
from experiments.theory.continuous import continuous_regret, cv_consistency_continuous
from kdmaps.certificates import cv_consistency
from kdmaps.kernels import Gaussian, Laplacian, Matern, Metric, Mixture

LAMBDAS = [1e-2, 1.0]


# --- exact eigenvalues of a kernel's whole function space, for the law of a few points on a line ----------------------
def gaussian(x, sigma):
    """K, ∂_x k and ∂_x∂_z k of all pairs."""
    u = (x[:, None] - x[None]) / sigma
    k = np.exp(-(u**2) / 2)
    return k, -u / sigma * k, (1 - u**2) / sigma**2 * k


def matern52(x, sigma):
    a = np.sqrt(5) / sigma
    u = x[:, None] - x[None]
    r = a * np.abs(u)
    e = np.exp(-r)
    return (1 + r + r**2 / 3) * e, -(a**2) / 3 * u * (1 + r) * e, a**2 / 3 * (1 + r - r**2) * e


FAMILIES = {"gaussian": (gaussian, Gaussian), "matern52": (matern52, lambda sigma: Matern(2.5, sigma))}


def exact(family, x, sigma, lam, center):
    """μ, descending. By the representer theorem modes are combinations of k(·,x_i) and ∂k(·,x_i)."""
    k, slope, both = FAMILIES[family][0](x, sigma)
    gram = np.block([[k, slope.T], [slope, both]])
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-13 * values[-1]
    points = vectors[:, kept] * np.sqrt(values[kept])  # functionals in orthonormal coordinates
    f, df = points[: len(x)], points[len(x) :]
    f = f - f.mean(axis=0) if center else f
    inverse = np.linalg.inv(np.linalg.cholesky(df.T @ df / len(x) + lam * np.eye(kept.sum())))
    return np.linalg.eigvalsh(inverse @ (f.T @ f / len(x)) @ inverse.T)[::-1]


@pytest.fixture(scope="module")
def x():
    return kdmaps.problems.load("dw1d").sample(30, random_state=0)[:, 0]


# --- a continuum of bandwidths ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("family", FAMILIES)
def test_eigenvalues_change_at_most_by_powers_of_the_bandwidth(x, family, lam, center):
    rho, d = 1.3, 1
    mu = np.array([exact(family, x, sigma, lam, center)[:4] for sigma in 0.2 * rho ** np.arange(14)])
    growth = np.log(mu[1:] / mu[:-1]) / np.log(rho)  # d log μ/d log σ, by steps
    assert growth.max() <= d + 1e-6  # rounding
    if family == "matern52":
        assert growth.min() >= -5 - 1e-6  # 2ν
    # Both bounds are of the right order: a Lipschitz constant of half that size would be wrong.
    assert growth.max() > 0.5 * d if not center else growth.min() < -1.5


def test_bound_for_a_continuum_equals_bound_for_its_net():
    settings = {"n_modes": 2, "n_folds": 3, "fold_size": 1e5, "concentration": 0.5}
    found = cv_consistency_continuous(0.2, 1.5, np.log(10), 5.0, **settings)
    net = np.ceil(3 * 5 * 1.5 * np.log(10) / (2 * 0.1 * 0.2))
    assert found.constants["M"] == net
    # The finite theorem at t = Δ'/(2r) with Δ' = 0.9 Δ.
    finite = cv_consistency(0.9 * 0.2, int(net), 2, 3, 1e5, 0.5)
    assert_allclose(found.value, finite.value, rtol=1e-12)
    assert found.informative
    twice = cv_consistency_continuous(0.2, 1.5, np.log(10), 5.0, **settings, n_families=2)
    assert_allclose(twice.value, 2 * found.value, rtol=1e-12)


def test_regret_is_the_bound_at_the_confidence_level():
    settings = (np.log(10), 5.0, 1, 1, 1.0, 1 / (2 * 0.02**2))
    found = continuous_regret(0.95, 1.5, *settings)
    assert found.informative
    assert cv_consistency_continuous(found.value * 1.001, 1.5, *settings).value <= 0.05
    assert cv_consistency_continuous(found.value * 0.98, 1.5, *settings).value > 0.05
    noisy = continuous_regret(0.95, 1.5, np.log(10), 5.0, 1, 1, 1.0, 1 / (2 * 0.5**2))
    assert noisy.value == 1.5
    assert not noisy.informative
    assert not cv_consistency_continuous(0.0, 1.5, *settings).informative


# --- the constant -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("family", FAMILIES)
def test_constant_is_within_its_bounds_and_the_widest_kernel_wins(x, family, lam):
    sigmas = np.geomspace(0.3, 60, 12)
    kernels = [FAMILIES[family][1](sigma) for sigma in sigmas]
    mu = np.array([exact(family, x, sigma, lam, center=False)[:3] for sigma in sigmas])
    bounds = [constant_mode(kernel, x[:, None], lam) for kernel in kernels]
    assert np.all([bound.value <= m * (1 + 1e-9) for bound, m in zip(bounds, mu[:, 0], strict=True)])
    assert np.all([bound.constants["upper"] >= m * (1 - 1e-9) for bound, m in zip(bounds, mu[:, 0], strict=True)])
    assert np.all([bound.constants["upper"] <= 1 / lam for bound in bounds])
    sums = mu.sum(axis=1)
    assert np.argmax(sums) == len(sums) - 1
    assert np.all(sums <= 1 / lam)
    times = 1 / np.array([0.79, 3.5])  # of the double well, not of these 30 points
    choice = eigenvalue_sum_choice(kernels, x[:, None], lam, times)
    assert np.argmax(sums) >= choice.constants["first"]
    assert choice.informative == (lam < 1)  # λT: nothing is excluded where time scales outweigh 1/λ


@pytest.mark.parametrize("family", FAMILIES)
def test_sum_of_a_wide_kernel_is_predicted_to_second_order(x, family):
    lam, sigmas = 1.0, np.array([32.0, 64.0])
    errors = [
        exact(family, x, sigma, lam, center=False)[:2].sum()
        - wide_kernel_sum(FAMILIES[family][1](sigma), x[:, None], lam, 2)
        for sigma in sigmas
    ]
    # Neglected terms are of the order ℓ⁻⁴: a factor 16 when the bandwidth doubles, up to terms of the next order.
    assert 14 < errors[0] / errors[1] < 17
    assert abs(errors[0]) < 1e-5


def test_curvature_of_metrics_and_mixtures():
    X = np.random.default_rng(0).standard_normal((50, 2))
    wide = constant_mode(Gaussian([3.0, 6.0]), X, 0.1)
    spread = X.var(axis=0) @ [1 / 9, 1 / 36]
    assert_allclose(wide.value, (1 - spread) / (0.1 + spread / 9))
    turned = constant_mode(Metric(Gaussian(1.0), np.diag([1 / 3, 1 / 6])), X, 0.1)
    assert_allclose(turned.value, wide.value)
    mixture = constant_mode(Mixture([Gaussian(3.0), Gaussian(6.0)], [0.5, 0.5]), X, 0.1)
    assert_allclose(mixture.constants["m"], (1 / 9 + 1 / 36) / 2)


def test_kernel_without_curvature_has_no_bound():
    X = np.random.default_rng(0).standard_normal((20, 2))
    found = constant_mode(Laplacian(2.0), X, 0.1)
    assert not found.holds
    assert found.value == 0
    with pytest.raises(ValueError, match="smoother family"):
        wide_kernel_sum(Laplacian(2.0), X, 0.1, 2)
