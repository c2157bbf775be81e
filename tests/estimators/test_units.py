"""Units of X and of the diffusion change the unit of the time scales, and nothing else."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kdmaps
from kdmaps import Factor, KernelDiffusionMap, KernelSearchCV, TangentDiffusion
from kdmaps.exceptions import UnresolvedModesWarning
from kdmaps.forms.diffusion import DiffusionTensor, mean_diffusion
from kdmaps.forms.tangent import TangentTensor
from kdmaps.selection.grid import REGULARIZATIONS, rate_unit, regularization_grid
from shared import adaptive, expects, known

X = kdmaps.problems.load("ou2d-4").sample(300, random_state=0)


def search(**settings):
    return KernelSearchCV(2, families=["gaussian", "matern32"], bandwidths=3, n_features=60, random_state=0, **settings)


# Powers of 1000 in the rate, so that the rounded grid is the same one.
@pytest.mark.slow
@pytest.mark.parametrize("length", [1e3, 1e-9])
@pytest.mark.parametrize("diffusion", [None, 1e-6])
def test_a_search_does_not_see_units(length, diffusion):
    rate = (diffusion or 1) / length**2
    plain, scaled = search().fit(X), search(diffusion=diffusion).fit(X * length)
    assert scaled.best_index_ == plain.best_index_
    assert scaled.best_params_["regularization"] == pytest.approx(rate * plain.best_params_["regularization"], rel=1e-2)
    # Rounding of the features, amplified by a condition number of up to 1e7 here.
    assert_allclose(scaled.rates_ / rate, plain.rates_, rtol=1e-6)
    assert_allclose(scaled.transform(X * length), plain.transform(X), atol=1e-6)


@pytest.mark.slow
def test_a_refinement_does_not_see_units():
    settings = {"families": ["gaussian"], "n_features": 60, "random_state": 0}
    plain = adaptive(2, **settings).fit(X)
    scaled = adaptive(2, **settings).fit(X * 1e3)
    assert scaled.refinement_.preferred == plain.refinement_.preferred
    # Both maximise the same score; where they stop depends on rounding.
    assert_allclose(scaled.rates_ * 1e6, plain.rates_, rtol=1e-2)


@pytest.mark.parametrize("factor", [3.0, 20.0, 500.0])
def test_the_grid_is_never_far_from_the_unit_of_the_rates(factor):
    grid = regularization_grid("auto", rate_unit(1.0, factor))
    assert REGULARIZATIONS[0] * factor / 32 <= grid[0] <= REGULARIZATIONS[0] * factor * 32
    assert_allclose(grid / grid[0], np.array(REGULARIZATIONS) / REGULARIZATIONS[0])


@known("no-gap")
def test_given_regularizations_are_used_unchanged():
    found = search(regularizations=[1e-3, 1e-2], max_extensions=0).fit(X * 1e3)
    assert set(found.cv_results_["param_regularization"]) == {1e-3, 1e-2}


A = np.array([[2.0, 0.3], [0.3, 1.0]])


@pytest.mark.parametrize(
    ("diffusion", "expected"),
    [
        (None, 1.0),
        (0.25, 0.25),
        ((1.0, 3.0), 2.0),
        (A, 1.5),
        (np.broadcast_to(A, (300, 2, 2)), 1.5),
        (Factor(np.full((300, 2, 1), 2.0)), 4.0),
        (lambda points: np.full(len(points), 7.0), 7.0),
        (lambda points: np.tile([1.0, 2.0], (len(points), 1)), 1.5),
    ],
    ids=["none", "number", "diagonal", "matrix", "matrices", "factor", "scalars", "diagonals"],
)
def test_mean_diffusion(diffusion, expected):
    rows = np.arange(0, 300, 7)
    assert mean_diffusion(DiffusionTensor(diffusion, 2), X[rows], rows) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dimension", [1, 2])
def test_mean_diffusion_of_tangent_spaces(dimension):
    """tr[P + ε(I-P)] = D + ε(3-D), whichever of tangent and normal directions make up the tensor."""
    ball = kdmaps.problems.load("sphere-3").sample(400, random_state=0)
    spaces = TangentDiffusion(dimension, floor=0.1).fit(ball)
    expected = (dimension + 0.1 * (3 - dimension)) / 3
    assert mean_diffusion(TangentTensor(spaces), ball, np.arange(400)) == pytest.approx(expected, rel=1e-12)


@known("no-gap")
def test_one_fit_warns_where_its_regularization_decides():
    settings = {"n_features": 60, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnresolvedModesWarning)
        model = KernelDiffusionMap(2, **settings).fit(X)
    # λ aᵀa against the energy aᵀLa, which is the rate of a mode of unit variance.
    share = 1e-2 * np.sum(model.coefficients_**2, axis=0) / model.rates_
    assert_allclose(model.modes_.ridge_share, share, rtol=1e-6)
    with expects("ridge"):
        KernelDiffusionMap(2, **settings).fit(X * 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnresolvedModesWarning)
        KernelDiffusionMap(2, regularization=1e-4, **settings).fit(X * 10)
