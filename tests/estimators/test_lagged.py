"""Modes of trajectories: time scales, modes and scores against exact ones, through every door of the estimators."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg

import kdmaps
from kdmaps.problems import load
from shared import known_warning

LAG, STEP = 2, 0.05
ESTIMATORS = [
    kdmaps.KernelDiffusionMap(2, lag=LAG, time_step=STEP, regularization=1e-4, n_features=60, random_state=0),
    kdmaps.KernelSearchCV(
        2, lag=LAG, time_step=STEP, families=["gaussian"], bandwidths=3, n_features=60, random_state=0
    ),
    kdmaps.AdaptiveDiffusionMap(2, lag=LAG, time_step=STEP, n_features=60, families=["gaussian"], random_state=0),
]
quiet = known_warning("(same time scale|do not resolve|flat|disagree)")


@pytest.fixture(scope="module")
def ou():
    """A trajectory of two independent OU coordinates with rates 1 and 4, by the exact propagator."""
    return load("ou2d-4").trajectory(6000, STEP, substeps=1, random_state=0)


def fitted(X, **settings):
    defaults = {"lag": LAG, "time_step": STEP, "regularization": 1e-4, "n_features": 60, "random_state": 0}
    return kdmaps.KernelDiffusionMap(2, **{**defaults, **settings}).fit(X)


@quiet
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_time_scales_are_those_of_the_system(ou, estimator):
    """1, 1/2 (the square of the slow coordinate): 300 time units leave an error of √(2·2/300) = 12 % each."""
    model = estimator.fit(ou)
    assert_allclose(model.timescales_, [1, 0.5], rtol=3 * 0.12)
    assert_allclose(model.rates_, 1 / model.timescales_)
    fresh = load("ou2d-4").sample(4000, random_state=1)
    assert kdmaps.metrics.subspace_r2(model.transform(fresh), load("ou2d-4").reference(fresh, 2)) > 0.9


@quiet
def test_the_quotient_is_an_autocorrelation(ou):
    """The time scale of a mode is that of its autocorrelation after the lag, mean over both directions of time."""
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


@quiet
def test_chunks_are_the_whole(ou):
    """`partial_fit` loses no pair at the borders: the result is that of the whole trajectory."""
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
def test_weights_are_those_of_first_frames(ou):
    """A weight of 2 is the pair twice; a weight of 0 is no pair."""
    weight = np.ones(len(ou))
    weight[3000:] = 0
    settings = {"bandwidth": 1.5, "basis": "landmarks", "landmarks": ou[:60]}
    half = fitted(ou[: 3000 + LAG], **settings)
    model = kdmaps.KernelDiffusionMap(**half.get_params()).fit(ou, sample_weight=weight)
    assert_allclose(model.timescales_, half.timescales_, rtol=1e-8)


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
    bound["timescale"] = np.sum(1 / np.sqrt(1 - exact))
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


@known_warning()
def test_a_shuffled_trajectory_has_no_slow_mode(ou):
    shuffled = np.random.default_rng(0).permutation(ou)
    with pytest.warns(kdmaps.exceptions.UnreliableModesWarning, match="relax within one lag"):
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
        ({"diffusion": 2.0}, "diffusion belongs to the energy"),
        ({"center": False}, "center=False"),
        ({"engine": "jax"}, "engine='jax'"),
    ],
    ids=str,
)
def test_bad_settings(ou, settings, message):
    with pytest.raises(ValueError, match=message):
        fitted(ou, **settings)


def test_scores_of_pairs_need_pairs(ou):
    with pytest.raises(ValueError, match="give a lag"):
        kdmaps.KernelSearchCV(2, scoring="vamp2").fit(ou[:100])
