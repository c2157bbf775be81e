"""Summary (fig:summary-final): errors of the paper's pipeline and of kdmaps on the same samples.

The error is 1 - SubR² with the true slow modes, including complete degenerate clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from matplotlib.figure import Figure

from experiments._runner import Row
from experiments.paper._experiment import Call, now
from experiments.paper._printed import MAIN_RESULTS
from experiments.paper._protocol import measure
from experiments.paper._show import COLOURS, Table, by_problem, cell, values
from experiments.paper.main_results import SIX

METHODS = ("CV+RFF", "Uniform+Nyström", "kdmaps")


@dataclass(frozen=True)
class Summary:
    """The main problems and the MD-like one."""

    title: str = "Errors on the true slow modes"
    problems: Sequence[str] = (*SIX, "mdlike-10")

    def quick(self) -> Self:
        return replace(self, problems=SIX)

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per problem and method."""
        return [call(measure, method=m, problem=p, seed=seed) for p in self.problems for m in METHODS]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate mean errors and the ratio to the error of kdmaps."""
        lines = []
        for case in dict.fromkeys(map(by_problem, rows)):
            paper, uniform, ours = (1 - values(rows, "r2", method, case) for method in METHODS)
            printed = MAIN_RESULTS.get((case, "CV+RFF"))
            lines.append(
                [
                    case,
                    f"{1 - printed[0]:.3f}" if printed else "–",
                    cell(1 - values(rows, "paper_r2", "CV+RFF", case)),
                    cell(paper),
                    cell(uniform),
                    cell(ours),
                    f"{paper.mean() / ours.mean():.1f}×",
                ]
            )
        header = (
            "problem",
            "printed error",
            "paper protocol",
            "CV+RFF, true slow modes",
            "Uniform, true slow modes",
            "kdmaps, true slow modes",
            "CV+RFF / kdmaps",
        )
        return Table(header, lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot the errors as labelled bars."""
        cases = list(dict.fromkeys(map(by_problem, rows)))
        figure = Figure(figsize=(9.5, 3.8), layout="constrained")
        ax = figure.subplots()
        for shift, method, colour in zip((-0.27, 0, 0.27), METHODS, ("paper", "uniform", "kdmaps"), strict=True):
            errors = [np.mean(1 - values(rows, "r2", method, case)) for case in cases]
            bars = ax.bar(np.arange(len(cases)) + shift, errors, 0.25, color=COLOURS[colour], label=method)
            ax.bar_label(bars, [f"{100 * e:.1f}%" for e in errors], fontsize="x-small", padding=1)
        ax.set(yscale="log", ylabel="error 1 - SubR², true slow modes", title=self.title)
        ax.set_xticks(range(len(cases)), cases)
        figure.legend(loc="outside right upper", fontsize="small", frameon=False)
        return figure


experiment: Summary = Summary()
