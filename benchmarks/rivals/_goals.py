"""What was promised of kdmaps against its rivals, and what was measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.rivals._methods import OURS, RIVALS
from experiments._runner import Row

ONE_FIT = "kdmaps, one fit"


class Goal(NamedTuple):
    """A promise, what was measured, and whether it was kept (None: not measured)."""

    text: str
    measured: str
    kept: bool | None


def goals(accuracy: list[Row], times: list[Row]) -> list[Goal]:
    """Every goal; where a goal covers several measurements, the worst one decides."""
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
