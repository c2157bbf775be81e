"""Rates in real time from weighted samples and short runs, against exact rates."""

import numpy as np
import pandas as pd
import pytest

import kdmaps
from kdmaps.clocks.weights import Starts
from kdmaps.exceptions import ArgumentError, NotApplicable, UnreliableModesWarning

pytestmark = pytest.mark.filterwarnings("ignore::kdmaps.exceptions.CheckWarning", "ignore::UserWarning")

#: Time between stored frames, of five integration steps.
STEP = 0.005
KERNEL = {"kernel": "gaussian", "bandwidth": 0.25, "regularization": 1e-9, "random_state": 0}


def simulate(problem, starts, n_frames=50, seed=0):
    runs = problem.simulate(5 * n_frames, dt=STEP / 5, n_trajectories=len(starts), x0=starts, random_state=seed)
    return runs[:, ::5]


@pytest.fixture(scope="module")
def system():
    """Müller–Brown with D = 0.1: samples of a biased law, their weights, starts and bursts."""
    problem = kdmaps.problems.load("muller-brown")
    X, weight = problem.biased_sample(3000, random_state=1)
    plain = kdmaps.KernelDiffusionMap(2, **KERNEL).fit(X, sample_weight=weight)
    starts = kdmaps.dynamics.where_to_start(plain, X, 250, sample_weight=weight, random_state=0)
    return problem, X, weight, starts, simulate(problem, X[starts.rows])


@pytest.fixture(scope="module")
def model(system):
    _, X, weight, starts, runs = system
    timed = kdmaps.KernelDiffusionMap(2, time_step=STEP, **KERNEL)
    return timed.fit(X, sample_weight=weight, bursts=runs, burst_start=starts)


def test_rates_are_real(system, model):
    exact = system[0].rates(2)
    # The exact energies of these samples, by the true tensor, are off by a similar amount: the floor of the samples.
    floor = kdmaps.KernelDiffusionMap(2, diffusion=0.1, **KERNEL).fit(system[1], sample_weight=system[2]).rates_
    assert np.all(np.abs(np.log(model.rates_ / floor)) < 0.2)
    assert np.all(np.abs(np.log(model.rates_ / exact)) < np.abs(np.log(floor / exact)) + 0.2)
    np.testing.assert_allclose(model.timescales_, 1 / model.rates_)
    assert model.clock_.chosen == ["R1", "R1"]
    assert np.all(np.abs(np.log(model.clock_.factor)) < 0.2)


def test_the_unit_of_the_time_step_is_the_unit_of_time_scales(system, model):
    _, X, weight, starts, runs = system
    regularization = KERNEL["regularization"] / 1000  # is a rate
    other = kdmaps.KernelDiffusionMap(2, time_step=1000 * STEP, **KERNEL | {"regularization": regularization})
    other.fit(X, sample_weight=weight, bursts=runs, burst_start=starts)
    np.testing.assert_allclose(other.rates_, model.rates_ / 1000, rtol=1e-6)


def test_the_diffusion_tensor_of_the_bursts_is_used(model):
    tensor = model.clock_.diffusion([[-0.5, 1.4], [0.6, 0.0]])
    assert np.abs(tensor[:, [0, 1], [0, 1]] / 0.1 - 1).max() < 0.15


def test_a_wrong_constant_tensor_is_corrected(system):
    _, X, weight, starts, runs = system
    given = kdmaps.KernelDiffusionMap(2, diffusion=1.0, time_step=STEP, **KERNEL | {"regularization": 1e-8})
    given.fit(X, sample_weight=weight, bursts=runs, burst_start=starts)
    assert given.clock_.diffusion is None
    assert np.all(np.abs(np.log(given.clock_.factor / 0.1)) < 3.5 * given.clock_.burst_errors)
    assert np.all(given.clock_.burst_errors < 0.15)


