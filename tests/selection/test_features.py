"""The number of features of the final fit."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import kdmaps
from kdmaps.bases import BasisSpec
from kdmaps.exceptions import MemoryLimitError
from kdmaps.selection.evaluation import SearchData
from kdmaps.selection.plan import SearchPlan

ONE_KERNEL = {"families": ["gaussian"], "bandwidths": [0.7], "regularizations": [1e-6], "max_extensions": 0}


@pytest.fixture(scope="module")
def angle():
    return np.random.default_rng(0).uniform(0, 2 * np.pi, 600)


@pytest.fixture(scope="module")
def X(angle):
    return np.column_stack([np.cos(angle), np.sin(angle)])


@pytest.fixture
def fit(monkeypatch):
    """Fit with a small number of features to start from, which keeps the tests short."""

    def fit(X, start, n_components, n_features="auto", **settings):
        monkeypatch.setattr(BasisSpec, "n_features", start)
        settings = ONE_KERNEL | {"random_state": 0, "cv": 3} | settings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return kdmaps.KernelSearchCV(n_components, n_features=n_features, **settings).fit(X)

    return fit


@pytest.mark.parametrize(("basis", "bandwidth"), [("fourier", 0.7), ("landmarks", 0.2)])
def test_features_are_doubled_while_the_score_rises(X, angle, fit, basis, bandwidth, tmp_path):
    """The modes cos kθ and sin kθ of a circle up to k = 5 need more than twelve features."""
    settings = {"basis": basis, "bandwidths": [bandwidth], "diffusion": "tangent"}
    found = fit(X, 12, 10, **settings)
    p = found.best_params_["n_features"]
    assert p in (24, 48, 96)
    assert found.basis_.n_features == found.best_estimator_.n_features == p
    few = fit(X, 12, 10, n_features=12, **settings)
    assert found.best_score_ == few.best_score_  # of the search
    reference = np.column_stack([f(k * angle) for k in range(1, 6) for f in (np.cos, np.sin)])
    accuracy = [kdmaps.metrics.subspace_r2(m.transform(X), reference) for m in (few, found)]
    assert accuracy[1] > 0.98
    assert 1 - accuracy[0] > 3 * (1 - accuracy[1])
    found.save(tmp_path / "model.npz")
    stored = kdmaps.load(tmp_path / "model.npz")
    assert stored.n_features == p
    np.testing.assert_array_equal(stored.transform(X), found.transform(X))


def test_features_stay_if_the_score_does_not_rise(X, fit):
    """Two modes of a circle are linear in its coordinates: more features only add noise."""
    found, fixed = (fit(X, 40, 2, n, bandwidths=[3.0]) for n in ("auto", 40))
    assert found.best_params_ == fixed.best_params_ | {"n_features": 40}
    np.testing.assert_array_equal(found.rates_, fixed.rates_)


def test_features_are_at_most_a_quarter_of_the_samples(X, fit, monkeypatch):
    monkeypatch.setattr("kdmaps.selection.search.is_better", lambda *_: True)
    assert fit(X, 40, 2).best_params_["n_features"] == 80  # 160 > 600/4
    assert fit(X, 80, 2).best_params_["n_features"] == 80


@pytest.mark.parametrize(("basis", "limit", "n_features", "left"), [
    ("auto", 500, 80, 40),
    ("auto", 500, 8, 8),  # four landmarks lose more than the error of the score
    ("auto", 600, 80, 80),
    ("landmarks", 500, 80, 80),
])  # fmt: skip
def test_landmarks_are_halved_for_many_samples(X, monkeypatch, basis, limit, n_features, left):
    monkeypatch.setattr("kdmaps.selection.search.MANY_SAMPLES", limit)
    # As if Fourier features had lost.
    monkeypatch.setattr(SearchPlan, "bases", property(lambda plan: (replace(plan.basis, basis="landmarks"),)))
    plan = {"families": ["matern32"], "max_search_samples": 400, "random_state": 0}
    found = kdmaps.KernelSearchCV(2, basis=basis, n_features=n_features, **plan).fit(X)
    assert found.best_params_["basis"] == "landmarks"
    assert found.basis_.n_features == left


def test_features_stay_within_the_memory_limit(X, fit, monkeypatch):
    def rows(loop, n_features, memory_limit):
        assert memory_limit == 64
        if n_features > 40:
            raise MemoryLimitError("too small")

    monkeypatch.setattr("kdmaps.selection.search.is_better", lambda *_: True)
    monkeypatch.setattr("kdmaps.selection.search.chunk_rows", rows)
    assert fit(X, 20, 2, memory_limit=64).best_params_["n_features"] == 40


def test_the_metric_of_a_fold_does_not_depend_on_the_number_of_features(X):
    plan = kdmaps.KernelSearchCV(2, n_features=20, random_state=0, cv=3)._plan()
    data = SearchData.gather(kdmaps.data.ArraySource(X), None, None, plan, 0)
    training = data.trainings[0].with_features(40)
    assert training.basis(kdmaps.kernels.Gaussian(1.0), "fourier").n_features == 40
    assert training._roots is data.trainings[0]._roots


@pytest.mark.parametrize("estimator", [kdmaps.KernelSearchCV, kdmaps.AdaptiveDiffusionMap])
def test_other_words_are_refused(X, estimator):
    with pytest.raises(ValueError, match="positive integer or \"auto\", got 'many'"):
        estimator(2, n_features="many").fit(X)
