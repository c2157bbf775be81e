"""Plots of modes, time scales and scores show the numbers of the fit."""

import dataclasses
import itertools
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import kdmaps
from kdmaps.plotting import plot_landscape, plot_modes, plot_regularization_map, plot_timescales
from kdmaps.plotting.common import plain_log_ticks
from shared import GRID


@pytest.fixture(scope="module")
def plane():
    X = kdmaps.problems.load("ou2d-4").sample(300, random_state=0)
    return X, kdmaps.KernelDiffusionMap(n_components=2, n_features=60, random_state=0).fit(X)


@pytest.fixture(scope="module")
def line():
    problem = kdmaps.problems.load("dw1d")
    X = problem.sample(300, random_state=0)
    model = kdmaps.KernelDiffusionMap(n_components=2, n_features=60, random_state=0).fit(X)
    return X, model, problem.eigenfunctions(X, 2)


def in_order_of_samples(points, X):
    """Rows of `points` that hold the rows of X, which are distinct."""
    return np.lexsort(points.T)[np.argsort(np.lexsort(X.T))]


def test_scatter_of_modes(plane):
    X, model = plane
    axes = plot_modes(model, X)
    for k, ax in enumerate(axes):
        (drawn,) = ax.collections
        rows = in_order_of_samples(drawn.get_offsets().data, X)
        np.testing.assert_array_equal(drawn.get_offsets()[rows], X)
        np.testing.assert_array_equal(drawn.get_array()[rows], model.transform(X)[:, k])
        assert f"time scale {model.timescales_[k]:.3g}" in ax.get_title()


def test_colours_are_symmetric_about_zero(plane):
    X, model = plane
    (drawn,) = plot_modes(model, X)[0].collections
    assert drawn.norm(0.0) == 0.5
    mode = model.transform(X)[:, 0]
    np.testing.assert_allclose(drawn.norm.vmax, np.quantile(np.clip(mode, 0, None), 0.99))
    np.testing.assert_allclose(drawn.norm.vmin, -np.quantile(np.clip(-mode, 0, None), 0.99))
    opposite = np.array(drawn.cmap([0.25, 0.75]))
    lightness = opposite[:, :3] @ [0.2126, 0.7152, 0.0722]
    assert abs(lightness[0] - lightness[1]) < 0.1  # equal distances from zero look equally strong


def test_large_values_are_drawn_on_top(plane):
    X, model = plane
    (drawn,) = plot_modes(model, X)[0].collections
    assert (np.diff(np.abs(drawn.get_array())) >= 0).all()
    values = model.transform(drawn.get_offsets().data)[:, 0]
    np.testing.assert_allclose(drawn.get_array(), values, atol=1e-12)


def test_given_modes_coordinates_and_axes(plane):
    X, model = plane
    frame = pd.DataFrame(X, columns=["left", "right"])
    modes = model.transform(X)
    mine = Figure().subplots(2, 1)
    axes = plot_modes(modes, frame, coordinates=(1, 0), axes=mine, titles=["a", "b"])
    assert list(axes) == list(mine)
    assert [ax.get_title() for ax in axes] == ["a", "b"]
    assert (axes[0].get_xlabel(), axes[0].get_ylabel()) == ("right", "left")
    offsets = axes[1].collections[0].get_offsets().data
    np.testing.assert_array_equal(offsets[in_order_of_samples(offsets, X[:, ::-1])], X[:, ::-1])


def test_curve_with_a_reference(line):
    X, model, exact = line
    order = np.argsort(X[:, 0])
    for k, ax in enumerate(plot_modes(model, X, reference=exact)):
        curves = {curve.get_label(): curve for curve in ax.lines}
        np.testing.assert_array_equal(curves["estimate"].get_xdata(), X[order, 0])
        np.testing.assert_array_equal(curves["estimate"].get_ydata(), model.transform(X)[order, k])
        np.testing.assert_array_equal(curves["exact"].get_ydata(), exact[order, k])
        assert curves["exact"].get_linestyle() == "--"


def test_one_coordinate_of_two_gives_points(plane):
    X, model = plane
    drawn = plot_modes(model, X, coordinates=(1,))[0].lines[-1]
    np.testing.assert_array_equal(drawn.get_xdata(), np.sort(X[:, 1]))
    assert drawn.get_linestyle() == "None"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"coordinates": (0, 2)}, "one or two columns of X"),
        ({"coordinates": ()}, "one or two columns of X"),
        ({"axes": [None]}, "1 Axes for 2 modes"),
        ({"modes": np.zeros((3, 2))}, "one row for each of the 300 samples"),
    ],
)
def test_bad_arguments(plane, arguments, message):
    X, model = plane
    with pytest.raises(ValueError, match=message):
        plot_modes(**{"modes": model, "X": X, **arguments})


