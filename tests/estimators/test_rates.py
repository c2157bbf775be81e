"""Cross-fitted rates: against explicit fits, and without the optimism of rates on training samples."""

from functools import partial

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold

import kdmaps
from kdmaps import KernelDiffusionMap
from kdmaps.bases import ModeBasis
from kdmaps.forms.energy import compute_moments
from kdmaps.spectrum.pencil import find_modes
from shared import adaptive, known

pytestmark = known("no-gap")

SETTINGS = {"bandwidth": 3.0, "n_features": 60, "regularization": 1e-3, "random_state": 0}


def ornstein_uhlenbeck(n=300, seed=0):
    return kdmaps.problems.load("ou3d").sample(n, random_state=seed)


def explicit_rates(model, X, splits, weight=None):
    """Fit on each training set, sum the energies and variances of its modes on the test set."""
    weight = np.ones(len(X)) if weight is None else weight
    energy, variance = np.zeros((2, model.n_components))
    for train, test in splits:
        modes = find_modes(
            compute_moments(model.basis_, X[train], weight[train]),
            model.basis_.ridge,
            model.n_components,
            model.regularization,
        )
        a = modes.coefficients
        values, both = model.basis_.features(X) @ a, np.concatenate([train, test])
        values -= np.average(values[both], axis=0, weights=weight[both])
        variance += weight[test] @ values[test] ** 2
        energy += weight[test] @ np.sum(model.basis_.gradient(X[test], a) ** 2, axis=2)
    return energy / variance


@pytest.mark.parametrize("weighted", [False, True])
def test_against_explicit_fits(weighted):
    X = ornstein_uhlenbeck()
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X)) if weighted else None
    cv = KFold(4, shuffle=True, random_state=1)
    m = KernelDiffusionMap(2, rates="cross-fitted", cv=cv, **SETTINGS).fit(X, sample_weight=weight)
    np.testing.assert_allclose(m.rates_, explicit_rates(m, X, cv.split(X), weight), rtol=1e-6)
    np.testing.assert_array_equal(m.timescales_, 1 / m.rates_)
    plain = KernelDiffusionMap(2, **SETTINGS).fit(X, sample_weight=weight)
    # The modes are the same: only their rates are read elsewhere.
    np.testing.assert_allclose(m.transform(X), plain.transform(X), rtol=1e-6, atol=1e-8)
    assert np.all(np.abs(m.rates_ / plain.rates_ - 1) > 1e-3)


def test_groups_stay_together():
    X, groups = ornstein_uhlenbeck(), np.arange(300) // 15
    m = KernelDiffusionMap(2, rates="cross-fitted", cv=GroupKFold(3), **SETTINGS).fit(X, groups=groups)
    expected = explicit_rates(m, X, GroupKFold(3).split(X, groups=groups))
    np.testing.assert_allclose(m.rates_, expected, rtol=1e-6)


def test_landmarks_are_not_tested():
    X = ornstein_uhlenbeck()
    cv = KFold(3, shuffle=True, random_state=1)
    landmarks = X[::10]
    settings = {**SETTINGS, "regularization": 1e-2}
    m = KernelDiffusionMap(2, basis="landmarks", landmarks=landmarks, rates="cross-fitted", cv=cv, **settings).fit(X)
    free = np.arange(300) % 10 != 0
    splits = [(train, test[free[test]]) for train, test in cv.split(X)]
    np.testing.assert_allclose(m.rates_, explicit_rates(m, X, splits), rtol=1e-6)


@pytest.mark.slow
@known("no-gap", "variance-samples")  # the rate 4 is double; few samples
def test_cross_fitted_rates_are_not_optimistic():
    # Fresh samples measure the quality of the modes. Training rates are too small, by 0.13 in the logarithm here;
    # cross-fitting has to remove at least half of that. 8 seeds of 4 modes leave a standard error of about 0.02.
    fresh = ornstein_uhlenbeck(4000, 999)
    optimism = {"ritz": [], "cross-fitted": []}
    for seed in range(8):
        X = ornstein_uhlenbeck(300, seed)
        for rates, found in optimism.items():
            m = KernelDiffusionMap(4, bandwidth=2.0, regularization=1e-3, rates=rates, random_state=seed).fit(X)
            there = compute_moments(ModeBasis(m.basis_, m.coefficients_, m.modes_.offset), fresh)
            found.append(np.log(m.rates_ * np.diag(there.covariance()) / np.diag(there.mean_energy())))
    assert np.mean(optimism["ritz"]) < -0.08
    assert abs(np.mean(optimism["cross-fitted"])) < abs(np.mean(optimism["ritz"])) / 2


SEARCH = {"families": ["gaussian"], "regularizations": [1e-3, 1e-2]}
STEPS = {"adam_steps": 2, "lbfgs_steps": 2}
MAKERS = {
    "search": partial(kdmaps.KernelSearchCV, bandwidths=3, max_extensions=0, **SEARCH),
    "adaptive": partial(adaptive, bandwidths=10, refine=False, **SEARCH),
    "subsample": partial(adaptive, bandwidths=10, max_search_samples=200, refine=False, **SEARCH),
    "bandwidths": partial(kdmaps.VariationalKernelMap, basis="fourier", objective="eig-only", **STEPS),
    "weights": partial(kdmaps.VariationalKernelMap, learn_bandwidths=False, objective="eig-only", **STEPS),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "cv"), [*((name, 3) for name in MAKERS), ("search", KFold(3)), ("weights", KFold(3))])
