"""Fits of driven systems, and of runs that start out of equilibrium, are flagged; fits in equilibrium are not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import kdmaps
from experiments.driven import rotating_ou
from kdmaps.diagnostics.equilibrium import asymmetry, drift
from shared import expects, known


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


def chains(rng, n_runs, length, start):
    """Runs of two independent autoregressive processes with correlations 0.9 and 0.5 and stationary variances 1."""
    factor = np.array([0.9, 0.5])
    x = np.empty((n_runs, length + 1, 2))
    x[:, 0] = start
    for t in range(length):
        x[:, t + 1] = factor * x[:, t] + np.sqrt(1 - factor**2) * rng.normal(size=(n_runs, 2))
    first, second = (part.reshape(-1, 2) for part in (x[:, :-1], x[:, 1:]))
    return first, second, -1 / np.log(factor), np.split(np.arange(len(first)), n_runs)


@pytest.mark.parametrize(("n_runs", "length"), [(20, 20), (1, 1000), (4, 300)])
def test_level_of_drift(n_runs, length):
    """The largest of the corrected deviates of stationary runs exceeds 1.96 with probability 5 %: 10 ± 3 of 200."""
    rng = np.random.default_rng(0)
    found = [drift(*chains(rng, n_runs, length, rng.normal(size=(n_runs, 2)))).max() for _ in range(200)]
    assert 2 <= np.count_nonzero(np.array(found) > stats.norm.isf(0.025)) <= 19


def test_drift_of_runs_from_one_point():
    """Runs of two relaxation times: the slow process is far from its mean at the start, the fast one as well."""
    rng = np.random.default_rng(0)
    first, second, times, runs = chains(rng, 30, 20, [1.5, 1.5])
    found = drift(first, second, times, runs)
    # Fitted separately for each process (the other has no influence), the slope is ρ - 1 and its error √((1-ρ²)/Σx²):
    # the predicted change at 1.5 is 1.5(ρ - 1) = 0.15 with an error of about 0.02, and 0.75 with one of 0.05.
    assert found.min() > 4
    assert drift(first + np.r_[0.0, 7.0], second + np.r_[0.0, 7.0], times, runs) == pytest.approx(found)  # any origin
    # The slowest process has most of the probability of an alarm.
    assert drift(first, second, np.array([1e9, 1.0]), runs)[1] < found[1] < drift(first, second, times[::-1], runs)[1]


def test_drift_between_halves():
    rng = np.random.default_rng(0)
    first, second, times, _ = chains(rng, 1, 2000, [0.0, 0.0])
    step = 0.5 * (np.arange(2000) >= 1000)[:, None]
    found = drift(first + step, second + step, times, None)
    # 1,000 frames with correlations ρ^t are worth 1000(1-ρ)/(1+ρ) = 53 and 333: errors of the difference of 0.19, 0.08.
    plain = np.diff([half.mean(axis=0) for half in np.split(first + step, 2)], axis=0)[0] / [0.194, 0.0775]
    share = times / times.sum()
    expected = stats.norm.isf(stats.norm.sf(np.abs(plain)) / share)
    assert_allclose(found, expected, rtol=0.25)  # correlation times are estimated to 20 %, and enter by their roots
    assert np.isnan(drift(first[:5], second[:5], times, list(np.arange(5)[:, None]))).all()  # runs of one pair
    short = slice(0, 60)
    assert np.isnan(drift(first[short], second[short], times, None)[0])  # three independent frames


@pytest.mark.parametrize("make", [fit, lambda X: kdmaps.AdaptiveDiffusionMap(2, lag=1, random_state=0).fit(X)])
def test_driven_system_is_flagged(make, tmp_path):
    path = rotating_ou(2000, 0).X
    with expects("asymmetry"):
        model = make(path)
    assert [reasons[-1:] for reasons in model.trust_.reasons] == [("asymmetry",)] * 2
    model.save(tmp_path / "model.npz")
    assert kdmaps.load(tmp_path / "model.npz").trust_.reasons == model.trust_.reasons


@known("asymmetry")
def test_streams_and_files_have_the_same_checks(tmp_path):
    """The pairs drawn to choose the basis are kept, so that no pass is added."""
    path, passes = rotating_ou(12_000, 0).X, []
    np.save(tmp_path / "path.npy", path)

    def stream():
        passes.append(1)
        return iter(np.array_split(path, 5))

    known = fit(path).trust_
    assert known.reasons[0] == ("asymmetry",)
    for given in (stream, tmp_path / "path.npy"):
        found = fit(given).trust_
        assert_allclose(found.equilibrium.asymmetry, known.equilibrium.asymmetry, rtol=1e-6)
        assert_allclose(found.equilibrium.drift, known.equilibrium.drift, rtol=1e-6, atol=1e-9)
        assert found.reasons == known.reasons
    assert len(passes) == 5  # the width, the steps, the order of rows, the sample and the sums
    assert fit(iter(np.split(path, [11_000])), bandwidth=1.0).trust_ is None  # the first pairs need not be typical


@pytest.mark.parametrize("seed", range(5))
def test_reversible_system_is_not_flagged(seed):
    path = kdmaps.problems.load("ou2d-4").simulate(2000, dt=0.1, random_state=seed)[0]
    model = fit(path, random_state=seed)
    assert model.trust_.equilibrium.asymmetry.max() < 3.29
    assert model.trust_.ok.all()


def test_only_reversible_pairs_are_tested():
    path = rotating_ou(2000, 0).X
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
    assert fit_runs(runs_from(None, 0)).trust_.equilibrium.drift[0] < 2.33


@known("weighted-pairs")
def test_weights_correct_runs_from_one_well():
    runs = runs_from([1.4], 0)
    with expects("drift"):
        model = fit_runs(runs)
    # Of the relaxation towards equilibrium, more than a third is taken for the difference between the states.
    assert model.timescales_[0] < 0.75 * TIME
    weights = kdmaps.dynamics.equilibrium_weights(model, runs)
    assert weights.mean() == pytest.approx(1)
    again = fit_runs(runs, sample_weight=weights)
    # Fifty runs contain about 50 transitions: a standard error of 14 %, twice.
    assert again.timescales_[0] == pytest.approx(TIME, rel=0.28)
    assert "drift" not in again.trust_.reasons[0]


@known("drift")
@known("unresolved")
@known("no-gap")
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
