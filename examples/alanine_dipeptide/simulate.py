"""Simulate alanine dipeptide with OpenMM by the protocol of the data set (README.md), and write the same kind of file.

`python examples/alanine_dipeptide/simulate.py new.npz --ns 100` takes hours on a CPU. The starting structure is the
first frame of the data set, with hydrogens added by the force field. Only this script needs OpenMM
(`pip install openmm`).
"""

import argparse
from pathlib import Path

import numpy as np
from alanine import STEP_PS, align, dihedral, load

TEMPERATURE_K, FRICTION_PER_PS, TIMESTEP_PS = 400.0, 1.0, 0.002
EQUILIBRATION_PS = 1000.0
#: Indices of the heavy atoms that are joined by bonds.
BONDS = ((0, 1), (1, 2), (1, 3), (3, 4), (4, 5), (4, 6), (6, 7), (6, 8), (8, 9))


def build(data):
    """Build the topology and positions of ACE-ALA-NME with hydrogens, and the force field."""
    from openmm import Vec3, app, unit

    topology = app.Topology()
    chain, residues, atoms = topology.addChain(), {}, []
    for label in data["atom_names"]:
        residue, name = str(label).split("-")
        if residue not in residues:
            residues[residue] = topology.addResidue(residue, chain)
        atoms.append(topology.addAtom(name, app.Element.getBySymbol(name[0]), residues[residue]))
    for i, j in BONDS:
        topology.addBond(atoms[i], atoms[j])
    positions = [Vec3(*map(float, row)) for row in data["xyz_aligned"][0]] * unit.nanometer
    forcefield = app.ForceField("amber99sbildn.xml", "amber99_obc.xml")
    modeller = app.Modeller(topology, positions)
    modeller.addHydrogens(forcefield)
    return modeller, forcefield


def simulate(nanoseconds: float, seed: int, data) -> np.ndarray:
    """Simulate heavy-atom coordinates (n_frames, 10, 3) in nm, one frame every 5 ps."""
    import openmm
    from openmm import app, unit

    modeller, forcefield = build(data)
    system = forcefield.createSystem(modeller.topology, nonbondedMethod=app.NoCutoff, constraints=app.HBonds)
    integrator = openmm.LangevinMiddleIntegrator(
        TEMPERATURE_K * unit.kelvin, FRICTION_PER_PS / unit.picosecond, TIMESTEP_PS * unit.picoseconds
    )
    integrator.setRandomNumberSeed(seed)
    simulation = app.Simulation(modeller.topology, system, integrator)
    simulation.context.setPositions(modeller.positions)
    simulation.minimizeEnergy()
    simulation.context.setVelocitiesToTemperature(TEMPERATURE_K * unit.kelvin, seed)
    labels = [f"{atom.residue.name}-{atom.name}" for atom in modeller.topology.atoms()]
    heavy = [labels.index(str(label)) for label in data["atom_names"]]
    simulation.step(round(EQUILIBRATION_PS / TIMESTEP_PS))
    frames = []
    for _ in range(round(1000 * nanoseconds / STEP_PS)):
        simulation.step(round(STEP_PS / TIMESTEP_PS))
        state = simulation.context.getState(getPositions=True)
        frames.append(state.getPositions(asNumpy=True).value_in_unit(unit.nanometer)[heavy])
    return np.array(frames)


def main() -> None:
    """Simulate and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="the .npz file to write")
    parser.add_argument("--ns", type=float, default=100.0, help="length after equilibration, in nanoseconds")
    parser.add_argument("--seed", type=int, default=1, help="seed of the noise; 0 means a new one every time")
    arguments = parser.parse_args()
    data = load()
    xyz = simulate(arguments.ns, arguments.seed, data)
    temporary = arguments.out.with_name(arguments.out.name + ".tmp")
    with open(temporary, "wb") as file:
        np.savez_compressed(
            file,
            xyz_aligned=align(xyz, data["xyz_aligned"][0]).astype(np.float32),
            phi=dihedral(xyz, "phi").astype(np.float32),
            psi=dihedral(xyz, "psi").astype(np.float32),
            time_ps=(STEP_PS * np.arange(len(xyz))).astype(np.float32),
            atom_names=data["atom_names"],
        )
    temporary.replace(arguments.out)


if __name__ == "__main__":
    main()
