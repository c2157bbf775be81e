"""The default estimator on many systems and sample sizes, on seeds that it was not tuned with, and its warnings.

SubR² is the mean squared cosine with the true slow modes, "lost" the share of fits with SubR² below 0.85. A rate is
wrong if the first one differs from the exact one by more than a factor of two, and flagged if `trust_` marks its mode.
With `--old NAME PATH` the fits of another version, whose source tree is PATH, are computed too, and compared. "exact
functions" are the slowest r functions on the same samples in the span of the first 2r exact eigenfunctions: samples for
which they are lost do not determine the modes.

    python -m experiments.systems --quick
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments import _one_fit
from experiments._fits import error_dots, slowest
from experiments._runner import Row, grouped, markdown, options_of, publish, run_tasks
from kdmaps import metrics, problems

SYSTEMS = (
    *("ou2d-4", "ou2d-16", "ou3d", "ou10d", "ou20d", "dw1d", "dw1d-asym", "triplewell2d", "circle"),
    *("mdlike-6", "mdlike-10", "mdlike-20"),
)
NUISANCE = ("triplewell2d+48", "triplewell2d+198")
SIZES = (200, 500, 1000)
LOST, WRONG = 0.85, 2.0
NOW, LIMIT = "now", "exact functions"


def run(version: str, problem: str, n: int, seed: int, source: Path | None = None) -> list[Row]:
    """Return the row of one fit; a version other than this one runs in a process of its own."""
    task: Row = {"problem": problem, "n": n, "seed": seed}
    if version == LIMIT:
        system = problems.load(problem)
        X = system.sample(n, random_state=seed)
        modes = slowest(system, X, 2 * system.n_modes)
        row = {"r2": float(metrics.subspace_r2(modes, system.reference(X, system.n_modes)))}
    elif version == NOW:
        row = _one_fit.fit(**task)
    else:
        environment = {**os.environ, "PYTHONPATH": str(source)}
        command = [sys.executable, str(_one_fit.__file__), json.dumps(task)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        row = json.loads(done.stdout.splitlines()[-1])
    return [{"version": version, **task, **row}]


def table(rows: list[Row]) -> str:
    """Return the accuracy of every system, and the warnings against the truth."""
    versions = list(dict.fromkeys(row["version"] for row in rows))
    accuracy = []
    for (problem, n), mine in grouped(rows, "problem", "n").items():
        accuracy.append([problem, str(n), *_cells(mine, versions)])
    accuracy += [["all", str(n), *_cells(mine, versions)] for (n,), mine in grouped(rows, "n").items()]
    header = ["problem", "samples", *(f"{version}: {what}" for version in versions for what in ("mean SubR²", "lost"))]
    flags = []
    for (version, n), mine in grouped([row for row in rows if "rate" in row], "version", "n").items():
        wrong = [row for row in mine if not 1 / WRONG <= row["rate"] / row["exact"] <= WRONG]
        right = [row for row in mine if row not in wrong]
        counts = [f"{sum(row['flagged'] for row in some)} of {len(some)}" for some in (wrong, right)]
        flags.append([version, str(n), *counts])
    words = "Lost: SubR² below 0.85. ± is the standard error of the mean over the fits."
    second = markdown(["version", "samples", "flagged among wrong rates", "flagged among right rates"], flags)
    return f"{words}\n\n{markdown(header, accuracy)}\n\nFirst rates, wrong by more than a factor of two:\n\n{second}"


def _cells(rows: list[Row], versions: list[str]) -> list[str]:
    """Return the mean SubR² and the share of lost fits of every version."""
    cells = []
    for version in versions:
        r2 = np.array([row["r2"] for row in rows if row["version"] == version])
        known = len(r2) > 0
        cells.append(f"{r2.mean():.4f} ± {r2.std() / np.sqrt(len(r2)):.4f}" if known else "")
        cells.append(f"{np.count_nonzero(r2 < LOST)} of {len(r2)}" if known else "")
    return cells


def figure(rows: list[Row]) -> Figure:
    """Plot the error of every fit."""
    series = {version: mine for (version,), mine in grouped(rows, "version").items()}
    return error_dots(series, ["problem", "n"], "The default estimator", size=(16, 5))


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of("systems", __doc__, n_seeds=20, quick="one seed of two systems, 200 samples", first_seed=9100)
    parser.add_argument("--old", nargs=2, metavar=("NAME", "PATH"), help="another version and its source tree")
    parser.add_argument("--problems", nargs="+", default=[*SYSTEMS, *NUISANCE])
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    options = parser.parse_args(arguments)
    names, sizes, n_seeds = options.problems, options.sizes, options.seeds
    if options.quick:
        names, sizes, n_seeds = names[:2], sizes[:1], 1
    versions, source = [NOW, LIMIT], None
    if options.old:
        versions, source = [options.old[0], NOW, LIMIT], Path(options.old[1]).resolve()
    tasks = [
        {"version": version, "problem": name, "n": n, "seed": options.first_seed + number}
        for number in range(n_seeds)
        for name in names
        for n in sizes
        for version in versions
    ]
    rows = run_tasks(partial(run, source=source), tasks, options.out / "rows.jsonl", options.jobs)
    publish("systems", rows, table, figure, options.out)


if __name__ == "__main__":
    main()