def test_every_form_of_bursts_gives_the_same_result(system, model, tmp_path):
    _, X, weight, starts, runs = system

    def rates_of(bursts, start=starts):
        timed = kdmaps.KernelDiffusionMap(2, time_step=STEP, **KERNEL)
        return timed.fit(X, sample_weight=weight, bursts=bursts, burst_start=start).rates_

    paths = []
    for number, run in enumerate(runs):
        paths.append(tmp_path / f"burst_{number:03}.npy")
        np.save(paths[-1], run)
    streams = [lambda run=run: iter([run[:20], run[20:]]) for run in runs]
    frames = [pd.DataFrame(run, columns=["x", "y"]) for run in runs]
    for bursts in (list(runs), [run.tolist() for run in runs], paths, streams, frames):
        np.testing.assert_array_equal(rates_of(bursts), model.rates_)
    # Weights of the starts, with the rows that they belong to: only weights at other points are interpolated otherwise.
    weights = starts.weights
    timed = kdmaps.KernelDiffusionMap(2, time_step=STEP, **KERNEL)
    timed.fit(X, sample_weight=weight, bursts=runs, burst_start=starts.rows, burst_weight=weights)
    np.testing.assert_allclose(timed.rates_, model.rates_, rtol=0.1)


def test_search_and_its_best_estimator_have_the_clock(system):
    _, X, weight, starts, runs = system
    settings = {"families": ["gaussian"], "bandwidths": [0.25], "regularizations": [1e-9], "random_state": 0}
    search = kdmaps.KernelSearchCV(2, time_step=STEP, n_jobs=1, **settings)
    search.fit(X, sample_weight=weight, bursts=runs, burst_start=starts)
    assert search.best_estimator_.clock_ is search.clock_
    np.testing.assert_array_equal(search.best_estimator_.rates_, search.rates_)
    assert search.get_params()["diffusion"] is None
    assert search.score(X, sample_weight=weight) > 1 / search.rates_[0] / 2


@pytest.mark.parametrize("own_tensor", [False, True])
def test_stored_models_have_the_clock(system, model, own_tensor, tmp_path):
    _, X, weight, starts, runs = system
    if own_tensor:
        tensor = kdmaps.dynamics.diffusion_tensor(list(runs), time_step=STEP)
        model = kdmaps.KernelDiffusionMap(2, diffusion=tensor, time_step=STEP, **KERNEL)
        model.fit(X, sample_weight=weight, bursts=runs, burst_start=starts)
    model.save(tmp_path / "model.npz")
    same = kdmaps.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(same.rates_, model.rates_)
    np.testing.assert_array_equal(same.clock_.intervals, model.clock_.intervals)
    assert repr(same.clock_) == repr(model.clock_)
    assert [check.say() for check in same.clock_.checks] == [check.say() for check in model.clock_.checks]
    assert same.score(X, sample_weight=weight) == pytest.approx(model.score(X, sample_weight=weight))


def test_intervals_of_resamples_include_the_error_of_the_clock(system, model):
    _, X, weight, _, _ = system
    found = kdmaps.uncertainty.bootstrap(model, X, sample_weight=weight, n_resamples=40)
    np.testing.assert_allclose(found.rates, model.rates_)
    assert np.all((found.rate_intervals[:, 0] < model.rates_) & (model.rates_ < found.rate_intervals[:, 1]))
    plain = kdmaps.KernelDiffusionMap(2, diffusion=model.clock_.diffusion, **KERNEL).fit(X, sample_weight=weight)
    static = kdmaps.uncertainty.bootstrap(plain, X, sample_weight=weight, n_resamples=40)
    assert np.all(np.diff(np.log(found.rate_intervals)) >= np.diff(np.log(static.rate_intervals)))


