"""Run all experiments: share and store measurements, then write tables, figures and pages."""

from __future__ import annotations

import csv
import inspect
import io
import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._runner import Row, run_tasks, versions
from experiments.paper import cells, claims, comparisons, corrections, findings, modes, questions, settings, variants
from experiments.paper._experiment import FIRST_SEED, Experiment
from experiments.paper._page import Section, write_pages
from experiments.paper._show import spread
from kdmaps.utils.files import replacing, write_text

ALL = {
    **comparisons.EXPERIMENTS,
    **modes.EXPERIMENTS,
    **settings.EXPERIMENTS,
    **findings.EXPERIMENTS,
    **variants.EXPERIMENTS,
    **cells.EXPERIMENTS,
    **claims.EXPERIMENTS,
    **corrections.EXPERIMENTS,
    **questions.EXPERIMENTS,
}
#: Names in the order of the page; findings have a separate page.
NAMES = (
    *("summary", "main_results", "vmkl_vs_cv", "ablation", "modes_1d", "modes_ou", "modes_circle", "residuals"),
    *("landscape", "multiseed", "scaling", "high_dimension", "varrff", "regularization", "mdlike", "rayleigh"),
    *("mixtures", "inner_loops", "double_well", "wide", "cells", "claims", "sections"),
    *("question_selector", "question_batches", "question_scores", "question_methods"),
    *("finding_phases", "finding_constant", "finding_order", "finding_edge", "finding_cutoff", "corrections"),
)


def reproduce(
    names: Sequence[str] = NAMES,
    seeds: int = 5,
    quick: bool = False,
    out: Path = Path("results/paper"),
    jobs: int = 2,
    progress: bool = True,
) -> list[Path]:
    """Run experiments and write their tables, figures and pages.

    Measurements are appended to `rows.jsonl` and not repeated, so an interrupted run can be resumed.

    Parameters
    ----------
    names : sequence of str
        Experiments from `NAMES`.
    seeds : int
        Number of seeds, from 42 on; a quick run uses one.
    quick : bool
        If True, use one seed and fewer problems.
    out : Path
        Output directory.
    jobs : int
        Number of processes.
    progress : bool
        If True, show a progress bar.

    Returns
    -------
    list of Path
        The pages: Markdown and HTML.
    """
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise ValueError(f"Unknown experiment {unknown[0]!r}; choose from {', '.join(NAMES)}.")
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}.")
    chosen = {name: ALL[name].quick() if quick else ALL[name] for name in names}
    numbers = range(FIRST_SEED, FIRST_SEED + (1 if quick else seeds))
    plan = _Plan(out)
    for seed in numbers:
        for experiment in chosen.values():
            if seed in seeds_of(experiment, numbers):
                experiment.run(seed, plan.note)
    plan.perform(jobs, progress)
    sections = []
    for name, experiment in chosen.items():
        rows = [row for seed in seeds_of(experiment, numbers) for row in experiment.run(seed, plan.look_up)]
        drawing = experiment.figure(rows)
        picture = None if drawing is None else _save(drawing, out / "figures" / f"{name}.png")
        sections.append(
            Section(name, experiment.title, inspect.cleandoc(experiment.text), experiment.table(rows), picture)
        )
    _write_summary(plan.rows, out / "summary.csv")
    used = {"seeds": list(numbers), "quick": quick, "versions": versions()}
    write_text(out / "settings.json", json.dumps(used, indent=1) + "\n")
    return write_pages(sections, used, out)


def seeds_of(experiment: Experiment, seeds: range) -> range:
    """Return the seeds of an experiment in a run."""
    return seeds if experiment.n_seeds is None else seeds[: experiment.n_seeds]


class _Plan:
    """Measurements requested by experiments, each made once."""

    def __init__(self, out: Path):
        self.out = out
        self.tasks: dict[str, dict[str, Any]] = {}
        self._done: dict[str, Row] = {}

    def note(self, function: Callable[..., Row], **arguments: Any) -> Row:
        """Record a measurement to be made; return an empty row."""
        task = _task(function, arguments)
        self.tasks.setdefault(json.dumps(task, sort_keys=True), task)
        return {}

    def perform(self, jobs: int, progress: bool) -> None:
        """Make all recorded measurements that are not on disk."""
        rows = run_tasks(
            _Perform(self.out / "runs"), list(self.tasks.values()), self.out / "rows.jsonl", jobs, show=progress
        )
        self._done = dict(zip(self.tasks, rows, strict=True))

    def look_up(self, function: Callable[..., Row], **arguments: Any) -> Row:
        """Return the row of a measurement."""
        row = self._done[json.dumps(_task(function, arguments), sort_keys=True)]
        return {**row, "modes": self.out / "runs" / row["modes"]} if "modes" in row else row

    @property
    def rows(self) -> list[Row]:
        return list(self._done.values())


def _task(function: Callable[..., Row], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a measurement as plain data with explicit defaults, so that experiments can share it."""
    bound = inspect.signature(function).bind(**arguments)
    bound.apply_defaults()
    bound.arguments.pop("runs", None)
    return {"function": f"{function.__module__}:{function.__name__}", **bound.arguments}


class _Perform:
    """Make a measurement from its plain data, in any process."""

    def __init__(self, runs: Path):
        self.runs = runs

    def __call__(self, function: str, **arguments: Any) -> list[Row]:
        module, name = function.split(":")
        measurement = getattr(import_module(module), name)
        if "runs" in inspect.signature(measurement).parameters:
            arguments["runs"] = self.runs
        return [measurement(**arguments)]


def _save(figure: Figure, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without date and version in the file, the same rows give the same bytes.
    with replacing(path) as (file,):
        figure.savefig(file, format="png", dpi=110, metadata={"Software": None})
    return path


def _write_summary(rows: Sequence[Row], path: Path) -> None:
    """Write mean and standard deviation over the seeds, one line per method, problem and setting."""
    keys = ("problem", "method", "n_samples", "n_features", "asked_regularization")
    shown = ("paper_r2", "r2", "average_abs_correlation", "seconds")
    groups: dict[tuple[Any, ...], dict[int, Row]] = {}  # by seed, because a setting may have been requested twice
    for row in rows:
        if all(key in row for key in (*keys, *shown)):
            groups.setdefault(tuple(row[key] for key in keys), {})[row["seed"]] = row
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*keys, "seeds", *(f"{key}_{word}" for key in shown for word in ("mean", "std"))])
    for group, mine in groups.items():
        numbers = [np.array([row[key] for row in mine.values()]) for key in shown]
        cells = [f"{f(v):.4f}" for v in numbers for f in (np.mean, spread)]
        writer.writerow([*group, len(mine), *cells])
    write_text(path, text.getvalue())