def test_timescales_and_gap(line):
    _, model, _ = line
    exact = [1.26, 0.28]
    ax = plot_timescales(model, exact)
    drawn = {curve.get_label(): curve for curve in ax.lines}
    np.testing.assert_array_equal(drawn["estimate"].get_xydata(), np.c_[[1, 2], model.timescales_])
    np.testing.assert_array_equal(drawn["exact"].get_ydata(), exact)
    (band,) = ax.patches
    last = model.timescales_[-1]
    drawn_from, drawn_to = band.get_extents().transformed(ax.transData.inverted()).intervaly
    # The same number as in the check of the gap.
    gap = min(model.modes_.gap, model.modes_.next_quotient / model.rates_[-1])
    np.testing.assert_allclose([drawn_from, drawn_to], [last / gap, last])
    assert ax.texts[0].get_text() == f"next mode: {gap:.2g} times as fast"
    assert f"{gap:.4g}" in [check.shown for check in model.modes_.checks]
    assert ax.get_yscale() == "log"


@pytest.mark.parametrize("n_components", [1, 2, 4])
def test_label_of_the_gap_is_outside_the_band(n_components, line):
    X, _, _ = line
    model = kdmaps.KernelDiffusionMap(n_components, n_features=60, random_state=0).fit(X)
    for next_quotient in (model.rates_[-1], 30 * model.rates_[-1]):
        model.modes_ = dataclasses.replace(
            model.modes_,
            next_quotient=next_quotient,
            next_eigenvalue=model.modes_.eigenvalues[-1] * model.rates_[-1] / next_quotient,
        )
        figure = Figure(figsize=(4.9, 3.1), layout="constrained")  # as in the report
        ax = plot_timescales(model, ax=figure.subplots())
        figure.draw_without_rendering()
        text, band = ax.texts[0].get_window_extent(), ax.patches[0].get_window_extent()
        assert text.y1 < band.y0
        assert text.y0 > ax.bbox.y0
        assert text.x0 > ax.bbox.x0
        assert [tick for tick in ax.get_xticks() if 0.5 < tick < n_components + 0.5] == [*range(1, n_components + 1)]


def test_no_gap_after_the_last_possible_mode(line):
    X, _, _ = line
    model = kdmaps.KernelDiffusionMap(2, basis="landmarks", landmarks=X[:2]).fit(X)
    assert list(plot_timescales(model, ax=Figure().subplots()).patches) == []


@pytest.mark.slow
def test_matplotlib_is_imported_late():
    code = "import sys, kdmaps.plotting, kdmaps.cli; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture(scope="module")
def search():
    X = kdmaps.problems.load("dw1d").sample(200, random_state=0)
    return kdmaps.KernelSearchCV(2, **GRID, n_features=40, random_state=0).fit(X)


def test_landscape(search):
    results = search.cv_results_
    ax = plot_landscape(search)
    curves = {line.get_label(): line for line in ax.lines}
    for family in ("gaussian", "rq2"):
        score = results["selection_score"][results["param_family"] == family].reshape(3, 2)
        np.testing.assert_array_equal(curves[family].get_ydata(), score.max(axis=1))
    star = next(line for line in ax.lines if line.get_label() == "chosen")
    np.testing.assert_allclose(star.get_xydata()[0], [search.best_params_["bandwidth"], search.best_selection_score_])


def test_regularization_map(search):
    results = search.cv_results_
    ax = plot_regularization_map(search)
    family = search.best_params_["kernel"]
    score = results["selection_score"][results["param_family"] == family].reshape(3, 2)
    np.testing.assert_array_equal(ax.collections[0].get_array(), score.T)
    assert ax.get_title() == family
    with pytest.raises(ValueError, match="was not tried"):
        plot_regularization_map(search, "laplacian")


@pytest.mark.parametrize("width", [2.2, 3.2, 6.0])
@pytest.mark.parametrize(("low", "high"), [(0.2, 200), (0.8, 9), (1e-3, 2e3), (1, 500)])
@pytest.mark.parametrize("name", ["x", "y"])
def test_labels_of_logarithmic_axes_do_not_overlap(width, low, high, name):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = Figure(figsize=(width, width), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    axis = getattr(ax, f"{name}axis")
    plain_log_ticks(axis)
    figure.canvas.draw()
    inside = [
        label for x, label in zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True) if low <= x <= high
    ]
    assert len(inside) >= 2
    boxes = [label.get_window_extent() for label in inside]
    ends = [(box.x0, box.x1) if name == "x" else (box.y0, box.y1) for box in boxes]
    # A space is about a quarter of the font size; fonts are of 10 points at 100 dots to 72 points.
    assert all(after[0] - before[1] > 0.2 * 10 * 100 / 72 for before, after in itertools.pairwise(ends))
