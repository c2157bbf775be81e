"""Frames of alanine dipeptide at 400 K under a static bias, and shots from given frames, by OpenMM.

The force field, the temperature and the integrator are the same as in the 100 ns of examples/alanine_dipeptide, so that
rates can be compared.
"""

import sys
from pathlib import Path

import numpy as np
import openmm
from openmm import app, unit

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bias_alanine"))
from molecule import Molecule, load  # noqa: F401

from kdmaps.simulation import descriptors

TEMPERATURE, FRICTION, TIMESTEP = 400 * unit.kelvin, 1 / unit.picosecond, 0.002 * unit.picosecond
STEP_PS, KT = 0.002, 8.31446e-3 * 400  # kJ/mol
#: Metadynamics that makes the bias: steps between hills, the first hill in kJ/mol, bias factor, width, grid.
EVERY, HEIGHT, FACTOR, WIDTH, GRID = 250, 1.2, 10.0, 0.35, 60
#: Steps between frames (1 ps) and frames in a file.
STRIDE, CHUNK = 500, 1000
#: Sets in degrees of φ: A holds C7eq, C5 and α_R, B holds C7ax.
SETS = ((-150.0, -60.0), (45.0, 75.0))
#: Steps of a shot between two tests of the sets, and the largest number of steps (20 ps).
TESTED, LONGEST = 25, 10_000


def stored(path, make):
    """Return the arrays of a file, which is created if it does not exist."""
    if not path.exists():
        arrays = make()
        temporary = path.with_suffix(".part.npz")
        np.savez_compressed(temporary, **arrays)
        temporary.replace(path)
    with np.load(path) as found:
        return dict(found)


def simulation(molecule, system, seed):
    """Return a simulation at 400 K that starts at the molecule's positions."""
    integrator = openmm.LangevinMiddleIntegrator(TEMPERATURE, FRICTION, TIMESTEP)
    integrator.setRandomNumberSeed(seed)
    platform = openmm.Platform.getPlatform("Reference")  # the fastest one on one core for so few atoms
    found = app.Simulation(molecule.modeller.topology, system, integrator, platform)
    found.context.setPositions(molecule.positions)
    return found


def made_bias(molecule, nanoseconds, seed):
    """Return the bias of metadynamics along φ and ψ on a grid, in kJ/mol, and the last positions."""
    variables = []
    for one in molecule.torsions():
        force = openmm.CustomTorsionForce("theta")
        force.addTorsion(*one.atoms)
        variables.append(app.BiasVariable(force, -np.pi, np.pi, WIDTH, True, GRID))
    system = molecule.system()
    bias = app.Metadynamics(system, variables, TEMPERATURE, FACTOR, HEIGHT * unit.kilojoule_per_mole, EVERY)
    running = simulation(molecule, system, seed)
    running.minimizeEnergy()
    running.context.setVelocitiesToTemperature(TEMPERATURE, seed)
    bias.step(running, round(1000 * nanoseconds / TIMESTEP.value_in_unit(unit.picosecond)))
    surface = np.asarray(bias.getFreeEnergy().value_in_unit(unit.kilojoule_per_mole))
    last = running.context.getState(positions=True).getPositions(asNumpy=True)._value
    return {"bias": -(1 - 1 / FACTOR) * surface, "last": np.asarray(last)}


def bias_force(molecule, energies):
    """Return a static bias on the torsions φ and ψ; axis 0 of `energies` (GRID, GRID) is ψ."""
    periodic = np.pad(energies[:-1, :-1], ((0, 1), (0, 1)), mode="wrap")
    table = openmm.Continuous2DFunction(GRID, GRID, periodic.ravel(), -np.pi, np.pi, -np.pi, np.pi, True)
    force = openmm.CustomCVForce("bias(phi, psi)")
    for name, one in zip(("phi", "psi"), molecule.torsions(), strict=True):
        torsion = openmm.CustomTorsionForce("theta")
        torsion.addTorsion(*one.atoms)
        force.addCollectiveVariable(name, torsion)
    force.addTabulatedFunction("bias", table)
    force.setForceGroup(1)
    return force


def biased_chunk(molecule, energies, start, seed):
    """Simulate CHUNK frames from `start` under the static bias; return them and the bias at each in kJ/mol."""
    running = simulation(molecule, molecule.system(bias_force(molecule, energies)), seed)
    running.context.setPositions(start)
    running.context.setVelocitiesToTemperature(TEMPERATURE, seed)
    frames, biases = [], []
    for _ in range(CHUNK):
        running.step(STRIDE)
        state = running.context.getState(positions=True, energy=True, groups={1})
        frames.append(np.asarray(state.getPositions(asNumpy=True)._value, dtype=np.float32))
        biases.append(state.getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole))
    return {"frames": np.array(frames), "energies": np.array(biases)}


def biased_frames(out, molecule, nanoseconds, seed):
    """Return frames of a run of this length and their weights; finished parts are read from `out`."""
    bias = stored(out / "bias.npz", lambda: made_bias(molecule, nanoseconds / 5, seed))
    start, parts = bias["last"], []
    for k in range(round(nanoseconds * 1000 / CHUNK)):
        make = lambda start=start, k=k: biased_chunk(molecule, bias["bias"], start, seed + 1 + k)  # noqa: E731
        parts.append(stored(out / f"frames_{k:02}.npz", make))
        start = parts[-1]["frames"][-1]
        print(f"{k + 1} ns of biased frames", flush=True)
    frames, energies = (np.concatenate([part[name] for part in parts]) for name in ("frames", "energies"))
    return frames, np.exp((energies - energies.max()) / KT)


def phi_of(molecule, frames):
    """Return φ in degrees."""
    columns = descriptors([molecule.torsions()[0]], frames)
    return np.degrees(np.arctan2(columns[:, 1], columns[:, 0]))


def side_of(phi):
    """Return 0 in A, 1 in B and -1 elsewhere."""
    inside = [(phi > low) & (phi < high) for low, high in SETS]
    return np.where(inside[0], 0, np.where(inside[1], 1, -1))


def shots(molecule, frame, count, seed):
    """Shoot `count` times from a frame, with new velocities, until A or B is reached.

    Returns the first velocities in nm/ps, the set that each shot ends in (-1 if none within LONGEST steps), and the
    number of steps.
    """
    running = simulation(molecule, molecule.system(), seed)
    velocities, ends, steps = [], np.full(count, -1), np.full(count, LONGEST)
    for k in range(count):
        running.context.setPositions(frame)
        running.context.applyConstraints(1e-6)
        running.context.setVelocitiesToTemperature(TEMPERATURE, seed + 1 + k)
        state = running.context.getState(velocities=True)
        velocities.append(np.asarray(state.getVelocities(asNumpy=True)._value))
        for step in range(TESTED, LONGEST + 1, TESTED):
            running.integrator.step(TESTED)
            now = running.context.getState(positions=True).getPositions(asNumpy=True)._value
            end = int(side_of(phi_of(molecule, np.asarray(now)[None]))[0])
            if end >= 0:
                ends[k], steps[k] = end, step
                break
    return {"velocities": np.array(velocities), "ends": ends, "steps": steps}
