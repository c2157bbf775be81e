"""Goals, tables and figures of the comparison with other libraries, from rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from benchmarks.rivals._methods import OURS, RIVALS
from experiments._runner import Row, markdown
from kdmaps.utils.files import replacing


def load_rows(path: Path) -> list[Row]:
    """Return all measurements kept in a file of `run_tasks`; the last one of a task counts."""
    kept: dict[str, Row] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue  # empty, or cut off by a kill
        for row in entry["rows"]:
            key = {name: row.get(name) for name in ("rival", "problem", "n", "seed", "n_modes", "options")}
            kept[json.dumps(key, sort_keys=True)] = row
    return list(kept.values())


def page(accuracy: list[Row], times: list[Row]) -> str:
    """Goals, accuracy, times, failures and settings, in Markdown."""
    usual = [row for row in times if "n_modes" not in row]
    parts = [
        "# kdmaps and its rivals",
        "Same samples, same machine, one process after the other: `python -m benchmarks.rivals`.",
        "## Goals",
        goals_table(goals(accuracy, times)),
        *_accuracy_parts(accuracy),
        *_time_parts(usual),
        "## Failures",
        failures_table(accuracy + times),
        "## Settings",
        settings_table(accuracy + times),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def goals_table(found: list[Goal]) -> str:
    signs = {True: "✓", False: "✗", None: ""}
    return markdown(["goal", "measured", ""], [[goal.text, goal.measured, signs[goal.kept]] for goal in found])


def _accuracy_parts(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    seeds, sizes = {row["seed"] for row in rows}, {row["n"] for row in rows}
    samples = " and ".join(f"{n:,}" for n in sorted(sizes))
    return [
        f"## Accuracy at N={samples}",
        f"SubR² against the true slow modes, complete clusters: mean of {len(seeds)} seeds, and the smallest. Bold: "
        "the best of a problem.",
        accuracy_table(rows),
        "Mean relative error of the rates, for methods that estimate rates:",
        rates_table(rows),
    ]


def accuracy_table(rows: list[Row]) -> str:
    systems, means = _in_order(rows, "problem"), mean_accuracy(rows)
    best = {p: max((v for (_, q), v in means.items() if q == p), default=np.nan) for p in systems}
    lines = []
    for rival in present(rows):
        cells = [rival]
        for problem in systems:
            mine = _select(rows, rival=rival, problem=problem)
            if (rival, problem) in means:
                mean = means[rival, problem]
                text = f"{mean:.4f} ({min(row['subr2'] for row in mine):.3f})"
                cells.append(f"**{text}**" if mean == best[problem] else text)
            else:
                cells.append("failed" if mine else "")
        lines.append(cells)
    return markdown(["", *systems], lines)


def rates_table(rows: list[Row]) -> str:
    systems = _in_order(rows, "problem")
    lines = []
    for rival in present(rows):
        errors = [[row.get("rate_error") for row in _select(rows, rival=rival, problem=p)] for p in systems]
        cells = [f"{np.mean(e):.3g}" if e and None not in e else "" for e in errors]
        if any(cells):
            lines.append([rival, *cells])
    return markdown(["", *systems], lines)


def _time_parts(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    threads = sorted({row["threads"] for row in rows if "threads" in row})
    parts = [
        "## Time and memory",
        "Seconds for the modes at all samples (the shortest of up to five runs) and, in brackets, peak memory in MB "
        f"above the start. Threads: {', '.join(map(str, threads))}. A dash: a smaller sample exceeded a limit.",
    ]
    for problem in _in_order(rows, "problem"):
        parts += [f"### {problem}", times_table(_select(rows, problem=problem))]
    return parts


def times_table(rows: list[Row]) -> str:
    sizes = sorted({row["n"] for row in rows})
    lines = []
    for rival in present(rows):
        cells, over = [rival], False
        for n in sizes:
            row = next(iter(_select(rows, rival=rival, n=n)), None)
            if row is None:
                cells.append("–" if over else "")
            elif "error" in row:
                cells.append("failed")
                over |= row["limit"]
            else:
                cells.append(f"{row['seconds']:.3g} ({row['peak_mb']:.0f})")
        lines.append(cells)
    return markdown(["", *(f"N={n:,}" for n in sizes)], lines)


def failures_table(rows: list[Row], kind: str = "rival", title: str = "rival") -> str:
    """One line for each method (row[kind]), size and message, with the problems on which it failed."""
    found: dict[tuple[str, int, str], list[str]] = {}
    for row in rows:
        if "error" in row:
            message = " ".join(row["error"].split()).replace("|", "\\|")[:300]
            found.setdefault((row[kind], row["n"], message), []).append(row.get("problem", "all"))
    lines = [[name, f"{n:,}", ", ".join(dict.fromkeys(met)), message] for (name, n, message), met in found.items()]
    return markdown([title, "N", "problems", "message"], lines) if lines else "None."


def settings_table(rows: list[Row], kind: str = "rival", methods: Mapping[str, Any] = RIVALS) -> str:
    """Versions and settings of each method (row[kind]), and the source of the settings."""
    lines = []
    for name in present(rows, kind, methods):
        mine = [row.get("packages", {}) for row in rows if row[kind] == name]
        versions = dict.fromkeys(f"{package} {version}" for found in mine for package, version in found.items())
        lines.append([name, ", ".join(versions) or "did not run", methods[name].settings, methods[name].source])
    return markdown(["", "version", "settings", "source"], lines)


def present(rows: list[Row], kind: str = "rival", methods: Mapping[str, Any] = RIVALS) -> list[str]:
    """Return the methods that have rows, in the order of their registry."""
    found = {row[kind] for row in rows}
    return [name for name in methods if name in found]


def _select(rows: list[Row], **values) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def _in_order(rows: list[Row], name: str) -> list[str]:
    return list(dict.fromkeys(row[name] for row in rows))


# --- goals ------------------------------------------------------------------------------------------------------------
ONE_FIT = "kdmaps, one fit"


class Goal(NamedTuple):
    """A goal, the measured value, and whether the goal is met (None: not measured)."""

    text: str
    measured: str
    kept: bool | None


def goals(accuracy: list[Row], times: list[Row]) -> list[Goal]:
    """Return all goals; the worst measurement counts if a goal covers several."""
    return [
        _faster("klap", 20, "N=10,000, d=10, p=500", times, lambda row: row["options"].get("n_features") == 500),
        _faster("kooplearn", 500, "N=1,000", times, lambda row: row["n"] == 1_000),
        _faster("pyDiffMap", 1, "every N", times),
        *(
            _faster(name, 1, "N ≥ 5,000", times, lambda row: row["n"] >= 5_000)
            for name in RIVALS
            if name.startswith("SpectralEmbedding")
        ),
        _faster("textbook", 30, "d=50", times, lambda row: row["problem"] == "sphere-50"),
        *(_most_accurate(name, accuracy) for name in OURS if RIVALS[name].timed and name != ONE_FIT),
    ]


def _faster(
    rival: str, factor: float, where: str, rows: list[Row], which: Callable[[Row], bool] = lambda row: True
) -> Goal:
    """One fit of kdmaps against a rival on the same tasks; tasks that the rival did not finish do not count."""
    ours = {_task(row): row["seconds"] for row in rows if row["rival"] == ONE_FIT and "error" not in row}
    theirs = {_task(row): row["seconds"] for row in rows if row["rival"] == rival and "error" not in row and which(row)}
    ratios = {task: theirs[task] / ours[task] for task in theirs if task in ours}
    text = f"one fit ≥ {factor:g}× as fast as {rival}, {where}"
    if not ratios:
        return Goal(text, "not measured", None)
    worst = min(ratios, key=ratios.__getitem__)
    measured = f"{ratios[worst]:.3g}× ({worst[0]}, N={worst[1]:,})"
    if len(ratios) > 1:
        measured += f", median {np.median(list(ratios.values())):.3g}×, {len(ratios)} comparisons"
    return Goal(text, measured, ratios[worst] >= factor)


def _task(row: Row) -> tuple:
    # Of the options only the number of features is common to rivals.
    return row["problem"], row["n"], row["seed"], row.get("n_modes"), row["options"].get("n_features")


def mean_accuracy(rows: list[Row]) -> dict[tuple[str, str], float]:
    """Mean SubR² over seeds by rival and problem; a rival that failed on a seed has none."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        found.setdefault((row["rival"], row["problem"]), []).append(row.get("subr2", np.nan))
    return {key: float(np.mean(values)) for key, values in found.items() if np.isfinite(values).all()}


