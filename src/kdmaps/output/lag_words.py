"""The lag of a model in words: why it was taken, and whether it is long enough."""

from __future__ import annotations

from typing import Any

import numpy as np

from kdmaps.analysis.dynamics import Validation
from kdmaps.output.words import frames_of

#: Lags in a table of implied time scales, about.
IMPLIED_LAGS = 6


def lag_reasons(estimator: Any, tests: Validation | None, unit: str | None = None) -> list[str]:
    """Say why a model has its lag, and whether `kdmaps.dynamics.validate` finds it long enough."""
    choice, found = getattr(estimator, "lag_choice_", None), []
    if choice is not None and choice.plateau is not None:
        found.append(
            f"The lag was chosen: {frames_of(estimator.lag_)} is the smallest of {len(choice.lags)} lags from which "
            "the implied time scales of a cheap model are flat within their errors."
        )
    elif choice is not None:
        found.append(
            f"The lag was chosen: {frames_of(estimator.lag_)} is the longest of {len(choice.lags)} lags that the "
            "slowest time scale outlives; at none are the implied time scales of a cheap model flat within their "
            "errors."
        )
    if tests is None and getattr(estimator, "right_modes_", None) is not None:
        return [*found, "The direction of time matters here; tests of a lag are for systems in equilibrium."]
    if tests is None:
        return [*found, "Trajectories are too short for tests of the lag."]
    return [*found, _of_plateau(tests), *_of_prediction(tests, unit)]


def _of_plateau(tests: Validation) -> str:
    flat = tests.implied.plateau
    if flat is None:
        longest = frames_of(int(tests.implied.lags[-1]))
        return (
            f"Implied time scales are not flat within their errors at any lag up to {longest}: use longer "
            "trajectories, or inputs that hold all that is slow."
        )
    if not tests.flat:
        return (
            f"Implied time scales are flat within their errors only from {frames_of(flat)} on: fit with that lag, or "
            'with lag "auto".'
        )
    return f"Implied time scales are flat within their errors from a lag of {frames_of(flat)} on."


def _of_prediction(tests: Validation, unit: str | None) -> list[str]:
    test, worst = tests.chapman, tests.worst
    if test is None:
        return ["Trajectories are too short for a Chapman–Kolmogorov test."]
    if tests.predicts:
        return [f"Chapman–Kolmogorov test passed: one lag predicts {len(test.steps)} within the errors."]
    assert worst is not None
    after = f"{test.times[worst[0]]:g}{'' if unit is None else f' {unit}'}"
    return [
        f"Chapman–Kolmogorov test failed: after {after} the autocorrelation of mode {worst[1] + 1} is "
        f"{test.estimated[worst]:.2f}, where {test.predicted[worst]:.2f} is predicted, a difference of "
        f"{abs(test.deviations[worst]):.1f} standard errors; chance explains {tests.limit:.1f}. A longer lag predicts "
        "better, unless inputs lack what is slow."
    ]


def implied_table(tests: Validation, unit: str | None = None) -> tuple[list[str], list[list[str]]]:
    """Return titles and rows of a table of implied time scales, at about six of the lags."""
    implied = tests.implied
    some = np.linspace(0, len(implied.lags) - 1, IMPLIED_LAGS).round().astype(int)
    shown = np.union1d(some, np.flatnonzero(implied.lags == tests.lag))
    inside = "" if unit is None else f" ({unit})"
    titles = ["lag (frames)", f"lag{inside}" if unit else "lag (time)"]
    titles += [f"time scale {k + 1}{inside}" for k in range(implied.timescales.shape[1])]
    rows = []
    for i in shown:
        cells = [f"{implied.lags[i]}", f"{implied.times[i]:g}"]
        for t, (low, high) in zip(implied.timescales[i], implied.intervals[i], strict=True):
            known = f" ({low:.3g} – {high:.3g})".replace("inf", "∞") if not np.isnan([low, high]).any() else ""
            cells.append(f"{t:.4g}{known}" if t > implied.times[i] else "–")
        rows.append(cells)
    return titles, rows
