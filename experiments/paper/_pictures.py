"""Shared code for figures of modes: learned modes of several methods next to the exact ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from experiments._runner import Row
from experiments.paper._experiment import Call, now
from experiments.paper._protocol import measure
from experiments.paper._show import Table, by_problem, read_modes
from kdmaps import metrics, problems

METHODS = ("CV+RFF", "Uniform+Nyström", "kdmaps")


def matched(row: Row) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the samples, the true slow modes, and the learned modes of a run, rotated to match them."""
    X, modes = read_modes(row)
    system = problems.load(row["problem"])
    exact = system.eigenfunctions(X, system.n_modes)
    return X, exact, metrics.align_modes(modes, exact)


@dataclass(frozen=True)
class Pictures:
    """Modes of the first seed next to the exact ones; the table lists their correlations."""

    title: str
    problems: Sequence[str]
    few: Sequence[str] = ()

    def quick(self) -> Self:
        return replace(self, problems=self.few or self.problems)

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per problem and method."""
        return [call(measure, method=m, problem=p, seed=seed) for p in self.problems for m in METHODS]

    def shown(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows of the first seed."""
        return [row for row in rows if row["seed"] == rows[0]["seed"]]

    def table(self, rows: Sequence[Row]) -> Table:
        """Return the correlation of each learned mode with the exact one, after rotation."""
        lines = []
        for row in self.shown(rows):
            _, exact, modes = matched(row)
            pairs = np.diagonal(metrics.correlation_table(modes, exact))
            lines.append([by_problem(row), row["method"], *(f"{c:.3f}" for c in pairs)])
        return Table(("problem", "method", *(f"mode {k + 1}" for k in range(len(lines[0]) - 2))), lines)
