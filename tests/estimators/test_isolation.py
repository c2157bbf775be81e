"""Fits leave out a few rows behind an empty gap: the same numbers as without them, and every row is named."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import PredefinedSplit

import kdmaps
from kdmaps import AdaptiveDiffusionMap, Factor, KernelDiffusionMap, KernelSearchCV
from kdmaps.checks import Outcome, collected
from shared import adaptive

pytestmark = pytest.mark.filterwarnings("ignore::kdmaps.exceptions.CheckWarning")

N = 240
GIVEN = {"n_features": 40, "random_state": 0}
QUICK = {"families": ["gaussian"], "bandwidths": 2, "regularizations": [1e-3], **GIVEN}
ESTIMATORS = [(KernelDiffusionMap, GIVEN), (KernelSearchCV, QUICK), (adaptive, QUICK)]


@pytest.fixture(scope="module")
def X():
    return kdmaps.problems.load("triplewell2d").sample(N, random_state=0)


#: Rows of two groups among the others: one of five rows, and a single row.
GROUP, SINGLE = [10, 11, 100, 150, 200], [77]


@pytest.fixture(scope="module")
def rows():
    """Numbers of the other rows."""
    return np.delete(np.arange(N + 6), GROUP + SINGLE)


@pytest.fixture(scope="module")
def contaminated(X, rows):
    Y = np.empty((N + 6, 2))
    Y[rows] = X
    Y[GROUP] = [30.0, 0.0] + 0.1 * np.random.default_rng(0).standard_normal((5, 2))
    Y[SINGLE] = [0.0, -40.0]
    return Y


def fitted(estimator, settings, X, **arguments):
    """The model, and the failed checks of its fit."""
    with collected() as checks:
        model = estimator(2, **settings).fit(X, **arguments)
    return model, [check for check in checks if check.outcome is Outcome.FAILED]


def assert_same(model, other):
    for name in ("rates_", "coefficients_", "energy_samples_", "variance_samples_"):
        assert np.array_equal(getattr(model, name), getattr(other, name)), name
    assert np.array_equal(model.basis_.origin, other.basis_.origin)
    assert np.array_equal(model.trust_.evidence.transition_samples, other.trust_.evidence.transition_samples)


@pytest.mark.parametrize(("estimator", "settings"), ESTIMATORS)
def test_a_fit_is_the_fit_without_detached_rows(estimator, settings, X, rows, contaminated):
    model, checks = fitted(estimator, settings, contaminated)
    plain, none = fitted(estimator, settings, X)
    assert_same(model, plain)
    assert [check.where for check in checks if check.code == "outliers"] == [tuple(sorted(GROUP + SINGLE))]
    assert not [check for check in none if check.code == "outliers"]
    assert [group.rows.tolist() for group in model.rare_groups_] == [GROUP, SINGLE]
    assert plain.rare_groups_ == ()
    assert np.array_equal(model.trust_.evidence.heaviest, rows[plain.trust_.evidence.heaviest])


def test_modes_vanish_in_a_group_and_are_evaluated_at_single_rows(X, rows, contaminated):
    model, _ = fitted(KernelDiffusionMap, GIVEN, contaminated)
    plain, _ = fitted(KernelDiffusionMap, GIVEN, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the fit has warned of these rows
        values = model.transform(contaminated)
    assert values.shape == (N + 6, 2)
    assert np.allclose(values[rows], plain.transform(X), rtol=0, atol=1e-12)
    assert (values[GROUP] == 0).all()
    assert (values[SINGLE] != 0).any()
    assert (model.gradient(contaminated)[GROUP] == 0).all()
    assert model.rare_states(contaminated)[GROUP].tolist() == [0] * 5
    assert (np.delete(model.rare_states(contaminated), GROUP) == -1).all()


def test_keep_and_drop(X, contaminated):
    kept, checks = fitted(KernelDiffusionMap, {**GIVEN, "isolated": "keep"}, contaminated)
    assert kept.rare_groups_ == ()
    assert kept.moments_.count == N + 6
    dropped, checks = fitted(KernelDiffusionMap, {**GIVEN, "isolated": "drop"}, contaminated)
    plain, _ = fitted(KernelDiffusionMap, GIVEN, X)
    assert_same(dropped, plain)
    assert (dropped.rare_states(contaminated) == -1).all()
    assert [check.where for check in checks if check.code == "outliers"] == [tuple(sorted(GROUP + SINGLE))]


def test_an_unknown_treatment_is_refused(X):
    with pytest.raises(ValueError, match="isolated"):
        KernelDiffusionMap(2, isolated="remove").fit(X)


def test_weights_groups_and_tensors_of_the_other_rows_are_used(X, rows, contaminated):
    rng = np.random.default_rng(1)
    weight, walker = rng.uniform(0.5, 1.5, N + 6), rng.integers(4, size=N + 6)
    factors = rng.uniform(0.9, 1.1, (N + 6, 2, 2))
    given = {"sample_weight": weight, "groups": walker}
    own = {name: value[rows] for name, value in given.items()}
    for stored in (Factor(factors), factors @ np.swapaxes(factors, 1, 2)):
        of_rows = Factor(factors[rows]) if isinstance(stored, Factor) else stored[rows]
        model, _ = fitted(KernelSearchCV, {**QUICK, "diffusion": stored}, contaminated, **given)
        plain, _ = fitted(KernelSearchCV, {**QUICK, "diffusion": of_rows}, X, **own)
        assert_same(model, plain)


def test_folds_given_by_row_numbers_are_folds_of_the_other_rows(X, rows, contaminated):
    fold = np.arange(N + 6) % 3
    lists = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
    plain, _ = fitted(KernelSearchCV, {**QUICK, "cv": PredefinedSplit(fold[rows])}, X)
    for cv in (PredefinedSplit(fold), lists):
        model, _ = fitted(KernelSearchCV, {**QUICK, "cv": cv}, contaminated)
        assert model.best_score_ == plain.best_score_


def test_zero_weights_at_detached_rows_are_as_before(contaminated):
    weight = np.ones(N + 6)
    weight[GROUP + SINGLE] = 0
    model, checks = fitted(KernelDiffusionMap, GIVEN, contaminated, sample_weight=weight)
    assert model.rare_groups_ == ()
    assert not [check for check in checks if check.code == "outliers"]


def test_frames_of_a_trajectory_are_kept(contaminated):
    model, checks = fitted(KernelDiffusionMap, {**GIVEN, "lag": 1}, contaminated)
    assert model.rare_groups_ == ()
    assert model.moments_.count == N + 5  # pairs
    assert [check.where for check in checks if check.code == "outliers"] == [tuple(sorted(GROUP + SINGLE))]


def test_error_bars_are_those_of_the_other_rows(X, contaminated):
    model, _ = fitted(KernelDiffusionMap, GIVEN, contaminated)
    plain, _ = fitted(KernelDiffusionMap, GIVEN, X)
    bars = kdmaps.uncertainty.bootstrap(model, contaminated, n_resamples=20)
    expected = kdmaps.uncertainty.bootstrap(plain, X, n_resamples=20)
    assert np.allclose(bars.rate_intervals, expected.rate_intervals, rtol=1e-9)


def test_a_model_file_has_the_groups(tmp_path, contaminated):
    model, _ = fitted(KernelDiffusionMap, GIVEN, contaminated)
    model.save(tmp_path / "model.npz")
    loaded = kdmaps.load(tmp_path / "model.npz")
    assert np.array_equal(loaded.transform(contaminated), model.transform(contaminated))
    for one, other in zip(loaded.rare_groups_, model.rare_groups_, strict=True):
        assert one.rows.tolist() == other.rows.tolist()
        assert (one.share, one.gap, one.is_state) == (other.share, other.gap, other.is_state)


def test_each_group_is_one_more_state(contaminated, rows):
    model, _ = fitted(KernelDiffusionMap, GIVEN, contaminated)
    modes = model.transform(contaminated)
    states = kdmaps.dynamics.coarse_states(modes, 3, apart=model.rare_states(contaminated))
    others = kdmaps.dynamics.coarse_states(modes[np.delete(np.arange(N + 6), GROUP)], 3)
    assert (states.labels[GROUP] == 3).all()
    assert np.array_equal(np.delete(states.labels, GROUP), others.labels)
    assert np.isclose(states.populations[3], 5 / (N + 6))
    assert np.isclose(states.populations.sum(), 1)
    assert states.memberships_at(modes).shape == (N + 6, 4)


def test_chunks_keep_all_rows(contaminated):
    model = KernelDiffusionMap(2, **GIVEN).partial_fit(contaminated)
    assert model.moments_.count == N + 6
    assert model.rare_groups_ == ()


def test_five_rows_do_not_change_the_modes_of_a_search():
    """SubR² of the two slow modes of a triple well: 0.98 without, and 0.44 to 0.67 with five rows in 0.2.0."""
    problem = kdmaps.problems.load("triplewell2d")
    X = problem.sample(600, random_state=3)
    Y = np.vstack([X, X.mean(axis=0) + 40 * X.std(axis=0).mean() * np.random.default_rng(3).standard_normal((5, 2))])
    model = AdaptiveDiffusionMap(2, random_state=0).fit(Y)
    modes = model.transform(X)
    assert sum(len(group.rows) for group in model.rare_groups_) == 5
    assert kdmaps.metrics.subspace_r2(problem.reference(X, 2), modes) > 0.95
