"""Cross to φ > 0 in alanine dipeptide at 300 K: metadynamics along learned modes, in two rounds.

    python examples/bias_alanine/run.py --quick          # 1 ns a run, six minutes; writes into ./alanine
    python examples/bias_alanine/run.py --out somewhere  # 5 ns a run, half an hour

It needs OpenMM (`pip install 'kdmaps[openmm]'`). An unbiased simulation at 300 K contained no crossing in 19 ns. The
first modes come from frames at 400 K, a thirtieth of which is at φ > 0. Round 1 is biased along them at 300 K, its
weighted frames give new modes, and round 2 is biased along these. A reference run is biased along φ and ψ themselves.
Finished runs are stored: after an interruption, the same command continues with the current run.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import openmm
from molecule import KT, TEMPERATURE, TIMESTEP, Molecule
from openmm import app, unit

import kdmaps
from kdmaps.simulation import descriptors, metadynamics_weights, openmm_cv
from report import analyse, angles, write

#: Steps between hills and between frames (1 ps); the first hill in kJ/mol; the bias factor γ; points of the grid.
EVERY, HEIGHT, FACTOR, GRID = 500, 1.2, 10.0, 60
#: Share of a run in which the bias still grows fast, left out; exponent of the weights of the fit that guides a bias.
GROWING, TEMPERING = 0.2, 0.3


def guide(X, weight=None):
    """Fit two smooth modes to bias along; their rates do not matter."""
    model = kdmaps.KernelDiffusionMap(2, basis="landmarks", n_features=150, bandwidth=0.5, random_state=0)
    return model.fit(X, sample_weight=weight)


def along_modes(model, inputs, system, X):
    """Return both modes as variables of metadynamics, with hills of a thirtieth of the range of each."""
    variables = []
    for mode, values in enumerate(model.transform(X).T):
        low, high = float(values.min()), float(values.max())
        edge, width = 0.15 * (high - low), (high - low) / 30  # beyond its grid the bias of OpenMM is zero
        force = openmm_cv(model, mode, inputs, system=system)
        variables.append(app.BiasVariable(force, low - edge, high + edge, width, False, GRID))
    return variables


def along_angles(inputs):
    """Return φ and ψ as variables of metadynamics."""
    variables = []
    for one in inputs:
        force = openmm.CustomTorsionForce("theta")
        force.addTorsion(*one.atoms)
        variables.append(app.BiasVariable(force, -np.pi, np.pi, 0.35, True, GRID))
    return variables


def metadynamics(molecule, variables, nanoseconds, seed):
    """Run well-tempered metadynamics; return frames, the bias at each and on the grid at its time, and CPU seconds."""
    start = time.process_time()
    system = molecule.system()
    bias = app.Metadynamics(system, variables, TEMPERATURE, FACTOR, HEIGHT * unit.kilojoule_per_mole, EVERY)
    group = {system.getForce(system.getNumForces() - 1).getForceGroup()}
    simulation = molecule.start(system, seed)
    frames, energies, grids = [], [], []
    bias.step(simulation, EVERY // 2)  # so that frames lie between two hills
    for _ in range(round(1000 * nanoseconds / (EVERY * TIMESTEP.value_in_unit(unit.picosecond)))):
        bias.step(simulation, EVERY)
        state = simulation.context.getState(positions=True, energy=True, groups=group)
        frames.append(np.asarray(state.getPositions(asNumpy=True)._value, dtype=np.float32))
        energies.append(state.getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole))
        surface = np.asarray(bias.getFreeEnergy().value_in_unit(unit.kilojoule_per_mole))
        grids.append((-(1 - 1 / FACTOR) * surface).astype(np.float32))
    return {
        "frames": np.array(frames),
        "energies": np.array(energies),
        "grids": np.array(grids),
        "seconds": time.process_time() - start,
    }


def kept(path, make):
    """Return the arrays of a file, which is created if it does not exist."""
    if not path.exists():
        arrays = make()
        temporary = path.with_suffix(".part.npz")
        np.savez(temporary, **arrays)
        temporary.replace(path)
    with np.load(path) as stored:
        return dict(stored)


def weighted(run, inputs):
    """Return X and weights of a run, after the time in which the bias grows fast."""
    grids, start = run["grids"].astype(np.float64), int(GROWING * len(run["frames"]))
    # Without hills the system has never been there: F is infinite, not -U. In a very short run all hills are low.
    visited = grids[-1] > min(KT, grids[-1].max() / 2)
    weight = metadynamics_weights(run["energies"][start:], grids[start:, visited], KT, FACTOR)
    return descriptors(inputs, run["frames"][start:]), weight


def main():
    """Run the reference and both rounds, and compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("alanine"))
    parser.add_argument("--quick", action="store_true", help="1 ns a run instead of 5")
    parser.add_argument("--ns", type=float, help="length of a run in nanoseconds")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    nanoseconds = arguments.ns or (1.0 if arguments.quick else 5.0)
    arguments.out.mkdir(parents=True, exist_ok=True)
    molecule = Molecule()
    inputs = molecule.torsions()
    hot = descriptors(inputs, molecule.frames(molecule.data["xyz_aligned"][::4]))
    found, pictures = {}, {}

    def run(name, number, variables):
        """Run metadynamics, or read it; return X and weights of its frames."""
        path, seed = arguments.out / f"{name}.npz", 1 + 3 * arguments.seed + number
        arrays = kept(path, lambda: metadynamics(molecule, variables(), nanoseconds, seed))
        X, weight = pictures[name] = weighted(arrays, inputs)
        found[name] = analyse(arrays, X, weight, angles(descriptors(inputs, arrays["frames"]))[0])
        print(name, found[name], flush=True)
        return X, weight

    X, weight = run("round_1", 0, lambda: along_modes(guide(hot), inputs, molecule.system(), hot))
    new = guide(X, weight**TEMPERING)
    run("round_2", 1, lambda: along_modes(new, inputs, molecule.system(), X))
    run("reference", 2, lambda: along_angles(inputs))
    write(arguments.out, found, {"seed": arguments.seed, "nanoseconds": nanoseconds}, pictures)


if __name__ == "__main__":
    main()
