"""The energy of gradients and the energy of neighbours: tables and images, a noisy surface, and physics.

- digits (900 of scikit-learn's 1,797) and wine (scaled): accuracy of 15 nearest neighbours in five modes, five folds;
- a noisy curve: half a circle in the plane with noise 0.1 in each of 20 columns, 600 points; R² of the best linear
  combination of five modes for the angle;
- physics (double well, four-well Ornstein-Uhlenbeck product, and a double well with noise columns, 1,000 samples): mean
  R² of the span of two modes with the exact eigenfunctions, and the first rate over the exact one, which a graph cannot
  have.

Both energies with their defaults. Seeds 0 to 2 for the simulated sets.

    python -m experiments.energies
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

import kdmaps
from experiments._runner import Row, grouped, markdown
from kdmaps.metrics import subspace_r2
from kdmaps.utils.files import append_line, read_lines, write_text

ENERGIES = ("gradients", "neighbors")
SEEDS = (0, 1, 2)
PHYSICS = ("dw1d", "ou2d-4", "dw1d+1x0.5")


def modes_of(X: np.ndarray, energy: str, n_modes: int) -> tuple[Any, np.ndarray, float]:
    """Return a fitted model, its modes at X, and the CPU seconds of the fit."""
    model = kdmaps.AdaptiveDiffusionMap(n_modes, energy=energy, random_state=0, n_jobs=1)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    seconds = time.process_time() - start
    return model, model.transform(X), seconds


def labelled(name: str, energy: str) -> Row:
    """Return the accuracy for digits or wine."""
    X, y = load_digits(return_X_y=True) if name == "digits" else load_wine(return_X_y=True)
    X, y = (scale(X), y) if name == "wine" else (X[:900], y[:900])
    _, modes, seconds = modes_of(X, energy, 5)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    accuracy = cross_val_score(KNeighborsClassifier(15), modes / modes.std(axis=0), y, cv=folds).mean()
    return {"value": float(accuracy), "seconds": seconds}


def noisy_curve(seed: int, energy: str) -> Row:
    """Return R² of a regression of the angle on five modes, cross-validated."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, np.pi, 600)
    X = 0.1 * rng.standard_normal((600, 20))
    X[:, :2] += np.column_stack([np.cos(angle), np.sin(angle)])
    _, modes, seconds = modes_of(X, energy, 5)
    predicted = cross_val_predict(LinearRegression(), modes, angle, cv=5)
    return {"value": 1 - float(np.var(angle - predicted) / np.var(angle)), "seconds": seconds}


def physics(name: str, seed: int, energy: str) -> Row:
    """Return the agreement with exact eigenfunctions, and the first rate over the exact one."""
    system = kdmaps.problems.load(name)
    X = system.sample(1_000, random_state=seed)
    model, modes, seconds = modes_of(X, energy, 2)
    exact = system.eigenfunctions(X, 2)
    rate = float(model.rates_[0] / system.rates(2)[0])
    return {"value": float(subspace_r2(modes, exact)), "rate": rate, "seconds": seconds}


def run(out: Path) -> list[Row]:
    """Return all rows; finished ones are kept in `rows.jsonl`."""
    path = out / "rows.jsonl"
    rows: list[Row] = list(read_lines(path)) if path.exists() else []
    done = {(row["set"], row["seed"], row["energy"]) for row in rows}
    tasks = [(name, 0) for name in ("digits", "wine")]
    tasks += [(name, seed) for name in ("noisy curve", *PHYSICS) for seed in SEEDS]
    for name, seed in tasks:
        for energy in ENERGIES:
            if (name, seed, energy) in done:
                continue
            if name in PHYSICS:
                found = physics(name, seed, energy)
            elif name == "noisy curve":
                found = noisy_curve(seed, energy)
            else:
                found = labelled(name, energy)
            row = {"set": name, "seed": seed, "energy": energy, **found}
            append_line(path, row)
            rows.append(row)
            print(row, flush=True)
    return rows


def table(rows: list[Row]) -> str:
    """Return means over the seeds of each set, for both energies."""
    measured = {"digits": "kNN accuracy", "wine": "kNN accuracy", "noisy curve": "R² of the angle"}
    lines = []
    for (name,), own in grouped(rows, "set").items():
        cells = []
        for energy in ENERGIES:
            values = [row["value"] for row in own if row["energy"] == energy]
            rates = [row["rate"] for row in own if row["energy"] == energy and "rate" in row]
            cells.append(f"{np.mean(values):.3f}" + (f" ({np.mean(rates):.3g})" if rates else ""))
        lines.append([name, measured.get(name, "R² of modes (rate over exact rate)"), *cells])
    return markdown(["set", "measure", *ENERGIES], lines)


def main() -> None:
    """Run everything and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results", "energies"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    text = table(run(out))
    write_text(out / "table.md", text + "\n")
    print(text)


if __name__ == "__main__":
    main()
