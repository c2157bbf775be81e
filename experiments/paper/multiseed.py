"""Spread over seeds (tab:multiseed): the same runs as the main results, seed by seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from experiments._runner import Row
from experiments.paper import _printed, main_results
from experiments.paper._experiment import Comparison
from experiments.paper._show import COLOURS, by_problem

FIVE = ("ou2d-4", "ou2d-16", "ou3d", "dw1d", "circle")


class EverySeed(Comparison):
    """The comparison, drawn seed by seed."""

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot each seed as a dot."""
        cases = list(dict.fromkeys(map(by_problem, rows)))
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        ax = figure.subplots()
        shown = {
            "CV+RFF": ("paper_r2", "paper's reference", "paper"),
            "Uniform+Nyström": ("paper_r2", "paper's reference", "uniform"),
            "kdmaps": ("r2", "true slow modes", "kdmaps"),
        }
        for shift, (method, (key, reference, colour)) in zip((-0.2, 0, 0.2), shown.items(), strict=True):
            mine = [row for row in rows if row["method"] == method]
            at = np.array([cases.index(by_problem(row)) for row in mine]) + shift
            label, score = f"{method}, {reference}", [row[key] for row in mine]
            ax.plot(at, score, "o", ms=5, alpha=0.7, mec="none", color=COLOURS[colour], label=label)
        ax.set(ylabel="SubR² (1 is perfect)", title=self.title)
        ax.set_xticks(range(len(cases)), cases)
        ax.grid(axis="y", lw=0.4)
        figure.legend(loc="outside right upper", fontsize="small", frameon=False)
        return figure


experiment: EverySeed = EverySeed(
    title="Seed by seed",
    methods=("CV+RFF", "Uniform+Nyström"),
    problems=FIVE,
    few=FIVE,
    printed=_printed.MAIN_RESULTS,
    tried=main_results.experiment.tried,
)
