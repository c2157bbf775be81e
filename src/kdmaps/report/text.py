"""Tables and sentences about lags and states, for the page and the command line."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kdmaps.checks import Check, rules
from kdmaps.dynamics import CoarseStates, Validation
from kdmaps.spectrum.modes import rate_ratios
from kdmaps.summary import FitSummary, count_frames, show_interval, with_unit
from kdmaps.utils.numbers import rounded

#: Approximate number of lags in a table of implied time scales.
IMPLIED_LAGS = 6
#: Number of typical rows of each state.
TYPICAL = 3


def lag_sentences(summary: FitSummary, tests: Validation | None) -> list[str]:
    """Explain how the lag was chosen, and which tests of the fitted model find it long enough."""
    choice = summary.lag_choice
    sentences = []
    if choice is not None and summary.lag is not None:
        lag, tried = count_frames(summary.lag), len(choice.lags)
        scan = f"The lag of {lag} was chosen from {tried} lags by a quick scan of implied time scales"
        sentences.append(f"{scan}: {choice.outcome}." if tests is None else f"{scan}.")
    if tests is None:
        return [*sentences, "The trajectories are too short to test the lag."]
    failed = {check.code for check in failed_tests(tests)}
    if rules.NOT_FLAT.code not in failed:
        sentences.append(tests.flat_words)
    chapman = tests.chapman
    if chapman is None:
        sentences.append("The trajectories are too short for a Chapman–Kolmogorov test.")
    elif rules.CHAPMAN_KOLMOGOROV.code not in failed:
        sentences.append(f"Chapman–Kolmogorov test of {len(chapman.steps)} lags {chapman.outcome}.")
    return sentences


def failed_tests(tests: Validation | None) -> list[Check]:
    """Return the tests of a lag that warn."""
    return [] if tests is None else [check for check in tests.checks if check.warns]


def implied_table(tests: Validation, unit: str | None = None) -> tuple[list[str], list[list[str]]]:
    """Return titles and rows of a table of implied time scales, at about six of the lags."""
    implied = tests.implied
    some = np.linspace(0, len(implied.lags) - 1, IMPLIED_LAGS).round().astype(int)
    shown = np.union1d(some, np.flatnonzero(implied.lags == tests.lag))
    titles = ["lag (frames)", with_unit("lag", unit or "time")]
    titles += [with_unit(f"time scale {k + 1}", unit) for k in range(implied.timescales.shape[1])]
    rows = []
    for i in shown:
        cells = [f"{implied.lags[i]}", f"{implied.times[i]:g}"]
        for t, ends in zip(implied.timescales[i], implied.intervals[i], strict=True):
            interval = "" if np.isnan(ends).any() else f" ({show_interval(ends)})"
            cells.append(f"{rounded(t)}{interval}" if t > implied.times[i] else "–")
        rows.append(cells)
    return titles, rows


def implied_sentence(model: Any) -> str:
    """Explain why implied time scales at the lag of a model differ from its time scales."""
    trust = model.trust_
    corrected = np.zeros(0) if trust is None or trust.corrected is None else trust.corrected
    named = ", ".join(str(k + 1) for k in np.flatnonzero(corrected > 0))
    of_modes = f", and the time scale of mode(s) {named} above is estimated from held-out frames" if named else ""
    return (
        "At the lag of the model, implied time scales are usually longer than the time scales of the modes above: they "
        f"are computed again from all frames, without regularization{of_modes}."
    )


def state_table(
    states: CoarseStates, representatives: np.ndarray, names: Sequence[str] | None = None
) -> tuple[list[str], list[list[str]]]:
    """Return titles and rows of a table of states; `representatives` are rows of the data, -1 for none."""
    titles, rows = states.cells()
    for row, chosen in zip(rows, representatives, strict=True):
        row.append(", ".join(str(i) if names is None else names[i] for i in chosen if i >= 0))
    return [*titles, "typical rows"], rows


def state_sentences(states: CoarseStates, rates: np.ndarray) -> list[str]:
    """Describe the modes and the gap that define the states, and how clearly the states are separated."""
    n = len(states.populations) - states.n_apart
    used = n - 1 if states.centres is None else states.centres.shape[1]
    modes = "mode 1 is" if used == 1 else f"the first {used} modes are"
    method = "PCCA+" if states.centres is None else "clusters of their values"
    found = [f"States are regions where {modes} nearly constant ({method}). Rows are counted from 0."]
    if states.n_apart:
        last = ", ".join(str(n + 1 + k) for k in range(states.n_apart))
        found.append(
            f"State(s) {last} are samples behind an empty gap, which are left out of the fit: exchange with them is "
            "slower than the modes and cannot be timed."
        )
    if used == n - 1 < len(rates):
        ratio = rate_ratios(rates)[n - 2]
        # Two digits without an exponent: "about 2,600".
        times = f"{ratio:.2g}" if ratio < 10 else f"about {float(f'{ratio:.2g}'):,.0f}"
        gap = f"mode {n} relaxes {times} times as fast as mode {n - 1}"
        if np.isinf(rates[n - 1]):
            gap = f"mode {n} relaxes within one lag and has no time scale"
        found.append(f"{n} states correspond to {n - 1} slow mode{'s' if n > 2 else ''} before a gap: {gap}.")
    if states.valley >= 1:
        found.append(
            "At least two states are parts of one cluster: half-way between them, samples are as dense as inside. "
            "Their border is arbitrary; use fewer states."
        )
    elif states.valley < 1:
        clear = "clearly separated" if states.separated else "separated by a shallow minimum"
        doubt = "" if states.separated else " Evenly spread samples have such a minimum, too."
        found.append(
            f"The states are {clear}: half-way between two of them, the density of samples is at most "
            f"{states.valley:.0%} of the density inside.{doubt}"
        )
    return found


def count_states(states: CoarseStates | None) -> str:
    """Return "3 states", "No separate states" if some are parts of one cluster, or "" if states are unknown."""
    if states is None:
        return ""
    if states.valley >= 1:
        return "No separate states"
    return f"{len(states.populations)} {'shallow ' if states.valley < 1 and not states.separated else ''}states"
