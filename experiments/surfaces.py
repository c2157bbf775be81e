"""Samples on a surface: what the tangent energy gains, what it costs elsewhere, and which samples `check_data` notes.

The default estimator fits the same samples with the energy of the surrounding space, and with `diffusion="tangent"`.
Spheres are surfaces; a circle has noise of 0.05; the others fill their space and should be left
alone. SubR² is the mean squared cosine with the true slow modes; rates are compared with the exact ones, mean over the
modes. Means over seeds. "noted" counts the samples of which `kdmaps check` says that they lie on a surface.

    python -m experiments.surfaces --quick
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from experiments._default import fit_default
from experiments._runner import Row, markdown, options_of, publish, run_tasks
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


def figure(rows: list[Row], path: Path) -> None:
    """Plot the error 1 - SubR² of every sample with both energies."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["problem"] for row in rows))
    fig = Figure(figsize=(8.5, 4), layout="constrained")
    ax = fig.subplots()
    for energy, colour, shift in (("ambient", "C0", -0.12), ("tangent", "C1", 0.12)):
        mine = [row for row in rows if row["energy"] == energy]
        at = [names.index(row["problem"]) + shift for row in mine]
        ax.plot(at, [1 - row["r2"] for row in mine], "o", color=colour, ms=6, alpha=0.7, mec="none", label=energy)
    ax.set(yscale="log", ylabel="error 1 - SubR²", title="Energy of the surrounding space, or on tangent spaces")
    ax.set_xticks(range(len(names)), names, rotation=25, ha="right")
    ax.legend(frameon=False)
    fig.savefig(path, dpi=130)


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of("surfaces", __doc__, n_seeds=3, quick="one seed of two problems")
    parser.add_argument("--first-seed", type=int, default=8200, help="seed of the first sample")
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
