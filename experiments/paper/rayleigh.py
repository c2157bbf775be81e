"""Rayleigh and eigenvalue-sum selections (remark "Empirical equivalence").

The paper reports that both scores select identical kernels on all six problems. Without centring, both are dominated by
the constant, whose quotient grows with the bandwidth for any data.
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

METHODS = ("CV+RFF", "Rayleigh-CV")


@dataclass(frozen=True)
class Equivalence:
    """Both scores on the same candidates."""

    title: str = "Rayleigh and eigenvalue-sum selections"
    problems: Sequence[str] = SIX

    def quick(self) -> Self:
        return replace(self, problems=("dw1d",))

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per problem and score."""
        return [
            call(measure, method=method, problem=problem, seed=seed)
            for problem in self.problems
            for method in (*METHODS, "kdmaps")
        ]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate how often both select the same kernel, and the resulting SubR²."""
        lines = []
        for case in dict.fromkeys(map(by_problem, rows)):
            one, two = ([r for r in rows if by_problem(r) == case and r["method"] == method] for method in METHODS)
            same = sum(a["kernels"] == b["kernels"] for a, b in zip(one, two, strict=True))
            bandwidths = sum(_bandwidth(a) == _bandwidth(b) for a, b in zip(one, two, strict=True))
            scores = [cell(values(rows, "paper_r2", method, case)) for method in METHODS]
            ours = cell(values(rows, "r2", "kdmaps", case))
            lines.append([case, "same", f"{same} of {len(one)}", f"{bandwidths} of {len(one)}", *scores, ours])
        header = (
            "problem",
            "printed",
            "same kernel",
            "same bandwidth",
            "eigenvalue sum",
            "Rayleigh",
            "kdmaps, true slow modes",
        )
        return Table(header, lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot SubR² of one score against SubR² of the other."""
        figure = Figure(figsize=(5.6, 4), layout="constrained")
        ax = figure.subplots()
        ax.plot([0.4, 1], [0.4, 1], color="0.7", lw=1)
        for case in dict.fromkeys(map(by_problem, rows)):
            ax.plot(*(values(rows, "paper_r2", m, case) for m in METHODS), "o", ms=5, alpha=0.7, label=case)
        ax.set(xlabel="SubR² by the eigenvalue sum", ylabel="SubR² by the Rayleigh score", title=self.title)
        ax.set_aspect("equal")
        figure.legend(loc="outside right upper", fontsize="small", frameon=False)
        return figure


def _bandwidth(row: Row) -> float:
    return float(np.round(row["kernels"][0]["bandwidth"], 4))


experiment: Equivalence = Equivalence()