def test_committor_in_real_time(system, tmp_path):
    problem, X, weight, _, _ = system

    def source(points):
        return np.hypot(points[:, 0] + 0.558, points[:, 1] - 1.442) < 0.2

    def target(points):
        return np.hypot(points[:, 0] - 0.623, points[:, 1] - 0.028) < 0.2

    exact = problem.committor(source, target)
    sets = (source(X), target(X))
    settings = {"n_features": 150, "basis": "fourier", "random_state": 0}
    static = kdmaps.AdaptiveCommittor(**settings).fit(X, sets, sample_weight=weight)
    starts = kdmaps.dynamics.where_to_start(static, X, 250, sample_weight=weight)
    runs = simulate(problem, X[starts.rows], seed=1)
    timed = kdmaps.AdaptiveCommittor(time_step=STEP, **settings)
    timed.fit(X, sets, sample_weight=weight, bursts=runs, burst_start=starts)
    assert timed.flux_ == pytest.approx(exact.flux, rel=0.3)
    assert timed.flux_interval_[0] < exact.flux < timed.flux_interval_[1]
    assert timed.rate_ / timed.flux_ == pytest.approx(exact.rate / exact.flux, rel=0.05)
    assert timed.mean_first_passage_time_ == pytest.approx(1 / timed.rate_)
    timed.save(tmp_path / "committor.npz")
    same = kdmaps.load(tmp_path / "committor.npz")
    assert (same.flux_, same.rate_) == (timed.flux_, timed.rate_)
    assert repr(same.clock_) == repr(timed.clock_)
    assert same.score(X, sample_weight=weight) == timed.score(X, sample_weight=weight)


def test_starts_are_drawn_where_the_energy_is(system):
    _, X, weight, starts, _ = system
    assert starts.probabilities.sum() == pytest.approx(1)
    assert starts.weights.mean() == pytest.approx(1)
    expected = (weight / weight.sum() / starts.probabilities)[starts.rows]
    np.testing.assert_allclose(starts.weights, expected / expected.mean())
    barrier = (X[:, 0] > -1) & (X[:, 0] < -0.6) & (X[:, 1] > 0.4) & (X[:, 1] < 0.9)
    assert barrier[starts.rows].mean() > 2.5 * barrier.mean()


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"bursts": []}, ArgumentError, "empty list"),
        ({"bursts": np.zeros((3, 50))}, ArgumentError, "list of runs"),
        ({"bursts": "shorter"}, ArgumentError, "at least 21 frames"),
        ({"bursts": "wider"}, ArgumentError, "3 columns, but X has 2"),
        ({"bursts": "mixed"}, ArgumentError, "2 and 3 columns"),
        ({"bursts": "nan"}, ArgumentError, "frame 7 of run 2"),
        ({"bursts": "words"}, ArgumentError, "not numbers"),
        ({"burst_start": None}, ArgumentError, "burst_start"),
        ({"burst_start": "too few"}, ArgumentError, "one row number"),
        ({"burst_start": "outside"}, ArgumentError, "row 3000"),
        ({"burst_start": "other rows"}, ArgumentError, "do not start at the rows"),
        ({"burst_start": "other samples"}, ArgumentError, "chosen from 10 samples"),
        ({"burst_weight": [1.0, 2.0]}, ArgumentError, "one number for each"),
        ({"burst_weight": "negative"}, ArgumentError, "0 or more"),
        ({"bursts": None}, ArgumentError, "need bursts"),
        ({"time_step": None}, ArgumentError, "give time_step"),
        ({"time_step": -1.0}, ValueError, "time_step"),
        ({"lag": 1}, NotApplicable, "lag"),
        ({"diffusion": "per sample"}, NotApplicable, "per sample"),
    ],
)
def test_bad_input_is_named(system, changes, error, words):
    _, X, weight, starts, runs = system
    wrong = {
        "shorter": [*runs[:-1], runs[-1][:20]],
        "wider": [np.hstack([run, run[:, :1]]) for run in runs],
        "mixed": [*runs[:-1], np.hstack([runs[-1], runs[-1][:, :1]])],
        "nan": np.where(np.arange(runs.size).reshape(runs.shape) == 2 * 2 * 50 + 2 * 7, np.nan, runs),
        "words": [[["a", "b"]] * 30],
        "too few": starts.rows[:-1],
        "outside": np.append(starts.rows[:-1], 3000),
        "other rows": np.roll(starts.rows, 1),
        "other samples": Starts(starts.rows, starts.weights, np.full(10, 0.1)),
        "negative": -starts.weights,
        "per sample": np.tile(np.eye(2), (len(X), 1, 1)),
    }
    given = {"bursts": runs, "burst_start": starts, "time_step": STEP} | changes
    given = {name: wrong.get(value, value) if isinstance(value, str) else value for name, value in given.items()}
    settings = {name: given.pop(name) for name in ("time_step", "lag", "diffusion") if name in given}
    with pytest.raises(error, match=words):
        kdmaps.KernelDiffusionMap(2, **settings, **KERNEL).fit(X, sample_weight=weight, **given)


