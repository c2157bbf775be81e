"""Dependence on the sample size (fig:scaling): OU2D with α = 4, N = 100 to 2000.

The text of the paper states that SubR² of CV+RFF is above 0.99 from N = 100 on, and that of Uniform grows with N.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from matplotlib.figure import Figure

from experiments._runner import Row
from experiments.paper._experiment import Call, now
from experiments.paper._printed import SCALING
from experiments.paper._protocol import measure
from experiments.paper._show import Table, comparison, curves

METHODS = ("CV+RFF", "Uniform+Nyström")


def _size(row: Row) -> str:
    return f"N = {row['n_samples']}"


@dataclass(frozen=True)
class Scaling:
    """One problem at many sample sizes."""

    title: str = "Growing sample size, OU2D α=4"
    problem: str = "ou2d-4"
    sizes: Sequence[int] = (100, 200, 500, 1000, 2000)

    def quick(self) -> Self:
        return replace(self, sizes=(100, 500))

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per size and method."""
        return [
            call(measure, method=method, problem=self.problem, seed=seed, n_samples=n)
            for n in self.sizes
            for method in (*METHODS, "kdmaps")
        ]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate printed (a bound for CV+RFF) | paper protocol | kdmaps."""
        return comparison(rows, SCALING, METHODS, by=_size)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot SubR² over N."""
        figure = Figure(figsize=(7.5, 3.8), layout="constrained")
        ax = figure.subplots()
        lines = [
            ("CV+RFF", "paper_r2", "-", "paper", "CV+RFF, paper's reference"),
            ("CV+RFF", "r2", "--", "paper", "CV+RFF, true slow modes"),
            ("Uniform+Nyström", "paper_r2", "-", "uniform", "Uniform, paper's reference"),
            ("Uniform+Nyström", "r2", "--", "uniform", "Uniform, true slow modes"),
            ("kdmaps", "r2", "-", "kdmaps", "kdmaps, true slow modes"),
        ]
        curves(ax, rows, {f"N = {n}": n for n in self.sizes}, lines, _size)
        ax.set(xlabel="number N of samples", title=self.title)
        ax.set_xticks(self.sizes, [str(n) for n in self.sizes])
        ax.minorticks_off()
        figure.legend(loc="outside right upper", fontsize="small", frameon=False)
        return figure


experiment: Scaling = Scaling()
