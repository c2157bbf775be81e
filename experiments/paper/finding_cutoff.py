"""A reference that ends inside a degenerate cluster caps every score.

OU with α_j = 2^j has rates 1, 2, 2, 3, 3, …; OU2D with α = 4 has rates 1, 2, 3, 4, 4. Within a cluster the modes are
defined up to a rotation. A method that finds the slow subspace exactly returns r functions of it, and a reference of
exactly r modes gives it a random score below 1. A reference with the complete cluster gives 1.

    exact = problem.reference(X, 4)                            # complete: five modes
    kdmaps.metrics.subspace_r2(rotated[:, :4], exact[:, :4])   # below 1, although `rotated` spans the same space
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import special_ortho_group

from experiments._runner import Row
from experiments.paper._experiment import Call, now
from experiments.paper._printed import LABELS
from experiments.paper._show import COLOURS, Table, cell
from kdmaps import metrics, problems


def rotated_scores(problem: str, seed: int) -> Row:
    """Return SubR² of exact modes, rotated at random within their last cluster, with three references."""
    system = problems.load(problem)
    r = system.n_modes
    X = system.sample(5000, random_state=seed)
    complete = system.reference(X, r)
    k = complete.shape[1]
    rates = system.rates(k)
    last = np.flatnonzero(rates > rates[-1] * (1 - 1e-6))
    modes = complete.copy()
    if len(last) > 1:
        modes[:, last] = complete[:, last] @ special_ortho_group.rvs(len(last), random_state=seed)
    found = modes[:, :r]
    return {
        "problem": problem,
        "seed": seed,
        "rates": rates.tolist(),
        "cut": metrics.subspace_r2(found, complete[:, :r]),
        "complete": metrics.subspace_r2(found, complete),
        "paper": metrics.subspace_r2(found, system.paper_reference(X)),
    }


@dataclass(frozen=True)
class CutOff:
    """Scores of exact modes."""

    title: str = "Degenerate cut-offs"
    problems: Sequence[str] = ("ou2d-4", "ou2d-16", "ou10d", "ou20d")

    def quick(self) -> Self:
        return self

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per problem."""
        return [call(rotated_scores, problem=problem, seed=seed) for problem in self.problems]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate the scores of exact modes."""
        lines = []
        for problem in dict.fromkeys(row["problem"] for row in rows):
            mine = [row for row in rows if row["problem"] == problem]
            rates = ", ".join(f"{rate:g}" for rate in mine[0]["rates"])
            cells = (cell(np.array([row[key] for row in mine])) for key in ("paper", "cut", "complete"))
            lines.append([LABELS[problem], rates, *cells])
        header = ("problem", "rates up to the last cluster", "paper's reference", "exactly r modes", "complete cluster")
        return Table(header, lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot the scores of exact modes, seed by seed."""
        names = list(dict.fromkeys(row["problem"] for row in rows))
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        ax = figure.subplots()
        shown = {
            "paper": ("paper's reference", COLOURS["paper"]),
            "cut": ("exactly r modes", COLOURS["uniform"]),
            "complete": ("complete cluster", COLOURS["kdmaps"]),
        }
        for shift, (key, (label, colour)) in zip((-0.2, 0, 0.2), shown.items(), strict=True):
            at = [names.index(row["problem"]) + shift for row in rows]
            ax.plot(at, [row[key] for row in rows], "o", color=colour, alpha=0.7, mec="none", label=label)
        ax.set(ylabel="SubR² of exact modes", title=self.title)
        ax.set_xticks(range(len(names)), [LABELS[name] for name in names])
        figure.legend(loc="outside right upper", fontsize="small", frameon=False, title="reference")
        return figure


experiment: CutOff = CutOff()