@known("flat")
def test_every_estimator_has_them(name, cv, tmp_path):
    X = ornstein_uhlenbeck()
    shared = {"n_components": 2, "random_state": 0, "cv": cv}
    plain, crossed = (MAKERS[name](rates=rates, **shared).fit(X) for rates in ("ritz", "cross-fitted"))
    np.testing.assert_allclose(plain.transform(X), crossed.transform(X), atol=1e-6)
    a, L = plain.coefficients_, getattr(plain, "best_estimator_", plain).moments_.mean_energy()
    corrected = plain.trust_.corrected is not None  # a search replaces rates that are significantly too small
    training = plain.trust_.training if corrected else plain.rates_
    np.testing.assert_allclose(training, np.einsum("mk,mk->k", a, L @ a), rtol=1e-10)
    # Held-out quotients of modes that were chosen by smaller ones; the exact first rate is 1.
    assert np.min(crossed.rates_) > np.min(training)
    assert crossed.rates_[0] == pytest.approx(1, rel=0.3)
    crossed.save(tmp_path / "model.npz")
    loaded = kdmaps.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.rates_, crossed.rates_)
    assert loaded.cv == (3 if cv == 3 else None)


def test_loaded_models_have_no_folds(tmp_path):
    X = ornstein_uhlenbeck()
    KernelDiffusionMap(2, rates="cross-fitted", **SETTINGS).fit(X).save(tmp_path / "model.npz")
    loaded = kdmaps.load(tmp_path / "model.npz")
    before = loaded.rates_.copy()
    with pytest.raises(ValueError, match=r"set_params\(rates='ritz'\)"):
        loaded.partial_fit(X)
    np.testing.assert_array_equal(loaded.rates_, before)
    loaded.set_params(rates="ritz").partial_fit(X)
    assert loaded.moments_.count == 600


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rates": "held-out"}, "rates must be one of ritz, cross-fitted"),
        ({"rates": "cross-fitted", "basis": "full"}, "basis='full' leaves no sample"),
        ({"rates": "cross-fitted", "cv": 1}, "n_splits|cv"),
        ({"rates": "cross-fitted", "n_components": 20, "cv": 20}, "A fold of cv has 15 samples"),
    ],
)
def test_bad_arguments(wrong, message):
    with pytest.raises(ValueError, match=message):
        KernelDiffusionMap(**{**SETTINGS, **wrong}).fit(ornstein_uhlenbeck())


@pytest.mark.parametrize("make", [KernelDiffusionMap, kdmaps.KernelSearchCV, adaptive])
def test_streams_have_no_folds(make):
    X = ornstein_uhlenbeck()
    with pytest.raises(ValueError, match="can be cut into folds"):
        make(2, rates="cross-fitted").fit(lambda: iter([X[:150], X[150:]]))


@known("copies-of-rows")
def test_folds_that_do_not_determine_the_modes():
    # Six distinct samples determine five modes; without one of them, four.
    X = np.repeat(np.random.default_rng(0).standard_normal((6, 2)), 10, axis=0)
    with pytest.raises(ValueError, match="do not determine 5 mode"):
        KernelDiffusionMap(5, rates="cross-fitted", cv=KFold(6), **SETTINGS).fit(X)


def quick_settings(make):
    settings = {"n_features": 30, "random_state": 0, "rates": "cross-fitted"}
    if make is KernelDiffusionMap:
        return settings
    return settings | {"families": ["gaussian"], "regularizations": [1e-2], "bandwidths": [2.0], "max_extensions": 0}


@pytest.mark.parametrize("make", [KernelDiffusionMap, kdmaps.KernelSearchCV, adaptive])
@pytest.mark.slow
def test_groups_are_kept_together(make):
    settings = quick_settings(make)
    X, groups = ornstein_uhlenbeck(120), np.arange(120) // 10
    by_number, by_splitter = (make(2, cv=cv, **settings).fit(X, groups=groups) for cv in (3, GroupKFold(3)))
    np.testing.assert_array_equal(by_number.rates_, by_splitter.rates_)
    random = make(2, **settings).fit(X)
    assert not np.allclose(by_number.rates_, random.rates_)
    with pytest.raises(ValueError, match="one group only"):
        make(2, **settings).fit(X, groups=np.zeros(120))


@pytest.mark.parametrize("make", [KernelDiffusionMap, kdmaps.KernelSearchCV, adaptive])
@pytest.mark.slow
def test_a_list_of_arrays_is_several_groups(make):
    settings = quick_settings(make)
    X, lengths = ornstein_uhlenbeck(120), [50, 40, 30]
    parts = np.split(X, np.cumsum(lengths)[:-1])
    several = make(2, **settings).fit(parts)
    whole = make(2, **settings).fit(X, groups=np.repeat(range(3), lengths))
    np.testing.assert_array_equal(several.rates_, whole.rates_)
    modes = several.transform(parts)
    assert [len(part) for part in modes] == lengths
    np.testing.assert_array_equal(np.concatenate(modes), whole.transform(X))
    assert several.score(parts) == whole.score(X)
    with pytest.raises(ValueError, match="each of which is a group"):
        make(2, **settings).fit(parts, groups=np.zeros(120))
    with pytest.raises(ValueError, match="3, 4 columns"):
        make(2, **settings).fit([X, np.zeros((50, X.shape[1] + 1))])


def test_rejects_an_iterator_of_folds():
    X = ornstein_uhlenbeck(120)
    with pytest.raises(ValueError, match=r"pass list\(cv\)"):
        KernelDiffusionMap(2, rates="cross-fitted", cv=KFold(3).split(X)).fit(X)
