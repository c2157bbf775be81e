"""States: agreement with the exact basins, and coverage of the intervals of populations and passage times.

A map with a fixed kernel is fitted to a trajectory with a lag; `suggest_states` chooses the number of states and
`coarse_states` finds them. The adjusted Rand index compares the labels of all frames with the basins of the potential
(for alanine dipeptide, with regions of the Ramachandran plot). "covered" is the share of exact populations inside their
95 % intervals (`metastability`), and of exact mean first passage times between the cores, where quadrature gives them:
along one coordinate.

    python -m experiments.states --quick
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from sklearn.metrics import adjusted_rand_score

from experiments._paths import on_circle, passage_time, ring, well_border, well_population, wells
from experiments._runner import Row, grouped, markdown, options_of, publish, run_tasks
from kdmaps import KernelDiffusionMap, problems
from kdmaps.data import angles
from kdmaps.dynamics import coarse_states, mean_first_passage_times, metastability, suggest_states
from kdmaps.problems.langevin import triple_well_2d

GOAL = 0.9
ALANINE = Path(__file__).parents[1] / "examples" / "alanine_dipeptide" / "alanine_dipeptide.npz"


class Frames(NamedTuple):
    """Frames, the basin of each, and the exact populations of the basins, if known."""

    X: np.ndarray
    basins: np.ndarray
    populations: np.ndarray | None = None


class System(NamedTuple):
    """A trajectory, the lag and the number of modes of the fit."""

    make: Callable[[int], Frames]
    lag: int
    n_modes: int
    well: tuple[float, float] | None = None  # barrier and tilt of a single coordinate


def _plane(seed: int) -> Frames:
    problem = triple_well_2d()
    X = problem.trajectory(8_000, 0.05, random_state=seed)
    ends = X.copy()
    for _ in range(1_000):  # to the minima
        ends -= 0.02 * problem.gradient(ends)
    return Frames(X, np.where(ends[:, 1] > 0.9, 2, (ends[:, 0] > 0).astype(int)))


def _line(seed: int) -> Frames:
    X = problems.load("triplewell1d").trajectory(8_000, 0.05, random_state=seed)
    return Frames(X, np.digitize(X[:, 0], [-np.sqrt(2 / 3), np.sqrt(2 / 3)]))


def _product(n: int, barriers: list[float], tilts: list[float]) -> Callable[[int], Frames]:
    def make(seed: int) -> Frames:
        X, place = wells(n, barriers, seed, tilts=tilts), 2 ** np.arange(len(barriers))
        given = list(zip(barriers, tilts, strict=True))
        right = [well_population(*one) for one in given]
        shares = [np.prod([p if state & bit else 1 - p for p, bit in zip(right, place, strict=True)])
                  for state in range(2 ** len(barriers))]  # fmt: skip
        borders = np.array([well_border(*one) for one in given])
        return Frames(X, (borders < X) @ place, np.array(shares))

    return make


def _five(seed: int) -> Frames:
    theta = ring(20_000, 5, seed)
    return Frames(on_circle(theta), np.round(5 * theta / (2 * np.pi)).astype(int) % 5, np.full(5, 0.2))


def _alanine(seed: int) -> Frames:
    data = np.load(ALANINE)
    phi, psi = data["phi"], data["psi"]
    alpha = (psi > np.radians(-115)) & (psi < np.radians(85))  # the minima of the density along ψ for φ < 0
    left = (phi > 0) & (phi < np.radians(130))
    return Frames(angles(np.column_stack([phi, psi])), np.where(left, 2, alpha.astype(int)))


SYSTEMS: dict[str, System] = {
    "triple well, plane": System(_plane, 5, 2),
    "triple well, line": System(_line, 5, 2),
    "double well": System(_product(20_000, [3.0], [0.0]), 5, 1, (3.0, 0.0)),
    "product of two wells": System(_product(20_000, [3.0, 3.5], [0.0, 0.0]), 5, 2),
    "product of three wells": System(_product(20_000, [3.0, 3.3, 3.6], [0.0, 0.0, 0.0]), 5, 3),
    "product of three wells, four modes": System(_product(20_000, [3.0, 3.3, 3.6], [0.0, 0.0, 0.0]), 5, 4),
    "ring of five wells": System(_five, 10, 4),
    "double well, 10 : 1": System(_product(20_000, [3.0], [1.2]), 5, 1, (3.0, 1.2)),
    "double well, 1 %": System(_product(40_000, [4.0], [2.4]), 5, 1, (4.0, 2.4)),
    "product of two wells, 1 %": System(_product(40_000, [3.0, 3.5], [1.15, 1.1]), 5, 2),
    "alanine dipeptide": System(_alanine, 1, 2),
}


def run(system: str, seed: int) -> list[Row]:
    """Return the row of one trajectory."""
    make, lag, n_modes, well = SYSTEMS[system]
    X, basins, exact = make(seed)
    model = KernelDiffusionMap(n_modes, lag=lag, time_step=0.1, regularization=1e-3, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        states = coarse_states(model.fit(X).transform(X), suggest_states(model))
        measured = metastability(model, X, states, random_state=seed)
        row: Row = {"system": system, "seed": seed, "n_states": len(states.populations), "valley": states.valley,
                    "index": adjusted_rand_score(basins, states.labels), "stays": measured.stays.tolist(),
                    "basins": len(np.unique(basins))}  # fmt: skip
        if exact is not None and len(exact) == len(states.populations):
            owner = [np.bincount(basins[states.labels == k], minlength=len(exact)).argmax() for k in range(len(exact))]
            low, high = measured.population_intervals.T
            row["populations"] = ((low <= exact[owner]) & (exact[owner] <= high)).tolist()
        if well is not None and len(states.populations) == 2:
            times, cores, x = mean_first_passage_times(model, X, states, random_state=seed), states.cores, X[:, 0]
            inside = []
            for i, j in ((0, 1), (1, 0)):
                here, there = x[cores == i], x[cores == j]
                to = there.min() if there.mean() > here.mean() else there.max()
                true = passage_time(*well, here, to).mean()
                inside.append(bool(times.intervals[i, j, 0] <= true <= times.intervals[i, j, 1]))
            row["passages"] = inside
    return [row]


def table(rows: list[Row]) -> str:
    """Return a Markdown table with one line per system."""

    def covered(mine: list[Row], name: str) -> str:
        found = [one for row in mine for one in row.get(name, [])]
        return f"{np.mean(found):.2f} of {len(found)}" if found else "–"

    lines = []
    for (system,), mine in grouped(rows, "system").items():
        index = [row["index"] for row in mine]
        right = sum(row["n_states"] == row["basins"] for row in mine)
        lines.append(
            [
                system,
                f"{right} of {len(mine)}",
                f"{np.median(index):.3f}",
                f"{min(index):.3f}",
                f"{np.median([row['valley'] for row in mine]):.2f}",
                f"{np.median([min(row['stays']) for row in mine]):.2f}",
                covered(mine, "populations"),
                covered(mine, "passages"),
            ]
        )
    header = ["system", "right number", "Rand index, median", "smallest", "valley", "least share that stays",
              "populations covered", "passage times covered"]  # fmt: skip
    return "\n".join([f"Goal: adjusted Rand index of at least {GOAL:g}.", "", markdown(header, lines)])


def figure(rows: list[Row]) -> Figure:
    """Plot the Rand indices of all trajectories."""
    systems = list(dict.fromkeys(row["system"] for row in rows))
    fig = Figure(figsize=(7, 4), layout="constrained")
    ax = fig.subplots()
    ax.plot([row["index"] for row in rows], [systems.index(row["system"]) for row in rows], "o", ms=4, alpha=0.6)
    ax.axvline(GOAL, color="0.5", lw=0.8)
    ax.set_yticks(range(len(systems)), systems)
    ax.invert_yaxis()
    ax.set(xlabel="adjusted Rand index against the exact basins", xlim=(None, 1.01))
    return fig


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of("states", __doc__, n_seeds=10, quick="one double well", first_seed=800)
    options = parser.parse_args(arguments)
    systems, n_seeds = (["double well"], 1) if options.quick else (list(SYSTEMS), options.seeds)
    seeds = range(options.first_seed, options.first_seed + n_seeds)
    tasks = [{"system": system, "seed": seed} for system in systems for seed in seeds if
             system != "alanine dipeptide" or seed == options.first_seed]  # fmt: skip
    publish("states", run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs), table, figure, options.out)


if __name__ == "__main__":
    main()
