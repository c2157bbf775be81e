"""Tables and figure of the comparison with neural methods, from rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.neural._measure import PROBLEMS
from benchmarks.neural._methods import OURS, PEERS
from benchmarks.rivals._page import failures_table, present, settings_table
from experiments._runner import Row, markdown
from kdmaps.utils.files import replacing


def page(rows: list[Row], tuning: list[Row]) -> str:
    """Return accuracy, rates, cost, patience, tuning, failures and settings, in Markdown."""
    parts = ["Bold: the best of a problem, of samples and of pairs each."]
    for n in sorted({row["n"] for row in rows}):
        mine, limit = usual(rows, n), limits(rows)[n]
        seeds = len({row["seed"] for row in mine if "seed" in row})
        parts += [
            f"## N={n:,}, {seeds} seeds, at most {limit:g} s of training",
            "SubR² at new samples, mean and smallest:",
            _by_problem(mine, "subr2", _accuracy, best=True),
            "Mean relative error of the rates:",
            _by_problem(mine, "rate_error", lambda values: f"{np.mean(values):.3g}"),
            "Processor time of a fit in seconds, mean; in brackets MB at the peak of the first fit:",
            _by_problem(mine, "seconds", lambda values: f"{np.mean(values):.1f}", memory=True),
        ]
    parts += [
        "## More training",
        "SubR² at new samples of one seed: usual limit → five times that.",
        patience_table(rows),
        "## Learning rates",
        "Mean SubR² at new samples on the samples for tuning (two problems); bold: used above.",
        tuning_table(tuning),
        "## Failures",
        failures_table(rows + tuning, "peer", "method"),
        "## Settings",
        settings_table(rows, "peer", PEERS),
    ]
    return "\n\n".join(parts) + "\n"


def limits(rows: list[Row]) -> dict[int, float]:
    """Return the usual limit of the training by the number of samples; longer ones are for *More training*."""
    return {
        n: min((row["training"] for row in rows if row["n"] == n and "training" in row), default=0.0)
        for n in {row["n"] for row in rows}
    }


def usual(rows: list[Row], n: int) -> list[Row]:
    """Return the rows of so many samples with the usual limit."""
    limit = limits(rows)[n]
    return [row for row in rows if row["n"] == n and row.get("training", limit) == limit]


def means(rows: list[Row], name: str = "subr2") -> dict[tuple[str, str], float]:
    """Return the mean of a figure over seeds by method and problem; a method that failed on a seed has none."""
    keys = dict.fromkeys((row["peer"], row["problem"]) for row in rows if "problem" in row)
    found = {key: [row.get(name) for row in rows if (row["peer"], row.get("problem")) == key] for key in keys}
    return {key: float(np.mean(values)) for key, values in found.items() if None not in values}


def first(rows: list[Row], lagged: bool) -> dict[str, str]:
    """Return the most accurate method of each problem, among methods for samples or among methods for pairs."""
    found = {key: value for key, value in means(rows).items() if PEERS[key[0]].lagged == lagged}
    names = dict.fromkeys(problem for _, problem in found)
    return {p: max((peer for peer, q in found if q == p), key=lambda peer, p=p: found[peer, p]) for p in names}


def _accuracy(values: list[float]) -> str:
    return f"{np.mean(values):.4f} ({min(values):.3f})"


def _by_problem(
    rows: list[Row], name: str, form: Callable[[list], str], best: bool = False, memory: bool = False
) -> str:
    names, known = _problems(rows), means(rows, name)
    winners = {(peer, p) for lagged in (False, True) for p, peer in first(rows, lagged).items()} if best else set()
    lines = []
    for peer in present(rows, "peer", PEERS):
        cells = []
        for p in names:
            mine = [row for row in rows if (row["peer"], row.get("problem")) == (peer, p)]
            if (peer, p) in known:
                text = form([row[name] for row in mine])
                text += f" ({mine[0]['peak_mb']:.0f})" if memory else ""
                cells.append(f"**{text}**" if (peer, p) in winners else text)
            else:
                cells.append("failed" if any("error" in row for row in mine) else "")
        if any(cells):
            lines.append([peer, *cells])
    return markdown(["", *names], lines)


def patience_table(rows: list[Row]) -> str:
    """Return SubR² with the usual and with the longer training, on the same sample."""
    limit = limits(rows)
    long = [row for row in rows if row.get("training", 0) > limit[row["n"]]]
    cases = sorted({(row["n"], row["problem"]) for row in long})
    lines = []
    for peer in present(long, "peer", PEERS):
        cells = []
        for n, problem in cases:
            mine = [row for row in rows if (row["peer"], row["n"], row.get("problem")) == (peer, n, problem)]
            mine = [row for row in mine if row.get("seed", 0) == 0]
            pair = {row.get("training", 0) > limit[n]: f"{row['subr2']:.4f}" for row in mine if "subr2" in row}
            cells.append(" → ".join(pair.get(patient, "failed") for patient in (False, True)))
        lines.append([peer, *cells])
    return markdown(["", *(f"{problem}, N={n:,}" for n, problem in cases)], lines)


def tuning_table(rows: list[Row]) -> str:
    """Return the mean SubR² of each learning rate."""
    lines = []
    for peer in present(rows, "peer", PEERS):
        rates = PEERS[peer].learning_rates
        mean = [
            np.mean([row.get("subr2", 0.0) for row in rows if (row["peer"], row.get("learning_rate")) == (peer, rate)])
            for rate in rates
        ]
        cells = [f"{rate:g}: {value:.3f}" for rate, value in zip(rates, mean, strict=True)]
        cells[int(np.argmax(mean))] = f"**{cells[int(np.argmax(mean))]}**"
        lines.append([peer, *cells])
    return markdown(["", "low", "middle", "high"], lines)


def _problems(rows: list[Row]) -> list[str]:
    present = {row["problem"] for row in rows if "problem" in row}
    return [name for name in PROBLEMS if name in present]


def draw(rows: list[Row], path: Path) -> None:
    """Draw the error against the number of samples: mean, smallest and largest, one panel for each problem."""
    limit = limits(rows)
    rows = [row for row in rows if "subr2" in row and row["training"] == limit[row["n"]]]
    names, sizes = _problems(rows), sorted(limit)
    columns = min(4, len(names) + 1)  # one panel for the legend
    lines = -(-(len(names) + 1) // columns)
    fig = Figure(figsize=(3.2 * columns, 3.0 * lines), layout="constrained")
    axes = fig.subplots(lines, columns, squeeze=False).ravel()
    for ax, problem in zip(axes, names, strict=False):
        for number, peer in enumerate(PEERS):
            mine = [row for row in rows if (row["peer"], row["problem"]) == (peer, problem)]
            errors = {n: [max(1 - row["subr2"], 1e-5) for row in mine if row["n"] == n] for n in sizes}
            errors = {n: found for n, found in errors.items() if found}
            mean = np.array([np.mean(found) for found in errors.values()])
            ends = [mean - [min(found) for found in errors.values()], [max(e) for e in errors.values()] - mean]
            ours, lagged = peer in OURS, PEERS[peer].lagged
            ax.errorbar(
                np.array(list(errors)) * 1.08 ** (number - 3), mean, ends, color=f"C{number}", elinewidth=1,
                lw=2.5 if ours else 1, ls="--" if lagged else "-", marker="D" if lagged else "o", ms=6 if ours else 4,
                label=f"{peer}{' (pairs)' if lagged else ''}",
            )  # fmt: skip
        ax.set(xscale="log", yscale="log", title=problem, xlim=(sizes[0] / 2, 2 * sizes[-1]))
        ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
        ax.set_xticks([], minor=True)
        ax.grid(alpha=0.25)
    for ax in axes[len(names) :]:
        ax.axis("off")
    fig.supxlabel("samples")
    fig.supylabel("error 1 - SubR² at new samples")
    axes[len(names)].legend(*axes[0].get_legend_handles_labels(), loc="center", frameon=False)
    with replacing(path) as (file,):
        fig.savefig(file, dpi=130, format="png")
