"""Shared code for the tables and figures of the reproduction."""

from __future__ import annotations

import csv
import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments._runner import Row, markdown
from experiments.paper._printed import LABELS, Printed
from experiments.paper._verdicts import SEEDS_WITH_DEVIATION, difference

COLOURS = {"printed": "0.45", "paper": "tab:red", "kdmaps": "tab:blue", "exact": "black", "uniform": "tab:orange"}


@dataclass(frozen=True)
class Table:
    """Cells of a table and notes about them."""

    header: Sequence[str]
    lines: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def markdown(self) -> str:
        notes = "".join(f"\n- {note}" for note in self.notes)
        return markdown(self.header, self.lines) + (f"\n{notes}" if notes else "")

    def html(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(line(cells, "td") for cells in self.lines)
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        table = f"<table><thead>{line(self.header, 'th')}</thead><tbody>{body}</tbody></table>"
        return f'<div class="wide">{table}</div>' + (f"<ul>{notes}</ul>" if notes else "")


def by_problem(row: Row) -> str:
    return LABELS[row["problem"]]


def values(rows: Sequence[Row], key: str, method: str, case: str, by: Callable[[Row], str] = by_problem) -> np.ndarray:
    """Return one number per seed."""
    return np.array([row[key] for row in rows if row["method"] == method and by(row) == case])


def spread(numbers: np.ndarray) -> float:
    """Return the standard deviation over the seeds."""
    return float(np.std(numbers, ddof=1)) if len(numbers) > 1 else 0.0


def cell(numbers: np.ndarray) -> str:
    """Return mean ± standard deviation over the seeds, or the only value."""
    if len(numbers) == 0:
        return "–"
    return f"{np.mean(numbers):.3f}" + (f" ± {spread(numbers):.3f}" if len(numbers) > 1 else "")


def printed_cell(printed: Printed, case: str, method: str) -> str:
    mean, deviation = printed.get((case, method), (None, None))
    return "–" if mean is None else f"{mean:.3f}" + (f" ± {deviation:.3f}" if deviation is not None else "")


def deviations(numbers: np.ndarray, printed: tuple[float, float | None] | None) -> float:
    """Return the distance from the printed mean in standard deviations (of the printed or found values, the larger)."""
    scale = max(spread(numbers), (printed[1] or 0.0) if printed else 0.0)
    return abs(np.mean(numbers) - printed[0]) / scale if printed and scale > 0 else 0.0


def comparison(
    rows: Sequence[Row],
    printed: Printed,
    methods: Sequence[str],
    tried: Mapping[tuple[str, str], str] | None = None,
    by: Callable[[Row], str] = by_problem,
) -> Table:
    """Tabulate printed | paper protocol | kdmaps, with a note for each cell beyond sampling error."""
    lines, notes = [], []
    for case in dict.fromkeys(by(row) for row in rows):
        ours = cell(values(rows, "r2", "kdmaps", case, by))
        for method in methods:
            found = values(rows, "paper_r2", method, case, by)
            if len(found) == 0:
                continue
            shown = printed_cell(printed, case, method)
            true = cell(values(rows, "r2", method, case, by))
            agrees = "–"
            if (case, method) in printed and len(found) > 1:
                gap = difference(found, *printed[case, method], SEEDS_WITH_DEVIATION)
                agrees = "yes" if gap.within else f"no, {min(gap.in_errors, 99):.0f} SE"
                if not gap.within:
                    why = (tried or {}).get((case, method), "")
                    notes.append(f"{case}, {method}: printed {shown}, found {cell(found)}. {why}".strip())
            lines.append([case, method, shown, cell(found), agrees, true, ours])
    header = ("problem", "method", "printed", "paper protocol", "within sampling error",
              "paper protocol, true slow modes", "kdmaps, true slow modes")  # fmt: skip
    return Table(header, lines, notes)


def dots(
    rows: Sequence[Row],
    printed: Printed,
    methods: Sequence[str],
    title: str,
    by: Callable[[Row], str] = by_problem,
) -> Figure:
    """Plot printed cells, the paper protocol with both references, and kdmaps for each problem."""
    cases = list(dict.fromkeys(by(row) for row in rows))
    figure = Figure(figsize=(5 + 0.9 * len(cases), 3.9), layout="constrained")
    ax = figure.subplots()
    offsets = np.linspace(-0.3, 0.3, len(methods) + 1)
    for number, (offset, method) in enumerate(zip(offsets, methods, strict=False)):
        colour = f"C{number + 1}"
        for at, case in enumerate(cases):
            x = at + offset
            if (case, method) in printed:
                ax.plot([x - 0.06, x + 0.06], [printed[case, method][0]] * 2, color=COLOURS["printed"], lw=2.5)
            # The open marker is larger, so that both are visible if the references agree.
            for key, face, size in (("r2", "white", 8), ("paper_r2", colour, 5)):
                found = values(rows, key, method, case, by)
                if len(found):
                    ax.errorbar(x, found.mean(), spread(found), fmt="o", ms=size, color=colour, mfc=face, lw=1)
        ax.plot([], [], "o", color=colour, label=f"{method}, paper's reference")
    for at, case in enumerate(cases):
        found = values(rows, "r2", "kdmaps", case, by)
        if len(found):
            ax.errorbar(at + offsets[-1], found.mean(), spread(found), fmt="*", ms=10, color="C0", lw=1)
    ax.plot([], [], "o", ms=8, color="0.3", mfc="white", label="the same, true slow modes")
    ax.plot([], [], "*", ms=10, color="C0", label="kdmaps, true slow modes")
    ax.plot([], [], color=COLOURS["printed"], lw=2.5, label="printed")
    ax.set(ylim=(min(0.4, ax.get_ylim()[0]), 1.02), xlim=(-0.6, len(cases) - 0.4))
    ax.set(ylabel="SubR² (1 is perfect)", title=title)
    ax.set_xticks(range(len(cases)), cases, rotation=20, ha="right")
    ax.grid(axis="y", lw=0.4)
    figure.legend(loc="outside right upper", fontsize="small", frameon=False)
    return figure


def curves(
    ax: Axes,
    rows: Sequence[Row],
    at: Mapping[str, float],
    lines: Sequence[tuple[str, str, str, str, str]],
    by: Callable[[Row], str],
) -> None:
    """Plot means with standard deviations over the seeds.

    Parameters
    ----------
    ax : matplotlib Axes
    rows : sequence of rows
    at : mapping
        Abscissa of each case.
    lines : sequence of (method, key, line style, name of the colour, label)
        The curves.
    by : callable
        Case of a row.
    """
    for method, key, style, colour, label in lines:
        found = [values(rows, key, method, case, by) for case in at]
        means, errors = [np.mean(v) for v in found], [spread(v) for v in found]
        ax.errorbar(list(at.values()), means, errors, ls=style, marker="o", ms=4, color=COLOURS[colour], label=label)
    ax.set(xscale="log", ylabel="SubR² (1 is perfect)")
    ax.grid(lw=0.4)


def read_modes(row: Row) -> tuple[np.ndarray, np.ndarray]:
    """Read the coordinates and modes of a run from its CSV file."""
    with Path(row["modes"]).open() as file:
        header, *lines = list(csv.reader(file))
    table = np.array(lines, dtype=float)
    coordinates = np.array([name.startswith("x") for name in header])
    return table[:, coordinates], table[:, ~coordinates]
