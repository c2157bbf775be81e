"""Refinement: the held-out score does not fall, and modes of anisotropic systems get better."""

import numpy as np
import pytest

import kdmaps
from kdmaps.bandwidths import median_distance
from kdmaps.bases import make_basis
from kdmaps.folds import FoldMoments, make_splits
from kdmaps.kernels import RationalQuadratic
from kdmaps.learn import Refinement, refine
from kdmaps.learn._anisotropy import Anisotropy
from kdmaps.learn._objective import make_objective
from kdmaps.learn._problem import Problem
from kdmaps.learn._statistics import Samples
from kdmaps.metrics import subspace_r2

pytestmark = pytest.mark.filterwarnings("ignore::kdmaps.exceptions.UnreliableModesWarning")


@pytest.mark.parametrize("objective", ["heldout", "varrff"])
def test_refinement_of_ornstein_uhlenbeck_modes(objective):
    problem = kdmaps.problems.load("ou3d")
    X = problem.sample(400, random_state=0)
    kernel, lam = RationalQuadratic(5.0, median_distance(X)), 1e-3
    folds = FoldMoments(make_splits(3, X, None, 4, 0), len(X))
    settings = {"n_features": 80, "random_state": 0, "max_steps": 12, "objective": objective}
    refined = refine(X, kernel, lam, folds=folds, **settings)
    assert refined.history["best_loss"][-1] <= refined.history["loss"][0]
    assert np.all(np.abs(np.log(refined.kernel.bandwidth / kernel.bandwidth)) <= 2)
    if objective == "heldout":
        assert refined.score_after >= refined.score_before
        assert -refined.history["best_loss"][-1] == pytest.approx(refined.score_after, rel=1e-6)
        assert refined.gain_standard_error > 0

        def quality(kernel):
            model = kdmaps.KernelDiffusionMap(4, kernel, n_features=80, regularization=lam, random_state=0).fit(X)
            return subspace_r2(model.transform(X), problem.reference(X, 4))

        assert quality(refined.kernel) > quality(kernel)
        again = refine(X, kernel, lam, folds=folds, **settings)
        np.testing.assert_array_equal(refined.kernel.bandwidth, again.kernel.bandwidth)


@pytest.fixture(scope="module")
def parametrised():
    X = kdmaps.problems.load("ou2d-4").sample(60, random_state=0)
    basis = make_basis("fourier", RationalQuadratic(5.0, 2.0), X, 20, random_state=0)
    return Anisotropy(Samples.of(X), basis, bound=2.0, narrowing=0.3)


def test_narrowing_has_a_bound_of_its_own(parametrised):
    sigma = parametrised.kernel(np.array([-50.0, 50.0])).bandwidth
    np.testing.assert_allclose(np.log(sigma / 2.0), [-0.3, 2.0], rtol=1e-12)
    h = 1e-6  # slope c on both sides of θ = 0, up to the curvature times h
    low, high = (np.log(parametrised.kernel(np.full(2, s * h)).bandwidth / 2.0) / (s * h) for s in (-1, 1))
    np.testing.assert_allclose(low, high, rtol=1e-5)


def test_gradient_under_a_bound_on_narrowing(parametrised):
    problem = Problem(parametrised, make_objective("eig-only", 2), 0.01)
    theta, h = np.array([-0.2, 0.3]), 1e-5
    steps = h * np.eye(2)
    numeric = [(problem.evaluate(theta + e).value - problem.evaluate(theta - e).value) / (2 * h) for e in steps]
    np.testing.assert_allclose(problem.evaluate(theta).gradient, numeric, rtol=1e-6)


def test_a_refinement_needs_witnesses():
    def made(**change):
        facts = {"score_before": 1.0, "score_after": 1.2, "gain_standard_error": 0.1}
        facts |= {"agreement_before": 0.9, "agreement_after": 0.95, **change}
        return Refinement(kernel=RationalQuadratic(), regularization=1e-3, history={}, **facts)

    assert made().significant
    assert not made(gain_standard_error=0.3).significant  # within the error of the folds that were optimised
    assert not made(agreement_after=0.85).significant  # the folds agree less than before
