"""Modes of the Ornstein–Uhlenbeck processes (fig:ou-eigs): exact, the paper's choice, kdmaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from experiments._runner import Row
from experiments.paper._pictures import Pictures, matched
from experiments.paper._show import by_problem


class Scatters(Pictures):
    """Modes as colours over the first two coordinates."""

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot one row of panels per problem and method, one column per mode."""
        shown = [row for row in self.shown(rows) if row["method"] != "Uniform+Nyström"]
        lines = []
        for row in shown:
            X, exact, modes = matched(row)
            if row["method"] == "CV+RFF":
                lines.append((f"{by_problem(row)}, exact", X, exact))
            lines.append((f"{by_problem(row)}, {row['method']}", X, modes))
        figure = Figure(figsize=(10, 1.75 * len(lines)), layout="constrained")
        axes = figure.subplots(len(lines), 4, squeeze=False, sharex=True)
        for panels, (label, X, modes) in zip(axes, lines, strict=True):
            for k, ax in enumerate(panels):
                limit = np.quantile(np.abs(modes[:, k]), 0.98)
                dots = ax.scatter(*X[:, :2].T, c=modes[:, k], s=6, cmap="coolwarm", vmin=-limit, vmax=limit)
                ax.set_title(f"mode {k + 1}" if panels is axes[0] else "")
            panels[0].set_ylabel(label.replace(", ", "\n") + "\ny", fontsize="small")
            figure.colorbar(dots, ax=list(panels), label="mode", pad=0.01)
        for ax in axes[-1]:
            ax.set_xlabel("x")
        return figure


experiment: Scatters = Scatters("Modes of the Ornstein–Uhlenbeck processes", ("ou2d-4", "ou2d-16", "ou3d"), ("ou2d-4",))
