"""AdaptiveDiffusionMap: where its refinement starts, and where there is none."""

import warnings

import numpy as np
import pytest

import kdmaps
from kdmaps import AdaptiveDiffusionMap, KernelSearchCV
from kdmaps.estimators.adaptive import _start
from kdmaps.exceptions import UnresolvedModesWarning
from kdmaps.kernels import Gaussian
from shared import known_warning


@pytest.fixture(scope="module")
def X():
    return kdmaps.problems.load("ou2d-4").sample(120, random_state=0)


def _searched(X, families):
    settings = {"families": families, "regularizations": [1e-3, 1e-2], "n_features": 40, "random_state": 0}
    return AdaptiveDiffusionMap(2, refine=False, **settings).fit(X)


def test_refinement_starts_from_the_best_gaussian_that_is_wide_enough(X):
    model = _searched(X, ["laplacian", "gaussian"])
    tried = model.cv_results_
    candidates = list(zip(tried["selection_score"], tried["params"], strict=True))
    for width in (0.0, 5.0, 20.0):
        wide = [(s, p) for s, p in candidates if p["kernel"] == "gaussian" and p["bandwidth"] >= width]
        _, best = max(wide, key=lambda pair: pair[0])
        start = _start(model.search_result_, width)
        assert (start.kernel, start.regularization) == (Gaussian(best["bandwidth"]), best["regularization"])


@known_warning("score landscape is flat")
@pytest.mark.slow
def test_refinement_starts_from_the_choice_of_a_search_without_gaussians(X):
    model = _searched(X, ["matern52"])
    assert _start(model.search_result_, 0.0) is model.search_result_.best


@known_warning("score landscape is flat")
def test_one_coordinate_leaves_nothing_to_refine(X):
    settings = {"families": ["gaussian"], "regularizations": [1e-2], "n_features": 40, "random_state": 0}
    model = AdaptiveDiffusionMap(1, **settings).fit(X[:, :1])
    assert model.refinement_ is None
    searched = KernelSearchCV(1, **settings).fit(X[:, :1])
    np.testing.assert_array_equal(model.transform(X[:, :1]), searched.transform(X[:, :1]))


@pytest.mark.slow
def test_another_scoring_is_not_refined_by_held_out_time_scales(X):
    settings = {"families": ["gaussian"], "regularizations": [1e-2], "n_features": 40, "random_state": 0}
    assert AdaptiveDiffusionMap(2, scoring="rayleigh", **settings).fit(X).refinement_ is None
    assert AdaptiveDiffusionMap(2, **settings).fit(X).refinement_ is not None


@pytest.mark.parametrize("max_search_samples", [50, 5000], ids=["fitted again", "as searched"])
@known_warning("have the same time scale")  # ten equal coordinates
def test_what_the_folds_have_measured_is_not_estimated_again(max_search_samples):
    X = np.random.default_rng(0).standard_normal((60, 10))
    settings = {"families": [Gaussian(3.0)], "regularizations": [1e-4], "n_features": 100, "random_state": 0}
    model = AdaptiveDiffusionMap(4, max_search_samples=max_search_samples, refine=False, **settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    assert not [w for w in caught if issubclass(w.category, UnresolvedModesWarning)]
    assert [c for c in model.modes_.warnings() if isinstance(c, UnresolvedModesWarning)]
    with pytest.warns(UnresolvedModesWarning):  # the same kernel without folds
        model.best_estimator_.fit(X)


@known_warning("score landscape is flat")
def test_a_checkpoint_without_a_random_state_is_resumed_on_the_same_samples(tmp_path):
    X = kdmaps.problems.load("dw1d").sample(400, random_state=0)
    settings = {"families": ["gaussian"], "regularizations": [1e-2], "n_features": 30, "max_search_samples": 100}
    settings["checkpoint"] = tmp_path / "search.jsonl"
    first = AdaptiveDiffusionMap(1, **settings).fit(X)
    again = AdaptiveDiffusionMap(1, **settings).fit(X)
    np.testing.assert_array_equal(again.cv_results_["selection_score"], first.cv_results_["selection_score"])
    # The times come from the file: nothing was computed again.
    np.testing.assert_array_equal(again.cv_results_["mean_fit_time"], first.cv_results_["mean_fit_time"])


def test_regularization_is_not_rounded_by_a_refinement():
    X = kdmaps.problems.load("ou2d-16").sample(300, random_state=0)
    settings = {"families": ["gaussian"], "regularizations": [1e-4], "n_features": 40, "random_state": 0}
    assert AdaptiveDiffusionMap(2, **settings).fit(X).refinement_.candidate.regularization == 1e-4
