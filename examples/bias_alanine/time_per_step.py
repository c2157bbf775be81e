"""Measure microseconds per step of alanine dipeptide with a bias along a mode, on one thread of a CPU.

`python examples/bias_alanine/time_per_step.py` takes a minute and prints a Markdown table.
"""

import time

import numpy as np
import openmm
from molecule import Molecule

import kdmaps
from kdmaps.simulation import descriptors, openmm_cv, openmm_walls

STEPS, REPEATS, FEATURES = 500, 5, 300


def trivial(state):
    """Compute nothing."""
    return 0.0, np.zeros((10, 3))


def along(force):
    """Return a harmonic restraint of a mode."""
    bias = openmm.CustomCVForce("0.5*mode^2")
    bias.addCollectiveVariable("mode", force)
    return bias


def main():
    """Measure the CPU time of all cases in turns; the least of several counts."""
    molecule = Molecule()
    frames = molecule.frames(molecule.data["xyz_aligned"][::10])
    cases = {"no bias": (), "trivial PythonForce": (openmm.PythonForce(trivial, {}, molecule.heavy),)}
    inputs = {
        "2 torsions": (molecule.torsions(), ("table", "python", "expression")),
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
                    cases[f"{name}, {basis}, {method}, added without CustomCVForce"] = (
                        openmm_cv(model, 0, columns, method=method),
                    )
            if basis == "fourier":
                cases[f"{name}, walls"] = (openmm_walls(model, columns, 100.0),)
    simulations = {name: molecule.simulation(*forces) for name, forces in cases.items()}
    best = dict.fromkeys(simulations, np.inf)
    for _ in range(REPEATS):
        for name, simulation in simulations.items():
            start = time.process_time()
            simulation.step(STEPS)
            best[name] = min(best[name], (time.process_time() - start) / STEPS * 1e6)
    print("| case | µs per step | of which the bias |\n|---|---|---|")
    for name, cost in best.items():
        print(f"| {name} | {cost:.0f} | {cost - best['no bias']:.0f} |")


if __name__ == "__main__":
    main()
