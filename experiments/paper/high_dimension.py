"""High dimension (tab:highd): Ornstein–Uhlenbeck with α_j = 2^j, d = 10 and 20.

Rates are 1, 2, 2, 3, 3, …: a reference of exactly four modes splits a degenerate cluster, which limits the score of
exact modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from matplotlib.figure import Figure

from experiments._runner import Row
from experiments.paper._experiment import Call, now
from experiments.paper._printed import HIGH_DIMENSION, LABELS
from experiments.paper._protocol import measure
from experiments.paper._show import Table, comparison, dots

METHODS = ("CV+RFF", "Uniform+RFF")


def _case(row: Row) -> str:
    return f"{LABELS[row['problem']]}, N={row['n_samples']}"


@dataclass(frozen=True)
class HighDimension:
    """Cases (problem, N, p)."""

    title: str = "High dimension"
    cases: Sequence[tuple[str, int, int]] = (("ou10d", 1000, 300), ("ou10d", 5000, 300), ("ou20d", 2000, 400))

    def quick(self) -> Self:
        return replace(self, cases=self.cases[:1])

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per case and method."""
        return [
            call(measure, method=method, problem=problem, seed=seed, n_samples=n, n_features=p)
            for problem, n, p in self.cases
            for method in (*METHODS, "kdmaps")
        ]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate printed | paper protocol | kdmaps."""
        return comparison(rows, HIGH_DIMENSION, METHODS, by=_case)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot the same as dots."""
        return dots(rows, HIGH_DIMENSION, METHODS, self.title, by=_case)


experiment: HighDimension = HighDimension()
