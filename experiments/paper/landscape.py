"""Scores of the paper and of kdmaps over families and bandwidths (fig:kernel-comparison).

The uncentred eigenvalue sum increases up to the wide end of the grid on every problem; the held-out time scales have
their maximum inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from experiments._runner import Row
from experiments.paper._experiment import Call, now
from experiments.paper._protocol import BANDWIDTHS, measure
from experiments.paper._show import Table, by_problem
from experiments.paper.main_results import SIX
from kdmaps.kernels import FAMILIES

METHODS = ("CV+RFF", "kdmaps")


@dataclass(frozen=True)
class Landscape:
    """Two scores on the same samples."""

    title: str = "Score landscapes"
    problems: Sequence[str] = SIX

    def quick(self) -> Self:
        return self

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per problem and method, with the scores of all candidates."""
        return [call(measure, method=m, problem=p, seed=seed) for p in self.problems for m in METHODS]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate the selected families and bandwidths (in median distances) over the seeds."""
        lines = []
        for case in dict.fromkeys(map(by_problem, rows)):
            chosen = {}
            for method in METHODS:
                mine = [row for row in rows if by_problem(row) == case and row["method"] == method]
                best = [max(row["landscape"], key=lambda c: c["score"]) for row in mine]
                families = dict.fromkeys(c["family"] for c in best)
                ratios = sorted(c["bandwidth"] for c in best)
                chosen[method] = (", ".join(families), f"{ratios[0]:.1f}–{ratios[-1]:.1f}")
            lines.append([case, *chosen["CV+RFF"], *chosen["kdmaps"]])
        header = ("problem", "paper: families", "paper: σ/median", "kdmaps: families", "kdmaps: σ/median")
        return Table(header, lines, [f"The paper's grid ends at σ/median = {BANDWIDTHS[-1]:g}."])

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot scores over the bandwidth, one line per family, for the first seed."""
        shown = [row for row in rows if row["seed"] == rows[0]["seed"]]
        cases = list(dict.fromkeys(map(by_problem, shown)))
        figure = Figure(figsize=(2.3 * len(cases), 5), layout="constrained")
        axes = figure.subplots(2, len(cases), squeeze=False)
        for row in shown:
            ax = axes[METHODS.index(row["method"]), cases.index(by_problem(row))]
            for family in FAMILIES:
                points = sorted((c["bandwidth"], c["score"]) for c in row["landscape"] if c["family"] == family)
                ax.plot(*zip(*points, strict=True), ".-", lw=1, ms=4, label=family)
            best = max(row["landscape"], key=lambda c: c["score"])
            ax.plot(best["bandwidth"], best["score"], "k*", ms=9, mfc="none", label="chosen")
            scores = np.array([c["score"] for c in row["landscape"]])
            if row["method"] == "kdmaps":  # the low scores of narrow kernels would hide the rest
                low, high = np.quantile(scores[np.isfinite(scores)], (0.25, 1))
                ax.set_ylim(low, high + 0.1 * (high - low))
                ax.set_xlabel("σ / median distance")
            else:
                ax.set_title(by_problem(row), fontsize="medium")
            ax.set_xscale("log")
            ax.set_xticks([1, 10, 100][: 2 if row["method"] == "kdmaps" else 3])
            ax.xaxis.set_minor_formatter(NullFormatter())
        axes[0, 0].set_ylabel("paper: eigenvalue sum")
        axes[1, 0].set_ylabel("kdmaps: held-out score")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False, fontsize="small")
        return figure


experiment: Landscape = Landscape()
