"""The page of a model with a lag: tests of the lag, modes against time, free energy."""

import numpy as np
import pytest
from test_report_content import Tree

import kdmaps
from kdmaps.report import render_report
from kdmaps.report.text import lag_sentences
from kdmaps.summary import summarise
from shared import known

pytestmark = [pytest.mark.slow, known("within-lag", "not-flat")]

PATH = kdmaps.problems.load("dw1d").simulate(2000, dt=0.1, random_state=0)[0]


def fit(X=PATH, n=2, **settings):
    options = {"lag": 1, "time_step": 0.1, "regularization": 1e-4, "n_features": 60, "random_state": 0} | settings
    return kdmaps.KernelDiffusionMap(n, **options).fit(X)


def figures(page):
    return [attributes["aria-label"] for attributes in Tree(page).all("svg")]


@pytest.fixture(scope="module")
def model():
    return fit()


@pytest.fixture(scope="module")
def page(model):
    """With all figures; the page computes the tests of the lag."""
    return render_report(model, PATH, unit="ns")


@pytest.fixture(scope="module")
def validation(model):
    return kdmaps.dynamics.validate(model, PATH)


def test_tests_of_the_lag(model, page, validation):
    cells = Tree(page).texts["td"]
    first = cells.index("1", 6)  # after two rows of time scales
    assert cells[first : first + 2] == ["1", "0.1"]
    low, high = validation.implied.intervals[0, 0]
    assert cells[first + 2] == f"{validation.implied.timescales[0, 0]:.4g} ({low:.3g} – {high:.3g})"
    items = Tree(page).texts["li"]
    assert set(lag_sentences(summarise(model), validation)) <= set(items)
    assert render_report(model, PATH, unit="ns", validation=validation) == page


@pytest.mark.usefixtures("undrawn")
def test_units(model, page, validation):
    heads, values = Tree(page).texts["th"], Tree(page).texts["dd"]
    assert {"time scale (ns)", "rate (1/ns)", "lag (ns)", "time scale 1 (ns)"} <= set(heads)
    assert "0.1 ns (1 frame)" in values
    assert f"{model.timescales_[0]:.4g} ns" in values
    texts = set(Tree(page).texts["text"])
    assert {"lag (ns)", "time (ns)", "time scale (ns)"} <= texts
    plain = render_report(model, PATH, validation=validation)
    assert "lag (time)" in Tree(plain).texts["th"]
    assert "(None)" not in plain


@pytest.mark.usefixtures("undrawn")
def test_passage_times(model, page, validation, monkeypatch):
    states = kdmaps.dynamics.coarse_states(model.transform(PATH), kdmaps.dynamics.suggest_states(model))
    found = kdmaps.dynamics.mean_first_passage_times(model, PATH, states, random_state=0)
    low, high = found.intervals[1, 0]
    assert f"{found.times[1, 0]:.4g} ({low:.3g} – {high:.3g})" in Tree(page).texts["td"]
    monkeypatch.setattr("kdmaps.analysis.PASSAGE_FRAMES", 1000)
    assert "Passage times" not in render_report(model, PATH, validation=validation)


@pytest.mark.usefixtures("undrawn")
def test_figures(page):
    names = ["Mode 1 over", "Mode 2 over", "Time scale of", "Modes against time", "Free energy"]
    names += ["Implied time scales", "Chapman–Kolmogorov test"]
    labels = figures(page)
    assert len(labels) == len(names)
    assert all(label.startswith(name) for label, name in zip(labels, names, strict=True))
    assert "the first two modes" in labels[4]
    assert "along mode 1," in figures(render_report(fit(n=1), PATH))[3]


@pytest.mark.usefixtures("undrawn")
@known("lag-not-flat")
def test_automatic_lag():
    model = fit(lag="auto")
    page = render_report(model, PATH)
    assert any("choose the lag" in label for label in figures(page))
    assert any(item.startswith("The lag of ") for item in Tree(page).texts["li"])


@pytest.mark.usefixtures("undrawn")
def test_directed_model_has_eigenvalues():
    page = render_report(fit(reversible=False), PATH)
    assert "reversible=False" in page
    assert "singular functions: the functions" in page  # their time scales are not in the titles
    assert "with the time scale" not in page
    labels = figures(page)
    # Singular functions need not be slow, so that tests of their lag would contradict the verdict.
    assert not {"Implied", "Chapman–Kolmogorov"} & {label.split(" ")[0] for label in labels}
    assert "Eigenvalues in the complex plane" in labels
    assert "Modes against time" in labels


@pytest.mark.usefixtures("undrawn")
def test_series_of_the_longest_trajectory():
    """Among interleaved trajectories, in the order of its frames."""
    groups = np.repeat([0, 1], [1200, 800])
    order = np.argsort(np.r_[np.arange(1200.0), np.arange(800.0)], kind="stable")
    model = kdmaps.KernelDiffusionMap(1, lag=1, n_features=40, regularization=1e-4, random_state=0)
    model.fit(PATH[order], groups=groups[order])
    page = render_report(model, PATH[order], groups=groups[order])
    assert "1200 frames of the longest trajectory" in page
