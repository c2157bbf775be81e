"""Figures of modes: learned modes of three methods next to the exact ones, for the first seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from experiments._runner import Row
from experiments.paper._experiment import Experiment
from experiments.paper._show import COLOURS, Table, by_problem, read_modes
from kdmaps import metrics, problems

METHODS = ("CV+RFF", "Uniform+Nyström", "kdmaps")


def matched(row: Row) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the samples, the true slow modes, and the learned modes of a run, rotated to match them."""
    X, modes = read_modes(row)
    system = problems.load(row["problem"])
    exact = system.eigenfunctions(X, system.n_modes)
    return X, exact, metrics.align_modes(modes, exact)


class Pictures(Experiment):
    """Modes of the first seed next to the exact ones; the table lists their correlations."""

    def shown(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows of the first seed."""
        return [row for row in rows if row["seed"] == rows[0]["seed"]]

    def table(self, rows: Sequence[Row]) -> Table:
        """Return the correlation of each learned mode with the exact one, after rotation."""
        lines = []
        for row in self.shown(rows):
            _, exact, modes = matched(row)
            pairs = np.diagonal(metrics.correlation_table(modes, exact))
            lines.append([by_problem(row), row["method"], *(f"{c:.3f}" for c in pairs)])
        return Table(("problem", "method", *(f"mode {k + 1}" for k in range(len(lines[0]) - 2))), lines)


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


EXPERIMENTS: dict[str, Experiment] = {
    "modes_1d": Curves(
        "Modes of the one-dimensional potentials",
        "Modes of the one-dimensional potentials (fig:1d-eigs): exact, the paper's choice, uniform, kdmaps.",
        METHODS,
        ("dw1d", "dw1d-asym"),
    ),
    "modes_ou": Scatters(
        "Modes of the Ornstein–Uhlenbeck processes",
        "Modes of the Ornstein–Uhlenbeck processes (fig:ou-eigs): exact, the paper's choice, kdmaps.",
        METHODS,
        ("ou2d-4", "ou2d-16", "ou3d"),
        ("ou2d-4",),
    ),
    "modes_circle": Angles(
        "Modes of the noisy circle",
        "Modes of the noisy circle over the angle θ (fig:s1-eigs-new).",
        METHODS,
        ("circle",),
    ),
    "residuals": Residuals(
        "Residuals of the modes",
        "Residuals φ̂_k - φ_k (fig:residuals-new), of modes rotated to match the exact ones.",
        METHODS,
        ("dw1d", "ou2d-16"),
    ),
}
