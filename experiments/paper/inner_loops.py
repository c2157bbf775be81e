"""Three inner loops: 60 Nyström landmarks, all samples (p = N), 300 random Fourier features.

The paper mentions these three bases without a comparison. Here all use one Gaussian at the median distance and the λ of
the paper, so that only the basis differs; with the constant among the modes as in the paper, and centred.
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
from experiments.paper._show import Table, by_problem, cell, values
from experiments.paper.main_results import SIX

BASES = ("Nyström", "full", "RFF")


@dataclass(frozen=True)
class InnerLoops:
    """Three bases, centred or not."""

    title: str = "Nyström, full and Fourier"
    problems: Sequence[str] = SIX

    def quick(self) -> Self:
        return replace(self, problems=SIX[:2])

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per problem, basis and centring."""
        return [
            call(measure, method=basis + centring, problem=problem, seed=seed)
            for problem in self.problems
            for basis in BASES
            for centring in ("", ", centred")
        ] + [call(measure, method="kdmaps", problem=problem, seed=seed) for problem in self.problems]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate SubR² with both references."""
        lines = []
        for case in dict.fromkeys(map(by_problem, rows)):
            ours = cell(values(rows, "r2", "kdmaps", case))
            for basis in BASES:
                keys = (("paper_r2", basis), ("r2", basis), ("r2", basis + ", centred"))
                seconds = np.mean(values(rows, "seconds", basis + ", centred", case))
                cells = [cell(values(rows, key, method, case)) for key, method in keys]
                lines.append([case, basis, "–", *cells, ours, f"{seconds:.3f}"])
        header = (
            "problem",
            "basis",
            "printed",
            "paper protocol",
            "paper protocol, true slow modes",
            "centred, true slow modes",
            "kdmaps, true slow modes",
            "seconds",
        )
        return Table(header, lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot SubR² with the true slow modes, uncentred and centred."""
        cases = list(dict.fromkeys(map(by_problem, rows)))
        figure = Figure(figsize=(8.5, 3.6), layout="constrained")
        ax = figure.subplots()
        width = 0.13
        methods = [basis + centring for centring in ("", ", centred") for basis in BASES]
        for number, method in enumerate(methods):
            means = [np.mean(values(rows, "r2", method, case)) for case in cases]
            at = np.arange(len(cases)) + (number - 2.5) * width
            colour = ("tab:red", "tab:blue")[number // 3]
            ax.bar(at, means, width, color=colour, alpha=(1.0, 0.65, 0.35)[number % 3], label=method)
        ax.set(ylabel="SubR², true slow modes", title=self.title, ylim=(0.4, 1))
        ax.set_xticks(range(len(cases)), cases)
        figure.legend(loc="outside right upper", fontsize="small", frameon=False)
        return figure


experiment: InnerLoops = InnerLoops()