def _most_accurate(name: str, rows: list[Row]) -> Goal:
    means = mean_accuracy(rows)
    text = f"{name}: more accurate than every rival on every problem"
    mine = {problem: value for (rival, problem), value in means.items() if rival == name}
    lost = []
    for problem, value in mine.items():
        better = {r: v for (r, p), v in means.items() if p == problem and r not in OURS and v >= value}
        if better:
            best = max(better, key=better.__getitem__)
            lost.append(f"{problem}: {value:.4f}, {best} {better[best]:.4f}")
    if not mine:
        return Goal(text, "not measured", None)
    measured = f"first on {len(mine) - len(lost)} of {len(mine)}"
    return Goal(text, measured + (f"; not on {'; '.join(lost)}" if lost else ""), not lost)


# --- figures ----------------------------------------------------------------------------------------------------------
def draw_time_by_size(rows: list[Row], path: Path) -> None:
    """Seconds over N; a cross marks the last size before a rival exceeded a limit or failed."""

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
        # The logarithmic axis ends at 1e-6.
        ax.plot([row["seconds"] for row in done], [max(1 - row["subr2"], 1e-6) for row in done], **style)

    _draw(rows, path, draw, xlabel="seconds", ylabel="1 - SubR²")


def _draw(rows: list[Row], path: Path, draw: Callable, **labels) -> None:
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
        if (value := ax.dataLim.y0) == ax.dataLim.y1:  # matplotlib warns of an axis without length
            ax.set_ylim(value / 2, 2 * value)
        ax.set(xscale="log", yscale="log", title=problem, **labels)
    for ax in axes[len(names) :]:
        ax.axis("off")
    axes[len(names)].legend(*axes[0].get_legend_handles_labels(), loc="center", frameon=False, fontsize="small")
    with replacing(path) as (file,):
        fig.savefig(file, dpi=130, format="png")
