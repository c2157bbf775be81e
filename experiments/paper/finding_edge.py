"""The selected bandwidth is the edge of the grid.

All printed bandwidths (61.6, 52.0, 64.2, 52.4, 49.9, 71.1) are 50 median distances, the end of the grid. On a grid that
is a hundred times as wide, the score keeps increasing up to a plateau where the kernel is constant, and rounding
determines the maximum. The held-out time scales of centred modes are largest inside the grid.

    KernelSearchCV(scoring="eigsum", center=False, bandwidth_range=(0.5, 5000), max_extensions=0).fit(X).best_params_
    KernelSearchCV(bandwidth_range=(0.5, 5000), max_extensions=0).fit(X).best_params_
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from matplotlib.figure import Figure

from experiments._runner import Row
from experiments.paper._experiment import Call, now
from experiments.paper._printed import LABELS
from experiments.paper._show import COLOURS, Table
from experiments.paper.main_results import SIX
from kdmaps import problems
from kdmaps.data.distances import median_distance
from kdmaps.estimators.search import KernelSearchCV


def wide_search(problem: str, scoring: str, end: float, seed: int) -> Row:
    """Return the scores of a Gaussian on a grid up to `end` median distances; uncentred for the paper's score."""
    X = problems.load(problem).sample(500, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = KernelSearchCV(
            4,
            families=["gaussian"],
            bandwidths=13,
            regularizations=[0.01],
            scoring=scoring,
            center=scoring != "eigsum",
            bandwidth_range=(0.5, end),
            max_extensions=0,
            random_state=seed,
            n_jobs=1,
        ).fit(X)
    ratios = search.cv_results_["param_bandwidth"] / median_distance(X)
    score = search.cv_results_["selection_score"]
    return {
        "problem": problem,
        "scoring": scoring,
        "seed": seed,
        "bandwidths": [float(f"{s:.4g}") for s in ratios],
        "scores": [float(f"{v:.6g}") for v in score],
    }


@dataclass(frozen=True)
class EdgeOfTheGrid:
    """Two scores on a grid a hundred times as wide as the paper's."""

    title: str = "The edge of the grid"
    problems: Sequence[str] = SIX
    end: float = 5000.0

    def quick(self) -> Self:
        return replace(self, problems=SIX[:2])

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per problem and score."""
        return [
            call(wide_search, problem=problem, scoring=scoring, end=self.end, seed=seed)
            for problem in self.problems
            for scoring in ("eigsum", "timescale")
        ]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate the selected bandwidths in median distances."""
        lines = []
        for problem in dict.fromkeys(row["problem"] for row in rows):
            chosen = []
            for scoring in ("eigsum", "timescale"):
                mine = [row for row in rows if row["problem"] == problem and row["scoring"] == scoring]
                best = sorted(row["bandwidths"][int(np.argmax(row["scores"]))] for row in mine)
                chosen.append(f"{best[0]:.3g}–{best[-1]:.3g}" if best[0] != best[-1] else f"{best[0]:.3g}")
            lines.append([LABELS[problem], *chosen])
        header = ("problem", "eigenvalue sum, uncentred: σ/median", "held-out time scales, centred: σ/median")
        return Table(header, lines, [f"The grid ends at {self.end:g}."])

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot both scores over the bandwidth, scaled to their maximum, for the first seed."""
        figure = Figure(figsize=(8.5, 3.4), layout="constrained")
        axes = figure.subplots(1, 2)
        titles = {"eigsum": "eigenvalue sum, uncentred", "timescale": "held-out time scales, centred"}
        for ax, (scoring, title) in zip(axes, titles.items(), strict=True):
            for row in rows:
                if row["scoring"] == scoring and row["seed"] == rows[0]["seed"]:
                    scores = np.array(row["scores"]) / np.max(row["scores"])
                    (line,) = ax.plot(row["bandwidths"], scores, ".-", lw=1, label=LABELS[row["problem"]])
                    best = int(np.argmax(scores))
                    ax.plot(row["bandwidths"][best], 1, "*", ms=11, color=line.get_color())
            ax.axvline(50, color=COLOURS["printed"], ls="--", lw=0.8)
            ax.set(xscale="log", xlabel="σ / median distance (dashed: end of the paper's grid)", title=title)
        axes[0].set_ylabel("score / largest score")
        axes[1].set_ylim(0, 1.1)
        axes[0].legend(frameon=False, fontsize="small")
        return figure


experiment: EdgeOfTheGrid = EdgeOfTheGrid()
