"""Swarms: rates and populations from many short runs that start out of equilibrium, with two kinds of weights.

200 runs of the plane triple well start anywhere (uniformly below 6 kT), in two wells, or in one. A run has a twentieth
or a quarter of the slowest relaxation time. Time scales come from `KernelDiffusionMap(2, lag=10)` with one kernel for
all, without weights, with the weights of a fit to the same frames (`equilibrium_weights`), and with `swarm_weights`.
Errors are |log(rate/exact rate)| and the largest error of the three populations; medians over seeds. "Flagged" is the
share of swarms for which a check of `swarm_weights` fails.

    python -m experiments.swarms --quick
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import kdmaps
from experiments._fits import at_least, at_most
from experiments._runner import Row, grouped, markdown, options_of, publish, run_tasks
from kdmaps.problems.langevin import triple_well_2d

N_RUNS, STEP, N_MODES = 200, 0.0025, 2
#: Frames of a run: a twentieth and a quarter of the slowest relaxation time.
LENGTHS = {50: "t₁/20", 250: "t₁/4"}
KERNEL: dict[str, Any] = {"bandwidth": 1.0, "regularization": 1e-4, "lag": 10, "time_step": STEP, "random_state": 0}
#: Largest errors of rates and populations, by the starts and the length.
GOALS = {("anywhere", 50): (0.3, 0.15), ("anywhere", 250): (0.15, 0.08)}
#: Swarms that must be flagged.
WRONG = ("one well",)
WELLS = triple_well_2d()


def anywhere(rng: np.random.Generator) -> np.ndarray:
    """Return uniform points below 6 kT."""
    X = rng.uniform([-2, -1], [2, 2.4], (40 * N_RUNS, 2))
    energy = WELLS.potential(X)
    return X[energy < energy.min() + 6][:N_RUNS]


def two_wells(rng: np.random.Generator) -> np.ndarray:
    """Return points in the left and in the upper well."""
    left = rng.random(N_RUNS)[:, None] < 0.5
    return np.where(left, [[-1.0, 0.0]], [[0.0, 1.6]]) + 0.2 * rng.standard_normal((N_RUNS, 2))


def one_well(rng: np.random.Generator) -> np.ndarray:
    """Return points in the left well."""
    return np.array([-1.0, 0.0]) + 0.2 * rng.standard_normal((N_RUNS, 2))


STARTS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "anywhere": anywhere,
    "two wells": two_wells,
    "one well": one_well,
}


def region(X: np.ndarray) -> np.ndarray:
    """Return the well of each point: left, right, upper."""
    return np.where(X[:, 1] > 0.8, 2, (X[:, 0] > 0).astype(int))


def populations(X: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return the shares of the wells."""
    found = np.bincount(region(X), weight, 3)
    return found / found.sum()


def run(starts: str, frames: int, seed: int) -> list[Row]:
    """Return one row for each kind of weights."""
    rng = np.random.default_rng([seed, list(STARTS).index(starts)])
    points = STARTS[starts](rng)
    runs = list(WELLS.simulate(frames, STEP, n_trajectories=N_RUNS, x0=points, random_state=seed))
    X = np.concatenate(runs)
    exact = populations(WELLS.sample(100_000, random_state=0))
    rates = WELLS.rates(N_MODES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = kdmaps.KernelDiffusionMap(N_MODES, **KERNEL).fit(runs)
        swarm = kdmaps.simulation.swarm_weights(runs)
        weights = {
            "none": None,
            "equilibrium_weights": kdmaps.dynamics.equilibrium_weights(plain, runs),
            "swarm_weights": swarm.joined,
        }
        rows = []
        for name, weight in weights.items():
            model = kdmaps.KernelDiffusionMap(N_MODES, **KERNEL).fit(runs, sample_weight=weight)
            rows.append(
                {
                    "starts": starts,
                    "frames": frames,
                    "seed": seed,
                    "weights": name,
                    "ratios": (model.rates_ / rates).tolist(),
                    "population_error": float(np.abs(populations(X, weight) - exact).max()),
                    "failed": [check.code for check in swarm.checks if not check.passed],
                }
            )
    return rows


def table(rows: list[Row]) -> str:
    """Return a Markdown table with one line per kind of starts, length and weights."""
    lines = []
    for (starts, frames, weights), mine in grouped(rows, "starts", "frames", "weights").items():
        judged = weights == "swarm_weights"
        of_rate, of_population = GOALS.get((starts, frames), (None, None)) if judged else (None, None)
        errors = np.median(np.abs(np.log([row["ratios"] for row in mine])), axis=0)
        error = float(np.median([row["population_error"] for row in mine]))
        flagged = float(np.mean([bool(row["failed"]) for row in mine]))
        lines.append(
            [
                starts,
                LENGTHS[frames],
                weights,
                str(len(mine)),
                *(at_most(float(value), of_rate, ".2f") for value in errors),
                at_most(error, of_population, ".3f"),
                at_least(flagged, 1.0 if starts in WRONG else None, ".2f") if judged else "–",
            ]
        )
    header = ["starts", "length", "weights", "swarms", "rate 1", "rate 2", "populations", "flagged"]
    goals = (
        "Goals: starts anywhere and runs of t₁/4, rates within 0.15 and populations within 0.08; of t₁/20, 0.3 and "
        "0.15; swarms from one well are always flagged."
    )
    return "\n".join([goals, "", markdown(header, lines)])


def figure(rows: list[Row]) -> Figure:
    """Plot the first rate over the exact one."""
    fig = Figure(figsize=(8, 4), layout="constrained")
    ax = fig.subplots()
    ax.axhline(1, color="0.6", lw=0.8)
    cases = list(dict.fromkeys((row["starts"], row["frames"]) for row in rows))
    kinds = list(dict.fromkeys(row["weights"] for row in rows))
    for row in rows:
        kind = kinds.index(row["weights"])
        place = cases.index((row["starts"], row["frames"])) + 0.25 * (kind - 1)
        ax.plot(place, row["ratios"][0], "o", ms=4, color=f"C{kind}")
    for kind, name in enumerate(kinds):
        ax.plot([], [], "o", color=f"C{kind}", label=name)
    ax.set(yscale="log", ylabel="rate 1 / exact rate")
    ax.set_xticks(range(len(cases)), [f"{starts}, {LENGTHS[frames]}" for starts, frames in cases])
    ax.legend(frameon=False, fontsize="small")
    return fig


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of("swarms", __doc__, n_seeds=4, quick="one seed of starts anywhere", first_seed=9000)
    options = parser.parse_args(arguments)
    cases = [(starts, frames) for frames in LENGTHS for starts in STARTS]
    cases, n_seeds = (cases[:1], 1) if options.quick else (cases, options.seeds)
    seeds = range(options.first_seed, options.first_seed + n_seeds)
    tasks = [{"starts": starts, "frames": frames, "seed": seed} for seed in seeds for starts, frames in cases]
    rows = run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs)
    publish("swarms", rows, table, figure, options.out)


if __name__ == "__main__":
    main()
