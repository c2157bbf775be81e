"""Coherent sets against a map that keeps two halves apart; the Bickley jet against its stream function and SciPy."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp

import kdmaps
from commands import run
from kdmaps.checks import muted
from kdmaps.dynamics import coherent_sets
from kdmaps.exceptions import UnresolvedModesWarning
from kdmaps.plotting import plot_coherent_sets
from kdmaps.problems import bickley_jet
from kdmaps.problems.flows import AMPLITUDES, SPEED, SPEEDS, WAVES, WIDTH, velocity


@pytest.fixture(scope="module")
def halves():
    """Points that are mixed in each of two halves; none crosses 0, and the second law is not the first one."""
    x = np.random.default_rng(1).uniform(-1, 2, size=(600, 1))
    y = np.where(x < 0, -(17 * -x % 1), 3 * (17 * x / 2 % 1))
    model = kdmaps.KernelDiffusionMap(
        1, bandwidth=0.3, n_features=60, regularization=1e-2, lag=1, reversible=False, random_state=0
    )
    with muted():
        model.fit(np.vstack([x, y]), groups=np.tile(np.arange(600), 2))
    return model, x, y


def test_halves(halves):
    model, x, y = halves
    sets = coherent_sets(model, x, y, 2)
    positive = sets.labels[np.argmax(x), 0]
    # The kernel smooths over 0.3; points within 0.1 of the border, 7 %, may be on the wrong side.
    assert np.mean((sets.labels[:, 0] == positive) == (x[:, 0] > 0)) > 0.93
    assert np.mean((sets.labels[:, 1] == positive) == (y[:, 0] > 0)) > 0.93
    assert (sets.coherence > 0.9).all()
    same = sets.labels[:, 0] == sets.labels[:, 1]
    assert_allclose(sets.coherence[0], same[sets.labels[:, 0] == 0].mean(), rtol=1e-12)
    assert_allclose(sum(row["first"] for row in sets.table()), 1)
    assert "2 coherent sets" in repr(sets)
    assert "coherence" in sets._repr_html_()


def test_weights_and_new_particles(halves):
    model, x, y = halves
    weight = np.where(x[:, 0] < 0, 3.0, 1.0)
    weighted = coherent_sets(model, x, y, 2, sample_weight=weight)
    chosen = weighted.labels[:, 0] == 0
    kept = chosen & (weighted.labels[:, 1] == 0)
    assert_allclose(weighted.coherence[0], weight[kept].sum() / weight[chosen].sum(), rtol=1e-12)
    some = coherent_sets(model, x[:100], y[:100], 2)
    assert some.labels.shape == (100, 2)


def test_errors(halves):
    model, x, y = halves
    with pytest.raises(ValueError, match="600 particles"):
        coherent_sets(model, x, y[:-1], 2)
    with muted():
        reversible = kdmaps.KernelDiffusionMap(1, lag=1, n_features=30, random_state=0).fit(x)
    with pytest.raises(ValueError, match="reversible=False"):
        coherent_sets(reversible, x, y)
    with pytest.raises(ValueError, match="2 columns"):
        plot_coherent_sets(coherent_sets(model, x, y, 2), x, y)


def test_command(halves, tmp_path):
    _, x, y = halves
    pd.DataFrame({"x": np.vstack([x, y])[:, 0], "particle": np.tile(np.arange(600), 2)}).to_csv(tmp_path / "both.csv")
    for name, positions in (("first", x), ("second", y)):
        pd.DataFrame(positions, columns=["x"]).to_csv(tmp_path / f"{name}.csv", index=False)
    options = ("--columns", "x", "--groups", "particle", "--lag", 1, "--no-reversible", "--modes", 1, "--resamples", 0)
    kernel = ("--kernel", "gaussian", "--bandwidth", 0.3, "--features", 60, "--lambda", 1e-2, "--out", tmp_path / "out")
    fitted = run("fit", tmp_path / "both.csv", *options, *kernel)
    assert fitted.exit_code == 0, fitted.output
    states = ("states", tmp_path / "out" / "model.npz", tmp_path / "first.csv", "--out", tmp_path / "sets.csv")
    result = run(*states, "--later", tmp_path / "second.csv", "--states", 2)
    assert result.exit_code == 0, result.output
    assert "share that stays" in result.stdout
    sets = coherent_sets(kdmaps.load(tmp_path / "out" / "model.npz"), x, y, 2)
    assert_array_equal(pd.read_csv(tmp_path / "sets.csv")[["state", "later"]], sets.labels + 1)
    pd.DataFrame(y[:-1], columns=["x"]).to_csv(tmp_path / "short.csv", index=False)
    short = run(*states, "--later", tmp_path / "short.csv", "--states", 2, "--force")
    assert short.exit_code == 2
    assert "600 particles" in short.output
    assert run(*states, "--later", tmp_path / "second.csv", "--passage-times", "--force").exit_code == 2


def test_velocity_of_the_jet():
    """Central differences of ψ = U L (sech²(y/L) Σ ε cos k(x - ct) - tanh(y/L)), of order h²."""

    def stream(x, y, t=3.0):
        waves = np.cos(WAVES * (x[:, None] - SPEEDS * t)) @ AMPLITUDES
        return SPEED * WIDTH * (waves / np.cosh(y / WIDTH) ** 2 - np.tanh(y / WIDTH))

    x, y = np.random.default_rng(0).uniform([0, -3], [20, 3], size=(20, 2)).T
    h = 1e-5
    along = -(stream(x, y + h) - stream(x, y - h)) / (2 * h)
    across = (stream(x + h, y) - stream(x - h, y)) / (2 * h)
    assert_allclose(velocity(3.0, np.column_stack([x, y])), np.column_stack([along, across]), atol=1e-7)


def test_path_of_the_jet():
    first, second = bickley_jet(3, duration=5.0, random_state=0)
    for start, end in zip(first, second, strict=True):
        found = solve_ivp(lambda t, p: velocity(t, p[None])[0], (0, 5), start, rtol=1e-10, atol=1e-10).y[:, -1]
        # Runge–Kutta of order 4 with steps of 0.02 has errors of about 1e-7 per unit of time.
        assert_allclose(end, [found[0] % 20, found[1]], atol=1e-5)
    assert (first[:, 0] < 20).all()


def test_vortices_of_the_jet():
    """Both sides of the jet are large sets; particles of vortices form small ones, and stay in them."""
    first, second = bickley_jet(1500, random_state=0)

    def on_cylinder(p):
        angle = 2 * np.pi * p[:, 0] / 20
        return np.column_stack([20 / (2 * np.pi) * np.cos(angle), 20 / (2 * np.pi) * np.sin(angle), p[:, 1]])

    x, y = on_cylinder(first), on_cylinder(second)
    model = kdmaps.KernelDiffusionMap(
        7,
        kernel="gaussian",
        bandwidth=1.0,
        regularization=1e-4,
        n_features=300,
        lag=1,
        reversible=False,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnresolvedModesWarning)  # correlations near 1 do not mean few independent pairs
        model.fit(np.vstack([x, y]), groups=np.tile(np.arange(1500), 2))
    assert model.modes_.effective_count == 1500
    sets = coherent_sets(model, x, y, 8)
    small = np.bincount(sets.labels[:, 0], minlength=8) < 0.12 * 1500
    assert small.sum() == 6
    # Sets of 50 particles: 0.05 each, 0.02 for the mean of eight.
    assert sets.coherence.mean() > 0.9
    axes = plot_coherent_sets(sets, first, second)
    assert len(axes) == 2
    assert len(axes[0].collections) == 8
