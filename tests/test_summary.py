"""Summaries of fitted estimators: numbers, sentences, and their display in a notebook."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator

import kdmaps
from kdmaps import summary
from kdmaps.kernels import Gaussian, Matern, Metric, Mixture
from kdmaps.report import render_report
from kdmaps.selection import scores
from kdmaps.summary import SearchSummary, describe_kernel, summarise
from shared import GRID, known

SMALL = {"n_features": 40, "random_state": 0}


@pytest.fixture(scope="module")
def double_well():
    return kdmaps.problems.load("dw1d").sample(300, random_state=0)


@pytest.fixture(scope="module")
def model(double_well):
    return kdmaps.KernelDiffusionMap(2, n_features=40, random_state=0).fit(double_well)


# --- sentences --------------------------------------------------------------------------------------------------------
def search_summary(**changes):
    settings = {name: changes.pop(name) for name in SearchSummary._fields if name in changes}
    margin = {"margin": changes.pop("margin", np.inf), "margin_in_standard_errors": changes.pop("errors", np.inf)}
    result = {"candidates": range(5), "best": SimpleNamespace(value=1.0, standard_error=0.1), "certainty": margin}
    result = SimpleNamespace(**result | {"extensions": (), "edges": ()} | changes)
    return SearchSummary(result, "timescale", True, 0.99, None)._replace(**settings)


@pytest.mark.parametrize(
    ("margin", "errors", "on_grid", "fragments"),
    [
        (0.5, 3.0, True, ["scores 0.5 less, 3.0 standard errors", "a clear difference"]),
        (0.5, 1.5, True, ["scores 0.5 less, 1.5 standard errors", "a small difference"]),
        (0.5, 0.5, True, ["scores 0.5 less, 0.5 standard errors", "either"]),
        (-0.5, -0.7, True, ["outside the initial grid", "scores 0.5 more, 0.7 standard errors"]),
        (-0.5, -0.7, False, ["finalist", "scores 0.5 more, 0.7 standard errors"]),
    ],
)
def test_margin_to_a_different_kernel(margin, errors, on_grid, fragments, model):
    search = search_summary(margin=margin, errors=errors, on_grid=on_grid)
    text = replace(summarise(model), search=search).reasons[1]
    assert all(fragment in text for fragment in fragments)


def test_further_steps_of_a_search(model):
    search = search_summary(extensions=("wider",), edges=("the largest bandwidth",), suggested_n_components=1)
    found = replace(summarise(model), search=search).reasons
    assert len(found) == 4  # no margin
    for text, fragment in zip(found[2:], ["wider", "after mode 1"], strict=True):
        assert fragment in text
    user = replace(summarise(model), search=search_summary(scoring=None)).reasons[0]
    assert "user-defined" in user


def test_every_scoring_is_described():
    assert summary.SCORINGS.keys() == scores.SCORINGS.keys() | scores.LAGGED_SCORINGS.keys()


@pytest.mark.parametrize(
    ("lengths", "count"),
    [
        ([1.0, 1.0, 1.0, 1.0], "4"),
        ([3.0, 3.0, 0.0, 0.0], "2"),
        ([2.0, 1.0, 0.0, 0.0], "1.5"),  # (4 + 1)²/(16 + 1)
        ([0.0, 0.0, 0.0, 0.0], "0"),
    ],
)
def test_kernels_in_a_metric(lengths, count):
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    kernel = Metric(Gaussian(2.123456), turn * lengths)
    text = describe_kernel(kernel)
    assert "Gaussian(bandwidth=2.123)" in text
    assert f"about {count} of 4 directions" in text
    mixed = describe_kernel(Mixture([kernel, Matern(1.5, 2.0)]))
    assert mixed == f"Mixture(weights=[0.5, 0.5], of {text}, Matern(nu=1.5, bandwidth=2))"


def test_most_relevant_inputs(model):
    shares = np.array([[0.9, 0.09, 0.005, 0.005], [0.1, 0.2, 0.3, 0.4], [0.0, 1.0, 0.0, 0.0]])
    found = replace(summarise(model), search=search_summary())
    several = replace(found, relevance=SimpleNamespace(names=("a", "b", "c", "d"), shares=shares)).reasons
    assert "mode 1: a (90%), b (9%); mode 2: d (40%), c (30%), b (20%) …; mode 3: b (100%)" in several[-1]
    single = replace(found, relevance=SimpleNamespace(names=("a",), shares=np.ones((2, 1)))).reasons
    assert len(single) == len(several) - 1


def test_uncertainty_of_another_model(model):
    with pytest.raises(ValueError, match="uncertainty has 3 modes, but the model has 2"):
        summarise(model, uncertainty=SimpleNamespace(timescale_intervals=np.ones((3, 2))))


# --- search and refinement --------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_inputs_of_a_search_with_one_mode():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(400), 0.3 * rng.standard_normal(400)])
    search = kdmaps.KernelSearchCV(1, families=["gaussian"], bandwidths=3, **SMALL).fit(X)
    found = summarise(search).reasons
    assert f"mode 1: x1 ({search.relevance_details_.shares[0, 0]:.0%})" in found[-1]
    assert "is the logarithm" in found[0]


def adaptive():
    search = kdmaps.KernelSearchCV(families=["gaussian"], regularizations=[1e-3])
    return kdmaps.AdaptiveDiffusionMap(2, search=search, **SMALL)


@pytest.fixture(scope="module")
def refined(X):
    return adaptive().fit(X)


@pytest.mark.slow
def test_settings_of_the_search_of_an_adaptive_map(refined):
    found = summarise(refined).search
    assert (found.scoring, found.on_grid) == ("timescale", False)
    refined.set_params(search__scoring="gap", search__bandwidths=[1.0])
    found = summarise(refined).search
    refined.set_params(search__scoring="auto", search__bandwidths="auto")
    assert (found.scoring, found.on_grid) == ("gap", True)


def with_refinement(model, gain, agreement):
    """Return the model as if its refinement had changed the score by `gain` standard errors, to this agreement."""
    found = model.refinement_
    score = replace(found.candidate.score, value=found.rival.value + gain * found.difference_standard_error)
    candidate, rival = replace(found.candidate, score=score, agreement=agreement), replace(found.rival, agreement=0.6)
    model.refinement_ = replace(found, candidate=candidate, rival=rival)
    model.fold_agreement_ = candidate.agreement if model.refinement_.preferred else rival.agreement
    return model


@pytest.fixture
def restored(refined):
    found, agreement = refined.refinement_, refined.fold_agreement_
    yield refined
    refined.refinement_, refined.fold_agreement_ = found, agreement


@pytest.mark.slow
def test_fold_agreement_of_the_kernel_that_was_kept(X, monkeypatch):
    monkeypatch.setattr(
        "kdmaps.learn._refine.SAME_MODES", -1.0
    )  # with the same modes it is the agreement of the search
    for kept in (True, False):
        monkeypatch.setattr("kdmaps.learn.Refinement.preferred", property(lambda self, kept=kept: kept))
        model = adaptive().fit(X)
        refined, searched = model.refinement_.candidate, model.search_result_.best
        assert refined.agreement != searched.agreement
        assert model.fold_agreement_ == (refined if kept else searched).agreement


@pytest.mark.slow
@pytest.mark.parametrize(("gain", "shown"), [(3, "0.654"), (-3, "0.600")])
def test_fold_agreement_is_the_same_in_all_places(gain, shown, restored, X):
    model = with_refinement(restored, gain, agreement=0.654)
    found = summarise(model)
    page = render_report(model, X)
    assert f"<dt>agreement of the folds</dt><dd>{shown}</dd>" in page
    other = {"0.654": "0.600", "0.600": "0.654"}[shown]
    for text in (page, shown_html(model), " ".join(found.reasons)):
        assert f"mean squared cosine {shown}" in text
        assert f"mean squared cosine {other}" not in text
    # A loss curve belongs to the model only if the refinement was kept.
    assert len(model.refinement_.history["loss"]) > 2
    assert ("Loss over the steps of the optimiser" in page) == (gain > 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gain", "agreement", "fragment"),
    [
        (3, 0.9, "were kept: the held-out score changes by"),
        (-0.5, 0.9, "(0.600 before, 0.900 after)"),
        (-0.5, 0.5, "were not kept: the held-out score changes by"),
        (-3, 0.9, "kept if the score rises"),
    ],
)
def test_outcome_of_a_refinement(gain, agreement, fragment, restored):
    assert any(fragment in text for text in summarise(with_refinement(restored, gain, agreement)).reasons)


# --- notebook ---------------------------------------------------------------------------------------------------------
def shown_html(estimator):
    return estimator._repr_mimebundle_()["text/html"]


def test_notebook_shows_time_scales_and_kernel(model):
    assert "kdmaps-summary" not in shown_html(kdmaps.KernelDiffusionMap(2))  # not fitted
    diagram, own = shown_html(model).split("kdmaps-summary")
    assert "KernelDiffusionMap" in diagram
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", own)
    assert cells == [
        text for k in range(2) for text in (str(k + 1), f"{model.timescales_[k]:.4g}", f"{model.rates_[k]:.4g}")
    ]
    assert f"Gaussian(bandwidth={model.kernel_.bandwidth:.4g}), regularization 0.01, 40 features" in own
    assert own in model._repr_html_()


def test_notebook_shows_the_reasons_of_a_search(double_well):
    search = kdmaps.KernelSearchCV(2, **GRID, n_features=40, random_state=0).fit(double_well)
    assert "12 candidates" in shown_html(search)
    assert f"The best scores {search.best_selection_score_:.4g}" in shown_html(search)


@known("unresolved", "energy-samples", "variance-samples", "independent-samples")
def test_notebook_shows_warnings(double_well):
    model = kdmaps.KernelDiffusionMap(4, random_state=0).fit(double_well[:15])
    assert model.checks.warnings
    for check in model.checks.warnings:
        assert f"⚠ {check.say()}" in shown_html(model)


def test_notebook_respects_display_as_text(model):
    with sklearn.config_context(display="text"):
        assert model._repr_mimebundle_() == BaseEstimator._repr_mimebundle_(model)
        assert not hasattr(model, "_repr_html_")


def test_cards_of_results(X):
    """HTML tables for notebooks, with the numbers of the objects."""
    model = kdmaps.KernelDiffusionMap(2, n_features=40, random_state=0).fit(X)
    trust = model.trust_._repr_html_()
    assert f"{int(model.trust_.ok.sum())} of 2 modes pass" in trust
    assert f"{model.rates_[1]:.4g}</td>" in trust
    states = kdmaps.dynamics.coarse_states(model.transform(X), 2)
    assert all(f"{part:.1%}</td>" in states._repr_html_() for part in states.populations)
    assert "checks" in model._repr_mimebundle_()["text/html"]


@known("not-flat")
@known("correlation-time", "not-flat", "chapman-kolmogorov", "koopman-unstable", "koopman-overfit", "koopman-open")
@known("no-gap", "within-lag", "drift", "mismatch", "energy-samples", "independent-samples", "consecutive-frames")
def test_cards_of_tests_and_oscillations():
    """Validation, Koopman, committors and passage times have the numbers of their tables."""
    path = kdmaps.problems.load("triplewell2d").simulate(1500, dt=0.05, random_state=0)[0]
    model = kdmaps.KernelDiffusionMap(2, lag=2, time_step=0.05, n_features=40, random_state=0).fit(path)
    tests = kdmaps.dynamics.validate(model, path)
    card = tests._repr_html_()
    assert f"{tests.implied.timescales[0, 0]:.4g} (" in card
    assert f"{tests.chapman.predicted[1, 0]:.4g}</td>" in card
    assert all(f"⚠ {warning}" in card for warning in tests.checks.warnings)
    turning = kdmaps.KernelDiffusionMap(2, lag=2, reversible=False, n_features=40, random_state=0).fit(path)
    spectrum = kdmaps.dynamics.koopman(turning)
    assert f"{-spectrum.rates[0].real:.4g}</td>" in spectrum._repr_html_()
    bars = kdmaps.uncertainty.bootstrap(model, path, n_resamples=20, random_state=0)
    assert f"{bars.timescale_intervals[0, 1]:.4g}</td>" in bars._repr_html_()
    q = kdmaps.dynamics.committor(model, path, path[:, 0] < -1, path[:, 0] > 1)
    assert f"{q.rate:.4g}</td>" in q._repr_html_()
    labels = np.where(path[:, 0] < -1, 0, np.where(path[:, 0] > 1, 1, -1))
    rates = kdmaps.dynamics.rate_matrix(path[::5], labels[::5], n_features=40, cv=3, random_state=0)
    assert f"{rates.rates[0, 1]:.3g}</td>" in rates._repr_html_()


def test_card_of_a_problem():
    problem = kdmaps.problems.load("triplewell2d")
    assert "triplewell2d: 2 coordinates" in repr(problem)
    assert f"{1 / problem.rates(1)[0]:.4g}</td>" in problem._repr_html_()


def test_picture_of_the_modes(model, X):
    """Modes at the samples that the model contains; one mode over the first input; none without samples."""
    assert "mode 2</text>" in model._repr_html_()
    assert "input 1</text>" in kdmaps.KernelDiffusionMap(1, n_features=40, random_state=0).fit(X)._repr_html_()


def test_card_of_a_committor():
    X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    c = kdmaps.AdaptiveCommittor(n_features=40, cv=3, random_state=0)
    assert "kdmaps-summary" not in shown_html(c)  # not fitted
    c.fit(X, (X[:, 0] < -1, X[:, 0] > 1))
    assert f"{c.rate_:.4g}</td>" in shown_html(c)
    assert f"{c.trust_.optimism:.3f}</td>" in c.trust_._repr_html_()
    assert "all checks passed" in repr(c.trust_) or c.trust_.reasons
    assert f"{c.trust_.between} samples between" in shown_html(c)
