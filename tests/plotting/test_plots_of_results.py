"""Plots of error bars, learning, relevance and independence."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import kdmaps
from kdmaps.diagnostics.relevance import Relevance
from kdmaps.plotting import (
    plot_history,
    plot_independence,
    plot_relevance,
    plot_timescales,
)
from shared import known

pytestmark = known("no-gap")


@pytest.fixture(scope="module")
def model(X):
    return kdmaps.KernelDiffusionMap(3, n_features=60, random_state=0).fit(X)


# --- error bars -------------------------------------------------------------------------------------------------------
@known("bias")
def test_intervals(X, model):
    bars = kdmaps.uncertainty.bootstrap(model, X, n_resamples=20, confidence=0.9)
    ax = plot_timescales(model, uncertainty=bars)
    lines = next(c for c in ax.collections if c.get_label() == "90 % interval")
    for k, segment in enumerate(lines.get_segments()):
        np.testing.assert_array_equal(segment, [[k + 1, end] for end in bars.timescale_intervals[k]])
    caps = next(line for line in ax.lines if len(line.get_xdata()) == 6)
    np.testing.assert_array_equal(np.sort(caps.get_ydata()), np.sort(bars.timescale_intervals.ravel()))
    with pytest.raises(ValueError, match="uncertainty has 3 modes"):
        plot_timescales(kdmaps.KernelDiffusionMap(2, n_features=60).fit(X), uncertainty=bars)


# --- learning ---------------------------------------------------------------------------------------------------------
HISTORY = {
    "phase": np.array(["start", "adam", "adam", "lbfgs", "lbfgs"]),
    "accepted": np.ones(5, dtype=bool),
    "loss": np.array([5.0, 3.0, 4.0, 2.0, 1.0]),
    "best_loss": np.array([5.0, 3.0, 3.0, 2.0, 1.0]),
    "sigma": np.arange(10.0).reshape(5, 2),
}


def test_history_of_the_loss():
    ax = plot_history(HISTORY)
    lines = {line.get_label(): line for line in ax.lines}
    np.testing.assert_array_equal(lines["loss"].get_xydata(), np.c_[np.arange(5), HISTORY["loss"]])
    np.testing.assert_array_equal(lines["best so far"].get_ydata(), HISTORY["best_loss"])
    assert [text.get_text() for text in ax.texts] == ["lbfgs"]
    mark = next(line for line in ax.lines if len(line.get_xdata()) == 2)
    assert list(mark.get_xdata()) == [2.5, 2.5]  # between two algorithms


def test_history_of_several_values():
    ax = plot_history(HISTORY, "sigma")
    lines = {line.get_label(): line for line in ax.lines}
    for j in (0, 1):
        np.testing.assert_array_equal(lines[f"sigma {j + 1}"].get_ydata(), HISTORY["sigma"][:, j])
    assert "best so far" not in lines


@pytest.mark.slow
def test_history_of_estimators(X, model):
    learned = kdmaps.VariationalKernelMap(2, adam_steps=3, lbfgs_steps=2, n_features=20, random_state=0).fit(X)
    np.testing.assert_array_equal(plot_history(learned).lines[0].get_ydata(), learned.history_["loss"])
    with pytest.raises(ValueError, match="KernelDiffusionMap without a history"):
        plot_history(model)
    with pytest.raises(ValueError, match="loss, best_loss, sigma; got 'phase'"):
        plot_history(HISTORY, "phase")


# --- relevance --------------------------------------------------------------------------------------------------------
def made_relevance(d, r=2):
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(d, 0.1), r)
    rows = np.linalg.qr(rng.standard_normal((d, d)))[0][:3]
    return Relevance(
        tuple(f"input {j}" for j in range(d)),
        shares,
        shares.mean(axis=0),
        np.eye(d),
        np.ones(d),
        rows,
        np.array([0.7, 0.29, 0.004]),
    )


def row_names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_relevance_in_descending_order():
    found = made_relevance(6)
    axes = plot_relevance(found)
    order = np.argsort(-found.overall)
    assert row_names(axes[0]) == [f"input {j}" for j in order]
    for ax, share in zip(axes, found.shares, strict=False):
        np.testing.assert_allclose([bar.get_width() for bar in ax.patches], 100 * share[order])
    (image,) = axes[2].images
    np.testing.assert_allclose(image.get_array(), found.combinations[:2, order].T)  # the third is below 1 %
    assert [label.get_text() for label in axes[2].get_xticklabels()] == ["70 %", "29 %"]
    assert [ax.get_title() for ax in axes] == ["mode 1", "mode 2", "combinations"]


@pytest.mark.parametrize("max_inputs", [5, 30])
def test_relevance_sums_the_other_inputs(max_inputs):
    found = made_relevance(200)
    axes = plot_relevance(found, max_inputs=max_inputs)
    order = np.argsort(-found.overall)
    shown = min(max_inputs, max(10, np.sum(found.overall >= 0.01)))
    assert row_names(axes[0])[-1] == f"{200 - shown} others"
    assert len(row_names(axes[0])) == shown + 1
    for ax, share in zip(axes, found.shares, strict=False):
        widths = np.array([bar.get_width() for bar in ax.patches])
        np.testing.assert_allclose(widths, 100 * np.append(share[order[:shown]], share[order[shown:]].sum()))
        np.testing.assert_allclose(widths.sum(), 100)


def test_relevance_of_a_model(X, model):
    found = kdmaps.relevance(model, X)
    mine = Figure().subplots(1, 4)
    axes = plot_relevance(model, X, axes=mine)
    assert axes[0] is mine[0]
    widths = [bar.get_width() for bar in axes[2].patches]
    np.testing.assert_allclose(widths, 100 * found.shares[2, np.argsort(-found.overall)])
    with pytest.raises(ValueError, match="X must be given"):
        plot_relevance(model)
    with pytest.raises(ValueError, match="axes has 3 Axes for 3 modes"):
        plot_relevance(model, X, axes=mine[:3])
    with pytest.raises(ValueError, match="max_inputs"):
        plot_relevance(found, max_inputs=0)


def test_relevance_of_a_search(X, model):
    found = made_relevance(2, r=3)
    search = SimpleNamespace(relevance_details_=found)
    widths = [bar.get_width() for bar in plot_relevance(search)[0].patches]
    np.testing.assert_allclose(widths, 100 * found.shares[0, np.argsort(-found.overall)])


# --- independence -----------------------------------------------------------------------------------------------------
def test_independence():
    t = np.linspace(0.1, 3, 60)
    found = kdmaps.independent_modes(
        np.column_stack([np.cos(t), np.cos(2 * t), np.random.default_rng(0).normal(size=60)])
    )
    mine = Figure().subplots()
    assert plot_independence(found, mine) is mine
    bars = {round(bar.get_center()[0]): bar for bar in mine.patches}
    assert [bars[k + 1].get_height() for k in range(3)] == list(found.residuals)
    assert [bars[k].get_facecolor() == to_rgba("0.6") for k in (1, 2, 3)] == [False, True, False]
    of_values = plot_independence(np.column_stack([t, np.cos(t)]))
    assert len(of_values.patches) == 2
