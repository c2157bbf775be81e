"""Samples on a surface: effect of the tangent energy, there and elsewhere, and samples noted by `check_data`.

The default estimator fits the same samples with the energy of the surrounding space, and with `diffusion="tangent"`.
Spheres are surfaces; a circle has noise of 0.05; the other problems fill their space. SubR² is the mean squared cosine
with the true slow modes; rates are compared with the exact ones, mean over the modes. Means over seeds. "noted" counts
the samples that `kdmaps check` reports to lie on a surface.

    python -m experiments.surfaces --quick
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from experiments._fits import error_dots, fit_default
from experiments._runner import Row, grouped, markdown, options_of, publish, run_tasks
from kdmaps import metrics, problems
from kdmaps.data.findings import surface_dimension

N_SAMPLES = 500
#: Problems, and whether their samples lie on a surface without noise.
PROBLEMS = {
    "sphere-2": True,
    "sphere-3": True,
    "sphere-5": True,
    "circle": False,
    "ou2d-4": False,
    "ou2d-16": False,
    "triplewell2d": False,
    "triplewell2d+8x0.1": False,
}
ENERGIES = {"ambient": None, "tangent": "tangent"}


def run(problem: str, n: int, seed: int, energy: str) -> list[Row]:
    """Return the row of one fit."""
    system = problems.load(problem)
    X = system.sample(n, random_state=seed)
    model, row = fit_default(X, system.n_modes, seed, diffusion=ENERGIES[energy])
    r2 = metrics.subspace_r2(model.transform(X), system.reference(X, system.n_modes))
    error = np.abs(np.array(row["rates"]) / system.rates(system.n_modes) - 1).mean()
    task = {"problem": problem, "n": n, "seed": seed, "energy": energy}
    return [{**task, "r2": float(r2), "rate_error": float(error), "noted": surface_dimension(X), **row}]


def table(rows: list[Row]) -> str:
    """Return a Markdown table with one line for each problem."""
    lines = []
    for name in dict.fromkeys(row["problem"] for row in rows):
        both = {energy: [r for r in rows if (r["problem"], r["energy"]) == (name, energy)] for energy in ENERGIES}
        cells = [
            f"{np.mean([r['r2'] for r in both[energy]]):.4f} ({min(r['r2'] for r in both[energy]):.3f})"
            for energy in ENERGIES
        ]
        errors = [f"{np.mean([r['rate_error'] for r in both[energy]]):.3f}" for energy in ENERGIES]
        noted = sum(r["noted"] is not None for r in both["ambient"])
        on = "yes" if PROBLEMS[name] else "with noise" if name == "circle" else "no"
        lines.append([name, on, *cells, *errors, f"{noted} of {len(both['ambient'])}"])
    header = ["problem", "on a surface", "SubR², ambient (worst)", "SubR², tangent (worst)", "rate error, ambient",
              "rate error, tangent", "noted"]  # fmt: skip
    return markdown(header, lines)


def figure(rows: list[Row]) -> Figure:
    """Plot the error 1 - SubR² of every sample with both energies."""
    series = {energy: mine for (energy,), mine in grouped(rows, "energy").items()}
    return error_dots(series, ["problem"], "Energy of the surrounding space, or on tangent spaces")


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of("surfaces", __doc__, n_seeds=3, quick="one seed of two problems", first_seed=8200)
    options = parser.parse_args(arguments)
    names, n_seeds = (["sphere-3", "ou2d-16"], 1) if options.quick else (list(PROBLEMS), options.seeds)
    tasks = [
        {"problem": name, "n": N_SAMPLES, "seed": options.first_seed + number, "energy": energy}
        for name in names
        for number in range(n_seeds)
        for energy in ENERGIES
    ]
    publish("surfaces", run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs), table, figure, options.out)


if __name__ == "__main__":
    main()
