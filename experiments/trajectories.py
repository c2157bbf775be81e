"""Trajectories of systems with exact time scales: the default estimator with a lag, against the number of frames.

Trajectories in equilibrium, one mode space of two modes, `AdaptiveDiffusionMap(2, lag=1, time_step=…)`. OU processes
are simulated by their exact propagator, the others by Euler–Maruyama with so many steps between frames that its error
is below 2 %. Errors are |t/exact - 1| of the two time scales, means over the seeds. "sampling" is the sampling error
√(2t/T) of the slowest one in the total time T, a lower limit for any method. SubR² is the mean squared cosine with the
exact modes at fresh samples. The held-out score is Σν² of the pooled blocks, minus its exact value Σe^{-2·rate·lag}:
its population value is negative for any modes but the exact ones; "±" is the standard error over the seeds.

    python -m experiments.trajectories --quick
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._fits import at_least, at_most, fit_default, mark
from experiments._runner import Row, grouped, markdown, options_of, publish, run_tasks
from kdmaps import metrics, problems

#: Time between frames, and steps of the scheme between them.
CASES = {"ou2d-4": (0.1, 1), "prinz": (0.02, 40), "triplewell2d": (0.1, 20)}
N_MODES, FRAMES, FRESH = 2, (5_000, 20_000, 80_000), 5_000
#: Goals, for 20,000 frames.
GOAL_FRAMES, GOAL_ERROR, GOAL_R2 = 20_000, 0.10, 0.99


def run(case: str, n: int, seed: int, **settings: Any) -> list[Row]:
    """Return the row of one trajectory; `settings` are further arguments of the estimator."""
    system, (time_step, substeps) = problems.load(case), CASES[case]
    path = system.trajectory(n, time_step, substeps=substeps, random_state=seed)
    model, row = fit_default(path, N_MODES, 0, lag=1, time_step=time_step, **settings)
    fresh, rates = system.sample(FRESH, random_state=seed), system.rates(N_MODES)
    return [
        {
            "case": case,
            "n": n,
            "seed": seed,
            "ratios": (model.timescales_ * rates).tolist(),
            "r2": float(metrics.subspace_r2(model.transform(fresh), system.reference(fresh, N_MODES))),
            "score": model.search_result_.best.score.plain,
            "exact": float(np.sum(np.exp(-2 * rates * time_step))),
            "sampling": float(np.sqrt(2 / (rates[0] * n * time_step))),
            **row,
        }
    ]


def table(rows: list[Row]) -> str:
    """Return a Markdown table with one line for each system and number of frames."""
    lines = []
    rows = sorted(rows, key=lambda row: (list(CASES).index(row["case"]), row["n"]))
    for mine in grouped(rows, "case", "n").values():
        meant = mine[0]["n"] == GOAL_FRAMES
        errors = np.abs(np.array([row["ratios"] for row in mine]) - 1)
        excess = np.array([row["score"] - row["exact"] for row in mine])
        error = excess.std(ddof=1) / np.sqrt(len(excess)) if len(excess) > 1 else np.nan
        lines.append(
            [
                mine[0]["case"],
                f"{mine[0]['n']:,}",
                str(len(mine)),
                at_most(errors[:, 0].mean(), GOAL_ERROR if meant else None, ".1%"),
                f"{np.mean([row['sampling'] for row in mine]):.1%}",
                at_most(errors[:, 1].mean(), GOAL_ERROR if meant else None, ".1%"),
                at_least(float(np.mean([row["r2"] for row in mine])), GOAL_R2 if meant else None, ".4f"),
                f"{excess.mean():.4f} ± {error:.4f} {mark(not excess.mean() > 2 * error)}",
                f"{np.mean([row['seconds'] for row in mine]):.1f}",
            ]
        )
    header = ["system", "frames", "seeds", "error of t1", "sampling", "error of t2", "SubR²", "score - exact",
              "seconds"]  # fmt: skip
    return markdown(header, lines)


def figure(rows: list[Row]) -> Figure:
    """Plot time scales over their exact values against the number of frames."""
    fig = Figure(figsize=(10, 3.2), layout="constrained")
    for ax, case in zip(fig.subplots(1, len(CASES), sharey=True), CASES, strict=True):
        mine = [row for row in rows if row["case"] == case]
        for mode in range(N_MODES):
            shift = 1.12 ** (2 * mode - 1)
            ax.plot([row["n"] * shift for row in mine], [row["ratios"][mode] for row in mine], "o", ms=4,
                    label=f"$t_{mode + 1}$")  # fmt: skip
        sizes = sorted({(row["n"], row["sampling"]) for row in mine})
        for side in (-1, 1):
            ax.plot([n for n, _ in sizes], [1 + side * s for _, s in sizes], color="0.6", lw=0.8)
        ax.axhline(1, color="0.6", lw=0.8)
        ax.set(xscale="log", xlabel="frames", title=case)
    fig.axes[0].set_ylabel("time scale / exact")
    fig.axes[0].legend()
    return fig


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of(
        "trajectories", __doc__, n_seeds=5, quick="two trajectories of 2,000 frames of the OU process", first_seed=8200
    )
    options = parser.parse_args(arguments)
    cases, sizes, seeds = list(CASES), list(FRAMES), range(options.first_seed, options.first_seed + options.seeds)
    if options.quick:
        cases, sizes, seeds = cases[:1], [2_000], seeds[:2]
    tasks = [{"case": case, "n": n, "seed": seed} for case in cases for n in sizes for seed in seeds]
    rows = run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs)
    publish("trajectories", rows, table, figure, options.out)


if __name__ == "__main__":
    main()
