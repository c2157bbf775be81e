"""Time over the number of samples, and error over time, one panel for each problem."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.rivals._methods import OURS, RIVALS
from experiments._runner import Row
from kdmaps.utils.files import replacing


def draw_time_by_size(rows: list[Row], path: Path) -> None:
    """Seconds over N; a cross ends the line of a rival that met a limit or failed on larger samples."""

    def draw(ax, mine, style):
        mine = sorted(mine, key=lambda row: row["n"])
        done = [row for row in mine if "error" not in row]
        (line,) = ax.plot([row["n"] for row in done], [row["seconds"] for row in done], **style)
        if done and "error" in mine[-1]:
            ax.plot(done[-1]["n"], done[-1]["seconds"], "x", color=line.get_color(), ms=9, mew=2)

    _draw(rows, path, draw, xlabel="samples", ylabel="seconds")


def draw_error_by_time(rows: list[Row], path: Path) -> None:
    """1 - SubR² over seconds; each line runs through the sizes."""

    def draw(ax, mine, style):
        done = sorted((row for row in mine if "error" not in row), key=lambda row: row["n"])
        # Below 1e-6 nobody can see a difference, and 0 has no place on a logarithmic axis.
        ax.plot([row["seconds"] for row in done], [max(1 - row["subr2"], 1e-6) for row in done], **style)

    _draw(rows, path, draw, xlabel="seconds", ylabel="1 - SubR²")


def _draw(rows: list[Row], path: Path, draw: Callable, **labels) -> None:
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    colours = colormaps["tab20"].colors[0::2] + colormaps["tab20"].colors[1::2]  # the strong ones first
    names = list(dict.fromkeys(row["problem"] for row in rows))
    rivals = [name for name in RIVALS if any(row["rival"] == name for row in rows)]
    columns = min(4, len(names) + 1)  # one panel for the legend
    lines = -(-(len(names) + 1) // columns)
    fig = Figure(figsize=(3.6 * columns, 3.2 * lines), layout="constrained")
    axes = fig.subplots(lines, columns, squeeze=False).ravel()
    for ax, problem in zip(axes, names, strict=False):
        for number, rival in enumerate(rivals):
            ours = rival in OURS
            style = {"marker": "o" if ours else ".", "lw": 2.2 if ours else 1, "zorder": 3 if ours else 2}
            style |= {"color": colours[number], "label": rival}
            draw(ax, [row for row in rows if row["rival"] == rival and row["problem"] == problem], style)
        ax.set(xscale="log", yscale="log", title=problem, **labels)
    for ax in axes[len(names) :]:
        ax.axis("off")
    axes[len(names)].legend(*axes[0].get_legend_handles_labels(), loc="center", frameon=False, fontsize="small")
    with replacing(path) as (file,):
        fig.savefig(file, dpi=130, format="png")
