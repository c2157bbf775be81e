"""Scores of kernels for pairs whose direction in time matters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.signal import lfilter

import kdmaps
from experiments.driven import rotating_ou
from kdmaps.bases import BasisSpec
from kdmaps.checks import muted
from kdmaps.data.pairs import make_pairs
from kdmaps.data.sources import ArraySource
from kdmaps.forms.lagged import LaggedForm
from kdmaps.kernels import Gaussian
from kdmaps.selection.cross_fit import cross_fit, rough_cross_fit
from kdmaps.selection.folds import BlockedKFold, Folds
from kdmaps.selection.scores import select_by_autocorrelation
from kdmaps.spectrum.directed import find_directed_modes, two_sided
from kdmaps.spectrum.iteration import LAGGED_BOUND, LAGGED_STEPS

#: In one lag, the process turns by nearly a right angle: in both directions of time together, nothing is correlated.
SPEED, STEP = 15.0, 0.1


@pytest.fixture(scope="module")
def folded():
    X = rotating_ou(4000, seed=0, speed=SPEED, time_step=STEP).X
    pairs = make_pairs(ArraySource(X), 1).source
    folds = Folds(list(BlockedKFold(4, gap=1).split(np.arange(len(X) - 1))), len(X) - 1)
    basis = BasisSpec("fourier", 60).make(Gaussian(5.0), X, None, 0)
    return basis, *folds.sums(pairs, LaggedForm(1, reversible=False), basis)


def united(sums, row):
    first, *others = (part for part, chosen in zip(sums, row, strict=True) if chosen)
    return sum(others, start=first)


def test_folds_are_fitted_and_tested_at_both_ends(folded):
    basis, sums, members = folded
    lam, r, n_folds = 1e-3, 2, len(members) // 2
    whole, *parts = (united(sums, row) for row in members)
    (fit,) = cross_fit(whole, list(zip(parts[:n_folds], parts[n_folds:], strict=True)), basis.ridge, r, [lam])
    train, test = parts[0], parts[n_folds]
    left, right = find_directed_modes(train, basis.ridge, r, lam, kdmaps.spectrum.modes.NO_LAG)
    C = two_sided(test)
    a, b = left.coefficients, right.coefficients
    # Var f + Var g = 1 in the folds, so that each has half of the variance of the singular functions.
    correlation = np.einsum("mk,mk->k", a, C.cross @ b)
    fold = fit.folds[0]
    got = np.diagonal(fold.test_covariance - fold.test_energy)
    assert_allclose(np.sort(got), np.sort(correlation), rtol=0.02)
    assert fold.test_weight == pytest.approx(test.weight)
    assert fit.agreement() > 0.9


def test_score_is_held_out_and_directed(folded):
    basis, sums, members = folded
    iteration = {"steps": LAGGED_STEPS, "bound": LAGGED_BOUND}
    (rough,) = rough_cross_fit(sums, members, basis.ridge, 2, [1e-3], **iteration)
    score = select_by_autocorrelation(2)(rough)
    # Both singular values of the linear functions are e^{-0.1}; 400 time units know them to about 0.02.
    assert score.plain == pytest.approx(2 * np.exp(-2 * STEP), abs=0.08)
    n_folds = len(members) // 2
    whole, *parts = (united(sums, row) for row in members)
    (exact,) = cross_fit(whole, list(zip(parts[:n_folds], parts[n_folds:], strict=True)), basis.ridge, 2, [1e-3])
    assert_allclose(score.plain, select_by_autocorrelation(2)(exact).plain, rtol=0.02)


@pytest.mark.parametrize("basis", ["fourier", "landmarks"])
def test_search_of_a_fast_rotation(basis):
    X = rotating_ou(3000, seed=1, speed=SPEED, time_step=STEP).X
    search = kdmaps.KernelSearchCV(
        2, lag=1, time_step=STEP, reversible=False, basis=basis, n_features=60, random_state=0
    )
    search.set_params(families=["gaussian"], bandwidths=[0.3, 4.0], regularizations=[1e-3], max_extensions=0)
    with muted():
        search.fit(X)
        symmetric = search.set_params(reversible=True).fit(X).best_selection_score_
        search.set_params(reversible=False).fit(X)
    assert search.kernel_.bandwidth == 4.0
    assert search.best_selection_score_ == pytest.approx(2 * np.exp(-2 * STEP), abs=0.12)
    assert symmetric < 1  # of the radius, e^{-4·0.1}, and noise
    k = kdmaps.dynamics.koopman(search)
    assert_allclose(k.rates[0], -1 + 1j * SPEED, atol=0.25)  # 300 time units: a standard error of 0.06


def test_noise_has_no_score():
    X = np.random.default_rng(0).normal(size=(1000, 4))
    search = kdmaps.KernelSearchCV(2, lag=1, reversible=False, n_features=60, random_state=0)
    with muted():
        search.set_params(families=["gaussian"]).fit(X)
    assert search.best_selection_score_ < 0.05


def test_error_of_the_gap_of_directed_fits():
    """The standard error of the gap from one run is the spread over runs, here of a process that drives another."""
    gaps, errors = [], []
    for seed in range(20):
        noise = np.random.default_rng(seed).standard_normal((2, 2000))
        x = lfilter([1.0], [1.0, -0.9], noise[0])
        X = np.column_stack([x / 2.3, lfilter([1.0], [1.0, -0.5], noise[1] + x / 2) / 2.5])
        settings = {"bandwidth": 10.0, "n_features": 30, "regularization": 1e-4, "random_state": 0}
        modes = kdmaps.KernelDiffusionMap(1, lag=1, reversible=False, **settings).fit(X).modes_
        gaps.append(np.log(modes.timescale_gap))
        errors.append(modes.gap_error)
    assert_allclose(np.mean(errors), np.std(gaps), rtol=0.35)  # the spread of 20 runs has an error of 16 %
