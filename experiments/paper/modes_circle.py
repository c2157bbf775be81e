"""Modes of the noisy circle over the angle θ (fig:s1-eigs-new)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from experiments._runner import Row
from experiments.paper._pictures import METHODS, Pictures, matched
from experiments.paper._show import COLOURS


class Angles(Pictures):
    """Modes over the polar angle."""

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot one row of panels per method, one column per mode."""
        shown = self.shown(rows)
        figure = Figure(figsize=(10.5, 5.6), layout="constrained")
        axes = figure.subplots(len(shown), 4, sharex=True, sharey=True)
        colours = dict(zip(METHODS, ("paper", "uniform", "kdmaps"), strict=True))
        for row, panels in zip(shown, axes, strict=True):
            X, exact, modes = matched(row)
            angle = np.arctan2(X[:, 1], X[:, 0])
            for k, ax in enumerate(panels):
                ax.plot(angle, exact[:, k], ".", ms=3, color="0.7", label="exact")
                ax.plot(angle, modes[:, k], ".", ms=3, color=COLOURS[colours[row["method"]]], label="learned")
                ax.set_title(f"{row['method']}, mode {k + 1}", fontsize="medium")
            panels[0].set_ylabel("mode (unit variance)")
        for ax in axes[-1]:
            ax.set_xlabel("θ (radians)")
            ax.set_xticks([-np.pi, 0, np.pi], ["-π", "0", "π"])
        return figure


experiment: Angles = Angles("Modes of the noisy circle", ("circle",))
