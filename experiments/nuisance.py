"""Many coordinates that do not matter: the default estimator in 50, 200 and 500 dimensions.

Fast Gaussian coordinates are added to the triple well in the plane. They do not change its slow modes, but dominate the
distances between samples. Every sample is fitted with several random states, unchanged and with all coordinates
rotated, so that no single coordinate belongs to the well. With 498 coordinates, which are only reported, there are two
samples and one random state. Two modes, 1,000 samples.

SubR² is the mean squared cosine with the true modes. A rate error is |rate/exact - 1|, the larger of both modes. A
spread is the largest minus the smallest value (of SubR², of rate/exact) over the random states of one sample; the
largest of all samples is shown. "rotated" is the largest change of SubR² by the rotation.

    python -m experiments.nuisance --quick
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._fits import at_least, at_most, fit_default
from experiments._runner import Row, grouped, markdown, options_of, publish, run_tasks
from kdmaps import metrics, problems

BASE, N_MODES, N_SAMPLES = "triplewell2d", 2, 1000
#: Number and standard deviation of the nuisance coordinates, and whether goals apply.
CASES = {(48, 0.25): True, (198, 0.1): True, (498, 0.1): False}
GOAL_MEAN, GOAL_WORST, GOAL_RATES = 0.97, 0.94, 0.30
#: Seed of the rotation.
ROTATION = 0


def run(k: int, std: float, rotated: bool, n: int, seed: int, random_state: int, **settings: Any) -> list[Row]:
    """Return the row of one fit; `settings` are further arguments of the estimator."""
    system = problems.nuisance(problems.load(BASE), k, std, ROTATION if rotated else None)
    X = system.sample(n, random_state=seed)
    model, row = fit_default(X, N_MODES, random_state, **settings)
    r2 = metrics.subspace_r2(model.transform(X), system.reference(X, N_MODES))
    ratios = np.array(row["rates"]) / system.rates(N_MODES)
    task = {"k": k, "std": std, "rotated": rotated, "n": n, "seed": seed, "random_state": random_state}
    return [{**task, "r2": float(r2), "ratios": ratios.tolist(), **row}]


def table(rows: list[Row]) -> str:
    """Return a Markdown table with one line for each number of nuisance coordinates, plain and rotated."""
    lines = []
    for (k, std, rotated), mine in grouped(rows, "k", "std", "rotated").items():
        mean, worst, rates = (GOAL_MEAN, GOAL_WORST, GOAL_RATES) if CASES.get((k, std)) else (None, None, None)
        r2 = np.array([row["r2"] for row in mine])
        lines.append(
            [
                f"{BASE}+{k}x{std:g}",
                "rotated" if rotated else "plain",
                str(len(mine)),
                at_least(r2.mean(), mean, ".4f"),
                at_least(r2.min(), worst, ".4f"),
                at_most(max(np.abs(np.array(row["ratios"]) - 1).max() for row in mine), rates, ".1%"),
                f"{_spread(mine, 'r2'):.4f}",
                f"{_spread(mine, 'ratios'):.1%}",
                f"{_turned(rows, mine):.4f}" if rotated else "",
                str(sum(bool(row["warnings"]) for row in mine)),
                f"{np.mean([row['seconds'] for row in mine]):.1f}",
            ]
        )
    goals = f"mean SubR² ≥ {GOAL_MEAN:g}, worst ≥ {GOAL_WORST:g}, rate error ≤ {GOAL_RATES:.0%}"
    header = ["problem", "inputs", "fits", "mean SubR²", "worst", "largest rate error", "spread of SubR²",
              "spread of rates", "rotated", "warned", "seconds"]  # fmt: skip
    return f"Goals: {goals}; with 498 coordinates the figures are reported only.\n\n{markdown(header, lines)}"


def _spread(rows: list[Row], name: str) -> float:
    """Return the largest difference between random states of the same sample."""
    samples = grouped(rows, "seed").values()
    return max(float(np.ptp([row[name] for row in mine], axis=0).max()) for mine in samples)


def _turned(rows: list[Row], rotated: list[Row]) -> float:
    """Return the largest change of SubR² by the rotation; NaN without a plain fit."""
    keys = ("k", "std", "n", "seed", "random_state")
    plain = {tuple(row[key] for key in keys): row["r2"] for row in rows if not row["rotated"]}
    return max(abs(row["r2"] - plain.get(tuple(row[key] for key in keys), np.nan)) for row in rotated)


def figure(rows: list[Row]) -> Figure:
    """Plot the error 1 - SubR² and the rates of every fit."""
    cases = list(dict.fromkeys((row["k"], row["std"]) for row in rows))
    fig = Figure(figsize=(10, 4), layout="constrained")
    errors, rates = fig.subplots(1, 2)
    for rotated, colour in ((False, "C0"), (True, "C1")):
        mine = [row for row in rows if row["rotated"] == rotated]
        # One place for each sample, so that its random states stand above each other.
        at = np.array([cases.index((row["k"], row["std"])) + 0.3 * rotated + 0.04 * (row["seed"] % 5) for row in mine])
        style = {"color": colour, "alpha": 0.7, "ms": 5, "mec": "none", "ls": ""}
        errors.plot(at, [1 - row["r2"] for row in mine], "o", label="rotated" if rotated else "plain", **style)
        for mode, marker in zip(range(N_MODES), "^v", strict=True):
            label = f"rate {mode + 1}, {'rotated' if rotated else 'plain'}"
            rates.plot(at, [row["ratios"][mode] for row in mine], marker, label=label, **style)
    errors.axhline(1 - GOAL_WORST, color="0.6", lw=0.8, ls="--")
    errors.set(yscale="log", ylabel="error 1 - SubR²", title="Modes")
    for level in (1 - GOAL_RATES, 1, 1 + GOAL_RATES):
        rates.axhline(level, color="0.6", lw=0.8, ls="-" if level == 1 else "--")
    rates.set(ylabel="rate / exact rate", title="Rates")
    for ax in (errors, rates):
        ax.set_xticks(np.arange(len(cases)) + 0.2, [f"+{k} (std {std:g})" for k, std in cases])
        ax.legend(frameon=False, fontsize="small")
    return fig


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of(
        "nuisance", __doc__, n_seeds=5, quick="one sample of 300 with 48 coordinates, one random state", first_seed=8000
    )
    parser.add_argument("--states", type=int, default=3, help="random states 0, 1, … of the estimator")
    parser.add_argument("--coordinates", nargs="+", type=int, default=[k for k, _ in CASES], help="of 48, 198 and 498")
    options = parser.parse_args(arguments)
    cases, n, n_seeds, n_states = CASES, N_SAMPLES, options.seeds, options.states
    if options.quick:
        cases, n, n_seeds, n_states = {(48, 0.25): True}, 300, 1, 1
    tasks = [
        {"k": k, "std": std, "rotated": rotated, "n": n, "seed": seed, "random_state": state}
        for (k, std), with_goals in cases.items()
        if k in options.coordinates
        for rotated in (False, True)
        for seed in range(options.first_seed, options.first_seed + (n_seeds if with_goals else min(n_seeds, 2)))
        for state in range(n_states if with_goals else 1)
    ]
    rows = run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs)
    publish("nuisance", rows, table, figure, options.out)


if __name__ == "__main__":
    main()
