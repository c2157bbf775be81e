"""Coarse states in words and numbers, for the command line and the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kdmaps.dynamics import CoarseStates
from kdmaps.spectrum.clock import rate_ratios

#: Where less of the samples is inside some state, the modes have no plateaus: there are no metastable states.
FEW_INSIDE = 0.5


def state_columns() -> tuple[str, ...]:
    """Return the titles of the columns of `state_rows`."""
    return ("state", "population", "samples", f"inside (membership > {CoarseStates.crisp:g})", "typical rows")


def state_rows(
    states: CoarseStates, representatives: np.ndarray, names: Sequence[str] | None = None
) -> list[tuple[str, ...]]:
    """Return one row of text per state, numbered from 1; `representatives` are rows of the data, -1 for none.

    `names` are those of all rows; by default their numbers.
    """
    rows: list[tuple[str, ...]] = []
    for k, population in enumerate(states.populations):
        own = states.labels == k
        inside = np.mean(states.memberships[own, k] > states.crisp) if own.any() else 0.0
        typical = ", ".join(str(row) if names is None else names[row] for row in representatives[k] if row >= 0)
        rows.append((str(k + 1), f"{population:.1%}", str(int(own.sum())), f"{inside:.0%}", typical))
    return rows


def state_words(states: CoarseStates, model: Any) -> list[str]:
    """Say which modes the states are made of, and whether there are states at all."""
    n, rates = len(states.populations), model.rates_
    modes = "mode 1 is" if n == 2 else f"the first {n - 1} modes are"
    found = [f"States are regions where {modes} nearly constant (PCCA+); rows count from 0."]
    if n - 1 < len(rates):
        ratio = rate_ratios(rates)[n - 2]
        # Two digits, and no exponent: "about 2,600".
        times = f"{ratio:.2g}" if ratio < 10 else f"about {float(f'{ratio:.2g}'):,.0f}"
        gap = f"mode {n} relaxes {times} times as fast as mode {n - 1}"
        if np.isinf(rates[n - 1]):
            gap = f"mode {n} relaxes within one lag and has no time scale"
        found.append(f"Their number is one more than there are modes before a gap: {gap}.")
    inside = np.mean(states.memberships.max(axis=1) > states.crisp)
    if inside < FEW_INSIDE:
        found.append(
            f"Only {inside:.0%} of the samples are inside a state: the modes have no plateaus, so that there are no "
            "metastable states, or another number of them."
        )
    return found
