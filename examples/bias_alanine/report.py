"""Results of `run.py` as numbers, a table and a figure.

`python examples/bias_alanine/report.py` writes `results.md` from the files `results_seed*.json` in this folder.
"""

import json
import platform
from pathlib import Path

import numpy as np
import openmm
from matplotlib.figure import Figure

import kdmaps
from kdmaps.simulation import effective_sample_size

HERE = Path(__file__).resolve().parent
#: φ > 0 means φ in (0°, 130°), up to the β region. A crossing leads from one core to the other.
RIGHT, CORES = (0.0, 130.0), ((-150.0, -40.0), (30.0, 110.0))
BLOCKS, FITTED = 10, 2000
NAMES = {
    "round_1": "round 1, modes of 400 K",
    "round_2": "round 2, modes of round 1",
    "reference": "reference, φ and ψ",
}


def angles(X):
    """Return φ and ψ in degrees."""
    return np.degrees(np.arctan2(X[:, 1], X[:, 0])), np.degrees(np.arctan2(X[:, 3], X[:, 2]))


def crossings(phi):
    """Return the number of crossings between the two cores."""
    core = np.full(len(phi), -1)
    for number, (low, high) in enumerate(CORES):
        core[(phi > low) & (phi < high)] = number
    return int(np.count_nonzero(np.diff(core[core >= 0])))


def free_energy(X, weight):
    """Return the free energy of φ > 0 in kT, and its standard error by a bootstrap of ten blocks of time.

    Both are None if no frame, or no frame of most resampled runs, is at φ > 0.
    """
    phi = angles(X)[0]
    parts = np.array_split(np.where((phi > RIGHT[0]) & (phi < RIGHT[1]), weight, 0.0), BLOCKS)
    right, whole = (np.array([part.sum() for part in blocks]) for blocks in (parts, np.array_split(weight, BLOCKS)))
    drawn = np.random.default_rng(0).integers(BLOCKS, size=(1000, BLOCKS))
    share = right[drawn].sum(axis=1) / whole[drawn].sum(axis=1)
    if np.mean(share > 0) < 0.95:
        return None, None
    share, value = share[share > 0], right.sum() / whole.sum()
    return float(np.log((1 - value) / value)), float(np.std(np.log((1 - share) / share)))


def analyse(run, X, weight, phi):
    """Return the results of one run, with the time scales of a static fit of its weighted frames, in units of 1/D."""
    value, error = free_energy(X, weight)
    rows = np.linspace(0, len(X) - 1, min(len(X), FITTED)).astype(int)
    model = kdmaps.AdaptiveDiffusionMap(2, random_state=0).fit(X[rows], sample_weight=weight[rows])
    return {
        "crossings": crossings(phi),
        "free energy (kT)": value,
        "error (kT)": error,
        "effective frames": effective_sample_size(weight),
        "time scales (1/D)": model.timescales_.tolist(),
        "CPU seconds": float(run["seconds"]),
    }


def write(out, found, settings, pictures):
    """Write `results.json` and `planes.png` into a folder."""
    versions = {"kdmaps": kdmaps.__version__, "openmm": openmm.__version__, "python": platform.python_version()}
    content = {"settings": settings, "versions": versions, "runs": found}
    (out / "results.json").write_text(json.dumps(content, indent=1) + "\n")
    figure = Figure(figsize=(3.2 * len(pictures), 3.2), layout="constrained")
    for ax, (name, (X, weight)) in zip(figure.subplots(1, len(pictures)), pictures.items(), strict=True):
        points = ax.scatter(*angles(X), c=-np.log(weight / weight.max()), s=2, cmap="viridis_r", vmax=12)
        ax.set(title=NAMES[name], xlabel="φ (degrees)", xlim=(-180, 180), ylim=(-180, 180))
    figure.axes[0].set_ylabel("ψ (degrees)")
    figure.colorbar(points, ax=figure.axes, label="-log weight")
    figure.savefig(out / "planes.png", dpi=100)


def table(results):
    """Return a Markdown page with a table of several results."""
    lines = [
        "# Alanine dipeptide at 300 K, measured",
        "",
        "| seed | run | ns | crossings | free energy of φ > 0 (kT) | time scales (1/D) | CPU minutes |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in results:
        settings = one["settings"]
        for name, run in one["runs"].items():
            value, error = run["free energy (kT)"], run["error (kT)"]
            energy = "unknown" if value is None else f"{value:.2f} ± {error:.2f}"
            times = ", ".join(f"{t:.3g}" for t in run["time scales (1/D)"])
            lines.append(
                f"| {settings['seed']} | {NAMES[name]} | {settings['nanoseconds']:g} | {run['crossings']} | {energy} | "
                f"{times} | {run['CPU seconds'] / 60:.1f} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (HERE / "results.md").write_text(
        table(json.loads(path.read_text()) for path in sorted(HERE.glob("results_seed*.json")))
    )
