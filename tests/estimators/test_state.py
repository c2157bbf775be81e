"""Arguments that belong to the samples of a fit are not applied to other samples; settings of the sums stay fixed."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import kdmaps
from kdmaps import Factor, KernelDiffusionMap, KernelSearchCV, VariationalKernelMap
from kdmaps.kernels import Gaussian
from shared import GRID, checks, expects, known, scalar_field, square_factor, tensor_field

pytestmark = known(
    "no-tangent-spaces",
    "unresolved",
    "ridge",
    "no-gap",
    "folds-disagree",
    "variance-samples",
    "correlation-time",
    "lag-not-flat",
)

PROBLEM = kdmaps.problems.load("ou2d-4")
X, OTHERS = (PROBLEM.sample(120, random_state=seed) for seed in (0, 1))
TENSORS = {"tensors": tensor_field, "factors": lambda x: Factor(square_factor(x)), "list": lambda x: [*tensor_field(x)]}


def make(**parameters):
    settings = {"n_components": 2, "n_features": 30, "bandwidth": 2.0, "random_state": 0, **parameters}
    return KernelDiffusionMap(**settings)


# --- tensors of samples -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", TENSORS)
def test_tensors_belong_to_the_samples_of_fit(kind):
    """Tensors per sample belong to these samples; given the tensors of others, results equal those with a function."""
    tensors, function = TENSORS[kind], (square_factor if kind == "factors" else tensor_field)
    model = make(diffusion=tensors(X)).fit(X)
    for again in (model, pickle.loads(pickle.dumps(model))):
        for points in (OTHERS, X):
            with pytest.raises(ValueError, match=r"diffusion was given per sample"):
                again.score(points)
            with pytest.raises(ValueError, match=r"diffusion was given per sample"):
                again.partial_fit(points)
    field = (lambda x: Factor(function(x))) if kind == "factors" else function
    by_function = make(diffusion=field).fit(X)
    assert model.score(OTHERS, diffusion=tensors(OTHERS)) == pytest.approx(by_function.score(OTHERS), rel=1e-10)
    model.partial_fit(OTHERS, diffusion=tensors(OTHERS))
    np.testing.assert_allclose(model.rates_, by_function.partial_fit(OTHERS).rates_, rtol=1e-10)


def test_the_first_chunk_has_the_tensors_of_the_estimator():
    model = make(diffusion=tensor_field(X)).partial_fit(X)
    np.testing.assert_allclose(model.rates_, make(diffusion=tensor_field(X)).fit(X).rates_, rtol=1e-12)
    with pytest.raises(ValueError, match="belongs to the samples of fit"):
        model.partial_fit(OTHERS)


def test_searches_and_loaded_models_know_it_too(tmp_path):
    search = KernelSearchCV(2, **GRID, n_features=30, diffusion=tensor_field(X), random_state=0).fit(X)
    search.save(tmp_path / "model.npz")
    for model in (search, search.best_estimator_, kdmaps.load(tmp_path / "model.npz")):
        with pytest.raises(ValueError, match="belongs to the samples of fit"):
            model.score(OTHERS)


def test_scikit_learn_tells_that_folds_need_a_callable():
    """120 tensors do not fit folds of 80 samples, and tensors of one half of the data not the other half."""
    with pytest.raises(ValueError, match="diffusion holds 120 tensors but X has 80 samples"):
        cross_val_score(make(diffusion=tensor_field(X)), X, cv=3)
    with pytest.raises(ValueError, match="diffusion was given per sample"):
        cross_val_score(make(diffusion=tensor_field(X[:60])), X, cv=KFold(2), error_score="raise")
    grid = {"bandwidth": [1.0, 2.0]}
    with pytest.raises(ValueError, match="diffusion holds 120 tensors but X has 80 samples"):
        GridSearchCV(make(diffusion=tensor_field(X)), grid, cv=3).fit(X)
    assert np.isfinite(cross_val_score(make(diffusion=tensor_field), X, cv=3)).all()


def test_bootstrap_wants_the_samples_of_fit():
    model = make(diffusion=tensor_field(X)).fit(X)
    with pytest.raises(ValueError, match="was not fitted to this X"):
        kdmaps.uncertainty.bootstrap(model, OTHERS, n_resamples=20, random_state=0)
    kdmaps.uncertainty.bootstrap(model, X, n_resamples=20, random_state=0)


def test_bootstrap_accepts_eigenvalues_with_amplified_rounding():
    """With a condition number of 1e15, the sums of blocks, which differ by rounding, have other eigenvalues."""
    model = make().fit(X)
    model.eigenvalues_ = 1.01 * model.eigenvalues_
    kdmaps.uncertainty.bootstrap(model, X, n_resamples=20, random_state=0)
    with pytest.raises(ValueError, match="was not fitted to this X"):
        kdmaps.uncertainty.bootstrap(model, OTHERS, n_resamples=20, random_state=0)
    with pytest.raises(ValueError, match="was not fitted to this X"):
        kdmaps.uncertainty.bootstrap(model, X[:-10], n_resamples=20, random_state=0)


def test_a_function_cannot_change_the_samples():
    def shifting(x):
        x -= x.mean(axis=0)
        return np.ones(len(x))

    before = X.copy()
    with pytest.raises(ValueError, match="read-only"):
        make(diffusion=shifting).fit(X)
    np.testing.assert_array_equal(X, before)


def test_cross_fitted_rates_need_all_samples_at_once():
    model = make(rates="cross-fitted", cv=KFold(2))
    with pytest.raises(ValueError, match="needs all samples at once"):
        model.partial_fit(X)
    with pytest.raises(ValueError, match="needs all samples at once"):
        model.fit(X).partial_fit(OTHERS)
    assert model.set_params(rates="ritz").partial_fit(OTHERS).moments_.count == len(X) + len(OTHERS)


# --- parameters of the sums -------------------------------------------------------------------------------------------
CHANGES = {
    "kernel": "matern32",
    "bandwidth": 3.0,
    "basis": "landmarks",
    "n_features": 20,
    "sampling": "iid",
    "landmarks": X[:20],
    "dtype": "float32",
    "diffusion": 2.0,
    "lag": 3,
}


@pytest.mark.parametrize("name", CHANGES)
def test_parameters_of_the_sums_cannot_change(name, tmp_path):
    make().fit(X).save(tmp_path / "model.npz")
    for model in (make().fit(X), make().partial_fit(X), kdmaps.load(tmp_path / "model.npz")):
        before, count = model.get_params()[name], model.moments_.count
        model.set_params(**{name: CHANGES[name]})
        with pytest.raises(ValueError, match=f"^{name} changed after the first samples were summed"):
            model.partial_fit(OTHERS)
        assert model.moments_.count == count
        model.set_params(**{name: before}).partial_fit(OTHERS)
        np.testing.assert_allclose(model.rates_, make().fit(X).partial_fit(OTHERS).rates_, rtol=1e-10)


def test_values_that_change_in_place_are_noticed():
    tensor = np.diag([1.0, 2.0])
    model = make(diffusion=tensor).fit(X)
    tensor[0, 0] = 5.0
    with pytest.raises(ValueError, match="diffusion changed"):
        model.partial_fit(OTHERS)
    with pytest.raises(ValueError, match="diffusion was changed after the fit"):
        model.score(OTHERS)


def test_a_score_has_the_lag_of_the_fit():
    with pytest.raises(ValueError, match="lag was changed after the fit"):
        make().fit(X).set_params(lag=3).score(OTHERS)


@pytest.mark.parametrize("settings", [{"kernel": Gaussian(2.0)}, {"diffusion": scalar_field}, {"diffusion": "tangent"}])
@pytest.mark.filterwarnings("ignore::kdmaps.exceptions.DataWarning")
def test_equal_values_are_no_change(settings):
    model = pickle.loads(pickle.dumps(make(**settings).fit(X)))
    copied = sklearn.clone(make(**settings)).get_params(deep=False)
    model.set_params(**copied).partial_fit(OTHERS)
    assert model.moments_.count == 240


def test_parameters_of_the_solve_may_change():
    """As if they had been given from the start."""
    changes = {"n_components": 3, "regularization": 1e-3, "center": False, "random_state": 5, "memory_limit": 50}
    model = make().fit(X).set_params(**changes).partial_fit(OTHERS)
    given = make(**{**changes, "random_state": 0}).fit(X).partial_fit(OTHERS)
    np.testing.assert_allclose(model.rates_, given.rates_, rtol=1e-8)


def test_a_learned_kernel_keeps_the_diffusion_of_its_fit():
    model = VariationalKernelMap(2, n_features=10, adam_steps=1, lbfgs_steps=0, diffusion=scalar_field, random_state=0)
    model.fit(X).set_params(diffusion=None)
    with pytest.raises(ValueError, match="diffusion was changed after the fit"):
        model.score(OTHERS)
    assert model.best_estimator_.score(OTHERS) == model.score(OTHERS, diffusion=scalar_field)


# --- weights ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, 1e-200, -1.0])
@pytest.mark.parametrize("estimator", [make(), KernelSearchCV(2, **GRID, n_features=30, random_state=0)])
def test_weights_that_are_no_weights(value, estimator):
    weight = np.full(120, 1e-320)
    weight[7] = value
    with pytest.raises(ValueError, match="sample_weight"):
        estimator.fit(X, sample_weight=weight)


@known("energy-samples", "variance-samples", "transition-samples", "independent-samples", "mismatch", "ridge")
@known("held-out-factor", "kernel-factor", "feature-factor", "no-gap", "folds-disagree", "flat", "unresolved")
@pytest.mark.parametrize("estimator", [make(), KernelSearchCV(2, **GRID, n_features=30, random_state=0)])
def test_weights_that_leave_few_samples(estimator):
    weight = np.exp(-0.5 * np.arange(120.0))
    count = weight.sum() ** 2 / (weight**2).sum()  # (1+e^-0.5)/(1-e^-0.5) = 4.1
    with expects("dominating-weights") as record:
        estimator.fit(X, sample_weight=weight)
    np.testing.assert_allclose(checks(record)[0].value, count)


def test_a_mask_is_no_weight_that_leaves_few_samples():
    mask = (np.arange(120) < 40) * 1e-3
    np.testing.assert_allclose(make().fit(X, sample_weight=mask).rates_, make().fit(X[:40]).rates_, rtol=1e-6)


# --- what a fitted estimator holds ------------------------------------------------------------------------------------
def test_a_second_fit_leaves_nothing_of_the_first():
    path = kdmaps.problems.load("dw1d").simulate(2000, dt=0.1, random_state=0)[0]
    model = KernelDiffusionMap(1, n_features=20, lag="auto", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(pd.DataFrame(path, columns=["x"]))
        assert model.lag_choice_.undecided == model.lag_
        model.set_params(lag=7).fit(path)
        fresh = KernelDiffusionMap(1, n_features=20, lag=7, random_state=0).fit(path)
    assert (model.lag_, model.lag_choice_) == (7, None)
    assert vars(model).keys() == vars(fresh).keys()  # without the names of columns
    np.testing.assert_array_equal(model.transform(path), fresh.transform(path))


def test_a_failed_fit_leaves_the_estimator_as_it_was():
    model = make().fit(X)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((50, 5), np.nan))
    with pytest.raises(ValueError, match="too few"):
        model.fit(np.zeros((2, 4)))
    assert vars(model) == before


@pytest.mark.parametrize("rates", ["ritz", "cross-fitted"])
def test_a_fitted_search_holds_neither_samples_nor_sums_of_folds(rates):
    """A p×p array has 8p² bytes: a model holds two of them, each fold would add four."""
    search = KernelSearchCV(families=["gaussian"], bandwidths=[3.0], regularizations=[1e-2], rates=rates)
    model = kdmaps.AdaptiveDiffusionMap(2, n_features=60, basis="fourier", random_state=0, search=search)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(np.random.default_rng(0).standard_normal((1000, 40)))
    assert model.refinement_ is not None
    kept = len(pickle.dumps(model)) - 8 * model.support_.samples.size
    assert kept < 1000 * 40 * 8 + 6 * 8 * 60**2
