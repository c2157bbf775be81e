"""Refinement: the held-out score does not fall, and modes of anisotropic systems get better."""

import subprocess
import sys

import numpy as np
import pytest
from kdmaps.metrics import subspace_r2

import kdmaps
from kdmaps.bases import make_basis
from kdmaps.data.distances import median_distance
from kdmaps.kernels import RationalQuadratic
from kdmaps.learn import Refinement, refine
from kdmaps.learn._anisotropy import Anisotropy
from kdmaps.learn._objective import make_objective
from kdmaps.learn._problem import Problem
from kdmaps.learn._statistics import Samples
from kdmaps.selection.folds import FoldMoments, make_splits

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
        assert refined.difference_standard_error > 0

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


def test_a_refinement_is_kept_by_score_or_by_agreement():
    def made(**change):
        facts = {"score_before": 1.0, "score_after": 1.2, "difference_standard_error": 0.1}
        facts |= {"agreement_before": 0.9, "agreement_after": 0.8, **change}
        return Refinement(kernel=RationalQuadratic(), regularization=1e-3, history={}, **facts)

    assert made().preferred  # the score is higher, beyond chance: agreement is not asked
    assert not made(score_after=1.05).preferred  # within the error, and the folds agree less
    assert made(score_after=1.05, agreement_after=0.95).preferred
    assert made(score_after=0.95, agreement_after=0.95).preferred  # not lower beyond chance
    assert not made(score_after=0.85, agreement_after=0.95).preferred
    assert not made(score_before=-np.inf, difference_standard_error=np.nan).preferred  # no rival, no comparison


def test_a_refinement_is_compared_with_its_rival():
    X = kdmaps.problems.load("ou2d-4").sample(150, random_state=0)
    folds = FoldMoments(make_splits(3, X, None, 2, 0), len(X))
    settings = {"folds": folds, "n_components": 2, "n_features": 40, "random_state": 0, "max_steps": 2}
    kernel, other = RationalQuadratic(5.0, 6.0), RationalQuadratic(5.0, 3.0)
    alone = refine(X, kernel, 1e-3, **settings)
    compared = refine(X, kernel, 1e-3, rival=(other, 1e-2), **settings)
    np.testing.assert_array_equal(compared.kernel.bandwidth, alone.kernel.bandwidth)
    assert compared.score_after == alone.score_after
    assert compared.score_before == pytest.approx(refine(X, other, 1e-2, **settings).score_before, rel=1e-12)


def test_descent_does_not_start_on_the_bound():
    """At the bound on narrowing the slope is 0: no coordinate would ever move, not even one that does well to widen."""
    X = kdmaps.problems.load("ou2d-4").sample(150, random_state=0)
    folds = FoldMoments(make_splits(3, X, None, 2, 0), len(X))
    # narrower than `narrowest`, so that narrowing has the smallest bound there is, and narrower still scores best
    settings = {"n_components": 2, "n_features": 40, "random_state": 0, "max_steps": 3, "narrowest": 10.0}
    found = refine(X, RationalQuadratic(5.0, 4.0), 1e-3, folds=folds, **settings)
    x, y = found.kernel.bandwidth
    assert x == pytest.approx(4.0, rel=2e-3)  # bound 1e-3
    assert y > 4.2


WITHOUT_JAX = """
import sys
sys.modules["jax"] = sys.modules["optax"] = None
import warnings
warnings.simplefilter("ignore")
import kdmaps
X = kdmaps.problems.load("ou2d-4").sample(150, random_state=0)
settings = {"n_components": 2, "n_features": 40, "random_state": 0}
found = kdmaps.AdaptiveDiffusionMap(**settings, families=("gaussian",), regularizations=[1e-3]).fit(X)
assert len(found.refinement_.history["loss"]) > 2
learned = kdmaps.VariationalKernelMap(**settings, objective="heldout", adam_steps=2, lbfgs_steps=2).fit(X)
assert learned.best_loss_ < learned.history_["loss"][0]
try:
    kdmaps.VariationalKernelMap(**settings, objective="combined").fit(X)
except ImportError as error:
    print(error)
"""


def test_only_the_objectives_of_the_paper_need_jax():
    done = subprocess.run([sys.executable, "-c", WITHOUT_JAX], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "need jax, which is not installed: pip install 'kdmaps[learn]'" in done.stdout
