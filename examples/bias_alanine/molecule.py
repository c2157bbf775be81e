"""Alanine dipeptide in implicit solvent, as in examples/alanine_dipeptide (amber99sb-ildn, GBSA-OBC2), at 300 K."""

import sys
from pathlib import Path

import numpy as np
import openmm
from openmm import app, unit

from kdmaps.simulation import AlignedPositions, Distance, Torsion

DATA = Path(__file__).resolve().parents[1] / "alanine_dipeptide"
sys.path.insert(0, str(DATA))
from alanine import load  # noqa: E402
from simulate import build  # noqa: E402

TEMPERATURE, FRICTION, TIMESTEP = 300 * unit.kelvin, 1 / unit.picosecond, 0.002 * unit.picosecond
KT = 8.31446e-3 * 300  # kJ/mol
#: Names of the atoms of φ and ψ.
PHI = ("ACE-C", "ALA-N", "ALA-CA", "ALA-C")
PSI = ("ALA-N", "ALA-CA", "ALA-C", "NME-N")


class Molecule:
    """Topology, positions (n_atoms, 3) in nm, numbers of atoms by name, and systems to add forces to."""

    def __init__(self):
        self.data = load()
        self.modeller, self._field = build(self.data)
        labels = [f"{atom.residue.name}-{atom.name}" for atom in self.modeller.topology.atoms()]
        self.number = {label: i for i, label in enumerate(labels)}
        self.positions = np.array(self.modeller.positions.value_in_unit(unit.nanometer))

    def system(self, *forces):
        """Return a system with these forces added."""
        system = self._field.createSystem(self.modeller.topology, nonbondedMethod=app.NoCutoff, constraints=app.HBonds)
        for force in forces:
            system.addForce(force)
        return system

    def start(self, system, seed, platform="Reference", properties=None):
        """Return a simulation of the minimised molecule in this system.

        (On one core, the Reference platform takes a quarter of the time of the CPU platform for so few atoms.)
        """
        integrator = openmm.LangevinMiddleIntegrator(TEMPERATURE, FRICTION, TIMESTEP)
        integrator.setRandomNumberSeed(seed)
        simulation = app.Simulation(
            self.modeller.topology, system, integrator, openmm.Platform.getPlatform(platform), properties or {}
        )
        simulation.context.setPositions(self.positions)
        simulation.minimizeEnergy()
        simulation.context.setVelocitiesToTemperature(TEMPERATURE, seed)
        return simulation

    @property
    def heavy(self):
        """Numbers of the heavy atoms in the order of the data set."""
        return [self.number[str(label)] for label in self.data["atom_names"]]

    def torsions(self):
        """Return the inputs φ and ψ."""
        return [Torsion(tuple(self.number[name] for name in names)) for names in (PHI, PSI)]

    def distances(self, count=10):
        """Return distances of heavy atoms that are not bonded."""
        pairs = [(i, j) for a, i in enumerate(self.heavy) for j in self.heavy[a + 3 :]]
        return [Distance(*pair) for pair in pairs[:count]]

    def aligned(self):
        """Return the 30 coordinates of the heavy atoms, superposed on the first frame of the data set."""
        return [AlignedPositions(self.heavy, self.data["xyz_aligned"][0])]

    def frames(self, xyz):
        """Return whole frames (n, n_atoms, 3) that hold heavy atoms of the data set, hydrogens where they are now."""
        frames = np.tile(self.positions, (len(xyz), 1, 1))
        frames[:, self.heavy] = xyz
        return frames
