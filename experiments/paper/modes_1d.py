"""Modes of the one-dimensional potentials (fig:1d-eigs): exact, the paper's choice, uniform, kdmaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from experiments._runner import Row
from experiments.paper._pictures import METHODS, Pictures, matched
from experiments.paper._show import COLOURS, by_problem


class Curves(Pictures):
    """Modes over the coordinate."""

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot one row of panels per problem, one column per mode."""
        shown = self.shown(rows)
        cases = list(dict.fromkeys(map(by_problem, shown)))
        figure = Figure(figsize=(10.5, 2.6 * len(cases)), layout="constrained")
        axes = figure.subplots(len(cases), 4, squeeze=False, sharex="row")
        styles = dict(zip(METHODS, (("--", "paper"), (":", "uniform"), ("-", "kdmaps")), strict=True))
        for row in shown:
            X, exact, modes = matched(row)
            order = np.argsort(X[:, 0])
            line = cases.index(by_problem(row))
            style, colour = styles[row["method"]]
            for k, ax in enumerate(axes[line]):
                if row["method"] == METHODS[0]:
                    ax.plot(X[order, 0], exact[order, k], color=COLOURS["exact"], lw=2.5, alpha=0.5, label="exact")
                    ax.set(title=f"{cases[line]}, mode {k + 1}", xlabel="x")
                ax.plot(X[order, 0], modes[order, k], style, color=COLOURS[colour], lw=1.4, label=row["method"])
        for ax in axes[:, 0]:
            ax.set_ylabel("mode (unit variance)")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
        return figure


experiment: Curves = Curves("Modes of the one-dimensional potentials", ("dw1d", "dw1d-asym"))
