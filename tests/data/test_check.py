"""The data check: each check finds its mistake, but not a near miss."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, make_swiss_roll

import kdmaps
from kdmaps.checks import Check, Severity
from kdmaps.data import ArraySource, check_data, findings
from kdmaps.data.check import warn_of_data
from kdmaps.data.correlation import order_of
from kdmaps.data.findings import surface_dimension
from kdmaps.exceptions import DataWarning
from shared import adaptive, expects

DOUBLE_WELL = kdmaps.problems.load("dw1d")
QUICK = {"families": ["gaussian"], "bandwidths": 2, "regularizations": [1e-3], "n_features": 40, "random_state": 0}


def samples(n=600, d=2, seed=0):
    """A double well and Gaussian columns."""
    rng = np.random.default_rng(seed)
    return np.column_stack([DOUBLE_WELL.sample(n, random_state=seed), rng.standard_normal((n, d - 1))])


def found(*arguments, **options):
    """Return the checks that fail, and the notes."""
    checks = check_data(*arguments, **options)
    return [*checks.failed, *checks.notes]


def found_codes(*arguments, **options):
    return [check.code for check in found(*arguments, **options)]


def mistakes(X):
    """Codes of failed checks, without notes."""
    return [check.code for check in check_data(X).failed]


def only(*arguments, **options):
    (check,) = found(*arguments, **options)
    return check


# --- outliers, discrete columns and angles ----------------------------------------------------------------------------
@pytest.mark.parametrize("value", [5.0, 1e3, 1e200])
def test_outlier(value):
    X = DOUBLE_WELL.sample(600, random_state=0)
    assert found(X) == []
    X[17] = value
    check = only(X)
    assert (check.code, check.where) == ("outliers", (17,))


def test_outliers_and_a_small_state():
    X = samples()
    X[[3, 50]] += [0, 20.0]  # two rows close to each other
    assert only(X).where == (3, 50)
    X[[3, 50, 51, 52, 53]] = np.add(samples(5, seed=1), [0, 20.0])
    assert only(X).where == (3, 50, 51, 52, 53)
    X[:40] = np.add(samples(40, seed=1), [0, 20.0])
    assert only(X).where == (*range(40), 50, 51, 52, 53)


def test_a_row_between_clusters_is_named_if_it_is_far_from_both():
    X = samples() + [30.0, 0] * np.random.default_rng(0).integers(0, 2, (600, 1))
    X[0] = [5.0, 0]
    assert found(X) == []
    X[0] = [15.0, 0]
    (check,) = found(X)
    assert (check.code, check.where) == ("outliers", (0,))


@pytest.mark.parametrize(("per_unit", "few"), [(1, True), (2, True), (10, True), (20, False)])
def test_rounded_columns(per_unit, few):
    # Rates of a search on these: 0, 0, 0 and right.
    X = np.round(per_unit * DOUBLE_WELL.sample(600, random_state=0)) / per_unit
    assert [c.where for c in found(X) if c.code == "discrete-columns"] == ([(0,)] if few else [])


def test_one_hot_columns():
    codes = np.eye(3)[np.random.default_rng(0).integers(0, 3, 600)]
    check = only(np.column_stack([samples(), codes]))
    assert (check.code, check.where) == ("one-hot-columns", (2, 3, 4))
    assert only(np.column_stack([samples(), codes[:, 0]])).code == "discrete-columns"  # an incomplete set


def angle(n=600, centre=np.pi, width=0.5):
    return np.mod(np.random.default_rng(0).normal(centre, width, n) + np.pi, 2 * np.pi) - np.pi


@pytest.mark.parametrize(
    ("phi", "found"),
    [
        (angle(), True),
        (np.mod(angle(centre=0), 2 * np.pi), True),
        (np.degrees(angle()), True),
        (np.mod(np.degrees(angle(centre=0)), 360), True),
        (angle(centre=0)[::-1], False),  # far from both ends
        (np.cos(angle()), False),
        (angle() * 0.95, False),  # less than a full turn
        (np.clip(np.random.default_rng(0).standard_normal(600), -np.pi, np.pi), False),
    ],
)
def test_angles_that_wrap(phi, found):
    X = np.column_stack([samples(), phi])
    assert mistakes(X) == (["angles"] if found else [])
    if found:
        assert ("degrees=True" in only(X).remedy()) == (np.ptp(phi) > 7)
        assert found_codes(kdmaps.data.angles(X, [2], degrees=np.ptp(phi) > 7)) == ["surface"]  # a circle


# --- the order of rows ------------------------------------------------------------------------------------------------
def walkers(n_walkers, n_frames=100, dt=0.05, seed=0):
    """Interleaved frames of walkers."""
    paths = DOUBLE_WELL.simulate(n_frames, dt=dt, n_trajectories=n_walkers, random_state=seed)
    return paths.transpose(1, 0, 2).reshape(-1, 1)


@pytest.mark.parametrize("n_walkers", [2, 7, 50])
def test_interleaved_walkers(n_walkers):
    X = walkers(n_walkers, 2000 // n_walkers)
    order = order_of(X)
    assert order.n_walkers == n_walkers
    check = only(X)
    assert (check.code, check.value) == ("interleaved-walkers", n_walkers)
    assert found(X, groups=np.arange(len(X)) % n_walkers) == []
    assert found(np.random.default_rng(0).permutation(X)) == []


def test_consecutive_frames_and_their_correlation_time():
    # An autoregression of coefficient ρ has ρ_t = ρ^t, and 1 + 2 Σ ρ_t = (1+ρ)/(1-ρ).
    rho, noise = 0.9, np.random.default_rng(0).standard_normal(20_000)
    x = np.empty_like(noise)
    x[0] = noise[0]
    for t in range(1, len(x)):
        x[t] = rho * x[t - 1] + np.sqrt(1 - rho**2) * noise[t]
    order = order_of(np.column_stack([noise[::-1], x]))
    assert order.n_walkers == 1
    # A relative error of √(2(2M+1)/n) for a window M of 2.5 times the time: 10 %.
    np.testing.assert_allclose(order.correlation_time, (1 + rho) / (1 - rho), rtol=0.2)
    assert only(x[:, None]).code == "consecutive-frames"
    assert order_of(x[::50, None]).n_walkers == 0


def test_time_column_does_not_imply_consecutive_frames():
    assert found_codes(np.column_stack([np.arange(600), samples()])) == ["time-or-index"]


# --- columns ----------------------------------------------------------------------------------------------------------
CLOCKS = {
    "time": np.arange(600) * 0.1,
    "falling": -(np.arange(600.0) ** 2),
    "restarts": np.tile(np.arange(200) * 0.1, 3),
    "walkers": np.repeat(np.arange(150.0), 4),
    "shuffled index": np.random.default_rng(0).permutation(600.0 * np.arange(1, 601) / 600),
}


@pytest.mark.parametrize("name", CLOCKS)
def test_time_and_index_columns(name):
    check = only(pd.DataFrame(np.column_stack([samples(), CLOCKS[name]]), columns=["x", "y", "t"]))
    assert (check.code, check.where, check.rule.severity) == ("time-or-index", ("t",), Severity.ERROR)


def test_sorted_rows_are_not_a_time():
    assert found(np.sort(DOUBLE_WELL.sample(600, random_state=0), axis=0)) == []


def test_index_within_trajectories():
    X = np.column_stack([samples(), np.tile(np.random.default_rng(0).random(200).cumsum(), 3)])
    assert found_codes(X, groups=np.repeat([0, 1, 2], 200)) == ["time-or-index"]


def test_scales_and_constants():
    X = samples(d=3)
    assert only(X * [1, 1e5, 1]).where[0] == 1
    assert only(X * [1, 1e3, 1]).rule.severity is Severity.ERROR
    assert found(X * [1, 30, 1]) == []
    assert only(np.column_stack([X, np.ones(600)])).where == (3,)


# --- rows and weights -------------------------------------------------------------------------------------------------
def test_copies_of_rows():
    X = samples()
    X[-30:] = X[:30]
    check = only(X)
    assert (check.code, check.value, check.words["rows"]) == ("copies-of-rows", 30, 600)
    assert found_codes(np.tile(samples(40), (15, 1)), groups=np.arange(600) % 7) == []
    assert found_codes(np.random.default_rng(0).permutation(np.tile(samples(40), (15, 1)))) == ["copies-of-rows"]
    X[-30:] += 1e-9 * np.random.default_rng(0).standard_normal((30, 2))
    assert found(X) == []


def test_dominating_weights_and_rows_of_weight_zero():
    X, weight = samples(), np.ones(600)
    weight[:14] = 1e4
    check = only(X, weight)
    assert check.code == "dominating-weights"
    np.testing.assert_allclose(check.value, (14e4 + 586) ** 2 / (14e8 + 586))
    X[0], weight = 50, np.ones(600)
    weight[0] = 0
    assert found(X, weight) == []


# --- warnings of fits -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("estimator", [kdmaps.KernelDiffusionMap, kdmaps.KernelSearchCV, adaptive])
def test_fits_warn_at_the_line_of_the_user(estimator):
    X = pd.DataFrame(samples(200), columns=["x", "y"])
    X.loc[7, "x"] = 60.0
    settings = {"n_features": 40, "random_state": 0} if estimator is kdmaps.KernelDiffusionMap else QUICK
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator(1, **settings).fit(X)
    (warning,) = [w for w in caught if w.category is DataWarning]
    assert (warning.message.check.code, warning.message.check.where) == ("outliers", (7,))
    assert warning.filename == __file__


def test_streams_are_checked_by_a_preview():
    X = samples(400)
    X[7] = 60.0
    with expects("outliers"):
        kdmaps.KernelDiffusionMap(1, n_features=40, random_state=0).fit(lambda: iter(np.split(X, 4)))
    streamed = check_data(lambda: iter(np.split(X, 4)))
    assert [check.to_dict() for check in streamed] == [check.to_dict() for check in check_data(X)]


def test_list_of_trajectories_has_a_known_order():
    paths = DOUBLE_WELL.simulate(300, dt=0.05, n_trajectories=2, random_state=0)
    assert found([*paths]) == []
    assert found_codes(paths[0]) == ["consecutive-frames"]


# --- false alarms -----------------------------------------------------------------------------------------------------
#: 500 samples include one to three of the second well, which are too few for its modes and rightly found.
RARE = {"muller-brown"}


@pytest.mark.parametrize("name", [*sorted({*kdmaps.problems.names()} - RARE), "triplewell2d+48"])
def test_no_findings_in_samples_of_the_problems(name):
    problem = kdmaps.problems.load(name)
    assert [code for seed in range(5) for code in mistakes(problem.sample(500, random_state=seed))] == []


def test_digits_and_swiss_roll():
    assert [f for seed in range(5) for f in mistakes(make_swiss_roll(500, random_state=seed)[0])] == []
    constant, discrete = found(load_digits().data)
    assert (constant.code, constant.where) == ("constant-columns", (0, 32, 39))
    assert (discrete.code, len(discrete.where)) == ("discrete-columns", 61)
    assert len(str(discrete)) < 300


def test_every_check_is_run():
    local = [f for f in vars(findings).values() if getattr(f, "__module__", "") == findings.__name__]
    made = {f for f in local if getattr(f, "__annotations__", {}).get("return") in (Check, Check | None)}
    assert made == {*findings.CHECKS, findings.curved_surface, findings.angle_units}


# --- surfaces ---------------------------------------------------------------------------------------------------------
def torus(n=600, seed=0):
    """Cosine and sine of two angles: a flat torus in four dimensions."""
    angles = np.random.default_rng(seed).uniform(-np.pi, np.pi, (n, 2))
    return np.column_stack([np.cos(angles), np.sin(angles)])


@pytest.mark.parametrize(
    ("X", "dimension"),
    [
        (kdmaps.problems.load("sphere-2").sample(500, random_state=0), 1),
        (kdmaps.problems.load("sphere-3").sample(500, random_state=0), 2),
        (kdmaps.problems.load("sphere-5").sample(500, random_state=0), 4),
        (make_swiss_roll(1500, random_state=0)[0], 2),
        (torus(), 2),
    ],
    ids=["circle", "sphere in 3", "sphere in 5", "swiss roll", "torus"],
)
def test_surface_is_noted_without_warning(X, dimension):
    check = only(X)
    assert (check.code, check.rule.severity) == ("surface", Severity.NOTE)
    assert (check.words["dimension"], check.words["columns"]) == (dimension, X.shape[1])
    assert surface_dimension(1e200 * X) == dimension  # squares would overflow
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        warn_of_data(ArraySource(X), None, None)  # what fits call


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "name",
    ["circle", "ou2d-4", "ou2d-16", "ou10d", "triplewell2d", "muller-brown", "mdlike-6", "triplewell2d+8x0.1"],
)
def test_noise_slabs_and_wells_are_not_surfaces(name, seed):
    """On ou2d-16 the tangent energy would lose a mode."""
    assert surface_dimension(kdmaps.problems.load(name).sample(600, random_state=seed)) is None


@pytest.mark.parametrize("thickness", [0.0, 0.003, 0.03, 0.1])
def test_flat_is_not_curved(thickness):
    """A flat slab is not a surface, however thin."""
    X = np.random.default_rng(0).uniform(size=(1000, 3)) * [1, 1, thickness]
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    assert surface_dimension(X @ turn) is None


def test_column_with_the_name_of_a_weight():
    X = pd.DataFrame(samples(d=3), columns=["x", "y", "metad.bias"])
    check = only(X)
    assert (check.code, check.where, check.rule.severity) == ("weight-columns", ("metad.bias",), Severity.ERROR)
    assert found(X.rename(columns={"metad.bias": "biased"})) == []
    assert found(X[["x", "y"]], sample_weight=np.ones(len(X))) == []
