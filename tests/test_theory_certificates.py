"""A continuum of kernels, the optimism of a score and the eigenvalue of the constant, against exact eigenvalues."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import kdmaps
from kdmaps.certificates import (
    constant_mode,
    continuous_regret,
    cv_consistency,
    cv_consistency_continuous,
    eigenvalue_sum_choice,
    score_optimism,
    wide_kernel_sum,
)
from kdmaps.data import ArraySource
from kdmaps.forms.energy import compute_moments
from kdmaps.kernels import Gaussian, Laplacian, Matern, Metric, Mixture
from kdmaps.selection.optimism import fold_modes, influence_of
from kdmaps.selection.rules import ritz_pairs

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
def test_eigenvalues_change_by_no_more_than_powers_of_the_bandwidth(x, family, lam, center):
    rho, d = 1.3, 1
    mu = np.array([exact(family, x, sigma, lam, center)[:4] for sigma in 0.2 * rho ** np.arange(14)])
    growth = np.log(mu[1:] / mu[:-1]) / np.log(rho)  # d log μ/d log σ, by steps
    assert growth.max() <= d + 1e-6  # rounding
    if family == "matern52":
        assert growth.min() >= -5 - 1e-6  # 2ν
    # Both bounds are of the right order: a Lipschitz constant of half that size would be wrong.
    assert growth.max() > 0.5 * d if not center else growth.min() < -1.5


def test_the_bound_for_a_continuum_is_that_of_its_net():
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


def test_the_regret_of_a_continuum_is_where_the_bound_reaches_the_confidence():
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
def test_the_constant_is_within_its_bounds_and_the_widest_kernel_wins(x, family, lam):
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
    times = 1 / np.array([0.79, 3.5])  # above those of the law of these 30 points is not needed for the widest
    choice = eigenvalue_sum_choice(kernels, x[:, None], lam, times)
    assert np.argmax(sums) >= choice.constants["first"]
    assert choice.informative == (lam < 1)  # λT: nothing is excluded where time scales outweigh 1/λ


@pytest.mark.parametrize("family", FAMILIES)
def test_the_sum_of_a_wide_kernel_is_predicted_to_second_order(x, family):
    lam, sigmas = 1.0, np.array([32.0, 64.0])
    errors = [
        exact(family, x, sigma, lam, center=False)[:2].sum()
        - wide_kernel_sum(FAMILIES[family][1](sigma), x[:, None], lam, 2)
        for sigma in sigmas
    ]
    # What is neglected is of the order ℓ⁻⁴: a factor 16 when the bandwidth doubles, up to terms of the next order.
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


def test_a_kernel_without_curvature_has_no_bound():
    X = np.random.default_rng(0).standard_normal((20, 2))
    found = constant_mode(Laplacian(2.0), X, 0.1)
    assert not found.holds
    assert found.value == 0
    with pytest.raises(ValueError, match="smoother family"):
        wide_kernel_sum(Laplacian(2.0), X, 0.1, 2)


# --- optimism ---------------------------------------------------------------------------------------------------------
def test_the_quantile_is_that_of_the_largest_normal():
    psi = np.eye(40)[:8]  # eight independent candidates
    independent = score_optimism(psi, 10.0, 3, n_draws=20_000)
    # Density of the maximum at its 95 % quantile is about 0.12: a standard error of √(.05·.95/20000)/.12 = 0.013.
    assert independent.constants["q"] == pytest.approx(stats.norm.ppf(0.95 ** (1 / 8)), abs=0.05)
    assert independent.value == independent.constants["q"]  # s = 1
    alike = score_optimism(np.ones((8, 40)) / np.sqrt(40), 10.0, 0, n_draws=20_000)
    assert alike.constants["q"] == pytest.approx(stats.norm.ppf(0.95), abs=0.05)


def test_blocks_share_their_chance():
    psi = np.random.default_rng(0).standard_normal((3, 50)) / 50
    doubled = np.repeat(psi, 2, axis=1) / 2  # every sample twice: the same score
    apart = score_optimism(doubled, 1.0, 0)
    together = score_optimism(doubled, 1.0, 0, blocks=np.repeat(np.arange(50), 2))
    assert_allclose(together.constants["s"], score_optimism(psi, 1.0, 0).constants["s"])
    assert_allclose(apart.constants["s"], together.constants["s"] / np.sqrt(2))


def test_a_bound_above_the_score_says_nothing():
    found = score_optimism(np.random.default_rng(0).standard_normal((3, 50)), 1.0, 0)
    assert found.value == found.trivial == 1.0
    assert not found.informative


@pytest.fixture(scope="module")
def searched():
    X = kdmaps.problems.load("ou2d-4").sample(150, random_state=0)
    grid = {"families": ["gaussian"], "bandwidths": [1.0, 3.0], "regularizations": [1e-3, 1e-1]}
    weight = np.random.default_rng(1).uniform(0.5, 1.5, len(X))
    search = kdmaps.KernelSearchCV(2, **grid, n_features=20, cv=3, diffusion=[1.0, 2.0], random_state=0, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return X, weight, search.fit(X, sample_weight=weight)


def test_influence_is_the_derivative_of_the_pooled_score(searched):
    X, weight, search = searched
    data, best = search.search_result_.data, search.search_result_.best
    folded = data.fold(best.kernel, best.basis)
    (fit,) = data.fit_folds(folded, [best.regularization])
    score, psi = influence_of(data, folded, fit)
    tensor = kdmaps.forms.tangent.checked_tensor([1.0, 2.0], X)

    def pooled(weights):
        """The pooled score of the same modes with other weights of the test samples."""
        sums = []
        for f, modes in enumerate(fold_modes(folded, fit, np.eye(2))):
            test = data.folds.assignment[:, f] == 2
            moments = compute_moments(modes, ArraySource(X[test]), weights[test], tensor)
            sums.append(moments.weight * np.stack([moments.covariance(True), moments.mean_energy()]))
        return ritz_pairs(*np.sum(sums, axis=0)[:, None])[0].sum()

    assert_allclose(score, pooled(weight), rtol=1e-10)
    assert abs(psi.sum()) < 1e-10 * np.abs(psi).sum()
    for i in (0, 17, 80):
        # A hundredth: with less, rounding of the score outweighs what is left of the third derivative.
        step = 1e-2 * weight * (np.arange(len(X)) == i)
        difference = (pooled(weight + step) - pooled(weight - step)) / 2e-2
        assert_allclose(psi[i], difference, rtol=1e-5, atol=1e-9)


def test_a_search_bounds_its_optimism(searched):
    _, _, search = searched
    found = search.search_result_.optimism(n_draws=500)
    assert found.constants["M"] == len(search.search_result_.candidates)
    assert found.informative
    assert found.value > 1.6 * found.constants["s"]  # at least one normal variable


def test_pairs_of_frames_have_no_such_bound():
    path = kdmaps.problems.load("dw1d").simulate(300, dt=0.1, random_state=0)[0]
    search = kdmaps.KernelSearchCV(1, families=["gaussian"], bandwidths=[1.0], n_features=20, lag=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(path)
    with pytest.raises(ValueError, match="lag=None"):
        search.search_result_.optimism()
