"""The lag of a model in words: why it was taken, and whether it is long enough."""

from __future__ import annotations

from typing import Any

import numpy as np

from kdmaps.dynamics import Validation
from kdmaps.words import frames_of

#: Lags in a table of implied time scales, about.
IMPLIED_LAGS = 6


def lag_reasons(estimator: Any, tests: Validation | None) -> list[str]:
    """Say why a model has its lag, and whether `kdmaps.dynamics.validate` finds it long enough.

    The lag is judged once: by the tests of the fitted model or, where there are none, by what it was chosen by.
    """
    choice = getattr(estimator, "lag_choice_", None)
    if tests is not None:
        return [*([] if choice is None else [f"{_of_choice(estimator)}."]), *lag_verdict(tests)]
    found = []
    if choice is not None:
        flat = "at none of them are they" if choice.plateau is None else "from this one on they are"
        found.append(f"{_of_choice(estimator)}; {flat} flat within their errors.")
    if getattr(estimator, "right_modes_", None) is not None:
        return [*found, "The direction of time matters here; tests of a lag are for systems in equilibrium."]
    return [*found, "Trajectories are too short for tests of the lag."]


def _of_choice(estimator: Any) -> str:
    return (
        f"The lag of {frames_of(estimator.lag_)} was chosen from {len(estimator.lag_choice_.lags)} lags by the implied "
        "time scales of a cheap model"
    )


def lag_verdict(tests: Validation) -> list[str]:
    """Say what the tests of a lag found, in the words of their warnings where they are failed."""
    test = tests.chapman
    if test is None:
        return [tests.flat_words, "Trajectories are too short for a Chapman–Kolmogorov test."]
    failed = str(tests.checks()[-1].warning)
    passed = f"Chapman–Kolmogorov test of {len(test.steps)} lags {test.verdict}."
    return [tests.flat_words, passed if test.passed else failed]


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
