"""Every sum is computed once, and the same seed gives the same draws in every estimator."""

from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone

import kdmaps
from kdmaps.forms.energy import EnergyForm
from kdmaps.forms.tangent import TangentDiffusion
from kdmaps.selection import training
from shared import GRID, adaptive, known

pytestmark = known("no-gap")

SETTINGS = {"n_components": 2, "n_features": 40, "random_state": 0}


@pytest.fixture
def passes(monkeypatch):
    """Rows summed for each kernel, counted where every sum over samples goes through."""
    rows_of, moments = Counter(), EnergyForm.moments

    def counted(self, basis, source, sample_weight=None, rows=None, **options):
        rows_of[repr(basis.kernel)] += source.n_samples if rows is None else len(rows)
        return moments(self, basis, source, sample_weight, rows, **options)

    monkeypatch.setattr(EnergyForm, "moments", counted)
    return rows_of


def count_calls(monkeypatch, target, name):
    calls, original = [], getattr(target, name)

    def counted(*args, **kwargs):
        calls.append(name)
        return original(*args, **kwargs)

    monkeypatch.setattr(target, name, counted)
    return calls


@pytest.mark.parametrize("make", [kdmaps.KernelSearchCV, adaptive])
def test_passes_of_a_search_over_the_samples(make, X, passes):
    settings = {"refine": False} if make is adaptive else {}
    model = make(**SETTINGS, **GRID, **settings).fit(X)
    best = repr(model.kernel_)
    assert len(passes) == 2 * 3
    assert {kernel: n / len(X) for kernel, n in passes.items()} == {
        kernel: 1 + 2 * (kernel == best) for kernel in passes
    }


def test_passes_of_a_refinement(X, passes):
    model = adaptive(**SETTINGS, **GRID).fit(X)
    found = model.refinement_
    searched = {repr(candidate.kernel) for candidate in model.search_result_.candidates}
    tried = {kernel: n / len(X) for kernel, n in passes.items() if kernel not in searched}
    # Five starts, of which the best one is summed again for the descent; the refined kernel is evaluated at the end.
    # Three folds repeat this with two thirds of the samples, each with about as many steps.
    once = 5 + 1 + found.history["evaluations"].sum() + 1
    assert sum(tried.values()) <= once + 1.5 * 3 * 2 / 3 * once
    assert tried[repr(found.candidate.kernel)] <= 4  # tried, evaluated twice, and with other features


def test_passes_of_a_search_on_a_subsample(X, passes):
    model = adaptive(**SETTINGS, **GRID, refine=False, max_search_samples=100).fit(X)
    assert (
        passes.pop(repr(model.kernel_)) == 100 + 100 + 100 + 200
    )  # screened, evaluated exactly, with other features, fitted
    assert set(passes.values()) == {100}


def test_the_median_and_the_tangent_spaces_are_found_once(X, monkeypatch):
    medians = count_calls(monkeypatch, training, "median_distance")
    spaces = count_calls(monkeypatch, TangentDiffusion, "fit")
    model = adaptive(**SETTINGS, **GRID, diffusion=TangentDiffusion(dimension=1, floor=0.3))
    model.fit(X)
    assert len(medians) == len(spaces) == 1


def test_the_same_seed_draws_the_same_frequencies_and_folds_everywhere(X):
    searched = kdmaps.KernelSearchCV(**SETTINGS, **GRID).fit(X)
    default = adaptive(**SETTINGS, **GRID, refine=False).fit(X)
    single = kdmaps.KernelDiffusionMap(**SETTINGS, **searched.best_params_).fit(X)
    for model in (default, single):
        np.testing.assert_array_equal(model.basis_.frequencies, searched.basis_.frequencies)
    folds = [model.search_result_.assignment for model in (searched, default)]
    np.testing.assert_array_equal(*folds)
    # Cross-fitted rates come from the folds: rates of a search and of a single fit agree to rounding.
    rates = {"rates": "cross-fitted"}
    ours = kdmaps.KernelSearchCV(**SETTINGS, **GRID, **rates).fit(X)
    theirs = kdmaps.KernelDiffusionMap(**SETTINGS, **ours.best_params_, **rates).fit(X)
    np.testing.assert_allclose(ours.rates_, theirs.rates_, rtol=1e-8)


def test_seed_is_drawn_from_a_random_state(X):
    one, two = (kdmaps.KernelDiffusionMap(2, n_features=40, random_state=np.random.RandomState(s)) for s in (0, 0))
    np.testing.assert_array_equal(one.fit(X).transform(X), two.fit(X).transform(X))
    assert not np.allclose(one.fit(X).transform(X), two.transform(X))  # the generator has moved on


def test_time_scales_come_longest_first(X):
    """Nearly degenerate modes, which μ orders otherwise: rates 1.042, 2.134, 2.123 in version 0.1.0."""
    X = kdmaps.problems.load("ou10d").sample(500, random_state=1)
    model = kdmaps.KernelDiffusionMap(3, random_state=0).fit(X)
    assert np.any(np.diff(model.eigenvalues_) > 0)
    assert np.all(np.diff(model.timescales_) < 0)
    modes = model.transform(X)
    gradients = model.gradient(X)
    # Each rate belongs to its mode: E|∇φ|²/Var φ.
    np.testing.assert_allclose(np.sum(gradients**2, axis=(0, 2)) / len(X) / modes.var(axis=0), model.rates_, rtol=1e-8)


