"""Candidates made of the training samples of each fold."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kdmaps
from kdmaps.data import ArraySource
from kdmaps.kernels import Gaussian, Matern, Metric
from kdmaps.learn._refine import inner_folds
from kdmaps.selection.candidate import Axes, Recipe, Stage, Trial
from kdmaps.selection.evaluation import SearchData, remade
from kdmaps.selection.scores import held_out_quotients, select_by_timescale
from kdmaps.selection.training import fit_by_fold
from shared import known

RECIPE = Recipe(Gaussian(2.0), "landmarks", 1e-2, Recipe(Matern(1.5, 3.0), "fourier", 1e-3))


def gathered(X, **settings):
    plan = kdmaps.KernelSearchCV(2, n_features=40, random_state=0, cv=3, **settings)._plan()
    return SearchData.gather(ArraySource(X), None, None, plan, 0)


@pytest.fixture(scope="module")
def X():
    return kdmaps.problems.load("ou3d").sample(150, random_state=0)


@pytest.mark.parametrize("fold", [0, 4])
@pytest.mark.parametrize("origin", [RECIPE, Axes(components=False), Axes(components=True)])
def test_no_test_sample_reaches_landmarks_metric_or_sums(X, origin, fold):
    """Test samples are moved far away: everything made of the training samples stays the same to the last bit."""
    data = gathered(X)
    moved = np.where(data.folds.assignment[:, fold : fold + 1] == 2, 10 + 3 * X[::-1], X)
    made = []
    for training in (data.trainings[fold], gathered(moved).trainings[fold]):
        kernel = training.kernel(Gaussian(1.5), origin)
        basis, train, test = training.sums(kernel, "landmarks")
        made.append([kernel.root, basis.landmarks, train.gram, train.energy, training.median, test.gram])
    *same, (before, after) = zip(*made, strict=True)
    for one, other in same:
        np.testing.assert_array_equal(one, other)
    assert not np.allclose(before, after)  # the test samples did move


def test_sums_of_the_last_kernel_are_kept(X, monkeypatch):
    training, passes = gathered(X).trainings[0], []
    moments = type(training.source).moments
    monkeypatch.setattr(type(training.source), "moments", lambda *a: passes.append(1) or moments(*a))
    first, second = Gaussian(1.0), Gaussian(1.5)
    for kernel in (first, first, second, second, first):
        training.sums(kernel, "fourier")
    assert len(passes) == 3
    training.with_features(20).sums(first, "fourier")
    assert len(passes) == 4


def test_inner_folds_hold_out_training_samples_only(X):
    folds = gathered(X).folds.first
    labels = folds.assignment[:, 0]
    inner, rows = inner_folds(folds, labels), np.flatnonzero(labels == 1)
    assert len(inner) == 2
    assert inner.assignment.shape == (len(rows), 2)
    np.testing.assert_array_equal(inner.assignment, folds.assignment[rows][:, 1:])


@pytest.mark.parametrize("stage", [Stage.ALL_FOLDS, Stage.EXACT])
def test_a_kernel_without_samples_in_it_scores_as_with_common_sums(X, stage):
    """Fourier features are the same for every fold but for their origin, which does not change their span."""
    data, kernel, lambdas = gathered(X), Gaussian(2.0), (1e-2, 1e-3)
    trial, exact = Trial("gaussian", kernel, "fourier", lambdas, stage), stage is Stage.EXACT
    together = data.evaluate(trial, select_by_timescale)
    fits = fit_by_fold(data.everything, data.trainings, trial, remade(kernel, None), None if exact else {})
    # Subspace iteration starts from different modes: held-out scores agree to about 1 %.
    tolerance = {"rtol": 1e-6} if exact else {"atol": 0.03, "rtol": 0.02}
    for candidate, fit in zip(together, fits, strict=True):
        score = select_by_timescale(fit)
        assert_allclose(score.value, candidate.value, **tolerance)
        if exact:
            assert_allclose(held_out_quotients(fit)["quotients"], candidate.score.quotients, rtol=1e-6)
        assert_allclose(fit.agreement(), candidate.agreement, atol=1e-6 if exact else 0.02)


def test_agreement_on_some_of_the_samples_is_a_squared_cosine():
    """Modes are compared at 2,000 samples, over which they do not have unit variance."""
    X = kdmaps.problems.load("ou3d").sample(6000, random_state=0)
    data, kernel = gathered(X), Gaussian(20.0)  # so wide that all folds find the same linear functions
    assert len(data.everything.typical.X) < len(X)
    trial = Trial("gaussian", kernel, "fourier", (1e-6,))
    (fit,) = fit_by_fold(data.everything, data.trainings[:3], trial, remade(kernel, None))
    assert 0.99 < fit.agreement() <= 1 + 1e-12


def test_a_given_metric_is_kept(X):
    data, kernel = gathered(X), Metric(Gaussian(2.0), np.diag([1.0, 2.0, 0.5]))
    assert remade(kernel, None)(data.trainings[0]) == kernel
    own = remade(kernel, RECIPE)(data.trainings[0])
    assert own.kernel == kernel.kernel
    assert not np.allclose(own.root, kernel.root)


@known("no-gap", "folds-disagree", "held-out-factor")
@pytest.mark.parametrize(("n", "d"), [(100, 30), (100, 200)])
def test_noise_in_many_columns_scores_as_noise(n, d):
    """No function of Gaussian columns has a time scale above 1, so no two score more than 2."""
    rng = np.random.default_rng(0)
    X, fresh = rng.standard_normal((n, d)), rng.standard_normal((20_000, d))
    model = kdmaps.AdaptiveDiffusionMap(2, random_state=0).fit(X)
    # 100 test samples determine a sum of two time scales to 2·√(2/100)/√2 = 0.2.
    assert model.best_score_ < model.score(fresh) + 2 * 0.2
    believed = model.timescales_[model.trust_.ok]
    assert np.all(believed < 1.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        intervals = kdmaps.uncertainty.bootstrap(model, X, n_resamples=100, random_state=0).timescale_intervals
    assert np.all(intervals[:, 0] < 1)


@pytest.mark.parametrize("state", [0, 3])
def test_an_outlying_row_does_not_win(state):
    """A narrow Gaussian at one row of 300 has a mode without energy elsewhere, and a large score."""
    system = kdmaps.problems.load("ou3d")
    X = system.sample(300, random_state=0)
    model = kdmaps.AdaptiveDiffusionMap(2, random_state=state).fit(X)
    assert kdmaps.metrics.subspace_r2(model.transform(X), system.reference(X, 2)) > 0.95
    assert np.all(model.variance_samples_ > 6)
