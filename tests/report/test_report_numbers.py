"""Numbers of the page: points of the interactive figure, and the certificate of a search."""

import json
import re

import numpy as np
import pytest

import kdmaps
from kdmaps.certificates import cv_consistency
from kdmaps.report import render_report
from shared import known


@known("independent-samples")
def test_points_are_a_random_subset_of_the_samples():
    X = np.sort(kdmaps.problems.load("dw1d").sample(2000, random_state=0), axis=0)  # as a slow trajectory may be
    model = kdmaps.KernelDiffusionMap(1, n_features=20, random_state=0).fit(X)
    page = render_report(model, X, max_points=200)
    points = json.loads(re.search(r'<script id="points"[^>]*>(.*?)</script>', page, re.DOTALL)[1])
    rows = np.array(points["rows"])
    assert len(np.unique(rows)) == 200
    assert points["total"] == 2000
    # Uniform row numbers: quantiles of 200 of them are known to √(¼/200) = 0.035 of the range; four of those.
    np.testing.assert_allclose(np.quantile(rows, [0.25, 0.5, 0.75]) / 2000, [0.25, 0.5, 0.75], atol=0.14)
    # Every point is its own row, to the four digits that the page has.
    np.testing.assert_allclose(points["values"], [model.transform(X[rows])[:, 0], X[rows, 0]], rtol=1e-3)


@pytest.mark.slow
def test_certificate_of_a_search():
    X = kdmaps.problems.load("dw1d").sample(300, random_state=0)
    search = kdmaps.KernelSearchCV(1, families=["gaussian"], bandwidths=[1.0, 2.0], regularizations=[1e-3])
    search.set_params(n_features=40, random_state=0, max_extensions=0).fit(X)
    assert search.search_result_.certificate.constants["F"] == 6
    # A margin that says something, in place of the cached certificate.
    vars(search.search_result_)["certificate"] = cv_consistency(2.0, 2, 1, 6, 100.0, 0.1)
    # 2·M·r·F exp(-c N_f Δ²/(4r²)): two candidates, one mode, three folds drawn twice.
    expected = 2 * 2 * 1 * 6 * np.exp(-0.1 * 100 * 2**2 / 4)
    page = render_report(search, X)
    assert f"missed the best candidate: at most {expected:.3g}." in page
    assert "<li>N_f = 100</li>" in page
