"""The reference is ordered by degree, not by rate.

For OU2D with α = (1, 16) the paper's four reference modes are x, y, x² - 1, y² - 1, with rates 1, 16, 2 and 32. The
four slowest modes are the first four Hermite polynomials of x, with rates 1, 2, 3 and 4. With a very wide bandwidth the
method becomes kernel principal component analysis, which orders functions by degree: it scores well with the paper's
reference and badly with the slow modes. A kernel that finds the slow modes scores 0.5 with the paper's reference.

    problem = kdmaps.problems.load("ou2d-16"); problem.rates(4)                       # 1, 2, 3, 4
    kdmaps.metrics.subspace_r2(problem.reference(X, 4), problem.paper_reference(X))  # 0.5: exact modes fail
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from matplotlib.figure import Figure

from experiments._runner import Row
from experiments.paper._experiment import Call, now
from experiments.paper._protocol import measure
from experiments.paper._show import COLOURS, Table, by_problem, cell, values

METHODS = ("CV+RFF", "Uniform+RFF", "kdmaps")


@dataclass(frozen=True)
class ReferenceOrder:
    """Score the same modes with two references."""

    title: str = "The order of the reference"
    problems: Sequence[str] = ("ou2d-4", "ou2d-16", "ou3d")

    def quick(self) -> Self:
        return replace(self, problems=("ou2d-16",))

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per problem and method."""
        return [call(measure, method=m, problem=p, seed=seed) for p in self.problems for m in METHODS]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate SubR² of the same modes with both references, the exact modes first."""
        lines = []
        for case in dict.fromkeys(map(by_problem, rows)):
            lines.append([case, "exact slow modes", cell(values(rows, "exact_paper_r2", "kdmaps", case)), "1.000"])
            for method in METHODS:
                both = (cell(values(rows, key, method, case)) for key in ("paper_r2", "r2"))
                lines.append([case, method, *both])
        return Table(("problem", "modes", "paper's reference", "true slow modes"), lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot SubR² with the true slow modes against SubR² with the paper's reference."""
        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        ax = figure.subplots()
        for method, colour in zip(METHODS, ("paper", "uniform", "kdmaps"), strict=True):
            for case, marker in zip(dict.fromkeys(map(by_problem, rows)), "osD", strict=False):
                x, y = (values(rows, key, method, case) for key in ("paper_r2", "r2"))
                ax.plot(x, y, marker, ms=6, alpha=0.75, color=COLOURS[colour], mec="none", label=f"{method}, {case}")
        exact = [
            (np.mean(values(rows, "exact_paper_r2", "kdmaps", c)), 1) for c in dict.fromkeys(map(by_problem, rows))
        ]
        ax.plot(*zip(*exact, strict=True), "k*", ms=10, label="exact slow modes")
        ax.set(xlabel="SubR², paper's reference", ylabel="SubR², true slow modes", title=self.title)
        ax.grid(lw=0.4)
        figure.legend(loc="outside right upper", fontsize="small", frameon=False)
        return figure


experiment: ReferenceOrder = ReferenceOrder()
