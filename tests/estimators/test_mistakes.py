"""Mistakes that users make in Python: an error that names the argument, or a warning with the code of its check.

tests/cli/test_cli_mistakes.py has those of the command line.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kdmaps
from kdmaps import dynamics, plotting
from kdmaps.exceptions import ArgumentError, CheckWarning, NotApplicable, Undetermined
from kdmaps.report import render_report
from shared import codes, ignoring

RNG = np.random.default_rng(0)
PROBLEM = kdmaps.problems.load("ou2d-4")
X = PROBLEM.sample(400, random_state=0)
FRAMES = PROBLEM.simulate(400, dt=0.05, n_trajectories=1, random_state=0).reshape(-1, 2)
WELLS = kdmaps.problems.load("dw1d").sample(600, random_state=0)
SIDES = (WELLS[:, 0] < -0.8, WELLS[:, 0] > 0.8)
USUAL = ("unresolved", "no-gap", "ridge")


def model(n_components=2, **settings):
    given = {"n_features": 40, "bandwidth": 3.0, "regularization": 1e-3, "random_state": 0}
    return kdmaps.KernelDiffusionMap(n_components, **{**given, **settings})


def committor():
    return kdmaps.AdaptiveCommittor(n_features=40, random_state=0, n_resamples=20, basis="landmarks")


with ignoring(*USUAL):
    FITTED = model().fit(X)
    LAGGED = model(lag=2).fit(FRAMES)
    PIPELINE = make_pipeline(StandardScaler(), model(lag=2)).fit(FRAMES)

STRUCTURED = np.rec.fromarrays(X.T, names="x,y")
SPOILED = np.where(np.arange(400)[:, None] == 7, np.nan, X)

#: Call, class of the error, and a fragment that names the argument or the remedy.
ERRORS = {
    "pairs as a tuple": (lambda: model(lag=1).fit((X[:-1], X[1:])), ArgumentError, "as_pairs"),
    "swapped in koopman": (lambda: dynamics.koopman(FRAMES, LAGGED), ArgumentError, "model, X"),
    "swapped in a report": (lambda: render_report(X, FITTED), ArgumentError, "model, X"),
    "swapped in relevance": (lambda: kdmaps.relevance(X, FITTED), ArgumentError, "model, X"),
    "swapped in a plot": (lambda: plotting.plot_modes(X, FITTED), ArgumentError, "model, X"),
    "five rows": (lambda: kdmaps.AdaptiveDiffusionMap(4).fit(X[:5]), Undetermined, "at least 40"),
    "more modes than rows": (lambda: model(60, n_features=90).fit(X[:50]), Undetermined, "fewer n_components"),
    "transposed": (lambda: model().fit(X.T), Undetermined, "transpose"),
    "named fields": (lambda: model().fit(STRUCTURED), ArgumentError, "structured array with the fields x, y"),
    "nothing": (lambda: model().fit(None), ArgumentError, "X must be a table"),
    "a dictionary": (lambda: model().fit({"x": X[:, 0]}), ArgumentError, r"pandas\.DataFrame"),
    "an empty list": (lambda: model().fit([]), ArgumentError, "X is empty"),
    "one dimension": (lambda: model().fit(X[:, 0]), ArgumentError, r"X\.reshape"),
    "NaN": (lambda: model().fit(SPOILED), ArgumentError, r"row\(s\) 7 .*split_at_gaps"),
    "masked values": (lambda: model().fit(np.ma.masked_greater(X, 1)), ValueError, "X has masked values"),
    "logarithms as weights": (lambda: model().fit(X, sample_weight=X[:, 0]), ArgumentError, r"sample_weight.*np\.exp"),
    "weights of zero": (lambda: model().fit(X, sample_weight=np.zeros(400)), ArgumentError, "sample_weight"),
    "NaN in weights": (
        lambda: model().fit(X, sample_weight=SPOILED[:, 0]),
        ArgumentError,
        r"sample_weight .*row\(s\) 7",
    ),
    "too few weights": (lambda: model().fit(X, sample_weight=np.ones(9)), ArgumentError, "sample_weight has shape"),
    "one group": (lambda: kdmaps.AdaptiveDiffusionMap().fit(X, groups=np.zeros(400)), ArgumentError, "groups"),
    "long lag": (lambda: model(lag=500).fit(FRAMES), Undetermined, "lag=500"),
    "no modes": (lambda: model(0).fit(X), ArgumentError, "n_components"),
    "negative regularization": (lambda: model(regularization=-1).fit(X), ArgumentError, "regularization"),
    "validation without a lag": (lambda: dynamics.validate(FITTED, X), NotApplicable, "lag=1"),
    "koopman of a reversible model": (lambda: dynamics.koopman(PIPELINE, FRAMES), NotApplicable, "reversible=False"),
    "time below the lag": (
        lambda: dynamics.forecast(LAGGED, FRAMES, FRAMES, 1),
        ArgumentError,
        "time must be .*lag, 2",
    ),
    "time between lags": (lambda: dynamics.forecast(LAGGED, FRAMES, FRAMES, 3), ArgumentError, "time=3 .*Use 4"),
    "unknown angle": (lambda: kdmaps.data.angles(X, ["phi"]), ArgumentError, "columns: X does not have a column 'phi'"),
    "sets that overlap": (lambda: committor().fit(WELLS, (SIDES[0], ~SIDES[1])), ArgumentError, "overlap"),
    "three labels": (
        lambda: committor().fit(WELLS, np.digitize(WELLS[:, 0], (-1, 1))),
        ValueError,
        "y must hold 0 in A",
    ),
}
FRAME = pd.DataFrame({"x": X[:, 0], "y": X[:, 1]})
#: Call, and the code of the warning.
WARNINGS = {
    "a column of weights": (lambda: model().fit(FRAME.assign(weight=RNG.random(400))), "weight-columns"),
    "a committor with a column of weights": (
        lambda: committor().fit(pd.DataFrame({"x": WELLS[:, 0], "weight": RNG.random(600)}), SIDES),
        "weight-columns",
    ),
    "mixed units": (lambda: model().fit(X * [1, 1e5]), "scales"),
    "a column twice": (lambda: model().fit(np.column_stack([X, 273 - X[:, 0]])), "copied-columns"),
    "a constant column": (lambda: model().fit(FRAME.assign(c=1.0)), "constant-columns"),
    "a column of times": (lambda: model(lag=1).fit(np.column_stack([FRAMES, np.arange(400)])), "time-or-index"),
    "booleans": (lambda: model().fit(X > 0), "discrete-columns"),
    "degrees as radians": (lambda: kdmaps.data.angles(60 * X), "angle-units"),
    "radians as degrees": (
        lambda: kdmaps.data.angles(np.mod(3 * X, 2 * np.pi), degrees=True),
        "angle-units",
    ),
    "shuffled frames": (lambda: model(lag=1).fit(np.random.default_rng(1).permutation(FRAMES)), "no-memory"),
    "points far away": (lambda: FITTED.transform(X[:5] + 1e4), "extrapolation"),
    "few samples between": (
        lambda: committor().fit(WELLS, (WELLS[:, 0] < -0.05, WELLS[:, 0] > 0.05)),
        "samples-between",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_the_argument(case):
    call, kind, fragment = ERRORS[case]
    with ignoring(*USUAL), pytest.raises(kind, match=fragment):
        call()


@pytest.mark.parametrize("case", WARNINGS)
def test_warnings_have_the_code(case):
    call, code = WARNINGS[case]
    with pytest.warns(CheckWarning) as record:
        call()
    assert code in codes(record)


def test_pipelines_are_models():
    assert dynamics.suggest_states(PIPELINE) >= 2
    assert kdmaps.relevance(PIPELINE, FRAMES).shares.shape == (2, 2)


def test_other_samples_are_no_result():
    analysis = kdmaps.Analysis(FITTED, 50 * X, n_resamples=0)
    assert "other-data" in [check.code for check in analysis.checks.failed]


def test_a_copy_doubles_time_scales_and_its_removal_restores_them():
    """Squared distances along a coordinate with a copy are doubled."""
    alone = model(1).fit(X[:, :1])
    with ignoring("copied-columns"):
        twice = model(1, bandwidth=3.0 * np.sqrt(2), regularization=5e-4).fit(X[:, [0, 0]])
    assert twice.timescales_[0] / alone.timescales_[0] == pytest.approx(2, rel=0.05)


def test_untested_times_of_a_forecast_are_not_nan():
    _, rows = dynamics.forecast(LAGGED, FRAMES, FRAMES, [2, 100]).cells()
    assert rows[1][1:3] == ["–", "–"]
    assert "nan" not in str(rows)
