"""Contributions of samples to the pooled score, and the bound on its optimism."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import kdmaps
from experiments.theory.optimism import fold_modes, influence_of, optimism_of, score_optimism
from kdmaps.data import ArraySource
from kdmaps.forms.energy import compute_moments
from kdmaps.selection.scores import ritz_pairs
from kdmaps.selection.search import search


@pytest.fixture(scope="module")
def searched():
    X = kdmaps.problems.load("ou2d-4").sample(150, random_state=0)
    grid = {"families": ["gaussian"], "bandwidths": [1.0, 3.0], "regularizations": [1e-3, 1e-1]}
    weight = np.random.default_rng(1).uniform(0.5, 1.5, len(X))
    model = kdmaps.KernelSearchCV(2, **grid, n_features=20, cv=3, diffusion=[1.0, 2.0], random_state=0, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return X, weight, search(ArraySource(X), weight, None, model._plan())


def test_influence_is_the_derivative_of_the_pooled_score(searched):
    X, weight, found = searched
    data, best = found.data, found.result.best
    folded = data.fold(best.kernel, best.basis)
    (fit,) = data.fit_folds(folded, [best.regularization])
    score, psi = influence_of(data, folded, fit)
    tensor = kdmaps.forms.tangent.checked_tensor([1.0, 2.0], X)

    def pooled(weights):
        """Pooled score of the same modes with other weights of the test samples."""
        sums = []
        for f, modes in enumerate(fold_modes(folded, fit, np.eye(2))):
            test = data.folds.assignment[:, f] == 2
            moments = compute_moments(modes, ArraySource(X[test]), weights[test], tensor)
            sums.append(moments.weight * np.stack([moments.covariance(True), moments.mean_energy()]))
        return ritz_pairs(*np.sum(sums, axis=0)[:, None])[0].sum()

    assert_allclose(score, pooled(weight), rtol=1e-10)
    assert abs(psi.sum()) < 1e-10 * np.abs(psi).sum()
    for i in (0, 17, 80):
        # With a smaller step, rounding of the score exceeds the error of the difference.
        step = 1e-2 * weight * (np.arange(len(X)) == i)
        difference = (pooled(weight + step) - pooled(weight - step)) / 2e-2
        assert_allclose(psi[i], difference, rtol=1e-5, atol=1e-9)


def test_search_bounds_its_optimism(searched):
    _, _, finished = searched
    found = optimism_of(finished, n_draws=500)
    assert found.constants["M"] == len(finished.result.candidates)
    assert found.informative
    assert found.value > 1.6 * found.constants["s"]  # at least one normal variable


def test_optimism_rejects_lagged_pairs():
    path = kdmaps.problems.load("dw1d").simulate(300, dt=0.1, random_state=0)[0]
    model = kdmaps.KernelSearchCV(1, families=["gaussian"], bandwidths=[1.0], n_features=20, lag=1, random_state=0)
    plan = model._plan()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        finished = search(plan.fit.observations(ArraySource(path), None, None).source, None, None, plan)
    with pytest.raises(ValueError, match="lag=None"):
        optimism_of(finished)


def test_quantile_of_the_largest_of_independent_normals():
    psi = np.eye(40)[:8]  # eight independent candidates
    independent = score_optimism(psi, 10.0, 3, n_draws=20_000)
    # Density of the maximum at its 95 % quantile is about 0.12: a standard error of √(.05·.95/20000)/.12 = 0.013.
    assert independent.constants["q"] == pytest.approx(stats.norm.ppf(0.95 ** (1 / 8)), abs=0.05)
    assert independent.value == independent.constants["q"]  # s = 1
    alike = score_optimism(np.ones((8, 40)) / np.sqrt(40), 10.0, 0, n_draws=20_000)
    assert alike.constants["q"] == pytest.approx(stats.norm.ppf(0.95), abs=0.05)


def test_blocks_of_duplicates_count_once():
    psi = np.random.default_rng(0).standard_normal((3, 50)) / 50
    doubled = np.repeat(psi, 2, axis=1) / 2  # every sample twice: the same score
    apart = score_optimism(doubled, 1.0, 0)
    together = score_optimism(doubled, 1.0, 0, blocks=np.repeat(np.arange(50), 2))
    assert_allclose(together.constants["s"], score_optimism(psi, 1.0, 0).constants["s"])
    assert_allclose(apart.constants["s"], together.constants["s"] / np.sqrt(2))


def test_bound_above_the_score_is_not_informative():
    found = score_optimism(np.random.default_rng(0).standard_normal((3, 50)), 1.0, 0)
    assert found.value == found.trivial == 1.0
    assert not found.informative
