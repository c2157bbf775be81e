"""Fits of driven systems, and of runs that start out of equilibrium, are flagged; fits in equilibrium are not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import kdmaps
from kdmaps.diagnostics.equilibrium import asymmetry, drift
from kdmaps.exceptions import UnreliableModesWarning
from shared import known_finding, known_warning, rotating


def fit(X, **settings):
    options = {"lag": 1, "time_step": 0.1, "regularization": 1e-4, "n_features": 60, "random_state": 0} | settings
    return kdmaps.KernelDiffusionMap(2, **options).fit(X)


def test_standard_errors_of_independent_pairs():
    rng = np.random.default_rng(0)
    first = rng.normal(size=(6000, 2))
    second = first @ [[0.5, 0.03], [-0.03, 0.5]] + rng.normal(size=(6000, 2))
    terms = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    plain = terms.mean() / (terms.std() / np.sqrt(6000))  # about 3
    found = asymmetry(first, second, None, None)
    assert found[0] == found[1]  # one comparison of two functions
    # Thirty blocks give a standard error to 1/√60 = 13 %, and Student's law a few per cent less: three of these.
    assert found[0] == pytest.approx(plain, rel=0.4)
    assert_allclose(asymmetry(first, second, np.full(6000, 7.0), [np.arange(6000)]), found)
    assert np.isnan(asymmetry(first[:100], second[:100], None, None)).all()


def test_level_of_independent_runs():
    # With values that are independent of the run, the largest of two is a normal deviate with Bonferroni's correction:
    # P(> 1.96) is 5 %, 10 ± 3 of 200.
    rng = np.random.default_rng(0)
    runs = np.split(np.arange(400), 20)
    values = [drift(rng.normal(size=(400, 2)) + np.repeat(rng.normal(size=20), 20)[:, None], runs) for _ in range(200)]
    assert 2 <= np.count_nonzero(np.max(values, axis=1) > stats.norm.isf(0.025)) <= 19
    assert np.isnan(drift(rng.normal(size=(90, 2)), np.split(np.arange(90), 9))).all()


@pytest.mark.parametrize("make", [fit, lambda X: kdmaps.AdaptiveDiffusionMap(2, lag=1, random_state=0).fit(X)])
def test_driven_system_is_flagged(make, tmp_path):
    path = rotating(2000, 2.0, 0)
    with pytest.warns(UnreliableModesWarning, match=r"is driven.*reversible=False.*dynamics\.koopman"):
        model = make(path)
    assert [reasons[-1:] for reasons in model.trust_.reasons] == [("asymmetry",)] * 2
    model.save(tmp_path / "model.npz")
    assert kdmaps.load(tmp_path / "model.npz").trust_.reasons == model.trust_.reasons


@pytest.mark.parametrize("seed", range(5))
def test_reversible_system_is_not_flagged(seed):
    path = kdmaps.problems.load("ou2d-4").simulate(2000, dt=0.1, random_state=seed)[0]
    model = fit(path, random_state=seed)
    assert model.trust_.equilibrium.asymmetry.max() < 3.29
    assert model.trust_.ok.all()


def test_only_reversible_pairs_are_tested():
    path = rotating(2000, 2.0, 0)
    assert fit(path, reversible=False).trust_.equilibrium is None
    static = kdmaps.KernelDiffusionMap(2, regularization=1e-4, n_features=60, random_state=0).fit(path)
    assert static.trust_.equilibrium is None


WELLS = kdmaps.problems.load("triplewell1d")
TIME = 1 / WELLS.rates(1)[0]


def runs_from(start, seed, n=50):
    """Runs of one relaxation time, of frames 0.05 apart."""
    frames = WELLS.simulate(int(TIME / 0.005), 0.005, n_trajectories=n, x0=start, random_state=seed)
    return list(frames[:, ::10])


def fit_runs(runs, **settings):
    model = kdmaps.KernelDiffusionMap(1, lag=5, time_step=0.05, regularization=1e-3, n_features=60, random_state=0)
    return model.fit(runs, **settings)


def test_runs_in_equilibrium_do_not_drift():
    assert fit_runs(runs_from(None, 0)).trust_.equilibrium.drift[0] < 2.58


@known_finding("sample_weight with lag")
def test_weights_correct_runs_from_one_well():
    runs = runs_from([1.4], 0)
    with pytest.warns(UnreliableModesWarning, match=r"start out of equilibrium.*equilibrium_weights"):
        model = fit_runs(runs)
    # Of the relaxation towards equilibrium, more than a third is taken for the difference between the states.
    assert model.timescales_[0] < 0.75 * TIME
    weights = kdmaps.dynamics.equilibrium_weights(model, runs)
    assert weights.mean() == pytest.approx(1)
    again = fit_runs(runs, sample_weight=weights)
    # Fifty runs contain about 50 transitions: a standard error of 14 %, twice.
    assert again.timescales_[0] == pytest.approx(TIME, rel=0.28)
    assert "drift" not in again.trust_.reasons[0]


@known_warning("start out of equilibrium")
@known_warning("do not resolve mode")
@known_warning("same time scale")
def test_weights_of_a_chain_are_stationary():
    P = np.array([[0.9, 0.1, 0.0], [0.05, 0.85, 0.1], [0.0, 0.2, 0.8]])
    rng = np.random.default_rng(0)
    runs = np.zeros((40, 30), dtype=int)
    for t in range(1, 30):
        runs[:, t] = [rng.choice(3, p=P[state]) for state in runs[:, t - 1]]
    points = list(np.array([0.0, 1.0, 2.0])[runs][:, :, None])
    model = kdmaps.KernelDiffusionMap(1, lag=1, bandwidth=1.0, regularization=1e-9, n_features=20)
    weights = kdmaps.dynamics.equilibrium_weights(model.set_params(random_state=0).fit(points), points)
    # Three functions represent every function of three states, so that the weighted first frames have the stationary
    # law of the matrix of counts, which need not be symmetric.
    counts = np.zeros((3, 3))
    np.add.at(counts, (runs[:, :-1].ravel(), runs[:, 1:].ravel()), 1)
    values, vectors = np.linalg.eig((counts / counts.sum(axis=1, keepdims=True)).T)
    law = np.real(vectors[:, np.argmax(np.real(values))])
    first = runs[:, :-1].ravel()
    found = np.bincount(first, weights.reshape(40, 30)[:, :-1].ravel(), 3)
    assert_allclose(found / found.sum(), law / law.sum(), rtol=1e-5)  # rounding, and the regularization of the modes
