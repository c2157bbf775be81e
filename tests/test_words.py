"""What is said of a choice in words."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import kdmaps
from kdmaps.kernels import Gaussian, Matern, Metric, Mixture
from kdmaps.notebook import summary_html
from kdmaps.report import render_report
from kdmaps.words import _of_relevance, checks_of, describe_kernel, reasons, warnings_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("margin", "errors", "words"),
    [
        (0.5, 3.0, "scores 0.5 less, 3.0 standard errors of the difference: a real difference"),
        (0.5, 1.5, "scores 0.5 less, 1.5 standard errors of the difference: a small difference"),
        (0.5, 0.5, "scores 0.5 less, 0.5 standard errors of the difference: either would do"),
        (-0.5, -0.7, "beyond the initial grid scores 0.5 more, 0.7 standard errors of the difference"),
    ],
)
def test_the_second_best(margin, errors, words):
    search = SimpleNamespace(
        cv_results_={"params": [{}], "selection_error": [0.1]},
        fold_agreement_=0.99,
        best_index_=0,
        best_selection_score_=1.0,
        scoring="timescale",
        lag=None,
        certainty_={"margin": margin, "margin_in_standard_errors": errors},
        extensions_=[],
        edges_=[],
        suggested_n_components_=None,
        n_components=2,
    )
    assert words in " ".join(reasons(search))


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        ([1.0, 1.0, 1.0, 1.0], "about 4 of 4 directions count"),
        ([3.0, 3.0, 0.0, 0.0], "about 2 of 4 directions count"),
        ([2.0, 1.0, 0.0, 0.0], "about 1.5 of 4 directions count"),  # (4 + 1)²/(16 + 1)
        ([0.0, 0.0, 0.0, 0.0], "about 0 of 4 directions count"),
    ],
)
def test_a_metric(lengths, words):
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    kernel = Metric(Gaussian(2.123456), turn * lengths)
    assert describe_kernel(kernel) == f"Gaussian(bandwidth=2.123) in a metric ({words})"
    mixed = describe_kernel(Mixture([kernel, Matern(1.5, 2.0)]))
    assert mixed == f"Mixture(weights=[0.5, 0.5], of {describe_kernel(kernel)}, Matern(nu=1.5, bandwidth=2))"


@pytest.fixture(scope="module")
def refined(X):
    settings = {"families": ["gaussian"], "regularizations": [1e-3], "n_features": 40, "random_state": 0}
    return kdmaps.AdaptiveDiffusionMap(2, **settings).fit(X)


def with_refinement(model, gain, agreement):
    """The model as if its refinement had changed the score by `gain` standard errors, to this agreement."""
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


def test_the_agreement_is_that_of_the_kernel_that_was_kept(X, monkeypatch):
    settings = {"families": ["gaussian"], "regularizations": [1e-3], "n_features": 40, "random_state": 0}
    for kept in (True, False):
        monkeypatch.setattr("kdmaps.learn.Refinement.preferred", property(lambda self, kept=kept: kept))
        model = kdmaps.AdaptiveDiffusionMap(2, **settings).fit(X)
        refined, searched = model.refinement_.candidate, model.search_result_.best
        assert refined.agreement != searched.agreement
        assert model.fold_agreement_ == (refined if kept else searched).agreement


def test_a_kept_refinement_shows_its_own_agreement(restored, X):
    model = with_refinement(restored, gain=3, agreement=0.654)
    of_search = 0.6
    page = render_report(model, X)
    assert "<dt>agreement of the folds</dt><dd>0.654</dd>" in page
    check = next(check for check in checks_of(model) if "agreement" in check.what)
    assert (check.value, check.passed) == ("0.654", False)
    assert '<td class="broken">0.654, too small</td>' in page
    for text in (page, summary_html(model), " ".join(reasons(model))):
        assert "agree to a mean squared cosine of 0.654." in text
        assert f"mean squared cosine of {of_search:.3f}" not in text
    assert any("The folds disagree on the mode space (mean squared cosine 0.65)" in text for text in warnings_of(model))


def test_a_dropped_refinement_leaves_the_agreement_of_the_search(restored, X):
    model = with_refinement(restored, gain=-3, agreement=0.654)
    of_search = 0.6
    page = render_report(model, X)
    assert f"<dt>agreement of the folds</dt><dd>{of_search:.3f}</dd>" in page
    assert f"agree to a mean squared cosine of {of_search:.3f}." in page
    assert f'<td class="broken">{of_search:.3f}, too small</td>' in page


@pytest.mark.parametrize(("gain", "drawn"), [(3, True), (-3, False)])
def test_only_a_kept_refinement_has_a_loss_curve(gain, drawn, restored, X):
    model = with_refinement(restored, gain, agreement=0.9)
    assert len(model.refinement_.history["loss"]) > 2
    assert ("Loss over the steps of the optimiser" in render_report(model, X)) == drawn


@pytest.mark.parametrize(
    ("gain", "agreement", "words"),
    [
        (3, 0.9, "was kept: it changes the held-out score by"),
        (-0.5, 0.9, "and the folds agree better on the modes (0.600 before, 0.900 after)"),
        (-0.5, 0.5, "was not kept: it changes the held-out score by"),
        (-3, 0.9, "It would be kept if the score rose by more than one standard error"),
    ],
)
def test_the_rule_of_a_refinement(gain, agreement, words, restored):
    assert any(words in reason for reason in reasons(with_refinement(restored, gain, agreement)))


def test_the_most_relevant_inputs_of_each_mode_are_named():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(400), 0.3 * rng.standard_normal(400)])
    settings = {"families": ["gaussian"], "bandwidths": 3, "n_features": 40, "random_state": 0}
    model = kdmaps.KernelSearchCV(1, **settings).fit(X)
    shares = model.relevance_details_.shares
    (sentence,) = [text for text in reasons(model) if "share" in text]
    assert f"mode 1: x1 ({shares[0, 0]:.0%})" in sentence
    assert "the square root of the time scale" in " ".join(reasons(model))


def test_inputs_of_little_share_are_left_out():
    shares = np.array([[0.9, 0.09, 0.005, 0.005], [0.1, 0.2, 0.3, 0.4], [0.0, 1.0, 0.0, 0.0]])
    found = SimpleNamespace(names=("a", "b", "c", "d"), shares=shares)
    assert _of_relevance(found) == [
        "Inputs by their share in the slopes of each mode: mode 1: a (90%), b (9%); mode 2: d (40%), c (30%), b (20%) "
        "…; mode 3: b (100%)."
    ]
    assert _of_relevance(SimpleNamespace(names=("a",), shares=np.ones((2, 1)))) == []