def test_cv_results_have_the_keys_of_scikit_learn(X):
    model = kdmaps.KernelSearchCV(**SETTINGS, **GRID).fit(X)
    results = model.cv_results_
    folds = np.array([results[f"split{f}_test_score"] for f in range(6)])
    np.testing.assert_allclose(results["mean_test_score"], folds.mean(axis=0))
    np.testing.assert_allclose(results["std_test_score"], folds.std(axis=0))
    assert model.best_score_ == results["mean_test_score"][model.best_index_]
    assert model.best_selection_score_ == results["selection_score"][model.best_index_]
    assert results["rank_selection_score"][model.best_index_] == 1
    assert results["mean_test_score"][np.argmin(results["rank_test_score"])] == results["mean_test_score"].max()
    assert np.all(results["mean_fit_time"] > 0)
    assert len(results["params"]) == 2 * 3 * 2


def test_rejected_candidates_have_a_reason(X):
    def scoring(fold):
        return np.nan if fold.regularization > 5e-3 else 1.0

    results = kdmaps.KernelSearchCV(**SETTINGS, **{**GRID, "bandwidths": [2.0]}, scoring=scoring).fit(X).cv_results_
    assert results["rejected"] == ["", "the score is not finite"] * 2
    assert results["rank_selection_score"].tolist() == [1, 3, 1, 3]


@known("flat")
@known("ridge")
def test_the_best_estimator_is_plain_and_can_be_cloned(X):
    groups = np.arange(200) // 20
    model = adaptive(**SETTINGS, **GRID, cv=kdmaps.BlockedKFold(3), max_search_samples=100).fit(X)
    again = clone(model.best_estimator_).fit(X)
    np.testing.assert_allclose(again.transform(X), model.transform(X), atol=1e-10)
    assert isinstance(model.best_estimator_.cv, kdmaps.BlockedKFold)
    grouped = adaptive(**SETTINGS, **GRID).fit(X, groups=groups)
    for roles in grouped.search_result_.assignment.T:
        assert all(len(set(roles[groups == g])) == 1 for g in range(10))


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
@pytest.mark.slow
def test_threads_change_nothing(X, n_jobs):
    expected = kdmaps.KernelSearchCV(**SETTINGS, **GRID, n_jobs=1).fit(X)
    model = kdmaps.KernelSearchCV(**SETTINGS, **GRID, n_jobs=n_jobs).fit(X)
    np.testing.assert_array_equal(model.cv_results_["selection_score"], expected.cv_results_["selection_score"])
    np.testing.assert_array_equal(model.transform(X), expected.transform(X))


def test_list_of_one_trajectory_equals_an_array(X):
    searched = [kdmaps.KernelSearchCV(**SETTINGS, **GRID).fit(samples) for samples in (X, [X])]
    np.testing.assert_array_equal(*(model.rates_ for model in searched))


def test_lists_of_trajectories_everywhere(X):
    model = kdmaps.KernelDiffusionMap(**SETTINGS).fit([X[:80], X[80:]])
    parts = model.gradient([X[:80], X[80:]])
    np.testing.assert_array_equal(np.concatenate(parts), model.gradient(X))
    expected = model.predict_expectation(X, X[:, 0], 0.1)
    np.testing.assert_array_equal(model.predict_expectation([X[:80], X[80:]], X[:, 0], 0.1), expected)
    with pytest.raises(ValueError, match="open_tables"):
        model.fit(["one.npy", "two.npy"])


def test_memory_limit_is_checked_before_a_search(X, passes):
    with pytest.raises(ValueError, match=r"memory_limit=0.001 MB is too small for 40 features"):
        kdmaps.KernelSearchCV(**SETTINGS, **GRID, memory_limit=0.001).fit(X)
    assert not passes


def test_a_search_with_a_memory_limit_fits_within_it(X, passes):
    model = kdmaps.KernelSearchCV(**SETTINGS, **GRID, memory_limit=50).fit(X)
    free = kdmaps.KernelSearchCV(**SETTINGS, **GRID).fit(X)
    np.testing.assert_allclose(model.rates_, free.rates_, rtol=1e-10)


def test_settings_are_checked_before_the_data_are_read():
    def never():
        pytest.fail("read first")

    for wrong in ({"scoring": "accuracy"}, {"families": ["cubic"]}, {"bandwidths": [-1.0]}, {"regularizations": [0]}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}|cubic"):
            kdmaps.KernelSearchCV(**{**SETTINGS, **GRID, **wrong}).fit(never)


def test_a_tensor_per_sample_with_a_stream_of_unknown_length(X):
    D = np.tile(np.diag([1.0, 2.0]), (len(X), 1, 1))
    array = kdmaps.KernelSearchCV(**SETTINGS, **GRID, diffusion=D).fit(X)
    stream = kdmaps.KernelSearchCV(**SETTINGS, **GRID, diffusion=D).fit(lambda: iter([X[:90], X[90:]]))
    np.testing.assert_allclose(stream.rates_, array.rates_, rtol=1e-8)


class Fixed(kdmaps.kernels.Kernel):
    """exp(-|x - z|²/8): a user-defined kernel without a bandwidth."""

    own = kdmaps.kernels.Gaussian(2.0)

    def __call__(self, X, Z=None):
        return self.own(X, Z)

    def partials(self, X, Z):
        return self.own.partials(X, Z)

    def frequencies(self, normals, uniforms):
        return self.own.frequencies(normals, uniforms)

    def components(self):
        return [(1.0, self)]

    def to_dict(self):
        return {"family": "fixed"}


def test_a_kernel_without_a_bandwidth_is_not_refined(X):
    model = adaptive(**{**SETTINGS, **GRID, "families": [Fixed()]}).fit(X)
    assert model.refinement_ is None
    same = kdmaps.KernelSearchCV(**{**SETTINGS, **GRID, "families": [Fixed.own]}).fit(X)
    np.testing.assert_array_equal(model.rates_, same.rates_)
