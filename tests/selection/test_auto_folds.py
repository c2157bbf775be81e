"""cv="auto": random folds of independent rows, blocks of consecutive frames, whole walkers."""

import warnings

import numpy as np
import pytest

import kdmaps
from kdmaps import BlockedKFold, KernelDiffusionMap, KernelSearchCV
from kdmaps.data import as_source
from kdmaps.data.correlation import Order
from kdmaps.exceptions import DataWarning
from kdmaps.selection.folds import WalkerKFold, blocks_of, resolve_cv
from shared import expects, known

SEARCH = {"families": ["gaussian"], "bandwidths": [0.7], "regularizations": [1e-4], "max_extensions": 0}


def independent(n=600):
    return kdmaps.problems.load("ou2d-4").sample(n, random_state=0)


def frames(name="ou2d-4", n=1000, dt=0.02, seed=0):
    return kdmaps.problems.load(name).simulate(n, dt=dt, random_state=seed)[0]


def walkers(k=8, n=150, dt=0.02):
    return (
        kdmaps.problems.load("ou2d-4")
        .simulate(n, dt=dt, n_trajectories=k, random_state=0)
        .swapaxes(0, 1)
        .reshape(-1, 2)
    )


@known("held-out-factor")  # few samples
def test_independent_rows_and_groups_get_three_folds():
    assert resolve_cv("auto", as_source(independent()), None) == 3
    assert resolve_cv("auto", as_source(frames()), np.arange(1000) // 100) == 3
    for estimator in (
        KernelSearchCV(2, n_features=40, random_state=0, **SEARCH),
        KernelDiffusionMap(2, random_state=0),
    ):
        one = estimator.set_params(rates="cross-fitted").fit(independent()).rates_
        two = estimator.set_params(cv=3).fit(independent()).rates_
        np.testing.assert_array_equal(one, two)


def test_frames_are_cut_into_blocks_with_a_gap_of_the_correlation_time():
    # 1 + 2 Σ e^{-0.02 t} = 100 frames for the slow coordinate; a tenth of the rows at most.
    with expects("consecutive-frames"):
        cv = resolve_cv("auto", as_source(frames(n=20_000)), None)
    assert isinstance(cv, BlockedKFold)
    assert cv.n_splits == 5
    assert 60 < cv.gap < 160  # an estimate from 200 correlation times, known to about 15 %
    with pytest.warns(DataWarning):
        assert resolve_cv("auto", as_source(frames(n=500)), None).gap <= 50
    assert blocks_of(Order(), 500).gap == 0


@known("interleaved-walkers")
def test_walkers_are_held_out_as_a_whole():
    cv = resolve_cv("auto", as_source(walkers()), None)
    assert repr(cv) == "WalkerKFold(n_walkers=8)"
    for train, test in cv.split(np.zeros((1203, 1))):
        assert not set(train % 8) & set(test % 8)
    assert sorted(np.concatenate([test for _, test in cv.split(range(1203))])) == [*range(1203)]
    assert WalkerKFold(2).get_n_splits() == 2


@known("consecutive-frames", "independent-samples", "held-out-factor")
def test_best_estimator_has_the_folds_of_the_search():
    search = KernelSearchCV(1, n_features=40, random_state=0, **SEARCH).fit(frames())
    assert search.cv == "auto"
    assert isinstance(search.best_estimator_.cv, BlockedKFold)
    blocks = KernelSearchCV(1, n_features=40, random_state=0, cv=search.best_estimator_.cv, **SEARCH).fit(frames())
    np.testing.assert_array_equal(search.rates_, blocks.rates_)


@known("consecutive-frames", "independent-samples", "held-out-factor")
def test_warns_once_unless_cv_is_given():
    for options, number in ({}, 1), ({"cv": 3}, 0), ({"cv": BlockedKFold(4)}, 0):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DataWarning)
            settings = {"rates": "cross-fitted", "max_search_samples": 500, **SEARCH, **options}
            KernelSearchCV(1, n_features=40, random_state=0, **settings).fit(frames())
        assert sum(w.category is DataWarning for w in caught) == number


@known("consecutive-frames", "no-gap", "folds-disagree", "independent-samples", "mismatch", "held-out-factor")
def test_held_out_score_of_a_trajectory_stays_below_its_bound():
    # Its expectation is at most the sum of the slowest time scales: 1 + 1. Random folds test on neighbours of training
    # samples, and a mode that changes along the path as such seems four times as slow as any of the system.
    problem, grid = kdmaps.problems.OrnsteinUhlenbeck([1.0] * 6), {**SEARCH, "bandwidths": [2.0]}
    for seed in range(2):
        X = problem.simulate(1000, dt=0.02, random_state=seed)[0]
        scores = {cv: KernelSearchCV(2, cv=cv, n_features=200, random_state=0, **grid).fit(X) for cv in ("auto", 3)}
        assert scores["auto"].best_score_ < 2
        assert scores[3].best_score_ > 6
