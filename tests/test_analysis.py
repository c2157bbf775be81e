"""Analysis: every part is computed once, and carries its checks."""

from unittest import mock

import numpy as np
import pytest

import kdmaps
from kdmaps import analysis as module
from kdmaps.exceptions import ArgumentError
from kdmaps.report import render_analysis
from shared import known

X = kdmaps.problems.load("triplewell2d").sample(500, random_state=0)
PATH = kdmaps.problems.load("triplewell2d").simulate(1500, dt=0.05, random_state=0)[0]
pytestmark = known("mismatch", "no-gap", "drift", "within-lag", "outliers", "consecutive-frames", "variance-samples")


def of_samples(**settings):
    model = kdmaps.KernelDiffusionMap(2, n_features=60, regularization=1e-3, random_state=0).fit(X)
    return kdmaps.Analysis(model, X, n_resamples=20, **settings)


def of_trajectory(**settings):
    model = kdmaps.KernelDiffusionMap(2, lag=2, time_step=0.05, n_features=40, random_state=0, **settings).fit(PATH)
    return kdmaps.Analysis(model, PATH, n_resamples=20)


@pytest.mark.parametrize("make", [of_samples, of_trajectory])
def test_parts_are_computed_once(make):
    names = ("bootstrap", "validate", "coarse_states", "mean_first_passage_times")
    with mock.patch.multiple(module, **{name: mock.Mock(wraps=getattr(module, name)) for name in names}):
        analysis = make()
        for _ in range(2):
            assert analysis.checks.headline()
            render_analysis(analysis)
        calls = {name: getattr(module, name).call_count for name in names}
    timed = analysis.model.lag_ is not None
    assert calls == {"bootstrap": 1, "validate": timed, "coarse_states": 1, "mean_first_passage_times": timed}


def test_checks_of_all_parts_are_there():
    analysis = of_trajectory()
    codes = {check.code for check in analysis.checks}
    parts = (analysis.model, analysis.uncertainty, analysis.validation, analysis.states, analysis.passages)
    for part in parts:
        assert {check.code for check in part.checks} <= codes
    assert {"other-data", "chapman-kolmogorov", "not-flat"} <= codes


def test_a_driven_model_has_eigenvalues_in_place_of_tests_of_the_lag():
    analysis = of_trajectory(reversible=False)
    assert analysis.koopman is not None
    assert analysis.validation is None
    assert analysis.uncertainty is None
    assert analysis.states is None
    assert {check.code for check in analysis.koopman.checks} <= {check.code for check in analysis.checks}


def test_other_samples_fail():
    analysis = of_samples()
    assert analysis.checks.meaningless is None
    other = kdmaps.Analysis(analysis.model, X * 50, n_resamples=0)
    assert other.checks.meaningless.code == "other-data"
    fresh = kdmaps.problems.load("triplewell2d").sample(500, random_state=1)
    assert kdmaps.Analysis(analysis.model, fresh, n_resamples=0).checks.meaningless.code == "other-data"
    rounded = np.round(X, 8)  # as in a file
    assert kdmaps.Analysis(analysis.model, rounded, n_resamples=0).checks.meaningless is None


@pytest.mark.parametrize("wrong", [{"sample_weight": np.ones(3)}, {"groups": np.ones(3)}])
def test_arguments_of_another_length(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        of_samples(**wrong)
