"""Objectives: presets, the held-out score."""

import pytest
from small_problems import make_parametrisation

from kdmaps.data import ArraySource
from kdmaps.forms.energy import EnergyForm
from kdmaps.learn import PRESETS
from kdmaps.learn.objectives import Objective, make_objective
from kdmaps.learn.problem import Problem
from kdmaps.selection.cross_fit import cross_fit
from kdmaps.selection.folds import Folds, make_splits
from kdmaps.selection.scores import pooled_ritz_timescales, select_by_timescale


def test_heldout_is_the_score_of_the_search(samples):
    """But for the alignment of the folds: here by all samples, in the search by the training samples of each fold."""
    parametrisation, theta = make_parametrisation("anisotropy", samples)
    basis, folds = parametrisation.basis(theta), Folds(make_splits(3, samples.X, None, 3, 0), len(samples.X))
    parts = folds.moments(
        ArraySource(samples.X, checked=True), EnergyForm(samples.diffusion), basis, samples.sample_weight
    )
    fit = cross_fit(*parts, basis.ridge, 3, [0.05])[0]
    found = -Problem(parametrisation, make_objective("heldout", 3), 0.05).evaluate(theta).value
    assert found == pytest.approx(select_by_timescale(fit).value, rel=2e-3)
    timescale = Objective(("heldout",), (1.0,), 3, power=1.0, caution=0.0)
    found = -Problem(parametrisation, timescale, 0.05).evaluate(theta).value
    assert found == pytest.approx(pooled_ritz_timescales(fit).sum(), rel=3e-2)


def test_preset_weights():
    """The weights of eq:total-objective that are positive in the paper's ablation; it prints 0.001 for VarRFF."""
    assert PRESETS["eig-only"] == {"eig": 1.0}
    assert PRESETS["sub-only"] == {"sub": 1.0}
    assert set(PRESETS["combined"]) == {"eig", "sub", "rkhs"}
    assert PRESETS["varrff"] == {"eig": 1.0, "rkhs": 0.001}
    assert make_objective({"eig": 2.0, "sub": 0.0}, 3) == Objective(("eig",), (2.0,), 3)
