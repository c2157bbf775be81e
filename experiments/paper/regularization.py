"""Sensitivity to λ (Section "Hyperparameter sensitivity"): OU d = 10, N = 1000, λ = 0.001 to 0.1.

The paper reports nearly the same SubR² for all λ (column "printed"). kdmaps selects λ together with the kernel; here λ
is also fixed at each value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from matplotlib.figure import Figure

from experiments._runner import Row
from experiments.paper._experiment import Call, now
from experiments.paper._printed import SENSITIVITY
from experiments.paper._protocol import measure
from experiments.paper._show import COLOURS, Table, cell, curves, values

METHODS = ("CV+RFF", "kdmaps at this λ")


def _case(row: Row) -> str:
    return f"{row['regularization']:g}"


@dataclass(frozen=True)
class Sensitivity:
    """Results for fixed values of λ."""

    title: str = "Sensitivity to the regularization, OU d=10"
    problem: str = "ou10d"
    n_samples: int = 1000
    regularizations: Sequence[float] = (0.001, 0.003, 0.01, 0.03, 0.1)
    printed: tuple[float, float] = SENSITIVITY

    def quick(self) -> Self:
        return replace(self, regularizations=(0.01,))

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per λ and method, and one with λ selected."""
        shared = {"problem": self.problem, "seed": seed, "n_samples": self.n_samples}
        held = [
            call(measure, method=m, regularization=lam, n_features=300, **shared)
            for lam in self.regularizations
            for m in METHODS
        ]
        return [*held, call(measure, method="kdmaps", n_features=300, **shared)]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate printed range | paper protocol | kdmaps for each λ."""
        printed = "{:.3f}–{:.3f}".format(*self.printed)
        free = cell(np.array([row["r2"] for row in rows if row["method"] == "kdmaps"]))
        lines = []
        for lam in self.regularizations:
            by = {(m, key): values(rows, key, m, f"{lam:g}", _case) for m in METHODS for key in ("paper_r2", "r2")}
            paper, held = METHODS
            cells = (by[paper, "paper_r2"], by[paper, "r2"], by[held, "r2"])
            lines.append([f"{lam:g}", printed, *map(cell, cells), free])
        header = (
            "λ",
            "printed",
            "paper protocol",
            "paper protocol, true slow modes",
            "kdmaps at this λ, true slow modes",
            "kdmaps, λ chosen",
        )
        return Table(header, lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot SubR² over λ."""
        figure = Figure(figsize=(7.5, 3.6), layout="constrained")
        ax = figure.subplots()
        ax.axhspan(*self.printed, color=COLOURS["printed"], alpha=0.3, lw=0, label="printed")
        lines = [
            ("CV+RFF", "paper_r2", "-", "paper", "paper protocol, paper's reference"),
            ("CV+RFF", "r2", "--", "paper", "paper protocol, true slow modes"),
            ("kdmaps at this λ", "r2", "-", "kdmaps", "kdmaps at this λ, true slow modes"),
        ]
        curves(ax, rows, {f"{lam:g}": lam for lam in self.regularizations}, lines, _case)
        chosen = [(row["regularization"], row["r2"]) for row in rows if row["method"] == "kdmaps"]
        ax.plot(*zip(*chosen, strict=True), "*", ms=9, color=COLOURS["kdmaps"], label="kdmaps, λ chosen")
        ax.set(xlabel="regularization λ", title=self.title)
        figure.legend(loc="outside right upper", fontsize="small", frameon=False)
        return figure


experiment: Sensitivity = Sensitivity()
