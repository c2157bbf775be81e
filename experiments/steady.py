"""The same data with other random states: variation of the default estimator.

The random state draws frequencies or landmarks, and folds. The answer should vary with it by less than with the
samples: by less than the stated error, the standard error of `kdmaps.uncertainty.bootstrap`. Data: the triple well with
48 and 198 nuisance coordinates, 1,000 samples, two modes; alanine dipeptide, 20,000 frames, (cos, sin) of its dihedrals
and the coordinates of its heavy atoms, four modes as samples, two as a trajectory (`lag=1`).

"deviation" is the largest deviation of a rate from its mean over the random states, in stated errors, for each mode;
the goal is at most 1 for all. "mutual SubR²" is the smallest between the mode spaces of two random states. "stated" is
the mean squared cosine at the 95 % bounds of the principal angles (median of the states); the former should not be
smaller. "truth" is the worst SubR² with the true modes, or with the first two of a Markov state model.

    python -m experiments.steady --quick
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._fits import at_least, fit_default, mark
from experiments._runner import Row, grouped, markdown, options_of, publish, run_tasks
from kdmaps import metrics, problems
from kdmaps.uncertainty import bootstrap

PROBLEMS = ("triplewell2d+48", "triplewell2d+198x0.1")
MOLECULE = ("alanine dihedrals", "alanine heavy atoms")
#: Modes of each; four of the molecule, because its two slowest are not the first two of the static frames.
N_MODES = {**dict.fromkeys(PROBLEMS, 2), **dict.fromkeys(MOLECULE, 4)}
#: The same frames as a trajectory, with 5 ps between them.
TRAJECTORY = {f"{case}, trajectory": case for case in MOLECULE}
N_MODES |= dict.fromkeys(TRAJECTORY, 2)
CLOCK = {"lag": 1, "time_step": 5.0}
N_SAMPLES = 1000
FRAMES = Path("examples/alanine_dipeptide/alanine_dipeptide.npz")


def samples(case: str, n: int, seed: int, frames: str) -> tuple[np.ndarray, np.ndarray]:
    """Return samples (or n frames at equal distances) and the reference modes at them."""
    case = TRAJECTORY.get(case, case)
    if case in MOLECULE:
        with np.load(frames, allow_pickle=False) as data:
            rows = np.linspace(0, len(data["phi"]) - 1, n).astype(int) if n else slice(None)
            angles = np.column_stack([data["phi"], data["psi"]])[rows].astype(np.float64)
            atoms = data["xyz_aligned"][rows].astype(np.float64)
            reference = data["msm_modes"][rows, :2].astype(np.float64)
        X = np.hstack([np.cos(angles), np.sin(angles)]) if case == MOLECULE[0] else atoms.reshape(len(atoms), -1)
        return X, reference
    system = problems.load(case)
    X = system.sample(n, random_state=seed)
    return X, system.reference(X, N_MODES[case])


def run(case: str, n: int, seed: int, states: int, frames: str = "", **settings: Any) -> list[Row]:
    """Return one row per random state; `settings` are further arguments of the estimator. n = 0: all frames."""
    X, reference = samples(case, n, seed, frames)
    settings |= CLOCK if case in TRAJECTORY else {}
    rows: list[Row] = []
    spaces: list[np.ndarray] = []
    for state in range(states):
        model, row = fit_default(X, N_MODES[case], state, **settings)
        modes = model.transform(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about few blocks
            stated = bootstrap(model, X)
        rows.append(
            {
                "case": case,
                "n": len(X),
                "seed": seed,
                "random_state": state,
                "errors": stated.rate_errors[np.argsort(model.rates_)].tolist(),
                "stated": float(np.mean(np.cos(stated.angles) ** 2)),
                "mutual": [metrics.subspace_r2(modes, other) for other in spaces],
                "r2": float(metrics.subspace_r2(modes, reference)),
                **row,
            }
        )
        spaces.append(modes)
    return rows


def deviations(rows: list[Row]) -> np.ndarray:
    """Return |rate - mean|/error for each random state and mode, with the mean stated error."""
    rates, errors = (np.array([row[name] for row in rows]) for name in ("rates", "errors"))
    return np.abs(rates - rates.mean(axis=0)) / errors.mean(axis=0)


def table(rows: list[Row]) -> str:
    """Return a Markdown table with one line for each data set."""
    lines = []
    for mine in grouped(rows, "case", "n", "seed").values():
        rates = np.array([row["rates"] for row in mine])
        stated_errors = np.mean([row["errors"] for row in mine], axis=0)
        largest = deviations(mine).max(axis=0)
        mutual = [value for row in mine for value in row["mutual"]]
        stated = float(np.median([row["stated"] for row in mine]))
        lines.append(
            [
                mine[0]["case"],
                f"{mine[0]['n']:,}",
                str(len(mine)),
                _joined(rates.mean(axis=0), ".3g"),
                _joined(rates.std(axis=0) / rates.mean(axis=0), ".1%"),
                _joined(stated_errors / rates.mean(axis=0), ".1%"),
                f"{_joined(largest, '.2f')} {mark(largest.max() <= 1)}",
                at_least(min(mutual), stated, ".4f") if mutual else "",
                f"{stated:.4f}",
                f"{min(row['r2'] for row in mine):.4f}",
                f"{np.mean([row['seconds'] for row in mine]):.1f}",
            ]
        )
    header = ["data", "n", "states", "mean rates", "their spread (std)", "stated error", "deviation", "mutual SubR²",
              "stated", "truth", "seconds"]  # fmt: skip
    return markdown(header, lines)


def _joined(values: np.ndarray, form: str) -> str:
    return ", ".join(format(value, form) for value in values)


def figure(rows: list[Row]) -> Figure:
    """Plot the rates of all random states over their mean, with the stated errors."""
    sets = list(grouped(rows, "case", "n", "seed").values())
    fig = Figure(figsize=(2.8 * len(sets) + 1, 3.4), layout="constrained")
    for ax, mine in zip(np.atleast_1d(fig.subplots(1, len(sets), sharey=True)), sets, strict=True):
        rates = np.array([row["rates"] for row in mine])
        relative = rates / rates.mean(axis=0)
        errors = np.mean([row["errors"] for row in mine], axis=0) / rates.mean(axis=0)
        shifts = np.linspace(-0.25, 0.25, len(mine))
        for mode in range(rates.shape[1]):
            ax.fill_between([mode - 0.35, mode + 0.35], 1 - errors[mode], 1 + errors[mode], color="0.88", zorder=0)
            ax.plot(mode + shifts, relative[:, mode], "o", ms=4)
        ax.axhline(1, color="0.6", lw=0.8)
        ax.set(xlabel="mode", title=mine[0]["case"])
        ax.set_xticks(range(rates.shape[1]), range(1, rates.shape[1] + 1))
    fig.axes[0].set_ylabel("rate / mean over random states")
    return fig


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of(
        "steady", __doc__, n_seeds=1, quick="two random states, 300 samples, the first problem", first_seed=8100
    )
    parser.add_argument("--states", type=int, default=8, help="random states 0, 1, … of the estimator")
    parser.add_argument("--frames", type=Path, default=FRAMES, help="the file of alanine dipeptide; from the root")
    options = parser.parse_args(arguments)
    cases, n, states = list(PROBLEMS), N_SAMPLES, options.states
    if options.quick:
        cases, n, states = cases[:1], 300, 2
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tasks = [{"case": case, "n": n, "seed": seed, "states": states} for case in cases for seed in seeds]
    if not options.quick:
        frames = {"n": 0, "seed": 0, "frames": options.frames.as_posix()}  # the trajectory is one sample
        tasks += [{"case": case, "states": states, **frames} for case in (*MOLECULE, *TRAJECTORY)]
    rows = run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs)
    publish("steady", rows, table, figure, options.out)


if __name__ == "__main__":
    main()
