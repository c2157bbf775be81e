"""Held-out scores of noise: does the default estimator report slow modes that do not exist?

All columns are independent Gaussians with the same time scale 1 (static), or Ornstein–Uhlenbeck processes with the time
scale 1 observed at times 0, ½, 1, … with a lag of one frame (lagged), so that no function has a longer time scale. The
default estimator fits two modes. "score" is `best_score_` over the score of the same model on 20,000 new samples: an
honest held-out score exceeds 1 by sampling noise alone. "time scale" is the longest of all modes, of modes that pass
the checks of `trust_`, and of modes that pass in fits without any warning; all are exactly 1.

    python -m experiments.honest --quick
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._fits import at_most, fit_default
from experiments._runner import Row, grouped, markdown, options_of, publish, run_tasks

N_MODES, N_FRESH = 2, 20_000
STATIC = ((100, 30), (100, 200), (100, 500), (300, 30), (300, 100), (1000, 30), (1000, 100), (1000, 300), (1000, 500))
LAGGED = ((400, 30), (400, 100), (1000, 100))
#: Time between frames.
STEP = 0.5
#: The median and the largest ratio of scores, and the longest time scale without a warning.
GOAL_MEDIAN, GOAL_WORST, GOAL_TIME = 1.05, 1.3, 1.3


def noise(n: int, d: int, seed: int, lagged: bool) -> np.ndarray:
    """Return independent Gaussian columns, or Ornstein–Uhlenbeck processes with the time scale 1."""
    X = np.random.default_rng(seed).standard_normal((n, d))
    if lagged:
        kept = np.exp(-STEP)
        X[1:] *= np.sqrt(1 - kept**2)
        for before, after in pairwise(X):
            after += kept * before
    return X


def run(n: int, d: int, lagged: bool, seed: int) -> list[Row]:
    """Return the row of one fit."""
    settings: dict[str, Any] = {"lag": 1, "time_step": STEP} if lagged else {}
    model, row = fit_default(noise(n, d, seed, lagged), N_MODES, seed, **settings)
    fresh = model.score(noise(N_FRESH, d, seed + 10**6, lagged))
    assert model.trust_ is not None
    found = {"best_score": model.best_score_, "fresh": fresh, "ok": model.trust_.ok.tolist()}
    found["timescales"] = model.timescales_.tolist()
    return [{"n": n, "d": d, "lagged": lagged, "seed": seed, **found, **row}]


def table(rows: list[Row]) -> str:
    """Return a Markdown table with one line for each size of the data."""
    lines = []
    for (lagged, n, d), mine in grouped(rows, "lagged", "n", "d").items():
        ratios = [row["best_score"] / row["fresh"] for row in mine]
        times = np.array([row["timescales"] for row in mine])
        passing = np.where([row["ok"] for row in mine], times, 0)
        silent = passing[[not row["warnings"] for row in mine]]
        lines.append(
            [
                "lagged" if lagged else "static",
                str(n),
                str(d),
                str(len(mine)),
                at_most(float(np.median(ratios)), GOAL_MEDIAN, ".3f"),
                at_most(max(ratios), GOAL_WORST, ".3f"),
                f"{times.max():.2f}",
                f"{passing.max():.2f}",
                at_most(float(silent.max(initial=0)), GOAL_TIME, ".2f"),
                f"{np.mean([row['seconds'] for row in mine]):.1f}",
            ]
        )
    header = ["noise", "samples", "columns", "fits", "median score", "largest score", "longest time scale",
              "passing all checks", "without a warning", "seconds"]  # fmt: skip
    goals = f"median score ≤ {GOAL_MEDIAN:g}, largest ≤ {GOAL_WORST:g}, time scales without a warning ≤ {GOAL_TIME:g}"
    return f"Goals: {goals}.\n\n{markdown(header, lines)}"


def figure(rows: list[Row]) -> Figure:
    """Plot the ratio of scores and the time scales of every fit."""
    cases = list(grouped(rows, "lagged", "n", "d"))
    fig = Figure(figsize=(10, 4), layout="constrained")
    scores, times = fig.subplots(1, 2)
    at = np.array([cases.index((row["lagged"], row["n"], row["d"])) + 0.04 * (row["seed"] % 10) for row in rows])
    scores.plot(at, [row["best_score"] / row["fresh"] for row in rows], "o", alpha=0.7, mec="none")
    scores.set(ylabel="held-out score / score of new samples", title="Scores")
    for mode in range(N_MODES):
        times.plot(at, [row["timescales"][mode] for row in rows], "o", alpha=0.7, mec="none", label=f"mode {mode + 1}")
    times.set(ylabel="time scale (exact: 1)", title="Time scales")
    times.legend(frameon=False, fontsize="small")
    for ax in (scores, times):
        ax.axhline(1, color="0.6", lw=0.8)
        ax.set_xticks(range(len(cases)), [f"{n}×{d}{' lag' * lagged}" for lagged, n, d in cases], rotation=60)
    return fig


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of("honest", __doc__, n_seeds=10, quick="two seeds of 100 × 30 samples", first_seed=8800)
    options = parser.parse_args(arguments)
    cases = [(n, d, False) for n, d in STATIC] + [(n, d, True) for n, d in LAGGED]
    cases, n_seeds = (cases[:1], 2) if options.quick else (cases, options.seeds)
    tasks = [
        {"n": n, "d": d, "lagged": lagged, "seed": seed}
        for n, d, lagged in cases
        for seed in range(options.first_seed, options.first_seed + n_seeds)
    ]
    rows = run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs)
    publish("honest", rows, table, figure, options.out)


if __name__ == "__main__":
    main()
