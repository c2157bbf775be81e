"""Modes of trajectories: time scales, modes and scores against exact ones, for every estimator and input."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg
from scipy.signal import lfilter
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import kdmaps
from kdmaps.checks import muted
from kdmaps.exceptions import DataWarning
from kdmaps.problems import load
from kdmaps.selection.lag import LagChoice
from shared import adaptive, checks, expects, known

LAG, STEP = 2, 0.05
ESTIMATORS = [
    kdmaps.KernelDiffusionMap(2, lag=LAG, time_step=STEP, regularization=1e-4, n_features=60, random_state=0),
    kdmaps.KernelSearchCV(
        2, lag=LAG, time_step=STEP, families=["gaussian"], bandwidths=3, n_features=60, random_state=0
    ),
    adaptive(2, lag=LAG, time_step=STEP, n_features=60, families=["gaussian"], random_state=0),
]
quiet = known(
    "weighted-pairs",
    "unresolved",
    "ridge",
    "within-lag",
    "no-gap",
    "folds-disagree",
    "flat",
    "energy-samples",
    "variance-samples",
    "independent-samples",
    "held-out-factor",
    "kernel-factor",
    "feature-factor",
    "drift",
    "asymmetry",
)  # short trajectories, as tests need them


@pytest.fixture(scope="module")
def ou():
    """A trajectory of two independent OU coordinates with rates 1 and 4, by the exact propagator."""
    return load("ou2d-4").trajectory(6000, STEP, substeps=1, random_state=0)


def fitted(X, **settings):
    defaults = {"lag": LAG, "time_step": STEP, "regularization": 1e-4, "n_features": 60, "random_state": 0}
    return kdmaps.KernelDiffusionMap(2, **{**defaults, **settings}).fit(X)


@quiet
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_time_scales_of_the_system(ou, estimator):
    """1, 1/2 (the square of the slow coordinate): 300 time units leave an error of √(2·2/300) = 12 % each."""
    model = estimator.fit(ou)
    assert_allclose(model.timescales_, [1, 0.5], rtol=3 * 0.12)
    assert_allclose(model.rates_, 1 / model.timescales_)
    fresh = load("ou2d-4").sample(4000, random_state=1)
    assert kdmaps.metrics.subspace_r2(model.transform(fresh), load("ou2d-4").reference(fresh, 2)) > 0.9


@quiet
def test_the_quotient_is_an_autocorrelation(ou):
    """The time scale of a mode follows from its autocorrelation after the lag, averaged over both time directions."""
    model = fitted(ou)
    modes = model.transform(ou)
    for k, series in enumerate(modes.T):
        here, there = series[:-LAG], series[LAG:]
        both = np.concatenate([here, there])
        correlation = np.mean((here - both.mean()) * (there - both.mean())) / both.var()
        assert_allclose(model.timescales_[k], -LAG * STEP / np.log(correlation), rtol=1e-8)


@quiet
def test_an_independent_solution(ou):
    """(C_τ, C₀) of the features, solved by SciPy with C_τ - λ in the numerator, where λ acts."""
    model = fitted(ou)
    features = model.basis_.features(ou)
    here, there = features[:-LAG], features[LAG:]
    mean = (here.mean(axis=0) + there.mean(axis=0)) / 2
    here, there = here - mean, there - mean
    C0 = (here.T @ here + there.T @ there) / (2 * len(here))
    Ct = (here.T @ there + there.T @ here) / (2 * len(here))
    penalty = C0 - Ct + 1e-4 * np.eye(len(C0))
    values = linalg.eigh(C0, penalty, eigvals_only=True)[::-1][:2]
    assert_allclose(model.eigenvalues_, values, rtol=1e-7)


@quiet
def test_units_of_time(ou):
    """Another unit of time changes time scales by its factor, and nothing else."""
    one, other = fitted(ou), fitted(ou, time_step=1000 * STEP)
    assert_allclose(other.timescales_, 1000 * one.timescales_, rtol=1e-12)
    assert_allclose(other.coefficients_, one.coefficients_)


@quiet
@pytest.mark.parametrize("turned", [False, True])
def test_time_reversal(ou, turned):
    """Turned in time, a trajectory has the same modes, up to the rounding of sums in another order."""
    model, other = fitted(ou), fitted(ou[::-1].copy(), kernel=fitted(ou).kernel_)
    points = ou[:100]
    found = other.transform(points)
    angles = kdmaps.metrics.principal_angles(model.transform(ou), other.transform(ou))
    assert_allclose(other.timescales_, model.timescales_, rtol=1e-3)
    assert np.max(angles) < 1e-2
    assert found.shape == (100, 2)


@known("independent-samples")
@quiet
def test_chunks_equal_the_whole(ou):
    """`partial_fit` loses no pair at the borders: the result equals a fit of the whole trajectory."""
    settings = {"bandwidth": 1.5}
    whole = fitted(ou, **settings)
    model = kdmaps.KernelDiffusionMap(**whole.get_params())
    model.set_params(kernel=whole.kernel_)
    basis_first = ou[:700]
    model.partial_fit(basis_first)
    for start in range(700, len(ou), 900):
        model.partial_fit(ou[start : start + 900])
    assert model.moments_.count == len(ou) - LAG == whole.moments_.count
    assert_allclose(model.timescales_, whole.timescales_, rtol=1e-6)  # origins of the features differ


@quiet
def test_streams_files_and_lists(ou, tmp_path):
    np.save(tmp_path / "ou.npy", ou)
    parts = [ou[:2000], ou[2000:3500], ou[3500:]]
    groups = np.repeat([0, 1, 2], [2000, 1500, 2500])
    settings = {"bandwidth": 1.5, "basis": "landmarks", "landmarks": ou[:: len(ou) // 60][:60]}
    whole = fitted(ou, **settings)
    for X in (str(tmp_path / "ou.npy"), lambda: iter(np.array_split(ou, 7))):
        assert_allclose(fitted(X, **settings).timescales_, whole.timescales_, rtol=1e-8)
    several = fitted(parts, **settings)
    assert several.moments_.count == len(ou) - 3 * LAG
    model = kdmaps.KernelDiffusionMap(**{**whole.get_params()}).fit(ou, groups=groups)
    assert_allclose(model.timescales_, several.timescales_, rtol=1e-12)
    assert_allclose(several.score(parts), model.score(ou, groups=groups), rtol=1e-12)


@quiet
def test_weight_of_a_pair_is_the_weight_of_its_first_frame(ou):
    """A weight of 2 counts the pair twice; a weight of 0 leaves it out."""
    weight = np.ones(len(ou))
    weight[3000:] = 0
    settings = {"bandwidth": 1.5, "basis": "landmarks", "landmarks": ou[:60]}
    half = fitted(ou[: 3000 + LAG], **settings)
    model = kdmaps.KernelDiffusionMap(**half.get_params()).fit(ou, sample_weight=weight)
    # The sums have other chunks, and the matrix of 60 landmarks in a small region is nearly singular.
    assert_allclose(model.timescales_, half.timescales_, rtol=1e-6)


@quiet
@known("consecutive-frames", "interleaved-walkers")
@pytest.mark.parametrize("estimator", ESTIMATORS[:2], ids=lambda one: type(one).__name__)
def test_warns_of_a_time_step_without_a_lag(estimator, ou):
    with expects("time-step"):
        clone(estimator).set_params(lag=None).fit(ou[:500])


def exact_pairs(n, step):
    """Pairs of an Ornstein–Uhlenbeck process of rate 1 that begin too far outside, and the weights of their starts."""
    rng = np.random.default_rng(0)
    start = 2 * rng.standard_normal(n)
    end = np.exp(-step) * start + np.sqrt(1 - np.exp(-2 * step)) * rng.standard_normal(n)
    weight = np.exp(-(start**2) * (1 - 1 / 4) / 2)
    return np.stack([start, end], axis=1).reshape(-1, 1), np.repeat(weight, 2), np.repeat(np.arange(n), 2)


@quiet
@pytest.mark.parametrize("make", [kdmaps.KernelDiffusionMap, kdmaps.KernelSearchCV])
def test_warns_of_weights_with_a_lag(make):
    X, weight, groups = exact_pairs(4000, 0.3)
    settings = {"lag": 1, "time_step": 0.3, "n_features": 40, "random_state": 0}
    if make is kdmaps.KernelSearchCV:
        settings |= {"families": ["gaussian"], "bandwidths": [3.0], "regularizations": [1e-6]}
    else:
        settings |= {"bandwidth": 3.0, "regularization": 1e-6}
    model = make(1, **settings)
    with expects("weighted-pairs"):
        model.fit(X, sample_weight=weight, groups=groups)
    # The rate 1 of the process; 4,000 pairs, worth 2,400 by their weights, determine it to about √(2/(2400·0.3)) = 5 %.
    assert_allclose(model.timescales_[0], 1.0, rtol=0.16)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        model.fit(X, sample_weight=np.full(len(X), 2.0), groups=groups)  # equal ones are none


@quiet
def test_the_score_is_vamp2(ou):
    model, fresh = fitted(ou), load("ou2d-4").trajectory(6000, STEP, substeps=1, random_state=5)
    modes = model.transform(fresh)
    here, there = modes[:-LAG], modes[LAG:]
    mean = (here.mean(axis=0) + there.mean(axis=0)) / 2
    here, there = here - mean, there - mean
    C0, Ct = here.T @ here + there.T @ there, here.T @ there + there.T @ here
    expected = np.sum(linalg.eigh(Ct, C0, eigvals_only=True) ** 2)
    assert_allclose(model.score(fresh), expected, rtol=1e-9)


@quiet
@pytest.mark.parametrize("scoring", ["vamp1", "vamp2", "vampe", "timescale"])
def test_held_out_scores_stay_below_the_exact_value(scoring):
    """Σν² of exact modes is an upper bound in the population: 12 trajectories exceed it by chance only."""
    exact = np.exp(-np.array([1.0, 2.0]) * LAG * STEP)
    bound = {"vamp1": exact.sum(), "vampe": np.sum(exact**2), "vamp2": np.sum(exact**2)}
    bound["timescale"] = np.sum(-np.log(1 - exact))
    found = []
    for seed in range(12):
        X = load("ou2d-4").trajectory(3000, STEP, substeps=1, random_state=seed)
        search = kdmaps.KernelSearchCV(
            2, lag=LAG, time_step=STEP, families=["gaussian"], bandwidths=[1.5], regularizations=[1e-4],
            basis="fourier", n_features=40, max_extensions=0, scoring=scoring, random_state=0,
        ).fit(X)  # fmt: skip
        found.append(search.search_result_.best.score.plain)
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert np.mean(found) < bound[scoring] + 2 * error
    # VAMP-E is not free of the variance of a block, which fluctuates by half over 25 time units.
    assert np.mean(found) > (0.5 if scoring == "vampe" else 0.85) * bound[scoring]


@known("no-memory", "no-gap", "held-out-factor", "kernel-factor")
def test_a_shuffled_trajectory_has_no_slow_mode(ou):
    shuffled = np.random.default_rng(0).permutation(ou)
    with expects("within-lag"):
        model = fitted(shuffled, regularization=1e-1)
    assert np.all(model.timescales_ < LAG * STEP)


def test_model_files(ou, tmp_path):
    model = fitted(ou)
    model.save(tmp_path / "model.npz")
    other = kdmaps.load(tmp_path / "model.npz")
    assert (other.lag, other.time_step) == (LAG, STEP)
    assert_allclose(other.timescales_, model.timescales_, rtol=1e-12)
    assert_allclose(other.transform(ou[:50]), model.transform(ou[:50]), rtol=1e-12)
    assert_allclose(other.score(ou), model.score(ou), rtol=1e-12)
    assert_allclose(other.modes_.ridge_share, model.modes_.ridge_share, rtol=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lag": 0}, "lag must be a positive integer"),
        ({"lag": -1}, "lag must be a positive integer"),
        ({"lag": 1.5}, "lag must be a positive integer"),
        ({"lag": "long"}, "lag must be"),
        ({"lag": 6000}, "lag=6000 leaves no pair"),
        ({"time_step": 0}, "time_step must be a positive number"),
        ({"time_step": np.nan}, "time_step must be a positive number"),
        ({"diffusion": 2.0}, "diffusion cannot be combined with lag"),
        ({"center": False}, "center=False"),
    ],
    ids=str,
)
def test_bad_settings(ou, settings, message):
    with pytest.raises(ValueError, match=message):
        fitted(ou, **settings)


def test_scores_of_pairs_need_pairs(ou):
    with pytest.raises(ValueError, match="give a lag"):
        kdmaps.KernelSearchCV(2, scoring="vamp2").fit(ou[:100])


@pytest.fixture(scope="module")
def rotating():
    """A noisy rotation, out of equilibrium: x ← 0.95·(x turned by 0.3) + noise."""
    rng, path = np.random.default_rng(0), np.zeros((8000, 2))
    turn = 0.95 * np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    for t in range(1, len(path)):
        path[t] = turn @ path[t - 1] + np.sqrt(1 - 0.95**2) * rng.standard_normal(2)
    return path


def canonical_correlations(f, g):
    """Of the columns of f and g, by QR."""
    left, right = (np.linalg.qr(values - values.mean(axis=0))[0] for values in (f, g))
    return np.linalg.svd(left.T @ right, compute_uv=False)


@quiet
def test_singular_functions_of_a_rotation(rotating):
    """The linear functions lose 5 % of their correlation in a step, but 9 % seen in both directions of time."""
    settings = {"lag": 1, "time_step": 1.0, "bandwidth": 4.0, "regularization": 1e-6}
    model = fitted(rotating, reversible=False, **settings)
    correlations = np.exp(-1 / model.timescales_)
    assert_allclose(correlations, 0.95, atol=0.015)  # 8,000 frames in steps of 40: 200 independent ones, (1-σ²)/√200
    assert_allclose(np.exp(-1 / fitted(rotating, **settings).timescales_), 0.95 * np.cos(0.3), atol=0.03)
    f, g = model.transform(rotating[:-1]), model.transform(rotating[1:], end="second")
    assert_allclose(np.sort(canonical_correlations(f, g)), np.sort(correlations), atol=1e-4)
    assert_allclose([f.mean(axis=0), g.mean(axis=0)], 0, atol=1e-10)
    assert_allclose([f.var(axis=0), g.var(axis=0)], 1, rtol=1e-10)
    fresh = rotating[:3000] @ np.array([[0.0, 1.0], [-1.0, 0.0]])
    f, g = model.transform(fresh[:-1]), model.transform(fresh[1:], end="second")
    assert_allclose(model.score(fresh), np.sum(canonical_correlations(f, g) ** 2), rtol=1e-9)


@quiet
def test_reversible_data_have_the_same_modes_at_both_ends(ou):
    one, both = fitted(ou, reversible=False), fitted(ou)
    # Finite data are not quite reversible: fluctuations of singular values are upwards.
    assert_allclose(one.timescales_, both.timescales_, rtol=0.1)
    assert np.all(one.timescales_ >= both.timescales_ - 1e-9)
    first, second = (one.transform(ou, end=end) for end in ("first", "second"))
    assert np.max(kdmaps.metrics.principal_angles(first, second)) < 0.35


@quiet
def test_model_files_have_both_ends(rotating, tmp_path):
    model = fitted(rotating, reversible=False)
    model.save(tmp_path / "model.npz")
    other = kdmaps.load(tmp_path / "model.npz")
    assert_allclose(other.transform(rotating[:9], end="second"), model.transform(rotating[:9], end="second"))
    assert_allclose(other.score(rotating), model.score(rotating), rtol=1e-12)
    assert_allclose(other.moments_.flow, model.moments_.flow)
    other.partial_fit(rotating)  # a loaded model does not have the last frames of the trajectory before
    assert_allclose(other.timescales_, model.timescales_, rtol=1e-2)


@pytest.mark.parametrize("reversible", [True, False])
def test_constant_frames_are_refused(reversible):
    with pytest.raises(ValueError, match="determine only 0 modes"):
        kdmaps.KernelDiffusionMap(1, lag=1, reversible=reversible, bandwidth=1.0).fit(np.ones((10, 2)))


@quiet
def test_direction_of_time_through_searches_and_chunks(rotating):
    options = {"families": ["gaussian"], "bandwidths": [4.0], "regularizations": [1e-6], "max_extensions": 0}
    search = kdmaps.KernelSearchCV(2, lag=1, reversible=False, n_features=60, random_state=0, **options).fit(rotating)
    assert_allclose(np.exp(-1 / search.timescales_), 0.95, atol=0.015)
    whole = fitted(rotating, lag=1, reversible=False, bandwidth=4.0)
    chunked = kdmaps.KernelDiffusionMap(**whole.get_params()).partial_fit(rotating[:5000]).partial_fit(rotating[5000:])
    assert_allclose(chunked.timescales_, whole.timescales_, rtol=1e-6)
    with pytest.raises(ValueError, match="give a lag"):
        fitted(rotating, lag=None, reversible=False)
    with pytest.raises(ValueError, match="end must be"):
        whole.transform(rotating, end="third")


@quiet
def test_the_lag_is_found(ou):
    """A Markovian trajectory is flat from the first lag on; noise in the coordinates makes short lags wrong."""
    model = fitted(ou, lag="auto")
    assert model.lag == "auto"
    assert model.lag_ == model.lag_choice_.plateau
    assert_allclose(model.timescales_, [1, 0.5], rtol=3 * 0.12)
    search = kdmaps.KernelSearchCV(2, lag="auto", time_step=STEP, families=["gaussian"], bandwidths=2, random_state=0)
    assert search.fit(ou).lag_ == model.lag_
    assert search.best_estimator_.lag == model.lag_


@quiet
def test_a_chosen_lag_is_stored(ou, tmp_path):
    model = fitted(ou, lag="auto")
    model.save(tmp_path / "model.npz")
    assert kdmaps.load(tmp_path / "model.npz").lag_ == model.lag_


@quiet
@pytest.mark.parametrize("grouped", [False, True])
def test_error_bars_contain_the_truth(grouped):
    """Of eight 95 % intervals, five or more contain the truth but for a chance of 1 in 3,000."""
    groups, found = np.repeat([0, 1, 2], 2000) if grouped else None, []
    for seed in range(100, 108):
        path = load("ou2d-4").trajectory(6000, STEP, substeps=1, random_state=seed)
        model = kdmaps.KernelDiffusionMap(
            2, lag=LAG, time_step=STEP, regularization=1e-4, n_features=60, random_state=0
        ).fit(path, groups=groups)
        found.append(kdmaps.uncertainty.bootstrap(model, path, groups=groups, n_resamples=60, random_state=0))
    low, high = np.moveaxis([each.timescale_intervals for each in found], 2, 0)
    assert np.all(np.sum((low < [1, 0.5]) & (high > [1, 0.5]), axis=0) >= 5)
    # √(2·2t/T): 12 % for the first time scale and 8 % for the second, in 300 time units.
    relative = np.mean([each.timescale_errors / each.timescales for each in found], axis=0)
    assert_allclose(relative, [0.12, 0.08], rtol=0.6)


#: Pairs are made of neighbouring rows, so that a row left out, or given twice, is not a row of weight 0, or 2.
NOT_FOR_TRAJECTORIES = {
    "check_sample_weight_equivalence_on_dense_data": "a row that is left out changes the pairs of its neighbours",
}
SMALL = {"families": ["gaussian"], "bandwidths": 2, "regularizations": [1e-2], "n_features": 20, "cv": 2}


@parametrize_with_checks(
    [
        kdmaps.KernelDiffusionMap(1, n_features=20, lag=1),
        kdmaps.KernelDiffusionMap(1, n_features=20, lag=1, reversible=False),
        kdmaps.KernelSearchCV(1, lag=1, **SMALL),
        adaptive(1, lag=1, **SMALL),
    ],
    expected_failed_checks=lambda estimator: NOT_FOR_TRAJECTORIES,
)
@known(
    "weighted-pairs",
    "unresolved",
    "ridge",
    "within-lag",
    "no-gap",
    "folds-disagree",
    "flat",
    "energy-samples",
    "variance-samples",
    "independent-samples",
    "held-out-factor",
    "kernel-factor",
    "feature-factor",
    "no-memory",
)
@pytest.mark.slow
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@known("no-memory", "no-gap", "within-lag", "lag-halved", "lag-not-flat")
def test_an_automatic_lag_after_which_nothing_is_left_is_halved(monkeypatch):
    """Frames whose slowest mode has a time scale of 20 frames, and a scan that returns 160 frames."""
    rng, a = np.random.default_rng(0), np.exp(-1 / 20)
    X = lfilter([np.sqrt(1 - a**2)], [1.0, -a], rng.standard_normal((2000, 2)), axis=0)
    with muted():
        scan = kdmaps.dynamics.choose_lag(X).timescales
    monkeypatch.setattr("kdmaps.estimators.fit.choose_lag", lambda *_, **__: LagChoice(160, scan))
    search = kdmaps.KernelSearchCV(1, lag="auto", families=["gaussian"], n_features=40, random_state=0)
    with expects("lag-halved") as record:
        search.fit(X)
    assert checks(record)[0].words["first"] == 160
    assert search.lag_ < 40
    assert search.timescales_[0] == pytest.approx(20, rel=0.5)  # 50 independent frames
    fixed = kdmaps.KernelSearchCV(1, lag=160, families=["gaussian"], n_features=40, random_state=0)
    with muted():
        assert fixed.fit(X).lag_ == 160  # as given
