"""AdaptiveDiffusionMap: quality of the modes, start and limits of the refinement."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import kdmaps
from kdmaps import KernelSearchCV
from kdmaps.data import ArraySource
from kdmaps.estimators.adaptive import START_LAMBDAS, _start
from kdmaps.kernels import Gaussian, Metric
from kdmaps.selection.candidate import Stage, Trial
from kdmaps.selection.folds import BlockedKFold
from kdmaps.selection.scores import select_by_timescale
from kdmaps.selection.search import search
from shared import adaptive, codes, expects, known


@pytest.fixture(scope="module")
def X():
    return kdmaps.problems.load("ou2d-4").sample(120, random_state=0)


def _searched(X, families):
    settings = {"families": families, "regularizations": [1e-3, 1e-2], "n_features": 40, "random_state": 0}
    return search(ArraySource(X), None, None, KernelSearchCV(2, bandwidths=10, **settings)._plan())


def test_refinement_starts_from_a_wide_gaussian_in_the_metric_of_the_choice(X):
    found = _searched(X, ["laplacian", "gaussian"])
    result = found.result
    turned = Metric(result.best.kernel, np.array([[0.0, 2.0], [0.5, 0.0]]))
    for kernel, inner in ((result.best.kernel, lambda k: k), (turned, lambda k: k.kernel)):
        best = replace(result.best, kernel=kernel)
        start = _start(found._replace(result=replace(result, best=best)), 5.0)
        assert type(start.kernel) is (Metric if kernel is turned else Gaussian)
        assert inner(start.kernel) in (Gaussian(5.0), Gaussian(10.0))
        lambdas = [float(f"{factor / max(best.timescales):.3g}") for factor in START_LAMBDAS]
        wide = [k if kernel is not turned else Metric(k, turned.root) for k in (Gaussian(5.0), Gaussian(10.0))]
        trials = [Trial("gaussian", k, "fourier", (lam,), Stage.ALL_FOLDS) for k in wide for lam in lambdas]
        scores = [found.data.evaluate(trial, select_by_timescale)[0].value for trial in trials]
        assert start.regularization in lambdas
        assert start.value == pytest.approx(max(scores), rel=0.02)  # a path of λ is solved roughly


@known("flat")
def test_one_coordinate_leaves_nothing_to_refine(X):
    settings = {"families": ["gaussian"], "regularizations": [1e-2], "n_features": 40, "random_state": 0}
    model = adaptive(1, **settings).fit(X[:, :1])
    assert model.refinement_ is None
    searched = KernelSearchCV(1, **settings).fit(X[:, :1])
    np.testing.assert_array_equal(model.transform(X[:, :1]), searched.transform(X[:, :1]))


@pytest.mark.slow
def test_another_scoring_is_not_refined_by_held_out_time_scales(X):
    settings = {"families": ["gaussian"], "regularizations": [1e-2], "n_features": 40, "random_state": 0}
    assert adaptive(2, scoring="rayleigh", **settings).fit(X).refinement_ is None
    assert adaptive(2, **settings).fit(X).refinement_ is not None


@pytest.mark.parametrize("max_search_samples", [50, 5000], ids=["fitted again", "as searched"])
@known("no-gap")  # ten equal coordinates
@known("energy-samples", "variance-samples", "transition-samples", "mismatch", "ridge", "held-out-factor")
def test_what_the_folds_have_measured_is_not_estimated_again(max_search_samples):
    X = np.random.default_rng(0).standard_normal((60, 10))
    settings = {"families": [Gaussian(3.0)], "regularizations": [1e-4], "n_features": 100, "random_state": 0}
    settings["basis"] = "fourier"
    model = adaptive(4, max_search_samples=max_search_samples, refine=False, **settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    assert not {"unresolved", "ridge"} & {*codes(caught)}
    assert "unresolved" in [check.code for check in model.modes_.checks if check.warns]
    with expects("unresolved"):  # the same kernel without folds
        model.best_estimator_.fit(X)


@known("flat")
def test_a_checkpoint_without_a_random_state_is_resumed_on_the_same_samples(tmp_path):
    X = kdmaps.problems.load("dw1d").sample(400, random_state=0)
    settings = {"families": ["gaussian"], "regularizations": [1e-2], "n_features": 30, "max_search_samples": 100}
    settings["checkpoint"] = tmp_path / "search.jsonl"
    first = adaptive(1, **settings).fit(X)
    again = adaptive(1, **settings).fit(X)
    np.testing.assert_array_equal(again.cv_results_["selection_score"], first.cv_results_["selection_score"])
    # The times come from the file: nothing was computed again but the exact solve of the winner, which is the last.
    np.testing.assert_array_equal(again.cv_results_["mean_fit_time"][:-1], first.cv_results_["mean_fit_time"][:-1])


@known("variance-samples")
def test_regularization_is_not_rounded_by_a_refinement():
    X = kdmaps.problems.load("ou2d-16").sample(300, random_state=0)
    settings = {"families": ["gaussian"], "regularizations": [1e-4], "n_features": 40, "random_state": 0}
    assert adaptive(2, **settings).fit(X).refinement_.candidate.regularization == 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dw1d", "circle", "ou2d-16", "mdlike-10"])
def test_selected_modes_are_close_to_the_truth(name):
    problem = kdmaps.problems.load(name)
    X = problem.sample(1000, random_state=3)
    modes = adaptive(problem.n_modes, random_state=0).fit_transform(X)
    # Twice the mean error at N=500 in `python -m experiments.regret`, with twice the samples.
    assert kdmaps.metrics.subspace_r2(modes, problem.reference(X, problem.n_modes)) > 0.95


@pytest.mark.slow
@known("flat")  # for a Gaussian law any wide kernel will do
def test_large_data_are_searched_on_a_subsample_and_fitted_whole():
    problem = kdmaps.problems.load("ou2d-4")
    X = problem.sample(20_000, random_state=0)
    model = adaptive(2, random_state=0, families=["gaussian"], n_features=100, max_search_samples=1000).fit(X)
    assert model.best_estimator_.moments_.count == 20_000
    assert len(model.cv_results_["selection_score"]) >= 70
    # 20,000 samples: relative errors of the first two rates of order √(2/2e4)·few.
    np.testing.assert_allclose(model.rates_, [1, 2], rtol=0.06)


@pytest.mark.slow
@known("independent-samples")
def test_fifty_samples_are_enough_for_an_answer():
    problem = kdmaps.problems.load("ou2d-4")
    X = problem.sample(50, random_state=0)
    modes = adaptive(random_state=0).fit_transform(X)
    first = kdmaps.metrics.subspace_r2(modes, problem.eigenfunctions(X, 1))
    assert first > 0.9  # x itself is found, whatever becomes of the faster modes


@known("flat")
def test_blocks_and_gaps_keep_their_meaning_on_a_subsample():
    problem = kdmaps.problems.load("dw1d")
    trajectory = problem.simulate(3000, 0.05, random_state=0)[0]
    folds = BlockedKFold(3, gap=400)  # 400 of 3,000 frames: more than a third of a subsample of 1,000
    model = adaptive(
        2, random_state=0, families=["gaussian"], n_features=40, cv=folds, max_search_samples=1000, refine=False
    )
    assert model.fit(trajectory).best_estimator_.moments_.count == 3000
    for roles in model.search_result_.assignment.T:
        assert len(roles) == 1000
        assert np.count_nonzero(roles == 1) > 300
        assert np.count_nonzero(roles == 2) > 300
    clone(model.best_estimator_).fit(trajectory)  # it has the splitter, not lists of rows of the subsample


@pytest.mark.slow
@known("no-gap")
def test_refinement_is_kept_only_if_it_scores_better(monkeypatch):
    """ou3d needs wider kernels in y and z than in x: the refinement finds it. If rejected, the search is unchanged."""
    problem = kdmaps.problems.load("ou3d")
    X = problem.sample(500, random_state=0)
    settings = {"families": ["gaussian"], "regularizations": [1e-4], "n_features": 200, "random_state": 0}
    model = adaptive(4, **settings).fit(X)
    found = model.refinement_
    assert found.preferred
    assert model.kernel_ == found.candidate.kernel
    assert model.kernel_.bandwidth[1:].min() > model.kernel_.bandwidth[0]
    r2 = kdmaps.metrics.subspace_r2
    plain = adaptive(4, refine=False, **settings).fit(X)
    assert r2(model.transform(X), problem.reference(X, 4)) > r2(plain.transform(X), problem.reference(X, 4))
    searched = KernelSearchCV(4, **settings).fit(X)
    np.testing.assert_array_equal(plain.transform(X), searched.transform(X))
    monkeypatch.setattr(type(found), "preferred", property(lambda self: False))
    kept = adaptive(4, **settings).fit(X)
    np.testing.assert_array_equal(kept.transform(X), plain.transform(X))
