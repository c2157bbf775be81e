"""Plots of trajectories and states show the numbers of the analysis."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal

import kdmaps
from kdmaps.plotting import (
    plot_chapman_kolmogorov,
    plot_free_energy,
    plot_implied_timescales,
    plot_modes_in_time,
)


@pytest.fixture(scope="module")
def path():
    return kdmaps.problems.load("dw1d").simulate(3000, dt=0.1, random_state=0)[0]


@pytest.fixture(scope="module")
def model(path):
    settings = {"lag": 1, "time_step": 0.1, "regularization": 1e-4, "n_features": 40, "random_state": 0}
    return kdmaps.KernelDiffusionMap(2, **settings).fit(path)


def test_implied_timescales(model, path):
    found = kdmaps.dynamics.implied_timescales(model, path, [1, 2, 4], random_state=0)
    ax = plot_implied_timescales(found, exact=[1.26, 0.28])
    curves = {line.get_label(): line for line in ax.get_lines()}
    for k in range(2):
        assert_allclose(curves[f"mode {k + 1}"].get_xydata(), np.column_stack([found.times, found.timescales[:, k]]))
    assert_allclose(curves["exact"].get_ydata(), 1.26)
    bands = ax.collections[0].get_paths()[0].vertices
    assert_allclose([bands[:, 1].min(), bands[:, 1].max()], [found.intervals[:, 0].min(), found.intervals[:, 0].max()])
    diagonal = [line for line in ax.get_lines() if np.array_equal(line.get_xdata(), line.get_ydata())]
    assert len(diagonal) == 1


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_implied_timescales_that_are_not_determined(model, path):
    found = kdmaps.dynamics.implied_timescales(model, path, [1, 2, 4], random_state=0)
    endless = np.full_like(found.timescales, np.finfo(float).max)
    ax = plot_implied_timescales(replace(found, timescales=endless, intervals=np.stack([endless, endless], axis=-1)))
    assert max(ax.get_ylim()) < 1


def test_chapman_kolmogorov(model, path):
    for n_states, shape in ((None, (2,)), (2, (2, 2))):
        found = kdmaps.dynamics.chapman_kolmogorov(model, path, steps=3, n_states=n_states, random_state=0)
        axes = plot_chapman_kolmogorov(found)
        assert axes.shape == shape
        for place in np.ndindex(shape):
            curves = {line.get_label(): line.get_ydata() for line in axes[place].get_lines()}
            start = float(len(shape) == 1 or place[0] == place[1])
            assert_allclose(curves["predicted"], np.r_[start, found.predicted[(..., *place)]])
            assert_allclose(curves["estimated"], found.estimated[(..., *place)])
    with pytest.raises(ValueError, match="axes has 1 Axes"):
        plot_chapman_kolmogorov(found, [Figure().subplots()])


def test_free_energy():
    """Cells with 300 and 100 samples are 0 and ln 3 above the minimum; cells without weight are empty."""
    order = np.random.default_rng(0).permutation(600)
    values = np.repeat([0.1, 0.5, 0.9], [300, 100, 200])[order][:, None]
    weight = np.repeat([1.0, 1.0, 0.0], [300, 100, 200])[order]
    ax = plot_free_energy(values, components=0, bins=3, smooth=0, sample_weight=weight)
    assert_allclose(ax.lines[0].get_ydata(), [0, np.log(3), np.nan])
    ax = plot_free_energy(np.column_stack([values, values]), bins=3, smooth=0)
    shown = ax.collections[0].get_array()
    assert_allclose(np.diagonal(shown.filled(np.nan)), [0, np.log(3), np.log(1.5)])
    assert np.ma.count(shown) == 3


def band(ax, at):
    """Half the height of the band around the curve."""
    edges = np.concatenate([path.vertices for path in ax.collections[0].get_paths()])
    return np.array([np.ptp(edges[np.isclose(edges[:, 0], x), 1]) / 2 for x in at])


def test_free_energy_and_its_error_of_gaussian_samples():
    """F = x²/2, within the errors; those of an AR(1) process are larger by the square root of its correlation time."""
    rng = np.random.default_rng(0)
    noise, rho = rng.standard_normal(100_000), 0.95
    from scipy.signal import lfilter

    errors = {}
    for name, x in {"independent": noise, "correlated": lfilter([np.sqrt(1 - rho**2)], [1, -rho], noise)}.items():
        ax = plot_free_energy(x[:, None], bins=60)
        at, found = ax.lines[0].get_data()
        inner = np.abs(at) < 2
        exact = at**2 / 2
        errors[name] = band(ax, at[inner])
        difference = (found - exact)[inner]
        # The curve starts at its own minimum, which is noise too: compare up to a constant. With ten blocks, errors are
        # known to 1/√18 = 24 %; smoothing over 0.2 changes F by 0.02 at most.
        z = (difference - np.average(difference, weights=errors[name] ** -2.0)) / np.hypot(errors[name], 0.02)
        assert np.sqrt(np.mean(z**2)) < 1.5
    # Indicators of cells decorrelate faster than x itself, whose time gives a factor of √((1+ρ)/(1-ρ)) = 6.2.
    assert 1.5 < np.median(errors["correlated"]) / np.median(errors["independent"]) < 6.5


def test_uncertain_cells_of_a_map_are_white():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((20_000, 2))
    values[0] = 7.0  # one sample far away: its free energy is unknown
    shown = plot_free_energy(values, bins=30).collections[0].get_array().filled(np.nan)
    assert np.isnan(shown[-1, -1])
    assert np.isfinite(shown).sum() > 100


def test_free_energy_of_a_barrier():
    """A tenth of the frames, of weight e^-12, is drawn at 12 kT along one mode, and left white in a map."""
    values = np.tile([0.1, 0.5, 0.9], 100)
    weight = np.exp(np.tile([0.0, -12.0, -1.0], 100))
    ax = plot_free_energy(values[:, None], bins=3, smooth=0, sample_weight=weight)
    assert_allclose(ax.lines[0].get_ydata(), [0, 12, 1], atol=1e-12)
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] > 12
    mesh = plot_free_energy(np.column_stack([values, values]), bins=3, smooth=0, sample_weight=weight).collections[0]
    assert_allclose(np.diagonal(mesh.get_array().filled(np.nan)), [0, np.nan, 1], atol=1e-12)
    assert mesh.get_clim()[1] <= 8


def test_modes_in_time(model, path):
    axes = plot_modes_in_time(model, path)
    for k, ax in enumerate(axes):
        (line,) = ax.get_lines()
        assert_array_equal(line.get_xdata(), np.arange(3000) * 0.1)
        assert_array_equal(line.get_ydata(), model.transform(path)[:, k])
    long = plot_modes_in_time(np.random.default_rng(0).standard_normal((50_000, 1)))
    assert len(long[0].get_lines()[0].get_xdata()) <= 20_000
    assert long[0].get_lines()[0].get_xdata()[-1] > 49_990


def test_lists_of_trajectories(model, path):
    """With unequal lengths and a gap between them."""
    from kdmaps.plotting import plot_modes, plot_states

    parts, values = [path[:2000], path[2000:]], model.transform(path)
    for axes in (plot_modes_in_time(model, parts), plot_modes_in_time(model.transform(parts), time_step=0.1)):
        for k, ax in enumerate(axes):
            (line,) = ax.get_lines()
            assert_allclose(line.get_ydata(), np.insert(values[:, k], 2000, np.nan))
            drawn = ~np.isnan(line.get_ydata())
            assert_allclose(line.get_xdata()[drawn], np.arange(3000) * 0.1)
            assert (np.diff(line.get_xdata()) >= 0).all()
    expected = plot_free_energy(values, bins=5, sample_weight=np.arange(3000.0)).collections[0].get_array()
    weight = np.split(np.arange(3000.0), [2000])
    found = plot_free_energy(model.transform(parts), bins=5, sample_weight=weight).collections[0].get_array()
    assert_allclose(found.filled(np.nan), expected.filled(np.nan))
    found = plot_free_energy(model, parts, bins=5, sample_weight=weight).collections[0].get_array()
    assert_allclose(found.filled(np.nan), expected.filled(np.nan))
    states = kdmaps.dynamics.coarse_states(model.transform(parts), 2)
    assert sum(patch.get_height() for patch in plot_states(states, parts).patches) == 3000
    assert len(plot_modes(model, parts)[0].get_lines()[-1].get_xdata()) == 3000


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda m, X: plot_free_energy(m), "X must be given"),
        (lambda m, X: plot_free_energy(m, X, components=(0, 5)), "components must be one or two modes"),
        (lambda m, X: plot_free_energy(m, X, sample_weight=[1]), "sample_weight"),
        (lambda m, X: plot_modes_in_time(X[:, 0]), "one row per sample"),
        (lambda m, X: plot_modes_in_time(m, X, axes=[Figure().subplots()]), "axes has 1 Axes for 2 modes"),
    ],
)
def test_bad_arguments(model, path, draw, message):
    with pytest.raises(ValueError, match=message):
        draw(model, path)


def test_states():
    from kdmaps.plotting import plot_states

    X = np.column_stack([np.r_[np.zeros(30), np.ones(10)], np.arange(40.0)])
    states = kdmaps.dynamics.coarse_states(X[:, :1] - 0.25, 2)
    ax = plot_states(states, X)
    drawn = [part.get_offsets() for part in ax.collections if len(part.get_offsets())]
    assert [len(part) for part in drawn] == [30, 10]
    assert_array_equal(drawn[1], X[30:])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["state 1 (75%)", "state 2 (25%)"]
    counts = [patch.get_height() for patch in plot_states(states, X[:, :1]).patches]
    assert sum(counts) == 40
    with pytest.raises(ValueError, match="the 40 samples"):
        plot_states(states, X[:3])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_data_frames(library):
    """Data frames of pandas have a method `transform`, but are not estimators."""
    from kdmaps.plotting import plot_independence, plot_modes, plot_states

    values = np.random.default_rng(0).standard_normal((200, 2))
    columns = {"mode1": values[:, 0], "mode2": values[:, 1]}
    kind = pytest.importorskip(library)
    frame = kind.table(columns) if library == "pyarrow" else kind.DataFrame(columns)
    weight = kind.array(values[:, 0] ** 2) if library == "pyarrow" else kind.Series(values[:, 0] ** 2)

    def drawn(ax):
        return ax.collections[0].get_array().filled(np.nan)

    expected = plot_free_energy(values, sample_weight=values[:, 0] ** 2, bins=5)
    assert_array_equal(drawn(plot_free_energy(frame, sample_weight=weight, bins=5)), drawn(expected))
    for k, ax in enumerate(plot_modes_in_time(frame)):
        assert_array_equal(ax.get_lines()[0].get_ydata(), values[:, k])
    (ax, _) = plot_modes(frame, frame)
    assert sorted(ax.collections[0].get_array()) == sorted(values[:, 0])
    assert ax.get_xlabel() == "mode1"
    states = kdmaps.dynamics.coarse_states(frame, 2)
    assert sum(len(part.get_offsets()) for part in plot_states(states, frame).collections) == 200
    assert len(plot_independence(frame).patches) == 2
