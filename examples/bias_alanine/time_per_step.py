"""Measure microseconds per step of alanine dipeptide with a bias along a mode, on one core, on two platforms.

`python examples/bias_alanine/time_per_step.py` takes two minutes, prints a Markdown table and writes it to
results/time_per_step.
"""

import copy
import json
import platform
import time
from pathlib import Path

import numpy as np
import openmm
from molecule import Molecule

import kdmaps
from kdmaps.simulation import descriptors, openmm_cv, openmm_walls

STEPS, REPEATS, FEATURES = 500, 4, 300
#: Platforms of OpenMM, and their properties.
PLATFORMS = {"CPU": {"Threads": "1"}, "Reference": {}}
RESULTS = Path(__file__).resolve().parents[2] / "results" / "time_per_step"
PAGE = """# Microseconds per step with a bias along a mode

Alanine dipeptide, 22 atoms in implicit solvent, on one core, with OpenMM's platforms CPU (one thread) and Reference
(always one thread, with little overhead for so few atoms). The bias is a harmonic restraint of the slowest mode with
{features} features, which is constant beyond the samples (an expression is not continued). "trivial" is a `PythonForce`
that computes nothing, with the same restraint: the minimal cost of Python in a simulation. Times are CPU times, the
minimum of {repeats} interleaved runs of {steps} steps, measured by `python examples/bias_alanine/time_per_step.py` with
OpenMM {openmm} and kdmaps {kdmaps}. A larger system takes longer per step, but the cost of the bias is the same. The
CPU platform passes its work to a thread: its times differed between runs by up to a factor of four, the times of
Reference by a factor of one and a half.

{table}
"""


def trivial(state):
    """Compute nothing."""
    return 0.0, np.zeros((10, 3))


def along(force):
    """Return a harmonic restraint of a mode."""
    bias = openmm.CustomCVForce("0.5*mode^2")
    bias.addCollectiveVariable("mode", force)
    return bias


def main():
    """Measure the CPU time of all cases in turn, several times, and keep the minimum."""
    molecule = Molecule()
    frames = molecule.frames(molecule.data["xyz_aligned"][::10])
    nothing = [openmm.PythonForce(trivial, {}, molecule.heavy) for _ in range(2)]
    cases = {"no bias": (), "trivial": (along(nothing[0]),), "trivial, without CustomCVForce": (nothing[1],)}
    inputs = {
        "2 torsions": (molecule.torsions(), ("python", "table", "expression")),
        "10 distances": (molecule.distances(), ("python", "expression")),
        "30 aligned coordinates": (molecule.aligned(), ("python",)),
    }
    for name, (columns, methods) in inputs.items():
        X = descriptors(columns, frames)
        for basis in ("fourier", "landmarks"):
            model = kdmaps.KernelDiffusionMap(2, basis=basis, n_features=FEATURES, regularization=1e-3, random_state=0)
            model.fit(X)
            for method in methods if basis == "fourier" else methods[:1]:
                outside = "free" if method == "expression" else "flat"
                force = openmm_cv(model, 0, columns, method=method, outside=outside)
                cases[f"{name}, {basis}, {method}"] = (along(force),)
                if basis == "fourier" and method == "python":
                    cases[f"{name}, {basis}, {method}, without CustomCVForce"] = (
                        openmm_cv(model, 0, columns, method=method),
                    )
            if basis == "fourier":
                cases[f"{name}, walls"] = (openmm_walls(model, columns, 100.0),)
    simulations = {
        (platform, name): molecule.start(molecule.system(*map(copy.copy, forces)), 1, platform, properties)
        for platform, properties in PLATFORMS.items()
        for name, forces in cases.items()
    }
    best = dict.fromkeys(simulations, np.inf)
    for _ in range(REPEATS):
        for case, simulation in simulations.items():
            start = time.process_time()
            simulation.step(STEPS)
            best[case] = min(best[case], (time.process_time() - start) / STEPS * 1e6)
    publish({platform: {name: round(best[platform, name], 1) for name in cases} for platform in PLATFORMS})


def publish(costs):
    """Print and write the table, and write the numbers."""
    heads = ["case", *(head for platform in costs for head in (f"{platform}, µs per step", "of which the bias"))]
    lines = [heads, ["---"] * len(heads)]
    for name in costs["CPU"]:
        both = [(column[name], column[name] - column["no bias"]) for column in costs.values()]
        lines.append([name, *(f"{number:.0f}" for pair in both for number in pair)])
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    versions = {"openmm": openmm.__version__, "kdmaps": kdmaps.__version__}
    numbers = {"steps": STEPS, "repeats": REPEATS, "features": FEATURES}
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "table.md").write_text(PAGE.format(table=table, **versions, **numbers))
    found = {"versions": {"python": platform.python_version(), **versions}, "microseconds": costs}
    (RESULTS / "costs.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(table)


if __name__ == "__main__":
    main()