def test_an_estimator_without_a_clock_refuses_bursts(system):
    with pytest.raises(NotApplicable, match="VariationalKernelMap has no clock"):
        kdmaps.VariationalKernelMap(2).fit(system[1], bursts=system[4], burst_start=system[3])


def test_bursts_of_a_list_of_trajectories_start_at_rows_of_all(system, model):
    _, X, weight, starts, runs = system
    timed = kdmaps.KernelDiffusionMap(2, time_step=STEP, **KERNEL)
    timed.fit([X[:1000], X[1000:]], sample_weight=weight, bursts=runs, burst_start=starts)
    np.testing.assert_allclose(timed.clock_.factors, model.clock_.factors)


def test_checks_of_the_clock_are_checks_of_the_model(model):
    assert {check.code for check in model.clock_.checks} <= {check.code for check in model.checks}


def test_partial_fit_refuses_a_model_in_real_time(system, model):
    with pytest.raises(NotApplicable, match="real time"):
        model.partial_fit(system[1])


def test_a_fit_without_bursts_has_no_clock(system):
    assert kdmaps.KernelDiffusionMap(1, **KERNEL).fit(system[1]).clock_ is None


def codes(caught):
    return {item.message.check.code for item in caught if hasattr(getattr(item.message, "check", None), "code")}


def test_bursts_away_from_the_transition_are_reported(system):
    problem, X, weight, _, _ = system
    well = np.flatnonzero(np.hypot(X[:, 0] + 0.558, X[:, 1] - 1.442) < 0.3)
    rows = np.random.default_rng(0).choice(well, 60)
    runs = simulate(problem, X[rows], seed=2)
    timed = kdmaps.KernelDiffusionMap(1, time_step=STEP, **KERNEL)
    with pytest.warns(UnreliableModesWarning) as caught:
        timed.fit(X, sample_weight=weight, bursts=runs, burst_weight=weight[rows])
    assert codes(caught) & {"clock-coverage", "clock-bursts"}


def test_starts_that_are_not_random_rows_are_reported(system):
    _, X, weight, starts, runs = system
    timed = kdmaps.KernelDiffusionMap(2, time_step=STEP, **KERNEL)
    with pytest.warns(UnreliableModesWarning) as caught:
        timed.fit(X, sample_weight=weight, bursts=runs, burst_start=starts.rows)
    assert "clock-starts" in codes(caught)


def test_noisy_frames_are_reported(system):
    _, X, weight, starts, runs = system
    noisy = runs + 0.05 * np.random.default_rng(0).standard_normal(runs.shape)
    timed = kdmaps.KernelDiffusionMap(2, time_step=STEP, **KERNEL)
    with pytest.warns(UnreliableModesWarning) as caught:
        timed.fit(X, sample_weight=weight, bursts=noisy, burst_start=starts)
    assert "clock-memory" in codes(caught)
    assert any(name.startswith("G") for name in timed.clock_.chosen)


def test_correct_bursts_pass(system, model):
    assert [check.code for check in model.clock_.checks if not check.passed] == []
