"""Estimators in a notebook."""

import re

import sklearn
from sklearn.base import BaseEstimator

import kdmaps
from kdmaps import words
from kdmaps.selection import rules
from shared import GRID, known_warning

X = kdmaps.problems.load("dw1d").sample(300, random_state=0)


def shown(estimator):
    return estimator._repr_mimebundle_()["text/html"]


def test_a_fitted_estimator_shows_time_scales_and_kernel():
    model = kdmaps.KernelDiffusionMap(2, n_features=40, random_state=0)
    assert "kdmaps-summary" not in shown(model)  # scikit-learn's diagram alone
    page = shown(model.fit(X))
    assert "KernelDiffusionMap" in page.split("kdmaps-summary")[0]
    own = page.split("kdmaps-summary")[1]
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", own)
    assert cells == [
        text for k in range(2) for text in (str(k + 1), f"{model.timescales_[k]:.4g}", f"{model.rates_[k]:.4g}")
    ]
    assert f"Gaussian(bandwidth={model.kernel_.bandwidth:.4g}), regularization 0.01, 40 features" in own
    assert own in model._repr_html_()


def test_a_search_tells_its_reasons():
    search = kdmaps.KernelSearchCV(2, **GRID, n_features=40, random_state=0).fit(X)
    assert "12 candidates were judged by the time scales of their modes on held-out samples" in shown(search)
    assert f"the best one scores {search.best_selection_score_:.4g}" in shown(search)


@known_warning()  # of fits in general
def test_warnings_are_shown():
    model = kdmaps.KernelDiffusionMap(4, random_state=0).fit(X[:15])
    assert model.modes_.warnings()
    for text in model.modes_.warnings():
        assert f"⚠ {text}" in shown(model)


def test_scikit_learns_wish_for_text_is_kept():
    model = kdmaps.KernelDiffusionMap(2, n_features=40, random_state=0).fit(X)
    with sklearn.config_context(display="text"):
        assert model._repr_mimebundle_() == BaseEstimator._repr_mimebundle_(model)
        assert not hasattr(model, "_repr_html_")


def test_every_scoring_has_words():
    assert words.SCORING_WORDS.keys() == rules.SCORINGS.keys() | rules.LAGGED_SCORINGS.keys()
