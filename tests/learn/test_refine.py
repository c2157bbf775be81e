"""Refinement: the held-out score does not fall, and modes of anisotropic systems get better."""

import numpy as np
import pytest

import kdmaps
from kdmaps.bandwidths import median_distance
from kdmaps.folds import FoldMoments, make_splits
from kdmaps.kernels import RationalQuadratic
from kdmaps.learn import refine
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
