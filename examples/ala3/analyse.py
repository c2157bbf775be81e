"""Slow modes of Ace-Ala3-Nme from the raw trajectories, compared with a Markov model; writes results.json, README table.

python examples/ala3/analyse.py

The same fit on the command line, with a report and structures of the states:

kdmaps fit examples/ala3/run*.xtc --topology examples/ala3/ala3.pdb --descriptor dihedrals --lag 5ps --modes 3 --structures
"""  # noqa: E501

import json
import warnings
from pathlib import Path

import matplotlib
import numpy as np

import kdmaps
from kdmaps.data import gather, open_tables
from kdmaps.utils.numbers import rounded

HERE = Path(__file__).resolve().parent
RUNS = [HERE / f"run{number}.xtc" for number in (1, 2, 3)]
DESCRIPTORS = ("dihedrals", "heavy-atoms", "distances")
#: Lag in frames of 1 ps, as in the Markov model, modes that are fitted, and modes that are compared.
LAG, MODES, COMPARED = 5, 3, 2
BEGIN, END = "<!-- table: python examples/ala3/analyse.py -->\n", "<!-- end of table -->\n"


def correlations(modes: np.ndarray, reference: np.ndarray) -> list[float]:
    """Return the multiple correlation of each reference eigenvector with the modes."""
    centred, target = (values.astype(np.float64) - values.mean(axis=0) for values in (modes, reference))
    fitted = centred @ np.linalg.lstsq(centred, target)[0]
    return np.sqrt(np.sum(fitted**2, axis=0) / np.sum(target**2, axis=0)).round(3).tolist()


def fit(descriptor: str, reference: np.ndarray) -> tuple[dict, np.ndarray]:
    """Fit the default estimator with a lag only; return a row of the table, and the modes at the frames."""
    table = open_tables(RUNS, topology=HERE / "ala3.pdb", descriptor=descriptor)
    X = gather(table.select())
    groups = np.repeat(np.arange(len(RUNS)), table.lengths)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table shows which modes fail their checks
        model = kdmaps.AdaptiveDiffusionMap(MODES, lag=LAG, time_step=1.0, random_state=0).fit(X, groups=groups)
        errors = kdmaps.uncertainty.bootstrap(model, X, groups=groups, random_state=0)
    modes = model.transform(X)
    row = {
        "columns": X.shape[1],
        "timescales_ps": model.timescales_[:COMPARED].round(1).tolist(),
        "timescale_intervals_ps": errors.timescale_intervals[:COMPARED].round(1).tolist(),
        "correlations": correlations(modes, reference),
        "checks_passed": model.trust_.ok[:COMPARED].tolist(),
    }
    return row, modes


def draw(modes: np.ndarray, angles: np.ndarray) -> None:
    """Draw the first two modes over the dihedrals of each residue."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(9, 5.6), layout="constrained", sharex=True, sharey=True)
    for k, row in enumerate(axes):
        limit = np.quantile(np.abs(modes[:, k]), 0.995)
        order = np.argsort(np.abs(modes[:, k]))  # rare values on top
        for residue, ax in enumerate(row):
            phi, psi = np.rad2deg(angles[order, residue]), np.rad2deg(angles[order, 3 + residue])
            drawn = ax.scatter(phi, psi, 3, modes[order, k], cmap="coolwarm", vmin=-limit, vmax=limit, lw=0)
            ax.set(xlim=(-180, 180), ylim=(-180, 180), xticks=(-180, 0, 180), yticks=(-180, 0, 180))
            if k == 0:
                ax.set_title(f"ALA{residue + 2}")
            if k == 1:
                ax.set_xlabel("φ (°)")
        row[0].set_ylabel("ψ (°)")
        figure.colorbar(drawn, ax=row, label=f"mode {k + 1}")
    figure.savefig(HERE / "modes.png", dpi=110)
    plt.close(figure)


def table(results: dict, markov: dict) -> str:
    """Return the table of README.md."""

    def cell(value: float, interval: list[float]) -> str:
        return f"{rounded(value, 3)} ({rounded(interval[0], 3)} – {rounded(interval[1], 3)})"

    lines = ["| method | R 1 | R 2 | t1 (ps) | t2 (ps) |", "|---|---:|---:|---:|---:|"]
    for name, row in results["fits"].items():
        marks = ["" if passed else " ⚠" for passed in row["checks_passed"]]
        shown = [f"{value:.3f}" for value in row["correlations"]]
        cells = [
            cell(*one) + mark
            for *one, mark in zip(row["timescales_ps"], row["timescale_intervals_ps"], marks, strict=True)
        ]
        lines.append(f"| **kdmaps**, {name} ({row['columns']} columns) | {' | '.join([*shown, *cells])} |")
    known = map(cell, markov["timescales_ps"][:COMPARED], markov["timescale_intervals_ps"])
    lines.append(f"| Markov model, {markov['cells']} cells | {' | '.join(['–', '–', *known])} |")
    shown = [f"{value:.3f}" for value in results["tica"]]
    tica = [f"{value:.3g}" for value in markov["tica_timescales_ps"][:COMPARED]]
    lines.append(f"| TICA, dihedrals | {' | '.join([*shown, *tica])} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Fit, compare, draw, write."""
    matplotlib.use("Agg")
    with np.load(HERE / "markov.npz") as stored:
        reference, tica = stored["eigenvectors"][:, :COMPARED], stored["tica"]
    results: dict = {"kdmaps": kdmaps.__version__, "fits": {}, "tica": correlations(tica, reference)}
    for descriptor in DESCRIPTORS:
        results["fits"][descriptor], modes = fit(descriptor, reference)
        print(descriptor, results["fits"][descriptor], flush=True)
        if descriptor == "dihedrals":
            with np.load(HERE / "torsions.npz") as stored:
                draw(modes, np.concatenate([stored[name] for name in sorted(stored)]))
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    readme = (HERE / "README.md").read_text()
    start, end = readme.index(BEGIN) + len(BEGIN), readme.index(END)
    text = table(results, json.loads((HERE / "markov.json").read_text()))
    (HERE / "README.md").write_text(readme[:start] + text + readme[end:])


if __name__ == "__main__":
    main()
