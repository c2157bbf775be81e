"""Build Ace-Ala3-Nme from internal coordinates and simulate it with OpenMM; writes ala3.pdb, run1.xtc, run2.xtc, ….

python examples/ala3/simulate.py [--out DIRECTORY] [--ns 2]

Protocol: amber14 (ff14SB) with GBn2 implicit solvent, no cutoff, bonds to hydrogen constrained, hydrogen mass 4 u,
LangevinMiddle integrator with 4 fs and 1/ps, at 500 K, where φ changes its sign within tens of picoseconds. Each run
starts from the minimised extended chain with its own seed, is equilibrated for 100 ps, and is then stored every
picosecond: heavy atoms, with the precision of XTC (1 pm). Also writes torsions.npz: φ and ψ of the three residues in
rad, for scripts without mdtraj. Only this script needs OpenMM (`pip install openmm`).
"""

import argparse
import io
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
TEMPERATURE_K, FRICTION_PER_PS, TIMESTEP_PS = 500.0, 1.0, 0.004
EQUILIBRATION_PS, FRAME_PS, NANOSECONDS = 100.0, 1.0, 2.0
SEEDS = (1, 2, 3)
PHI, PSI = -120.0, 130.0


def place(a, b, c, length, angle, dihedral):
    """Return the position bonded to c, at this angle to b and this dihedral to a (degrees)."""
    angle, dihedral = np.deg2rad([angle, dihedral])
    along = (c - b) / np.linalg.norm(c - b)
    normal = np.cross(b - a, along)
    normal /= np.linalg.norm(normal)
    side = np.cross(normal, along)
    x, y, z = -np.cos(angle), np.sin(angle) * np.cos(dihedral), np.sin(angle) * np.sin(dihedral)
    return c + length * (x * along + y * side + z * normal)


def build():
    """Return the topology and positions (nm) of the heavy atoms of the extended chain."""
    from openmm import Vec3, app, unit

    def at(*xyz: float) -> np.ndarray:
        return np.array(xyz) / 10

    chain = [("ACE", {"CH3": at(0, 0, 0), "C": at(1.52, 0, 0), "O": at(2.135, 1.065, 0)})]
    for _ in range(3):
        before, new = chain[-1][1], {}
        ca = before.get("CA", before.get("CH3"))
        # The nitrogen is opposite to the oxygen, in the plane of the carbonyl group.
        new["N"] = place(before["O"], ca, before["C"], 0.1335, 116.0, 180.0)
        new["CA"] = place(ca, before["C"], new["N"], 0.146, 121.0, 180.0)
        new["C"] = place(before["C"], new["N"], new["CA"], 0.152, 110.0, PHI)
        new["CB"] = place(before["C"], new["N"], new["CA"], 0.153, 110.0, PHI - 122.0)  # an L residue
        new["O"] = place(new["N"], new["CA"], new["C"], 0.123, 120.5, PSI + 180.0)
        chain.append(("ALA", new))
    before = chain[-1][1]
    nitrogen = place(before["O"], before["CA"], before["C"], 0.1335, 116.0, 180.0)
    chain.append(("NME", {"N": nitrogen, "C": place(before["CA"], before["C"], nitrogen, 0.146, 121.0, 180.0)}))

    topology = app.Topology()
    only, positions = topology.addChain(), []
    for number, (name, atoms) in enumerate(chain, 1):
        residue = topology.addResidue(name, only, str(number))
        for atom in sorted(atoms, key=["CH3", "N", "CA", "CB", "C", "O"].index):
            topology.addAtom(atom, app.Element.getBySymbol(atom[0]), residue)
            positions.append(Vec3(*map(float, atoms[atom])))
    topology.createStandardBonds()
    return topology, positions * unit.nanometer


def simulate(topology, positions, forcefield, seed: int, nanoseconds: float) -> np.ndarray:
    """Return the coordinates of the heavy atoms in nm, (n_frames, n_atoms, 3)."""
    import openmm
    from openmm import app, unit

    system = forcefield.createSystem(
        topology, nonbondedMethod=app.NoCutoff, constraints=app.HBonds, hydrogenMass=4 * unit.amu
    )
    integrator = openmm.LangevinMiddleIntegrator(
        TEMPERATURE_K * unit.kelvin, FRICTION_PER_PS / unit.picosecond, TIMESTEP_PS * unit.picoseconds
    )
    integrator.setRandomNumberSeed(seed)
    platform = openmm.Platform.getPlatformByName("CPU")
    simulation = app.Simulation(topology, system, integrator, platform, {"Threads": "1"})
    simulation.context.setPositions(positions)
    simulation.minimizeEnergy()
    simulation.context.setVelocitiesToTemperature(TEMPERATURE_K * unit.kelvin, seed)
    simulation.step(round(EQUILIBRATION_PS / TIMESTEP_PS))
    heavy = [atom.index for atom in topology.atoms() if atom.element.symbol != "H"]
    frames = []
    for _ in range(round(1000 * nanoseconds / FRAME_PS)):
        simulation.step(round(FRAME_PS / TIMESTEP_PS))
        state = simulation.context.getState(positions=True)
        frames.append(state.getPositions(asNumpy=True).value_in_unit(unit.nanometer)[heavy])
    return np.array(frames)


def main() -> None:
    """Build, simulate and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE, help="the directory to write to")
    parser.add_argument("--ns", type=float, default=NANOSECONDS, help="length of each run after equilibration")
    arguments = parser.parse_args()
    import mdtraj
    from openmm import app

    topology, positions = build()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pdb = arguments.out / "ala3.pdb"
    written = io.StringIO()
    app.PDBFile.writeFile(topology, positions, written)
    pdb.write_text(written.getvalue().partition("\n")[2])  # without the date in the first line
    forcefield = app.ForceField("amber14-all.xml", "implicit/gbn2.xml")
    modeller = app.Modeller(topology, positions)
    modeller.addHydrogens(forcefield)
    stored, torsions = mdtraj.load_topology(str(pdb)), {}
    for number, seed in enumerate(SEEDS, 1):
        xyz = simulate(modeller.topology, modeller.positions, forcefield, seed, arguments.ns)
        time = EQUILIBRATION_PS + FRAME_PS * np.arange(1, len(xyz) + 1)
        run = mdtraj.Trajectory(xyz, stored, time=time)
        run.save_xtc(str(arguments.out / f"run{number}.xtc"))
        torsions[f"run{number}"] = backbone(run)
        print(f"run {number}, seed {seed}: {len(xyz)} frames", flush=True)
    np.savez_compressed(arguments.out / "torsions.npz", **torsions)


def backbone(run) -> np.ndarray:
    """Return φ and ψ of the three residues, (n_frames, 6)."""
    import mdtraj

    return np.hstack([mdtraj.compute_phi(run)[1], mdtraj.compute_psi(run)[1]]).astype(np.float32)


if __name__ == "__main__":
    main()
