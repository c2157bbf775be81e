"""Figure of all claims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.lines import Line2D

from experiments._runner import Row
from experiments.failure_modes._claims import CLAIMS, Claim, Landscape, landscapes, lowest, minima
from experiments.failure_modes._laboratory import SIGMA_RANGE

COLOURS = {"uncentred": "C3", "centred": "C0", "heldout": "C2"}


def figure(rows: list[Row]) -> Figure:
    """Plot losses and SubR² against σ for the claims of the first case, descents, and minima over the weights."""
    by_case = landscapes(rows)
    case, lands = next(iter(by_case.items()))
    claims = {claim.name: claim for claim in CLAIMS}
    fig = Figure(figsize=(15, 15), layout="constrained")
    grid = fig.add_gridspec(7, 4, height_ratios=[3, 1.5, 2.2, 2.4, 1.5, 3, 1.5])
    for column, name in enumerate(("sub", "eig", "combined")):
        _plot_loss(fig, grid, 0, column, lands, claims[name])
        _plot_descents(fig.add_subplot(grid[2, column]), rows, case, name)
    _plot_ceiling(fig.add_subplot(grid[0:2, 3]), by_case)
    _plot_descents(fig.add_subplot(grid[2, 3]), rows, case, "heldout")
    for column, name in enumerate(c.name for c in CLAIMS if c.name.startswith("+")):
        _plot_weights(fig, grid, 3, column, lands, claims[name])
    shown = ("residual", "residual, unit modes", "held-out residual, unit modes", "residual + Dirichlet constraint")
    for column, name in enumerate(shown):
        _plot_loss(fig, grid, 5, column, lands, claims[name])
    fig.suptitle(f"Where the minimum over σ is: {', '.join(case)} (σ in medians of the pairwise distance)", fontsize=14)
    handles = [Line2D([], [], color=c, marker="o", label=s) for s, c in COLOURS.items()]
    handles.append(
        Line2D([], [], color=COLOURS["heldout"], ls="--", marker="s", mfc="none", label="heldout, λ chosen too")
    )
    fig.legend(handles=handles, loc="outside lower center", ncols=4, title="dots: minima of all seeds; lines: one seed")
    return fig


def _plot_loss(fig: Figure, grid: GridSpec, row: int, column: int, lands: Sequence[Landscape], claim: Claim) -> None:
    top = fig.add_subplot(grid[row, column])
    below = fig.add_subplot(grid[row + 1, column], sharex=top)
    for setup, colour in COLOURS.items():
        for number, land in enumerate(lands):
            loss = claim.loss(land, setup, 1.0)
            height, index = _rescaled(loss), lowest(loss)
            if number == 0:
                top.plot(land.sigma, height, color=colour, lw=1.6)
                if setup != "heldout":
                    below.plot(land.sigma, land.columns[setup]["r2"], color=colour, lw=1)
            top.plot(land.sigma[index], height[index], "o", color=colour, ms=7, alpha=0.7, clip_on=False, zorder=5)
            below.plot(
                land.sigma[index], land.columns[setup]["r2"][index], "o", color=colour, ms=5, alpha=0.7, clip_on=False,
                zorder=5,
            )  # fmt: skip
    for number, land in enumerate(lands):
        loss, index = land.columns["centred"]["free_heldout"], lowest(land.columns["centred"]["free_heldout"])
        height, r2 = _rescaled(loss), land.columns["centred"]["free_r2"]
        if number == 0:
            top.plot(land.sigma, height, color=COLOURS["heldout"], lw=1, ls="--")
        for ax, value in ((top, height), (below, r2)):
            ax.plot(land.sigma[index], value[index], "s", color=COLOURS["heldout"], ms=6, mfc="none", clip_on=False)
    top.set(xscale="log", xlim=SIGMA_RANGE, yticks=[], title=f"{claim.name}\npaper: {claim.paper}")
    top.title.set_fontsize(10)
    top.tick_params(labelbottom=False)
    below.set(ylim=(0, 1), xlabel="σ")
    if column == 0:
        top.set_ylabel("loss (each rescaled)")
        below.set_ylabel("SubR²")


def _rescaled(loss: np.ndarray) -> np.ndarray:
    """Rescale to [0, 1] and stretch small values, because losses range over orders of magnitude."""
    above = loss - np.nanmin(loss)
    stretched = np.arcsinh(above / max(np.nanquantile(above, 0.3), 1e-12))
    return stretched / np.nanmax(stretched)


def _plot_descents(ax: Axes, rows: Sequence[Row], case: tuple[str, str, str], name: str) -> None:
    for row in rows:
        if row["part"] == "descent" and row["loss"] == name and (row["problem"], row["family"], row["basis"]) == case:
            setup = "heldout" if name == "heldout" else "centred" if row["center"] else "uncentred"
            ax.plot(row["path"], color=COLOURS[setup], lw=1.4)
            ax.plot(len(row["path"]) - 1, row["path"][-1], "o", color=COLOURS[setup], ms=4)
    for edge in SIGMA_RANGE:
        ax.axhline(edge, color="0.7", lw=0.7, ls="--")
    ax.set(yscale="log", xlabel="step of descent", ylabel="σ", ylim=(SIGMA_RANGE[0] / 3, SIGMA_RANGE[1] * 3))
    ax.set_title(f"descent under {name}", fontsize=10)


def _plot_weights(fig: Figure, grid: GridSpec, row: int, column: int, lands: Sequence[Landscape], claim: Claim) -> None:
    top = fig.add_subplot(grid[row, column])
    below = fig.add_subplot(grid[row + 1, column], sharex=top)
    for setup, colour in COLOURS.items():
        found = [minima(lands, claim, setup, w) for w in claim.weights]
        for ax, key in ((top, "sigma"), (below, "r2")):
            ax.plot(claim.weights, [f[0][key] for f in found], color=colour, lw=1.4)
            for number in range(len(lands)):
                ax.plot(claim.weights, [f[number][key] for f in found], "o", color=colour, ms=4, alpha=0.6)
    for edge in SIGMA_RANGE:
        top.axhline(edge, color="0.7", lw=0.7, ls="--")
    top.set(xscale="log", yscale="log", ylim=(SIGMA_RANGE[0] / 2, SIGMA_RANGE[1] * 2))
    top.set_title(f"eig + sub (or heldout) {claim.name}\npaper: {claim.paper}", fontsize=10)
    top.tick_params(labelbottom=False)
    below.set(ylim=(0, 1), xlabel="weight of the regularizer")
    if column == 0:
        top.set_ylabel("σ at minimum")
        below.set_ylabel("SubR² there")


def _plot_ceiling(ax: Axes, by_case: dict[tuple[str, str, str], list[Landscape]]) -> None:
    """Plot SubR² of one Gaussian over σ for both references."""
    case = next((c for c in by_case if c[:2] == ("ou2d-4", "gaussian")), next(iter(by_case)))
    land = by_case[case][0]
    for setup in ("uncentred", "centred"):
        for key, style, label in (("r2", "-", "slow modes"), ("paper_r2", ":", "paper's reference")):
            ax.plot(land.sigma, land.columns[setup][key], style, color=COLOURS[setup], label=f"{setup}, {label}")
    index = lowest(land.columns["heldout"]["heldout"])
    ax.plot(land.sigma[index], land.columns["heldout"]["r2"][index], "o", color=COLOURS["heldout"], label="heldout")
    ax.axhline(0.75, color="0.5", lw=0.8, ls="--")
    ax.set(xscale="log", xlim=SIGMA_RANGE, ylim=(0, 1), xlabel="σ", ylabel="SubR²")
    ax.set_title(f"one kernel: {case[1]}\npaper: at most 0.75 (dashed)", fontsize=10)
    ax.legend(fontsize=8, loc="lower right")
