"""CPU seconds and memory of the default, `AdaptiveDiffusionMap().fit(X)`, over sizes of the data, as a formula.

    seconds / syrk = s₀ + n q (a + b m) + c m² + N (e q² + f d) + [d > N] g N d

for N samples of d columns and 300 q features. Of the samples, n = min(N, 5,000) are searched, in m = min(d, N)
coordinates; `syrk` is the bare product of 20,000 × 300 numbers in the same process. Both are CPU seconds of one thread,
on which other programs have little effect. Every fit is the first one of a fresh process with compiled code on disk.
`kdmaps check` predicts the cost of a fit with these coefficients (`kdmaps.estimators.cost`).

Run `python -m benchmarks.cost_default` from the root of the repository; `--part` runs some cases and keeps the stored
rows of the others. It writes results/cost_default.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from experiments._runner import markdown
from kdmaps.estimators.cost import FEATURES, TERMS, design

OUT = Path("results/cost_default")
#: Parts of the measurement: label, N, d, options of the estimator.
CASES: dict[str, tuple[tuple[str, int, int, str], ...]] = {
    "samples": tuple((f"N={n:,}", n, 10, "") for n in (200, 500, 1000, 5000, 10**5, 10**6)),
    "columns": (("d=2", 2000, 2, ""), ("d=10", 2000, 10, ""), ("d=100", 2000, 100, ""), ("d=1,000", 2000, 1000, "")),
    "wide": (("d=100", 500, 100, ""), ("d=2,000", 500, 2000, ""), ("d=20,000", 500, 20000, "")),
    "modes": (("r=2", 1000, 10, "2"), ("r=8", 1000, 10, "8")),
    "features": tuple((f"p={p}", 2000, 10, f"n_features={p}") for p in (100, 600)),
    "families": tuple(
        (family, 2000, 10, f"search=kdmaps.KernelSearchCV(families=['{family}'])")
        for family in ("gaussian", "matern32", "laplacian")
    ),
    "lag": tuple((f"lag={lag}", n, 10, f"lag={lag}") for n in (2000, 5000) for lag in (1, 10)),
    "fresh": (("nothing compiled", 5000, 10, ""),),  # the first fit after an installation
}
SCRIPT = """
import time, warnings; warnings.simplefilter("ignore")
import kdmaps
from benchmarks._timing import resident
from kdmaps.estimators.cost import unit_seconds
problem = kdmaps.problems.load("triplewell2d+{more}" if {more} else "triplewell2d")
X = problem.trajectory({n}, 0.1, random_state=0) if {lagged} else problem.sample({n}, random_state=0)
unit = unit_seconds()
before, start = resident("VmRSS"), time.process_time()
model = kdmaps.AdaptiveDiffusionMap({options}{comma}random_state=0).fit(X)
print(time.process_time() - start, unit, resident("VmHWM") - before, model.best_params_["basis"])
"""


def measure(part: str, label: str, n: int, d: int, options: str) -> dict[str, Any]:
    """Return CPU seconds and megabytes of the first fit of a fresh process, next to the syrk of the same process."""
    settings = {"options": options, "comma": ", " if options else "", "lagged": "lag=" in options}
    script = SCRIPT.format(more=d - 2, n=n, **settings)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        environment |= {"NUMBA_CACHE_DIR": folder} if part == "fresh" else {}
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    seconds, unit, memory, basis = done.stdout.split()
    found = {"part": part, "case": label, "N": n, "d": d, "options": options, "seconds": float(seconds)}
    return {**found, "MB": float(memory), "basis": basis, "syrk": float(unit)}


def is_plain(row: dict[str, Any]) -> bool:
    """Return whether a row is a default fit with compiled code on disk, with any number of features."""
    return row["part"] in ("samples", "columns", "wide", "features")


def terms_of(row: dict[str, Any]) -> np.ndarray:
    """Return the terms of the formula for the size of a row."""
    options = dict([row["options"].split("=")]) if row["part"] == "features" else {}
    return design(row["N"], row["d"], int(options.get("n_features", FEATURES)))


def coefficients(rows: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Return the coefficients ≥ 0 that make the relative errors of the default's seconds and megabytes smallest."""
    plain = [row for row in rows if is_plain(row)]
    columns = np.array([terms_of(row) for row in plain])
    found = {}
    for name, unit in (("seconds", "syrk"), ("MB", None)):
        measured = np.array([row[name] / (row[unit] if unit else 1) for row in plain])
        values = nnls(columns / measured[:, None], np.ones(len(plain)))[0]
        found[name] = [float(f"{value:.3g}") for value in values]
    return found


