"""The page of results, from rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from benchmarks.rivals._goals import Goal, goals, mean_accuracy
from benchmarks.rivals._methods import RIVALS
from experiments._runner import Row, markdown


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
        "Mean relative error of the rates, where a method has rates of its own:",
        rates_table(rows),
    ]


def accuracy_table(rows: list[Row]) -> str:
    systems, means = _in_order(rows, "problem"), mean_accuracy(rows)
    best = {p: max((v for (_, q), v in means.items() if q == p), default=np.nan) for p in systems}
    lines = []
    for rival in _rivals(rows):
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
    for rival in _rivals(rows):
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
        "Seconds for the modes at all samples (the shortest of up to five runs) and, in brackets, MB at the peak above "
        f"what the process held before. Threads: {', '.join(map(str, threads))}. A dash: a smaller sample met a limit.",
    ]
    for problem in _in_order(rows, "problem"):
        parts += [f"### {problem}", times_table(_select(rows, problem=problem))]
    return parts


def times_table(rows: list[Row]) -> str:
    sizes = sorted({row["n"] for row in rows})
    lines = []
    for rival in _rivals(rows):
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


def failures_table(rows: list[Row]) -> str:
    """One line for each rival, size and message; the problems and seeds it met them on are counted."""
    found: dict[tuple[str, int, str], list[str]] = {}
    for row in rows:
        if "error" in row:
            message = " ".join(row["error"].split()).replace("|", "\\|")
            found.setdefault((row["rival"], row["n"], message), []).append(row["problem"])
    lines = [
        [rival, f"{n:,}", ", ".join(dict.fromkeys(met)), message[:300]] for (rival, n, message), met in found.items()
    ]
    return markdown(["rival", "N", "problems", "message"], lines) if lines else "None."


def settings_table(rows: list[Row]) -> str:
    versions: dict[str, dict[str, None]] = {}  # in the order of the rows, each once
    for row in rows:
        found = {f"{name} {v}": None for name, v in row.get("packages", {}).items()}
        versions[row["rival"]] = {**versions.get(row["rival"], {}), **found}
    lines = []
    for rival in _rivals(rows):
        named = ", ".join(versions[rival])
        lines.append([rival, named or "did not run", RIVALS[rival].settings, RIVALS[rival].source])
    return markdown(["", "version", "settings", "source"], lines)


def _select(rows: list[Row], **values) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def _in_order(rows: list[Row], name: str) -> list[str]:
    return list(dict.fromkeys(row[name] for row in rows))


def _rivals(rows: list[Row]) -> list[str]:
    present = {row["rival"] for row in rows}
    return [name for name in RIVALS if name in present]
