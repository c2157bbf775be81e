"""Rare events: the rates of the Müller–Brown potential by the default estimator.

The slowest rate is 1.2474e-4, the next one 0.3560, and the rare wells hold a fraction 0.0033 of the law. Frames of a
simulation with a static bias, 2,000 with their weights, visit all wells and the saddles between them; 5,000 independent
samples without a bias have about 16 frames in the rare wells. "n effective" is (Σ w)²/Σ w². SubR² is the mean squared
cosine with the two true modes under the unbiased law, at the frames. A fit is flagged if it warns that its modes are
unreliable; the warnings are listed below the table.

    python -m experiments.rare_events --quick
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._fits import fit_default, mark
from experiments._runner import Row, markdown, options_of, publish, run_tasks
from kdmaps import metrics
from kdmaps.problems import MullerBrown
from kdmaps.simulation import effective_sample_size

SIZES = {"biased": 2000, "independent": 5000}
#: Largest relative errors of the two rates, from biased frames.
GOALS = (0.35, 0.12)
N_MODES = len(GOALS)


def run(frames: str, n: int, seed: int, **settings: Any) -> list[Row]:
    """Return the row of one fit; `settings` are further arguments of the estimator."""
    problem = MullerBrown()
    biased = frames == "biased"
    X, weights = problem.biased_sample(n, seed) if biased else (problem.sample(n, seed), None)
    model, row = fit_default(X, N_MODES, seed, weights, diffusion=problem.diffusion, **settings)
    r2 = metrics.subspace_r2(model.transform(X), problem.reference(X, N_MODES), weights)
    return [
        {
            "frames": frames,
            "n": n,
            "seed": seed,
            "effective": n if weights is None else effective_sample_size(weights),
            "ratios": (np.array(row["rates"]) / problem.rates(N_MODES)).tolist(),
            "r2": float(r2),
            **row,
        }
    ]


def table(rows: list[Row]) -> str:
    """Return a Markdown table with one line per draw, and the warnings of each."""
    lines, notes = [], []
    for row in rows:
        cells = []
        for ratio, goal in zip(row["ratios"], GOALS, strict=True):
            met = abs(ratio - 1) <= goal or bool(row["warnings"])
            cells.append(f"{ratio:.3f} {mark(met)}" if row["frames"] == "biased" else f"{ratio:.3f}")
        lines.append(
            [
                row["frames"],
                str(row["seed"]),
                f"{row['n']:,}",
                f"{row['effective']:.0f}",
                *cells,
                f"{row['r2']:.3f}",
                f"{row['basis']}, {row['kernel']}",
                f"{row['regularization']:.1e}",
                "yes" if row["warnings"] else "no",
                f"{row['seconds']:.1f}",
            ]
        )
        notes += [f"- {row['frames']}, seed {row['seed']}: {message}" for message in row["warnings"]]
    header = ["frames", "seed", "n", "n effective", "rate 1 / exact", "rate 2 / exact", "SubR²", "kernel", "λ",
              "flagged", "seconds"]  # fmt: skip
    goals = f"Goals for biased frames: rate 1 within {GOALS[0]:.0%} and rate 2 within {GOALS[1]:.0%}, or flagged."
    return "\n".join([goals, "", markdown(header, lines), *(["", "Warnings:", "", *notes] if notes else [])])


def figure(rows: list[Row]) -> Figure:
    """Plot the rates of all draws over the exact ones; flagged fits are hollow."""
    fig = Figure(figsize=(6, 3.6), layout="constrained")
    ax = fig.subplots()
    frames = list(dict.fromkeys(row["frames"] for row in rows))
    for number, row in enumerate(rows):
        at = np.arange(N_MODES) + 0.3 * frames.index(row["frames"]) - 0.15 + 0.03 * (number % 5 - 2)
        colour = f"C{frames.index(row['frames'])}"
        ax.plot(at, row["ratios"], "o", color=colour, mfc="none" if row["warnings"] else colour)
    for mode, goal in enumerate(GOALS):
        ax.fill_between([mode - 0.4, mode + 0.4], 1 - goal, 1 + goal, color="0.9", zorder=0)
    for number, name in enumerate(frames):
        ax.plot([], [], "o", color=f"C{number}", label=f"{name} frames")
    ax.plot([], [], "o", color="0.4", mfc="none", label="flagged")
    ax.axhline(1, color="0.6", lw=0.8)
    ax.set(yscale="log", ylabel="rate / exact rate", title="Müller–Brown; grey: the goal for biased frames")
    ax.set_xticks(range(N_MODES), [f"rate {mode + 1}" for mode in range(N_MODES)])
    ax.legend(frameon=False, fontsize="small")
    return fig


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of("rare_events", __doc__, n_seeds=5, quick="one draw of 1,000 biased frames", first_seed=9000)
    options = parser.parse_args(arguments)
    sizes, n_seeds = ({"biased": 1000}, 1) if options.quick else (SIZES, options.seeds)
    seeds = range(options.first_seed, options.first_seed + n_seeds)
    tasks = [{"frames": frames, "n": n, "seed": seed} for frames, n in sizes.items() for seed in seeds]
    rows = run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs)
    publish("rare_events", rows, table, figure, options.out)


if __name__ == "__main__":
    main()