def exponents(rows: list[dict[str, Any]], part: str, axis: str) -> list[list[str]]:
    """Return the growth between neighbouring sizes: the exponent of seconds and of memory."""
    mine = [row for row in rows if row["part"] == part]
    lines = []
    for small, large in pairwise(mine):
        ratio = np.log(large[axis] / small[axis])
        grown = [f"{np.log(large[what] / small[what]) / ratio:.2f}" for what in ("seconds", "MB")]
        lines.append([f"{axis} {small[axis]:,} → {large[axis]:,}", part, *grown])
    return lines


def tables(rows: list[dict[str, Any]], found: dict[str, list[float]]) -> str:
    """Return the tables of measurements, exponents and coefficients."""
    lines = []
    for row in rows:
        unit = row["syrk"]
        seconds = float(terms_of(row) @ np.array(found["seconds"])) * unit
        formula = f"{seconds:.1f} ({seconds / row['seconds'] - 1:+.0%})"
        what = row["options"] or ("default" if is_plain(row) else row["case"])
        cost = [f"{row['seconds']:.2f}", formula, f"{row['seconds'] / unit:.0f}", f"{row['MB']:.0f}"]
        lines.append([f"{row['N']:,} × {row['d']:,}", what, row["basis"], *cost])
    header = ["N × d", "options", "basis", "seconds", "formula", "syrk of 20,000 × 300", "MB"]
    growth = exponents(rows, "samples", "N") + exponents(rows, "columns", "d") + exponents(rows, "wide", "d")
    return "\n\n".join(
        [
            "First fit of a fresh process, CPU seconds of one thread; MB: peak above the samples. The formula is "
            "fitted to the rows *default* and *n_features*; in other rows it is the prediction for the default of the "
            "same size. With a lag, the samples are a trajectory.",
            markdown(header, lines),
            "Exponents of the growth between neighbouring sizes.",
            markdown(["from → to", "part", "seconds", "MB"], growth),
            "Coefficients of the formula, in syrk of 20,000 × 300, and of the same formula for MB.",
            markdown(["term", "seconds", "MB"], [[t, f"{a:.3g}", f"{b:.3g}"] for t, a, b in lines_of(found)]),
        ]
    )


def lines_of(found: dict[str, list[float]]) -> list[tuple[str, float, float]]:
    """Return the terms with both coefficients."""
    return list(zip(TERMS, found["seconds"], found["MB"], strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=CASES, action="append", help="these cases only")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--show", action="store_true", help="tables from stored rows")
    arguments = parser.parse_args()
    parts = [] if arguments.show else arguments.part or list(CASES)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "rows.json"
    stored = json.loads(path.read_text())["rows"] if path.exists() else []
    rows = [row for row in stored if row["part"] in CASES and row["part"] not in parts]
    for part in parts:
        for case in CASES[part]:
            rows.append(measure(part, *case))
            print(rows[-1], flush=True)
    rows.sort(key=lambda row: list(CASES).index(row["part"]))
    found = coefficients(rows)
    path.write_text(json.dumps({"coefficients": found, "rows": rows}, indent=1) + "\n")
    (arguments.out / "table.md").write_text(tables(rows, found) + "\n")
    print(tables(rows, found))


if __name__ == "__main__":
    main()
