"""Residuals φ̂_k - φ_k (fig:residuals-new), of modes rotated to match the exact ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from experiments._runner import Row
from experiments.paper._pictures import METHODS, Pictures, matched
from experiments.paper._show import COLOURS, Table, by_problem


class Residuals(Pictures):
    """Differences of learned and exact modes."""

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate the root mean square residual of each mode (1.4 for an unrelated function)."""
        lines = []
        for row in self.shown(rows):
            _, exact, modes = matched(row)
            sizes = np.sqrt(np.mean((modes - exact) ** 2, axis=0))
            lines.append([by_problem(row), row["method"], *(f"{size:.3f}" for size in sizes)])
        return Table(("problem", "method", *(f"mode {k + 1}" for k in range(4))), lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot residuals over the first coordinate."""
        shown = self.shown(rows)
        cases = list(dict.fromkeys(map(by_problem, shown)))
        figure = Figure(figsize=(10.5, 2.7 * len(cases)), layout="constrained")
        axes = figure.subplots(len(cases), 4, squeeze=False, sharey="row")
        colours = dict(zip(METHODS, ("paper", "uniform", "kdmaps"), strict=True))
        for row in shown:
            X, exact, modes = matched(row)
            line = cases.index(by_problem(row))
            for k, ax in enumerate(axes[line]):
                colour = COLOURS[colours[row["method"]]]
                ax.plot(X[:, 0], modes[:, k] - exact[:, k], ".", ms=2.5, color=colour, label=row["method"])
                ax.set(title=f"{cases[line]}, mode {k + 1}", xlabel="x", ylim=(-3, 3))
        for ax in axes[:, 0]:
            ax.set_ylabel("learned - exact")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, markerscale=4)
        return figure


experiment: Residuals = Residuals("Residuals of the modes", ("dw1d", "ou2d-16"))
